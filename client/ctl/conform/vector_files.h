/* The files of golden vectors that a command line names, and their cases as the items of a sweep. */
#ifndef CTL_VECTOR_FILES_H
#define CTL_VECTOR_FILES_H

#include "client/ctl/ctl.h"
#include "client/ctl/core/sweep/sweep.h"

struct vector_file {
	char *path;
	json_t *root;	 /* of a pipe, which can be read once; else NULL */
	size_t first, n; /* of its items; one, where it cannot be read */
};

struct vector_files {
	struct vector_file *list;
	size_t n;
};

/* Finds the files, in the order of the words and within folders of their names, and adds each case to the sweep,
 * named by the file within its folder and by itself. CTL_OK or CTL_FAILED. */
int vector_files_find(struct ctl *ctl, const char *const *words, unsigned n_words, struct sweep *sweep,
		      struct vector_files *files);
/* Reads a file again, as vectors_load does. */
int vector_files_load(const struct vector_file *file, json_t **root, const json_t **cases,
		      struct npumem_error *error);

#endif
