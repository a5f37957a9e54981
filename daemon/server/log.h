/* One line per event on stderr, with a priority in front where the journal reads it. */
#ifndef SERVER_LOG_H
#define SERVER_LOG_H

#include <stdbool.h>

/* Syslog's priorities, those that are used. */
enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARNING = 4, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG = 7 };

/* Lines below `level` in importance are not written. */
void log_init(enum log_level level);
/* 0 for a name that is none of error, warning, info, debug. */
int log_level_parse(const char *name);

/* Writes "npumemd: ..." and a newline; printf style. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
