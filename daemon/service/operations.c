/* Operations one after the other, as they come: the device's rules with the session's names in them. */
#include "daemon/service/operations.h"

#include <errno.h>

#include "daemon/service/segments.h"

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

int operations_run(struct session *session, struct op *op, struct npumem_error *error)
{
	struct error_context context = access_context_of_own(session, error);

	int status = op_run(session->service->device, op, &context);

	if (status || !op->system.shared || !segments_is_broken(session, op->system.base))
		return status;
	op_take_back(session->service->device, op);
	return npumem_error_set(error, NPUMEM_DATA_LOST, "the shared memory faulted while the operation ran");
}

int operations_run_part(struct session *session, struct op *op, int64_t *done, int64_t n,
			struct npumem_error *error)
{
	int64_t first = op->first, count = op->count;
	uint64_t off = op->system.off;
	int status;

	op->first = first + *done;
	op->count = n < count - *done ? n : count - *done;
	op->system.off = off + (uint64_t)*done * npumem_dtype_bytes(op->tensor->place.dtype);
	status = operations_run(session, op, error);
	op->first = first;
	op->system.off = off;
	/* What the part itself has written it has taken back. */
	if (status && *done) {
		op->count = *done;
		op_take_back(session->service->device, op);
	}
	op->count = count;
	*done += n;
	return !status && *done < count ? -EAGAIN : status;
}

void operations_finish(struct session *session, struct op *op)
{
	metrics_op(&session->service->metrics, op);
	for (unsigned i = 0; i < op->n_destroyed; i++)
		events_tensor(session->service, EVENTS_DAMAGED, op->destroyed[i].tensor, session,
			      op->destroyed[i].total_bytes);
}

void operations_end(struct session *session, struct op *op)
{
	op_deinit(session->service->device, op);
}

const char *operations_describe(struct session *session, const struct op *op, char *buffer, size_t bytes)
{
	struct error_context context = access_context(session, NULL);

	return op_describe(op, &context, buffer, bytes);
}
