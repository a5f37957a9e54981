/* A root's record knows whose requests have read and used it. Invariant: where a session that has a token has read
 * a root since its answers were all sent, the root's read_by says so, and used_by where it has used it. */
#include "daemon/rpc/calls/unsent.h"

#include "daemon/device/operations/op_rule.h"
#include "daemon/rpc/rpc.h"

#define MANY UINT64_MAX

static void mark(uint64_t *by, uint64_t session)
{
	*by = !*by || *by == session ? session : MANY;
}

static bool is_by(uint64_t by, uint64_t session)
{
	return by == session || by == MANY;
}

static void send(struct session *session)
{
	const struct rpc_peer *peer = session->peer;

	if (!peer || !peer->send || peer->send(peer->ctx) || session->changed_below > peer->last_answered)
		return;
	session->changed_below = peer->last_answered + 1;
	persist_make_room(session->service, 1);
	persist_session_put(session);
	persist_commit(&session->service->persist);
}

void unsent_before_op(struct session *session, const struct op *op)
{
	struct op_access accesses[OP_ACCESSES_MAX];
	bool must_send = false;
	unsigned n;

	if (!session->has_token)
		return;
	n = op_accesses(op, accesses);
	for (unsigned i = 0; i < n; i++) {
		struct record *record = record_of(tensor_root(accesses[i].tensor));

		must_send |= accesses[i].writes && is_by(record->read_by, session->id);
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
