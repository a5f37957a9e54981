/* The names of tensors: maps (uid, name) to a record. The only file that adds or removes names. */
#ifndef SERVICE_NAMES_H
#define SERVICE_NAMES_H

#include "daemon/device/memory/chunks.h"
#include "daemon/service/tensors/record.h"

struct names {
	const struct heap *heap;
	struct chunks chunks; /* of buckets */
	size_t n_buckets, n;
	uint64_t seed;
};

/* `seed`: unknown to clients, so that no client can choose names that share a bucket. 0 or -ENOMEM. */
int names_init(struct names *names, const struct heap *heap, uint64_t seed);
void names_deinit(struct names *names);

/* Whether a name is valid: 1 to 63 of A-Z a-z 0-9 _ . - /, not digits alone. 0 or INVALID. */
int names_check(const char *name, struct npumem_error *error);

/* Whether a label is valid: at most 63 bytes of printable ASCII. 0 or INVALID. */
int names_check_label(const char *label, struct npumem_error *error);

/* NULL: there is none. `name` may be any string. A record that is going is still found. */
struct record *names_find(const struct names *names, uint32_t uid, const char *name);

/* Adds a record; its uid and name are set and not in the table yet. Cannot fail. */
void names_add(struct names *names, struct record *record);
void names_remove(struct names *names, struct record *record);

#endif
