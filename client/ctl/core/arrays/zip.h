/* .npz files: .npy files in a ZIP archive, stored or deflated. */
#ifndef CTL_CORE_ZIP_H
#define CTL_CORE_ZIP_H

#include <stdio.h>

#include <npumem/types.h>

enum { ZIP_BYTES_MAX = 1 << 30 }; /* of one array */

/* The array `name` (with or without .npy; NULL: the only one) of the archive, as a file to read, which the caller
 * closes. 0; INVALID: no archive, a damaged one, no such array (with the names that there are);
 * RESOURCE_EXHAUSTED. */
int zip_open(FILE *archive, const char *name, FILE **member, struct npumem_error *error);

#endif
