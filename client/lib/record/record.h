/* What writing and replaying a record share. */
#ifndef CLIENT_LIB_RECORD_H
#define CLIENT_LIB_RECORD_H

#include <npumem/record.h>

#define RECORD_MAGIC "npumem record 2\n"
enum { RECORD_MAGIC_BYTES = 16 };
/* The file that identifies a snapshot. */
#define RECORD_MANIFEST "manifest"

/* What the device holds, in numbers. */
struct record_sums {
	uint64_t hash;	 /* of all tensors' data */
	uint32_t *local; /* CRC-32 of each NPU's local memory */
	size_t n_local;
};

/* A result, to be released. 0 or a status. */
int record_sums(struct npumem *npumem, const struct record_sums **sums, struct npumem_error *error);

#endif
