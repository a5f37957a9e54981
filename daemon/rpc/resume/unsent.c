/* A root's record knows whose requests have read and used it. Invariant: where a session that has a token has read
 * a root since its answers were all sent, the root's read_by says so, and used_by where it has used it; of
 * requests that were answered since then the ids are in peer->unsent, or stale. */
#include "daemon/rpc/resume/unsent.h"

#include "daemon/device/operations/op_rule.h"
#include "daemon/rpc/rpc.h"
#include "daemon/service/kept/stale.h"

#define MANY UINT64_MAX

static void mark(uint64_t *by, uint64_t session)
{
	*by = !*by || *by == session ? session : MANY;
}

static bool is_by(uint64_t by, uint64_t session)
{
	return by == session || by == MANY;
}

/* What another host is sent may get lost behind the socket. */
static bool is_sent(const struct session *session, const struct rpc_peer *peer)
{
	return !session->lingers && (!peer->send || peer->send(peer->ctx));
}

/* What is not sent when this returns is stale. */
static void send(struct session *session)
{
	struct rpc_peer *peer = session->peer;

	if (!peer || !peer->unsent.n || is_sent(session, peer))
		return;
	stale_add(session, &peer->unsent);
	unsent_forget(peer);
}

void unsent_note(struct rpc_peer *peer, uint64_t id)
{
	/* Never in vain: where there is no room for one range more, another one takes it. */
	if (peer->send && peer->session->has_token && id)
		ids_add(&peer->unsent, peer->session, id, id, NULL);
}

void unsent_sent(struct rpc_peer *peer)
{
	if (peer->unsent.n && !peer->session->lingers)
		unsent_forget(peer);
}

void unsent_answered(struct rpc_peer *peer, uint64_t below)
{
	/* Of others all go as soon as all have gone. */
	if (peer->session->lingers)
		ids_drop_below(&peer->unsent, peer->session, below, NULL);
}

void unsent_forget(struct rpc_peer *peer)
{
	ids_clear(&peer->unsent, peer->session, NULL);
}

void unsent_before_op(struct session *session, const struct op *op, bool is_once)
{
	struct op_access accesses[OP_ACCESSES_MAX];
	bool must_send = false;
	unsigned n;

	if (!session->has_token)
		return;
	n = op_accesses(op, accesses);
	for (unsigned i = 0; i < n; i++) {
		struct record *record = record_of(tensor_root(accesses[i].tensor));

		must_send |= accesses[i].writes && (is_by(record->read_by, session->id) ||
						    (is_once && is_by(record->used_by, session->id)));
		if (accesses[i].writes && record->read_by == session->id)
			record->read_by = 0;
		mark(&record->used_by, session->id);
	}
	if (must_send)
		send(session);
	for (unsigned i = 0; i < n; i++)
		if (!accesses[i].writes)
			mark(&record_of(tensor_root(accesses[i].tensor))->read_by, session->id);
}

void unsent_before_change(struct session *session, const struct tensor *tensor)
{
	if (session->has_token && is_by(record_of(tensor_root(tensor))->used_by, session->id))
		send(session);
}
