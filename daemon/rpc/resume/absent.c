/* A list of sessions, each with a peer that asks for nothing, so that its end is like any other's. Invariant: what
 * is in rpc->absent has a token; what has none any more is in rpc->spent, whose storage goes a little later, as
 * whoever ended it may still look at its peer. */
#include "daemon/rpc/resume/absent.h"

#include <utlist.h>

#include "daemon/rpc/calls/advance.h"

struct absent {
	struct session session;
	struct rpc_peer peer;
	struct rpc *rpc;
	uint64_t deadline_ns;
	struct absent *next, *prev;
};

static void on_drained(void *ctx)
{
	struct absent *absent = ctx;
	struct rpc *rpc = absent->rpc;

	session_deinit(&absent->session);
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

/* Of a uid there are no more of these than it may have connections. */
static bool has_room(const struct rpc *rpc, const struct session *session)
{
	uint64_t most = limits_most(&rpc->service->limits, session->user, LIMITS_SESSIONS), n = 0;
	const struct absent *absent;

	DL_FOREACH(rpc->absent, absent)
	n += absent->session.uid == session->uid;
	return n < most;
}

bool absent_keep(struct rpc *rpc, struct rpc_peer *peer)
{
	struct session *session = peer->session;
	struct absent *absent;

	if (!session->has_token || session->is_absent)
		return false;
	if (!rpc->keeps_sessions && !(session->lingers && has_room(rpc, session)))
		return false;
	absent = begin(rpc);
	if (!absent)
		return false;
	if (session_stay_away(session, &absent->session)) {
		DL_DELETE(rpc->absent, absent);
		heap_free(rpc->heap, absent);
		return false;
	}
	return true;
}

/* In a time that does not tell how much of it is right. */
static bool is_same(const uint8_t *a, const uint8_t *b)
{
	unsigned differ = 0;

	for (size_t i = 0; i < PERSIST_TOKEN_BYTES; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

int absent_return(struct rpc *rpc, struct session *session, const uint8_t *token, size_t bytes,
		  struct npumem_error *error)
{
	struct session *found = rpc->service->sessions;
	struct absent *absent;

	if (bytes == PERSIST_TOKEN_BYTES)
		while (found && !(found->has_token && found->uid == session->uid && is_same(found->token, token)))
			found = found->next;
	if (bytes != PERSIST_TOKEN_BYTES || !found)
		return npumem_error_set(error, NPUMEM_NOT_FOUND, "no session of uid %u waits for this token",
					session->uid);
	DL_SEARCH_SCALAR(rpc->absent, absent, peer.session, found);
	if (!absent && found->lingers && rpc->hang_up)
		rpc->hang_up(rpc->ctx, found);
	if (!absent)
		return npumem_error_set(error, NPUMEM_UNAVAILABLE,
					"the session of this token has a connection that has not ended");
	session_return(found, session);
	advance_forget(rpc, &absent->peer);
	on_drained(absent);
	/* What everybody can guess is good for once, and the end of its connection is its end. */
	if (rpc->service->persist.is_replay)
		persist_session_end(session);
	return 0;
}

uint64_t absent_due(const struct rpc *rpc)
{
	const struct absent *absent;
	uint64_t due = UINT64_MAX;

	DL_FOREACH(rpc->absent, absent)
	if (!absent->peer.is_closing && absent->deadline_ns < due)
		due = absent->deadline_ns;
	return due;
}

void absent_look(struct rpc *rpc)
{
	uint64_t now_ns = rpc->now_ns ? rpc->now_ns() : 0;
	struct absent *absent, *next;

	free_spent(rpc);
	DL_FOREACH_SAFE(rpc->absent, absent, next)
	if (!absent->peer.is_closing && absent->deadline_ns <= now_ns)
		rpc_peer_close(rpc, &absent->peer);
}

void absent_deinit(struct rpc *rpc)
{
	struct absent *absent, *next;

	DL_FOREACH_SAFE(rpc->absent, absent, next)
	{
		DL_DELETE(rpc->absent, absent);
		if (absent->session.service)
			session_leave(&absent->session);
		heap_free(rpc->heap, absent);
	}
	free_spent(rpc);
}
