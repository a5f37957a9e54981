/* The files that a network's reads write: below one folder, whatever the network says. Another user may
 * have written the network, so its paths must not reach files elsewhere. */
#ifndef CTL_CORE_NETWORK_OUTPUTS_H
#define CTL_CORE_NETWORK_OUTPUTS_H

#include <stdio.h>

#include "client/ctl/core/network/network.h"

struct outputs {
	const char *path; /* of the folder, for messages; the caller's */
	int folder;	  /* -1: it is not there, and was not to be made */
	bool made;	  /* it was not there before */
};

/* Whether a path leads out of the folder that it is relative to: it is absolute, or has "..". */
bool outputs_leaves(const char *file);

/* Checks the path of each file that `network` writes: its folders are folders and no symbolic links, and where it
 * exists it is a regular file. With `make`, folders that are missing are made, `path` itself included. 0; INVALID,
 * naming the operation: then nothing is to be closed. */
int outputs_open(struct outputs *outputs, const char *path, const struct network *network, bool make,
		 struct npumem_error *error);
/* A new or emptied file, or with `append` one to be gone on with, for the caller to close. Follows no link, also
 * one that came after outputs_open. 0 or INVALID. */
int outputs_create(const struct outputs *outputs, const char *file, bool append, FILE **created,
		   struct npumem_error *error);
/* Removes the folder again where it was made and nothing was written to it. */
void outputs_close(struct outputs *outputs);

#endif
