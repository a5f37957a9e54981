/* Describes a state directory for people. Reads it without the lock, while a daemon may have it open. Changes
 * nothing. */
#ifndef STORE_DESCRIBE_H
#define STORE_DESCRIBE_H

#include "daemon/store/files/aside.h"

struct store_description {
	enum store_verdict verdict;   /* of any geometry */
	char line[STORE_ERROR_BYTES]; /* the reason if it is not USABLE or EMPTY */
	uint32_t format;	      /* 0: unknown, as are all members below */
	char geometry[STORE_TEXT_BYTES_MAX];
	uint64_t memory_bytes;
	bool was_closed, is_in_use;
	uint32_t n_tensors; /* with views; slightly out of date if the process runs or was killed */
};

/* 0; -errno with a line in `error`: the directory cannot be read. */
int store_describe(const char *directory, const struct heap *heap, struct store_description *out, char *error);

#endif
