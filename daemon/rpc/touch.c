/* Tensors are looked up as the request will when it runs; one that is not there is not touched. */
#include "daemon/rpc/touch.h"

#include <stdlib.h>

#include "daemon/device/geometry/intersect.h"
#include "daemon/rpc/operate.h"
#include "daemon/rpc/submit.h"

static struct tensor *find(const struct session *session, const Npumem__V1__Ref *ref)
{
	struct tensor *tensor = NULL;
	struct access_ref found;

	if (!ref)
		return NULL;
	found = (struct access_ref){ref->handle, ref->name};
	return access_find(session, &found, ACCESS_READ, &tensor, NULL) ? NULL : tensor;
}

static bool same_place(const struct npumem_place *a, const struct npumem_place *b)
{
	return a->offset == b->offset && a->start_npu == b->start_npu && !memcmp(a, b, sizeof(*a));
}

static bool holds(const struct order_access *coarse, const struct order_access *access)
{
	return coarse->coarse && coarse->place.offset <= access->place.offset &&
	       access->place.offset + access->place.bytes_per_npu <=
		       coarse->place.offset + coarse->place.bytes_per_npu;
}

static int by_offset(const void *a, const void *b)
{
	const struct order_access *x = a, *y = b;

	return (x->place.offset > y->place.offset) - (x->place.offset < y->place.offset);
}

/* Takes neighbours together, two by two. */
static void coarsen(struct touch *touch)
{
	unsigned n = touch->n_accesses;

	qsort(touch->accesses, n, sizeof(touch->accesses[0]), by_offset);
	for (unsigned i = 0; i < n / 2; i++) {
		struct order_access a = touch->accesses[2 * i], b = touch->accesses[2 * i + 1];
		int64_t a_end = a.place.offset + a.place.bytes_per_npu,
			end = b.place.offset + b.place.bytes_per_npu;

		if (a_end > end)
			end = a_end;
		touch->accesses[i] = (struct order_access){
			.place = {.offset = a.place.offset, .bytes_per_npu = end - a.place.offset},
			.writes = a.writes || b.writes,
			.coarse = true};
	}
	if (n % 2)
		touch->accesses[n / 2] = touch->accesses[n - 1];
	touch->n_accesses = (n + 1) / 2;
}

static void add_access(struct touch *touch, const struct order_access *access)
{
	for (unsigned i = 0; i < touch->n_accesses; i++) {
		struct order_access *known = &touch->accesses[i];

		if (!holds(known, access) && (known->coarse || !same_place(&known->place, &access->place)))
			continue;
		known->kinds |= access->kinds;
		known->writes |= access->writes;
		return;
	}
	if (touch->n_accesses == TOUCH_ACCESSES_MAX)
		coarsen(touch);
	touch->accesses[touch->n_accesses++] = *access;
}

static void touch_op(const struct session *session, const struct op *op, struct touch *touch)
{
	struct order_access accesses[ORDER_ACCESSES_MAX];
	unsigned n = order_accesses(op, accesses);

	if (__builtin_add_overflow(touch->cost, op_cost(session->service->device, op), &touch->cost) ||
	    __builtin_add_overflow(touch->cost, TOUCH_OP_COST, &touch->cost))
		touch->cost = INT64_MAX;
	touch->reply_bytes += operate_payload_bytes(op);
	for (unsigned i = 0; i < n; i++)
		add_access(touch, &accesses[i]);
}

void touch_whole(const struct tensor *tensor, struct touch *touch)
{
	struct order_access access;

	order_access_whole(tensor, &access);
	add_access(touch, &access);
}

static void touch_tensor(const struct tensor *tensor, struct touch *touch)
{
	if (tensor)
		touch_whole(tensor, touch);
	else
		touch->follows = true;
}

static void touch_free(const struct session *session, const Npumem__V1__FreeRequest *request, struct touch *touch)
{
	touch->changes = true;
	/* More are refused. */
	for (size_t i = 0; i < request->n_tensors && i < TENSORS_FREE_MAX; i++)
		touch_tensor(find(session, request->tensors[i]), touch);
}

/* Reads these bytes of one NPU, whatever they are. */
static void touch_dump(const struct session *session, const Npumem__V1__DumpRequest *request, struct touch *touch)
{
	const struct npumem_geometry *geometry = &device_options(session->service->device)->geometry;
	struct order_access access = {.kinds = KINDS_DATA};
	struct npumem_spec spec;

	npumem_spec_init(&spec);
	spec.dtype = NPUMEM_INT8;
	spec.layout = NPUMEM_STRIDED;
	spec.shape = spec.stride = (struct npumem_dims){1, 1, 1, 1};
	spec.shape.w = request->bytes;
	if (request->npu < 0 || request->npu >= geometry->n_npus || request->offset < 0 ||
	    request->offset >= geometry->npu_bytes)
		return;
	spec.address = request->npu * geometry->npu_bytes + request->offset;
	if (npumem_place_resolve(geometry, &spec, &access.place, NULL))
		return;
	add_access(touch, &access);
	touch->reply_bytes = (size_t)request->bytes;
}

/* What comparing the lanes of a parallel group takes. */
static void touch_group(struct touch *touch, int64_t lanes[2])
{
	if (__builtin_add_overflow(touch->cost, lanes[0] * lanes[1] * TOUCH_PAIR_COST, &touch->cost))
		touch->cost = INT64_MAX;
	lanes[0] = lanes[1] = 0;
}

static void touch_submit(const struct session *session, const Npumem__V1__SubmitRequest *request,
			 struct prepare_op *scratch, struct touch *touch)
{
	/* More are refused. */
	size_t n = request->n_operations > OPERATIONS_MAX ? 0 : request->n_operations;
	int64_t lanes[2] = {0, 0};

	for (size_t i = 0; i < n; i++) {
		const Npumem__V1__Operation *operation = request->operations[i];

		if (i && operation->group != request->operations[i - 1]->group)
			touch_group(touch, lanes);
		if (prepare_operation(session, operation, scratch, NULL)) {
			touch->follows = true;
			continue;
		}
		touch_op(session, &scratch->op, touch);
		lanes[op_queue(&scratch->op)] += operation->group != 0;
	}
	touch_group(touch, lanes);
}

/* What is not one operation. */
static void touch_other(const struct session *session, const Npumem__V1__Request *request,
			struct prepare_op *scratch, struct touch *touch)
{
	switch (request->call_case) {
	case NPUMEM__V1__REQUEST__CALL_SUBMIT:
		touch_submit(session, request->submit, scratch, touch);
		break;
	case NPUMEM__V1__REQUEST__CALL_FREE:
		touch_free(session, request->free, touch);
		break;
	case NPUMEM__V1__REQUEST__CALL_VIEW:
		touch->changes = touch->follows = true;
		touch_tensor(find(session, request->view->tensor), touch);
		break;
	case NPUMEM__V1__REQUEST__CALL_SEAL:
		touch->changes = true;
		touch_tensor(find(session, request->seal->tensor), touch);
		break;
	case NPUMEM__V1__REQUEST__CALL_RECORD:
		/* Looks at all that is there, or begins between requests. */
		touch->barrier = request->record->action != NPUMEM__V1__RECORD_ACTION__RECORD_TAKE;
		break;
	case NPUMEM__V1__REQUEST__CALL_COMPACT:
		touch->barrier = touch->changes = true;
		break;
	case NPUMEM__V1__REQUEST__CALL_DUMP:
		touch_dump(session, request->dump, touch);
		break;
	case NPUMEM__V1__REQUEST__CALL_ALLOC:
		touch->changes = touch->follows = true;
		break;
	case NPUMEM__V1__REQUEST__CALL_UNSHARE:
		touch->alone = true;
		break;
	case NPUMEM__V1__REQUEST__CALL_OPEN:
	case NPUMEM__V1__REQUEST__CALL_LIST:
	case NPUMEM__V1__REQUEST__CALL_STAT:
		touch->follows = true;
		break;
	default:
		break;
	}
}

void touch_begin(struct touch *touch)
{
	touch->n_accesses = 0;
	touch->barrier = touch->changes = touch->follows = touch->alone = false;
	touch->cost = 0;
	touch->reply_bytes = 0;
}

void touch_request(const struct session *session, const Npumem__V1__Request *request, struct prepare_op *scratch,
		   struct touch *touch)
{
	bool is_op = true;
	int refused = 1;

	touch_begin(touch);
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
	default:
		is_op = false;
		touch_other(session, request, scratch, touch);
		break;
	}
	if (!refused)
		touch_op(session, &scratch->op, touch);
	else if (is_op)
		touch->follows = true;
}
