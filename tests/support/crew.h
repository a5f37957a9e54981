/* Threads that share a kernel's work with the one that runs it, for tests: as many as are asked for, at once. */
#ifndef TESTS_SUPPORT_CREW_H
#define TESTS_SUPPORT_CREW_H

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>

#include "daemon/device/operations/kernel.h"

enum { CREW_HELPERS_MAX = 11 };

struct crew {
	unsigned n_helpers; /* up to CREW_HELPERS_MAX */
	bool leave;	    /* they are wanted elsewhere after each part */
	void (*work)(void *arg, unsigned number);
	void *arg;
	atomic_uint n_started;
};

static _Thread_local bool crew_helps;

static void *crew_help(void *ctx)
{
	struct crew *crew = ctx;
	crew_helps = true;
	crew->work(crew->arg, atomic_fetch_add(&crew->n_started, 1) + 1);
	return NULL;
}

static void crew_share(void *ctx, int64_t steps, void (*work)(void *arg, unsigned number), void *arg)
{
	(void)steps;
	struct crew *crew = ctx;
	pthread_t threads[CREW_HELPERS_MAX];
	crew->work = work;
	crew->arg = arg;
	crew->n_started = 0;
	for (unsigned i = 0; i < crew->n_helpers; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, crew_help, crew), 0);
	work(arg, 0);
	for (unsigned i = 0; i < crew->n_helpers; i++)
		pthread_join(threads[i], NULL);
}

static bool crew_is_wanted_elsewhere(void *ctx)
{
	return crew_helps && ((struct crew *)ctx)->leave;
}

/* `crew` outlives it. */
static inline struct kernel_crew crew_of(struct crew *crew)
{
	return (struct kernel_crew){crew_share, crew_is_wanted_elsewhere, crew, crew->n_helpers + 1};
}

#endif
