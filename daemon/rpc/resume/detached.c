/* Sessions, each with a peer that sends nothing, so that its end is like that of any other. Invariant: those in
 * rpc->detached have a token and wait for their clients, the earliest deadline first; those in rpc->leaving have
 * waited in vain and end; the storage of those in rpc->ended goes a little later, as the caller may still use
 * their peers. */
#include "daemon/rpc/resume/detached.h"

#include <stddef.h>
#include <utlist.h>

#include "daemon/rpc/calls/ending.h"
#include "daemon/rpc/order/gate.h"
#include "daemon/service/kept/persist.h"

struct detached {
	struct session session;
	struct rpc_peer peer;
	struct rpc *rpc;
	struct limits_user *user; /* in whose n_detached it is; NULL: not yet */
	uint64_t deadline_ns;
	struct detached *next, *prev;
};

static void on_drained(void *ctx)
{
	struct detached *detached = ctx;
	struct rpc *rpc = detached->rpc;

	if (detached->user)
		detached->user->n_detached--;
	session_deinit(&detached->session);
	if (detached->peer.is_closing)
		DL_DELETE(rpc->leaving, detached);
	else
		DL_DELETE(rpc->detached, detached);
	LL_PREPEND(rpc->ended, detached);
}

/* There is no client. */
static void on_delivered(void *ctx, struct buffer *reply)
{
	(void)ctx;
	reply->used = 0;
}

static void free_ended(struct rpc *rpc)
{
	struct detached *detached, *next;

	LL_FOREACH_SAFE(rpc->ended, detached, next)
	heap_free(rpc->heap, detached);
	rpc->ended = NULL;
}

static struct detached *begin(struct rpc *rpc)
{
	const uint64_t NS_PER_SECOND = 1000000000;
	struct detached *detached;

	free_ended(rpc);
	detached = heap_zalloc(rpc->heap, 1, sizeof(*detached));
	if (!detached)
		return NULL;
	detached->rpc = rpc;
	detached->peer = (struct rpc_peer){
		.session = &detached->session, .deliver = on_delivered, .drained = on_drained, .ctx = detached};
	detached->deadline_ns = rpc->now_ns() + rpc->service->persist.resume_seconds * NS_PER_SECOND;
	DL_APPEND(rpc->detached, detached);
	return detached;
}

struct session *detached_new(void *rpc)
{
	struct detached *detached = begin(rpc);

	return detached ? &detached->session : NULL;
}

/* A user has no more of these than it may have connections. */
static bool has_room(const struct rpc *rpc, const struct session *session)
{
	return session->user->n_detached < limits_most(&rpc->service->limits, session->user, LIMITS_SESSIONS);
}

static void count(struct detached *detached)
{
	detached->user = detached->session.user;
	detached->user->n_detached++;
}

void detached_recovered(struct rpc *rpc)
{
	struct detached *detached;

	DL_FOREACH(rpc->detached, detached)
	count(detached);
}

bool detached_keep(struct rpc *rpc, struct rpc_peer *peer)
{
	struct session *session = peer->session;
	struct detached *detached;

	if (!session->has_token || session->is_detached)
		return false;
	if (!rpc->keeps_sessions && !session->lingers)
		return false;
	if (!rpc->keeps_sessions && !has_room(rpc, session)) {
		if (rpc->not_kept)
			rpc->not_kept(rpc->ctx, session);
		return false;
	}
	detached = begin(rpc);
	if (!detached)
		return false;
	if (session_stay_away(session, &detached->session)) {
		DL_DELETE(rpc->detached, detached);
		heap_free(rpc->heap, detached);
		return false;
	}
	count(detached);
	return true;
}

/* The one whose session it is; NULL: the session has a connection, or its time is over. */
static struct detached *detached_of(struct session *session)
{
	struct detached *detached = (struct detached *)((char *)session - offsetof(struct detached, session));

	return session->is_detached && !detached->peer.is_closing ? detached : NULL;
}

int detached_return(struct rpc *rpc, struct session *session, const uint8_t *token, size_t bytes,
		    struct npumem_error *error)
{
	struct session *found = NULL;
	struct detached *detached;

	if (bytes == PERSIST_TOKEN_BYTES)
		found = persist_session_find(&rpc->service->persist, session->uid, token);
	if (!found)
		return npumem_error_set(error, NPUMEM_NOT_FOUND, "no session of uid %u waits for this token",
					session->uid);
	detached = detached_of(found);
	if (!found->is_detached && found->lingers && rpc->hang_up)
		rpc->hang_up(rpc->ctx, found);
	if (!detached)
		return npumem_error_set(error, NPUMEM_UNAVAILABLE,
					"the session of this token has a connection that has not ended");
	session_hand_over(found, session);
	gate_forget(rpc, &detached->peer);
	on_drained(detached);
	/* Everybody can guess this token: it is good for once, and the end of its connection is the session's end.
	 */
	if (rpc->service->persist.is_replay)
		session_forget(session);
	return 0;
}

uint64_t detached_due(const struct rpc *rpc)
{
	return rpc->detached ? rpc->detached->deadline_ns : UINT64_MAX;
}

/* All sessions of a state that was recovered have one deadline. */
void detached_expire(struct rpc *rpc)
{
	enum { AT_ONCE = 32 };
	uint64_t now_ns = rpc->now_ns();
	struct detached *detached;

	free_ended(rpc);
	for (unsigned i = 0; i < AT_ONCE && (detached = rpc->detached) && detached->deadline_ns <= now_ns; i++) {
		DL_DELETE(rpc->detached, detached);
		DL_APPEND(rpc->leaving, detached);
		ending_announce(rpc, &detached->peer);
	}
}

static void leave(struct rpc *rpc, struct detached **list)
{
	struct detached *detached, *next;

	DL_FOREACH_SAFE(*list, detached, next)
	{
		fair_queue_remove(&detached->peer.turn);
		if (detached->session.service)
			session_leave(&detached->session);
		heap_free(rpc->heap, detached);
	}
	*list = NULL;
}

void detached_deinit(struct rpc *rpc)
{
	leave(rpc, &rpc->detached);
	leave(rpc, &rpc->leaving);
	free_ended(rpc);
}
