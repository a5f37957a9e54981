/* Calls that have begun, over all sessions. What they are is read from what they were resolved to, which stays as
 * it is while a thread works on them. */
#include "daemon/rpc/handlers/running.h"

#include <npumem/kernels.h>
#include <stdio.h>

#include "daemon/device/tensors/error_context.h"
#include "daemon/rpc/handlers/submit.h"

enum {
	WHAT_BYTES = 448,
	LOOKS_MOST = 16384, /* calls to look at, as an end: the queues of many sessions are long */
};

bool running_progress(const struct call *call, uint64_t *done, uint64_t *total)
{
	if (call->submission) {
		submit_progress(call, done, total);
	} else {
		/* In this order, as the run sets the total last. */
		*total = (uint64_t)atomic_load(&call->progress.total);
		*done = (uint64_t)atomic_load(&call->progress.done);
	}
	return *total > 0;
}

static size_t add(char *what, size_t used, const char *before, const char *key, const char *value)
{
	int n = snprintf(what + used, WHAT_BYTES - used, "%s%s%s%s", before, key, *key ? "=" : "", value);

	return used + (size_t)n < WHAT_BYTES ? used + (size_t)n : WHAT_BYTES - 1;
}

static void describe(const struct session *asking, const struct op *op, char what[WHAT_BYTES])
{
	const struct npumem_kernel_row *row = npumem_kernel_by_number(op->kernel);
	char name[ERROR_CONTEXT_NAME_BYTES];
	size_t used = 0;

	if (op->kind != OP_RUN) {
		access_name(asking, op->tensor, name, sizeof(name));
		add(what, 0, "", "", name);
		return;
	}
	used = add(what, used, "", "", row ? row->name : "?");
	for (unsigned i = 0; i < op->n_operands; i++) {
		access_name(asking, op->operands[i].tensor, name, sizeof(name));
		used = add(what, used, " ", op->operands[i].role, name);
	}
}

/* Of a submit, of its kernel rather than of its transfer. */
static const struct op *op_of(const struct call *call)
{
	if (call->submission)
		return submit_running(call);
	return call_is_single(call) ? &call->prepared.op : NULL;
}

void running_what(const struct session *asking, const struct call *call, char *what, size_t bytes)
{
	const struct op *op = op_of(call);
	char text[WHAT_BYTES] = "";

	if (op)
		describe(asking, op, text);
	if (call->method == CALL_METHOD_RUN)
		snprintf(what, bytes, "%.*s", (int)bytes - 1, text);
	else
		snprintf(what, bytes, "%s%s%.*s", call_method_name(call->method), *text ? " " : "", (int)bytes - 1,
			 text);
}

static void tell(struct call *asking, unsigned field, const struct call *call)
{
	Npumem__V1__Running row = NPUMEM__V1__RUNNING__INIT;
	const struct op *op = op_of(call);
	char what[WHAT_BYTES] = "";

	row.session = call->session->id;
	row.uid = call->session->uid;
	row.pid = (uint32_t)call->session->pid;
	row.request_id = call->id;
	row.call = (char *)(uintptr_t)call_method_name(call->method);
	row.since_ns = call->start_ns;
	row.waits = call->state == CALL_IN_LINE;
	if (op)
		describe(asking->session, op, what);
	row.what = what;
	running_progress(call, &row.done, &row.total);
	reply_message(&asking->reply, field, &row.base);
}

void running_tell(struct call *asking, unsigned field)
{
	unsigned n = 0, looks = 0;

	for (const struct session *session = asking->session->service->sessions; session;
	     session = session->next) {
		const struct rpc_peer *peer = session->peer;

		if (!peer || (!session_is_admin(asking->session) && session->uid != asking->session->uid))
			continue;
		for (const struct call *call = peer->calls; call; call = call->next) {
			if (n == RUNNING_MOST || ++looks > LOOKS_MOST)
				return;
			if (!call->is_started || call == asking)
				continue;
			tell(asking, field, call);
			n++;
		}
	}
}
