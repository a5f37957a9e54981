/* The store has a note of each request that runs (one that gave way to another does not), so that the next process
 * knows which ones ran when this one died. A request of a session with a token that ran at two deaths is not run a
 * third time (rpc/handlers/replayed.h). Without a store all of this does nothing. */
#ifndef SERVICE_RUNS_H
#define SERVICE_RUNS_H

#include "daemon/service/tables.h"
#include "daemon/store/store.h"

/* The loop works on this request from now on, and not on the one before. */
static inline void runs_on_loop(const struct session *session, uint64_t request, uint32_t method)
{
	const struct persist *persist = &session->service->persist;

	if (persist->loop_run)
		store_run_begin(persist->store, persist->loop_run, session->id, request, method);
}

/* The loop works on no request. */
static inline void runs_off_loop(const struct service *service)
{
	if (service->persist.loop_run)
		store_run_end(service->persist.store, service->persist.loop_run);
}

/* Work of a request for another thread. Zero at first. */
struct runs_note {
	struct store *store;   /* NULL: there is none */
	struct store_run *run; /* NULL: not noted */
	uint64_t session, request;
	uint32_t method;
};

/* On the loop's thread, before the work is handed over. */
static inline void runs_plan(struct runs_note *note, const struct session *session, uint64_t request,
			     uint32_t method)
{
	*note = (struct runs_note){session->service->persist.store, NULL, session->id, request, method};
}

/* On the work's thread, around the work: a request that waits for a thread is not noted. */
static inline void runs_begin(struct runs_note *note)
{
	if (!note->store)
		return;
	note->run = store_run_take(note->store); /* of STORE_RUNS_MAX one is free: server/loop/workers.h */
	store_run_begin(note->store, note->run, note->session, note->request, note->method);
}

static inline void runs_end(struct runs_note *note)
{
	if (note->run)
		store_run_give(note->store, note->run);
	note->run = NULL;
}

#endif
