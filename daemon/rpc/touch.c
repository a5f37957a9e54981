/* Tensors are looked up as the request will when it runs; one that is not there is not touched. */
#include "daemon/rpc/touch.h"

#include "daemon/rpc/operate.h"

static struct tensor *find(const struct session *session, const Npumem__V1__Ref *ref)
{
	struct tensor *tensor = NULL;
	struct access_ref found;

	if (!ref)
		return NULL;
	found = (struct access_ref){ref->handle, ref->name};
	return access_find(session, &found, &tensor, NULL) ? NULL : tensor;
}

static void touch_op(const struct op *op, struct touch *touch)
{
	struct order_access accesses[ORDER_ACCESSES_MAX];
	unsigned n = order_accesses(op, accesses);
	int64_t cost = op_cost(op);

	if (__builtin_add_overflow(touch->cost, cost, &touch->cost))
		touch->cost = INT64_MAX;
	touch->reply_bytes += operate_payload_bytes(op);
	if (touch->n_accesses + n > TOUCH_ACCESSES_MAX) {
		touch->barrier = true;
		return;
	}
	memcpy(touch->accesses + touch->n_accesses, accesses, n * sizeof(*accesses));
	touch->n_accesses += n;
}

static void touch_tensor(const struct tensor *tensor, struct touch *touch)
{
	if (!tensor)
		return;
	if (touch->n_accesses == TOUCH_ACCESSES_MAX)
		touch->barrier = true;
	else
		order_access_whole(tensor, &touch->accesses[touch->n_accesses++]);
}

static void touch_free(const struct session *session, const Npumem__V1__FreeRequest *request, struct touch *touch)
{
	touch->changes = true;
	for (size_t i = 0; i < request->n_tensors && !touch->barrier; i++)
		touch_tensor(find(session, request->tensors[i]), touch);
}

static void touch_submit(const struct session *session, const Npumem__V1__SubmitRequest *request,
			 struct prepare_op *scratch, struct touch *touch)
{
	for (size_t i = 0; i < request->n_operations && !touch->barrier; i++)
		if (!prepare_operation(session, request->operations[i], scratch, NULL))
			touch_op(&scratch->op, touch);
}

void touch_request(const struct session *session, const Npumem__V1__Request *request, struct prepare_op *scratch,
		   struct touch *touch)
{
	int refused = 1;

	touch->n_accesses = 0;
	touch->barrier = touch->changes = false;
	touch->cost = 0;
	touch->reply_bytes = 0;
	switch (request->call_case) {
	case NPUMEM__V1__REQUEST__CALL_WRITE:
		refused = prepare_write(session, request->write, scratch, NULL);
		break;
	case NPUMEM__V1__REQUEST__CALL_READ:
		refused = prepare_read(session, request->read, scratch, NULL);
		break;
	case NPUMEM__V1__REQUEST__CALL_FILL:
		refused = prepare_fill(session, request->fill, scratch, NULL);
		break;
	case NPUMEM__V1__REQUEST__CALL_COPY:
		refused = prepare_copy(session, request->copy, scratch, NULL);
		break;
	case NPUMEM__V1__REQUEST__CALL_RUN:
		refused = prepare_run(session, request->run, scratch, NULL);
		break;
	case NPUMEM__V1__REQUEST__CALL_SUBMIT:
		touch_submit(session, request->submit, scratch, touch);
		break;
	case NPUMEM__V1__REQUEST__CALL_FREE:
		touch_free(session, request->free, touch);
		break;
	case NPUMEM__V1__REQUEST__CALL_VIEW:
		touch->changes = true;
		touch_tensor(find(session, request->view->tensor), touch);
		break;
	case NPUMEM__V1__REQUEST__CALL_SEAL:
		touch->changes = true;
		touch_tensor(find(session, request->seal->tensor), touch);
		break;
	case NPUMEM__V1__REQUEST__CALL_COMPACT:
	case NPUMEM__V1__REQUEST__CALL_DUMP:
		touch->barrier = true;
		break;
	default:
		break;
	}
	if (!refused)
		touch_op(&scratch->op, touch);
}
