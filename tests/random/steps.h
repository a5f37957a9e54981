/* A trace's requests as steps of which an order is looked for (explain.c), and which of them must go before which.
 */
#ifndef TESTS_RANDOM_STEPS_H
#define TESTS_RANDOM_STEPS_H

#include "tests/random/run.h"

enum { STEPS_MAX = 2 * RUN_RECORDS + TRACE_PEERS };

struct step {
	const struct run_record *record; /* NULL: the client is gone */
	unsigned peer;
	uint64_t sent, answered; /* UINT64_MAX: never */
	uint64_t key;		 /* where it is tried first; steps are sorted by it */
	bool must_be;		 /* else, as it was never answered, it is somewhere or nowhere; */
	bool is_unlikely;	 /* and more likely nowhere */
	bool is_waiting;	 /* those that its client sent after it need not wait for it */
	bool is_nothing;	 /* it was taken back before it began */
	bool is_refused;	 /* when its names were looked up */
	/* What it may have done before the daemon was killed, and was asked for again: nobody was told of that. */
	bool is_before_crash;
	bool is_done;
	unsigned named;	  /* a bit for each tensor that it names */
	unsigned tensors; /* with their views: two that have no bit in common have nothing to do with each other */
	uint64_t number;  /* a random one */
};

/* How many there are. */
unsigned steps_of(const struct run *run, struct step steps[STEPS_MAX]);
/* Whether a goes before b by what their client sent. */
bool steps_is_before(const struct step *a, const struct step *b);

#endif
