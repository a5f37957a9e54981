/* The names of tensors: (uid, name) to its record, unique per uid. The one place where a name comes or goes. */
#ifndef SERVICE_NAMES_H
#define SERVICE_NAMES_H

#include "daemon/device/memory/chunks.h"
#include "daemon/service/record.h"

struct names {
	const struct heap *heap;
	struct chunks chunks; /* of buckets */
	size_t n_buckets, n;
	uint64_t seed;
};

/* `seed`: not known to clients, so that nobody can choose names that share a bucket. 0 or -ENOMEM. */
int names_init(struct names *names, const struct heap *heap, uint64_t seed);
void names_deinit(struct names *names);

/* Whether a name may be given: 1 to 63 of A-Z a-z 0-9 _ . - /, not digits alone. 0 or INVALID. */
int names_check(const char *name, struct npumem_error *error);

/* Whether a label may be given: at most 63 bytes of printable ASCII. 0 or INVALID. */
int names_check_label(const char *label, struct npumem_error *error);

/* NULL where there is none; any `name` may be asked for. One that is going still has its name. */
struct record *names_find(const struct names *names, uint32_t uid, const char *name);

/* Puts in a record whose uid and name are set and not there yet; cannot fail. */
void names_add(struct names *names, struct record *record);
void names_remove(struct names *names, struct record *record);

#endif
