/* Networks that npumemctl check has run, and how it reports what they gave. */
#ifndef CTL_CHECKED_H
#define CTL_CHECKED_H

#include "client/ctl/conform/sweeping.h"
#include "client/ctl/network/layers.h"

/* One network of the command line. */
struct checked {
	const char *path;
	struct network network;
	struct layers layers;
};

struct check {
	struct ctl *ctl;
	struct variants variants;
	bool is_placed; /* by the variants; else as the networks say */
	struct checked *list;
	unsigned n;
	struct sweep sweep; /* an item is a network in a placement */
	size_t n_cases, n_failed;
};

static inline unsigned checked_placements(const struct check *check)
{
	return check->is_placed ? check->variants.n : 1;
}

/* Of a path what is the same on every host. */
const char *checked_base(const char *path);

/* Prints what the layers gave, and writes --junit. CTL_FAILED if a comparison failed. */
int checked_report(struct check *check, const struct args *args);

#endif
