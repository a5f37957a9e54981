/* Sessions, each with a peer that sends nothing, so that its end is like that of any other. Invariant: those in
 * rpc->absent have a token and wait for their clients, the earliest deadline first; those in rpc->leaving have
 * waited in vain and end; the storage of those in rpc->spent goes a little later, as the caller may still use
 * their peers. */
#include "daemon/rpc/resume/absent.h"

#include <stddef.h>
#include <utlist.h>

#include "daemon/rpc/calls/ending.h"
#include "daemon/rpc/order/gate.h"
#include "daemon/service/kept/persist.h"

struct absent {
	struct session session;
	struct rpc_peer peer;
	struct rpc *rpc;
	struct limits_user *user; /* in whose n_absent it is; NULL: not yet */
	uint64_t deadline_ns;
	struct absent *next, *prev;
};

static void on_drained(void *ctx)
{
	struct absent *absent = ctx;
	struct rpc *rpc = absent->rpc;

	if (absent->user)
		absent->user->n_absent--;
	session_deinit(&absent->session);
	if (absent->peer.is_closing)
		DL_DELETE(rpc->leaving, absent);
	else
		DL_DELETE(rpc->absent, absent);
	LL_PREPEND(rpc->spent, absent);
}

/* Nobody is there to be told anything. */
static void on_delivered(void *ctx, struct buffer *reply)
{
	(void)ctx;
	reply->used = 0;
}

static void free_spent(struct rpc *rpc)
{
	struct absent *absent, *next;

	LL_FOREACH_SAFE(rpc->spent, absent, next)
	heap_free(rpc->heap, absent);
	rpc->spent = NULL;
}

static struct absent *begin(struct rpc *rpc)
{
	const uint64_t NS_PER_SECOND = 1000000000;
	struct absent *absent;

	free_spent(rpc);
	absent = heap_zalloc(rpc->heap, 1, sizeof(*absent));
	if (!absent)
		return NULL;
	absent->rpc = rpc;
	absent->peer = (struct rpc_peer){
		.session = &absent->session, .deliver = on_delivered, .drained = on_drained, .ctx = absent};
	absent->deadline_ns =
		rpc->now_ns ? rpc->now_ns() + rpc->service->persist.resume_seconds * NS_PER_SECOND : UINT64_MAX;
	DL_APPEND(rpc->absent, absent);
	return absent;
}

struct session *absent_new(struct rpc *rpc)
{
	struct absent *absent = begin(rpc);

	return absent ? &absent->session : NULL;
}

/* A user has no more of these than it may have connections. */
static bool has_room(const struct rpc *rpc, const struct session *session)
{
	return session->user->n_absent < limits_most(&rpc->service->limits, session->user, LIMITS_SESSIONS);
}

static void count(struct absent *absent)
{
	absent->user = absent->session.user;
	absent->user->n_absent++;
}

void absent_recovered(struct rpc *rpc)
{
	struct absent *absent;

	DL_FOREACH(rpc->absent, absent)
	count(absent);
}

bool absent_keep(struct rpc *rpc, struct rpc_peer *peer)
{
	struct session *session = peer->session;
	struct absent *absent;

	if (!session->has_token || session->is_absent)
		return false;
	if (!rpc->keeps_sessions && !session->lingers)
		return false;
	if (!rpc->keeps_sessions && !has_room(rpc, session)) {
		if (rpc->not_kept)
			rpc->not_kept(rpc->ctx, session);
		return false;
	}
	absent = begin(rpc);
	if (!absent)
		return false;
	if (session_stay_away(session, &absent->session)) {
		DL_DELETE(rpc->absent, absent);
		heap_free(rpc->heap, absent);
		return false;
	}
	count(absent);
	return true;
}

/* The one whose session it is; NULL: the session has a connection, or its time is over. */
static struct absent *absent_of(struct session *session)
{
	struct absent *absent = (struct absent *)((char *)session - offsetof(struct absent, session));

	return session->is_absent && !absent->peer.is_closing ? absent : NULL;
}

int absent_return(struct rpc *rpc, struct session *session, const uint8_t *token, size_t bytes,
		  struct npumem_error *error)
{
	struct session *found = NULL;
	struct absent *absent;

	if (bytes == PERSIST_TOKEN_BYTES)
		found = persist_session_find(&rpc->service->persist, session->uid, token);
	if (!found)
		return npumem_error_set(error, NPUMEM_NOT_FOUND, "no session of uid %u waits for this token",
					session->uid);
	absent = absent_of(found);
	if (!found->is_absent && found->lingers && rpc->hang_up)
		rpc->hang_up(rpc->ctx, found);
	if (!absent)
		return npumem_error_set(error, NPUMEM_UNAVAILABLE,
					"the session of this token has a connection that has not ended");
	session_hand_over(found, session);
	gate_forget(rpc, &absent->peer);
	on_drained(absent);
	/* What everybody can guess is good for once, and the end of its connection is its end. */
	if (rpc->service->persist.is_replay)
		session_forget(session);
	return 0;
}

uint64_t absent_due(const struct rpc *rpc)
{
	return rpc->absent ? rpc->absent->deadline_ns : UINT64_MAX;
}

/* All sessions of a state that was recovered have one deadline. */
void absent_look(struct rpc *rpc)
{
	enum { AT_ONCE = 32 };
	uint64_t now_ns = rpc->now_ns ? rpc->now_ns() : 0;
	struct absent *absent;

	free_spent(rpc);
	for (unsigned i = 0; i < AT_ONCE && (absent = rpc->absent) && absent->deadline_ns <= now_ns; i++) {
		DL_DELETE(rpc->absent, absent);
		DL_APPEND(rpc->leaving, absent);
		ending_announce(rpc, &absent->peer);
	}
}

static void leave(struct rpc *rpc, struct absent **list)
{
	struct absent *absent, *next;

	DL_FOREACH_SAFE(*list, absent, next)
	{
		fair_queue_remove(&absent->peer.turn);
		if (absent->session.service)
			session_leave(&absent->session);
		heap_free(rpc->heap, absent);
	}
	*list = NULL;
}

void absent_deinit(struct rpc *rpc)
{
	leave(rpc, &rpc->absent);
	leave(rpc, &rpc->leaving);
	free_spent(rpc);
}
