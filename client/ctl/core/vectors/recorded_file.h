/* A file of recorded vectors, DIR/<kernel>.json: opened, given a case more, replaced as a whole. */
#ifndef CTL_CORE_RECORDED_FILE_H
#define CTL_CORE_RECORDED_FILE_H

#include <jansson.h>

#include <npumem/types.h>

struct recorded_file {
	int directory; /* locked against other recorders */
	char kernel[64], path[512];
	json_t *root;
};

/* Reads the kernel's file in a folder that exists, or starts one in memory. Waits for others that record there.
 * 0; INVALID (the folder, or a file that is not of this family and recorded), and then nothing is to be closed.
 * Writes nothing. */
int recorded_file_open(struct recorded_file *recorded, const char *directory, const char *kernel,
		       struct npumem_error *error);
/* The number after the largest that a case "…/recordedN@…" of it has; 1 for the first. */
unsigned recorded_file_next(const struct recorded_file *recorded);
/* Adds the case and writes the file anew: a reader sees it with or without the case, never half. 0 or INVALID: it
 * cannot be written, and is as it was. */
int recorded_file_append(struct recorded_file *recorded, json_t *one, struct npumem_error *error);
void recorded_file_close(struct recorded_file *recorded);

#endif
