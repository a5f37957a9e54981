/* What a state directory has, for people: read without the lock, while a daemon may have it open. Changes nothing.
 */
#ifndef STORE_DESCRIBE_H
#define STORE_DESCRIBE_H

#include "daemon/store/aside.h"

struct store_description {
	enum store_verdict verdict;   /* of any geometry */
	char line[STORE_ERROR_BYTES]; /* where it is not USABLE or EMPTY */
	uint32_t format;	      /* 0: not known, as is all below */
	char geometry[STORE_TEXT_BYTES_MAX];
	uint64_t memory_bytes;
	bool was_closed, is_in_use;
	uint32_t n_tensors; /* with views; those of a process that runs, or was killed, may be a moment older */
};

/* 0; -errno with a line in `error` where the directory cannot be read. */
int store_describe(const char *directory, const struct heap *heap, struct store_description *out, char *error);

#endif
