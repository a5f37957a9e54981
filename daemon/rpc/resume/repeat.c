/* A root's record has stamps: what the request that is being resolved does with the root (repeat_stamp), and which
 * sessions' requests have read and used it (read_by, used_by). Bytes are not compared: a root of which one part is
 * read and another one changed counts as changed. Invariant: if a session with a token has read a root since all
 * its answers were sent, the root's read_by names the session, and used_by likewise if the session has used it;
 * the ids of the requests that were answered since then are in peer->unsent, or stale. */
#include "daemon/rpc/resume/repeat.h"

#include "daemon/device/operations/op_rule.h"
#include "daemon/rpc/core.h"
#include "daemon/service/kept/ids.h"
#include "daemon/service/kept/stale.h"

/* ---- within a request ---- */

void repeat_begin(struct repeat *repeat, const struct session *session)
{
	static uint64_t stamps;

	*repeat = (struct repeat){.stamp = session->has_token ? ++stamps : 0, .first_final = SIZE_MAX};
}

/* All that there is of it then is the request's own. */
static bool is_whole(const struct op *op, const struct op_access *access)
{
	const struct tensor *tensor = access->tensor;

	if (tensor->base)
		return false;
	return op->kind != OP_WRITE || (op->first == 0 && (op->count < 0 || op->count == tensor_elements(tensor)));
}

static void note_write(struct repeat *repeat, const struct op *op, const struct op_access *access)
{
	struct record *record = record_of(tensor_root(access->tensor));
	bool is_known = record->repeat_stamp == repeat->stamp;

	if (is_known && record->repeat_reads) {
		if (repeat_is_safe(repeat))
			repeat->first_final = repeat->n;
	} else if (!is_known && is_whole(op, access)) {
		record->repeat_stamp = repeat->stamp;
		record->repeat_reads = false;
	}
}

void repeat_add(struct repeat *repeat, const struct op *op)
{
	struct op_access accesses[OP_ACCESSES_MAX];
	unsigned n;

	if (!repeat->stamp)
		return;
	n = op_accesses(op, accesses);
	for (unsigned i = 0; i < n; i++) {
		struct record *record = record_of(tensor_root(accesses[i].tensor));

		if (accesses[i].writes || record->repeat_stamp == repeat->stamp)
			continue;
		record->repeat_stamp = repeat->stamp;
		record->repeat_reads = true;
	}
	for (unsigned i = 0; i < n; i++)
		if (accesses[i].writes)
			note_write(repeat, op, &accesses[i]);
	repeat->n++;
}

/* ---- between requests ---- */

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
static void send_answers(struct session *session)
{
	struct rpc_peer *peer = session->peer;

	if (!peer || !peer->unsent.n || is_sent(session, peer))
		return;
	stale_add(session, &peer->unsent);
	repeat_forget(peer);
}

void repeat_note_answer(struct rpc_peer *peer, uint64_t id)
{
	/* Never in vain: where there is no room for one range more, another one takes it. */
	if (peer->send && peer->session->has_token && id)
		ids_add(&peer->unsent, peer->session, id, id, NULL);
}

void repeat_sent(struct rpc_peer *peer)
{
	if (peer->unsent.n && !peer->session->lingers)
		repeat_forget(peer);
}

void repeat_answered(struct rpc_peer *peer, uint64_t below)
{
	/* Of others all go as soon as all have gone. */
	if (peer->session->lingers)
		ids_drop_below(&peer->unsent, peer->session, below, NULL);
}

void repeat_forget(struct rpc_peer *peer)
{
	ids_clear(&peer->unsent, peer->session, NULL);
}

void repeat_before_op(struct session *session, const struct op *op, bool is_once)
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
	}
	if (must_send)
		send_answers(session);
	/* Not in the loop above: the operation may access a root twice. */
	for (unsigned i = 0; i < n; i++) {
		struct record *record = record_of(tensor_root(accesses[i].tensor));

		mark(&record->used_by, session->id);
		if (!accesses[i].writes)
			mark(&record->read_by, session->id);
	}
}

void repeat_after_read(struct session *session, const struct tensor *tensor)
{
	if (session->has_token)
		mark(&record_of(tensor_root(tensor))->read_by, session->id);
}

void repeat_before_change(struct session *session, const struct tensor *tensor)
{
	if (session->has_token && is_by(record_of(tensor_root(tensor))->used_by, session->id))
		send_answers(session);
}
