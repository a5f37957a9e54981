/* The page's own files, put into files.c by the build. */
#ifndef CTL_CORE_REPORT_FILES_H
#define CTL_CORE_REPORT_FILES_H

extern const char files_html[], files_css[], files_model[], files_graph[], files_page[];

#endif
