/* Calls the device's operations with the session's names in their messages. */
#include "daemon/service/operations.h"

#include "daemon/service/observed/events.h"
#include "daemon/service/segments.h"
#include "daemon/service/tables.h"
#include "daemon/service/tensors/access.h"

int operations_check(struct session *session, struct op *op, struct npumem_error *error)
{
	struct error_context context = access_context(session, error);

	return op_check(session->service->device, op, &context);
}

int operations_check_group(struct session *session, struct op *const *ops, unsigned n, unsigned base,
			   struct npumem_error *error)
{
	struct error_context context = access_context_of_own(session, error);

	return op_group_check(session->service->device, ops, n, base, &context);
}

struct running {
	struct device *device;
	struct op *op;
	const struct error_context *context;
	int status;
};

static void run(void *arg)
{
	struct running *running = arg;

	running->status = op_run(running->device, running->op, running->context);
}

static int take_back(struct session *session, struct op *op, struct npumem_error *error)
{
	op_take_back(session->service->device, op);
	return npumem_error_set(error, NPUMEM_DATA_LOST, "the shared memory faulted while the operation ran");
}

int operations_run(struct session *session, struct op *op, struct npumem_error *error)
{
	struct error_context context = access_context_of_own(session, error);
	struct running running = {session->service->device, op, &context, 0};

	if (!op->system.segment)
		run(&running);
	else if (!segments_reach(session, op->system.segment, run, &running))
		return take_back(session, op, error);
	return running.status;
}

void operations_finish(struct session *session, struct op *op)
{
	metrics_op(&session->service->metrics, &session->user->account, op);
	for (unsigned i = 0; i < op->n_destroyed; i++)
		events_tensor(session->service, EVENTS_DAMAGED, op->destroyed[i].tensor, session,
			      op->destroyed[i].total_bytes);
}

const char *operations_describe(struct session *session, const struct op *op, char *buffer, size_t bytes)
{
	struct error_context context = access_context(session, NULL);

	return op_describe(op, &context, buffer, bytes);
}
