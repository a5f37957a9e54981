/* Between a checked op and its Done. A read's payload comes first in the Done, so that it is gathered where it is
 * sent from; what is said about it follows. Invariant: after op_run nothing can fail, so room for the longest Done
 * is made before. */
#include "daemon/rpc/handlers/operations/operate.h"

#include <errno.h>
#include <inttypes.h>

#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/calls/recording.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/resume/repeat.h"
#include "daemon/service/observed/recorder.h"
#include "daemon/service/operations.h"
#include "daemon/service/kept/results.h"
#include "daemon/service/transfer.h"
#include "proto/digest.h"
#include "proto/frame.h"

/* Members of Done. */
enum {
	DONE_SATURATED = 1,
	DONE_WRAPPED = 2,
	DONE_DIVIDED_BY_ZERO = 3,
	DONE_MACS = 4,
	DONE_DATA = 7,
	DONE_START_NS = 8,
	DONE_END_NS = 9,
	DONE_OPERATION = 10,
};

enum {
	LENGTH_BYTES = 6, /* of a tag and a length in front of a payload */
};

struct details {
	Npumem__V1__Destroyed destroyed[OP_DESTROYED_MAX], *pointers[OP_DESTROYED_MAX];
	char names[OP_DESTROYED_MAX][ERROR_CONTEXT_NAME_BYTES];
};

static void append_details(struct operate *operate)
{
	struct op *op = &operate->prepared.op;
	Npumem__V1__Done done = NPUMEM__V1__DONE__INIT;
	struct details details;

	done.warning = op->warning;
	done.n_destroyed = op->n_destroyed;
	done.destroyed = details.pointers;
	for (unsigned i = 0; i < op->n_destroyed; i++) {
		const struct op_destroyed *from = &op->destroyed[i];
		Npumem__V1__Destroyed *to = &details.destroyed[i];

		npumem__v1__destroyed__init(to);
		details.pointers[i] = to;
		access_name(operate->call->session, from->tensor, details.names[i], sizeof(details.names[i]));
		to->name = details.names[i];
		to->handle = access_sees(operate->call->session, from->tensor) ? from->tensor->handle : 0;
		to->npu = from->npu;
		to->offset = from->offset;
		to->bytes = from->bytes;
		to->total_bytes = from->total_bytes;
	}
	reply_fields(operate->reply, &done.base);
}

static uint64_t digest(const struct operate *operate)
{
	const struct op *op = &operate->prepared.op;
	Npumem__V1__Done done = NPUMEM__V1__DONE__INIT;

	done.saturated = op->counts.saturated;
	done.wrapped = op->counts.wrapped;
	done.divided_by_zero = op->counts.divided_by_zero;
	done.macs = op->counts.macs;
	done.data.len = op->kind == OP_READ && !op->system.segment && !operate->is_dry ? op->system.bytes : 0;
	return digest_done(&done, operate->data_crc);
}

/* Everything of Done but the data. Details give way where the rest of a long reply needs the frame. */
static void append_done(struct operate *operate, size_t pending)
{
	const struct op *op = &operate->prepared.op;
	struct reply *reply = operate->reply;

	if (operate->is_recorded)
		operate->digest = digest(operate);
	reply_signed(reply, DONE_SATURATED, op->counts.saturated);
	reply_signed(reply, DONE_WRAPPED, op->counts.wrapped);
	reply_signed(reply, DONE_DIVIDED_BY_ZERO, op->counts.divided_by_zero);
	reply_signed(reply, DONE_MACS, op->counts.macs);
	reply_number(reply, DONE_START_NS, operate->start_ns);
	reply_number(reply, DONE_END_NS, operate->end_ns);
	reply_number(reply, DONE_OPERATION, operate->index);
	if ((op->warning[0] || op->n_destroyed) &&
	    reply_used(reply) + OPERATE_DETAILS_BYTES + pending + 2 * REPLY_REST_BYTES <= FRAME_BYTES_MAX)
		append_details(operate);
}

/* Of what others of the uid run in at the same time there is no more than there are threads: so what counts is
 * what the operation takes by itself, and whether it is refused does not depend on what else there is. */
static int charge(struct operate *operate)
{
	struct session *session = operate->call->session;
	struct limits_table *limits = &session->service->limits;
	uint64_t bytes = op_scratch_bytes(&operate->prepared.op), most;

	most = limits_most(limits, session->user, LIMITS_SCRATCH_BYTES);
	if (bytes > most)
		return npumem_error_set(&operate->error, NPUMEM_RESOURCE_EXHAUSTED,
					"the operation runs in %" PRIu64 " bytes of host memory, and uid %" PRIu32
					" may have %" PRIu64 " (scratch_bytes)",
					bytes, session->uid, most);
	operate->scratch_bytes = bytes;
	limits_charge(limits, session->user, LIMITS_SCRATCH_BYTES, bytes);
	return 0;
}

/* What it took to run; its results stay. */
static void give_back(struct operate *operate)
{
	struct session *session = operate->call->session;

	limits_give_back(&session->service->limits, session->user, LIMITS_SCRATCH_BYTES, operate->scratch_bytes);
	op_deinit(session->service->device, &operate->prepared.op);
}

/* Its request, where what it did is kept; else 0. */
static uint64_t kept_request(const struct operate *operate)
{
	const struct call *call = operate->call;

	return repeat_is_safe(&call->repeat) ? 0 : call->id;
}

/* The last that can fail. */
static int begin_to_keep(struct operate *operate)
{
	struct session *session = operate->call->session;
	int status = 0;

	if (!persist_is_on(&session->service->persist))
		return 0;
	session->request = kept_request(operate);
	if (session->request)
		status = results_prepare(session, 0, &operate->error);
	if (!status)
		repeat_before_op(session, &operate->prepared.op, session->request != 0);
	return status ? status
		      : notes_plan(&operate->notes, session->service, &operate->prepared.op, &operate->error);
}

/* A result before the note ends: what was done and is not to be done again is never taken for undone. */
static void end_to_keep(struct operate *operate, bool is_done)
{
	struct session *session = operate->call->session;
	bool is_final = operate->index >= operate->call->repeat.first_final;

	if (!persist_is_on(&session->service->persist))
		return;
	session->request = kept_request(operate);
	if (is_done && session->request) {
		results_put(session, (struct results_cell){.kind = RESULTS_DONE,
							   .index = (uint32_t)operate->index,
							   .number = is_final,
							   .counts = operate->prepared.op.counts});
		persist_commit(&session->service->persist);
	}
	notes_end(&operate->notes, session->service);
}

enum { SPARE_MAX = 256 }; /* that are kept for others */

/* Of its call. What was planned may not have begun. */
static void release(struct call *call)
{
	struct rpc *rpc = call->rpc;

	op_deinit(rpc->service->device, &call->operate->prepared.op);
	if (rpc->n_spare_operations >= SPARE_MAX) {
		heap_free(rpc->heap, call->operate);
		return;
	}
	call->operate->next = rpc->spare_operations;
	rpc->spare_operations = call->operate;
	rpc->n_spare_operations++;
}

int operate_new(struct call *call)
{
	struct rpc *rpc = call->rpc;
	struct operate *operate = rpc->spare_operations;

	if (operate) {
		rpc->spare_operations = operate->next;
		rpc->n_spare_operations--;
	} else {
		operate = heap_alloc(rpc->heap, sizeof(*operate));
		if (!operate)
			return heap_exhausted(call->error);
	}
	operate_init(operate, call);
	call->operate = operate;
	call->error = &operate->error;
	call->release = release;
	call->extra_bytes += sizeof(*operate);
	return 0;
}

int operate_claim(struct call *call)
{
	struct op *op = &call->operate->prepared.op;

	call->extra_bytes += op_plan(call->rpc->service->device, op);
	return handler_claim_op(call, op);
}

void operate_pool_deinit(struct rpc *rpc)
{
	struct operate *operate;

	while ((operate = rpc->spare_operations)) {
		rpc->spare_operations = operate->next;
		heap_free(rpc->heap, operate);
	}
	rpc->n_spare_operations = 0;
}

void operate_init(struct operate *operate, struct call *call)
{
	operate->call = call;
	operate->status = 0;
	operate->is_dry = call->method == METHODS_DRY_RUN;
	memset(&operate->progress, 0, sizeof(operate->progress));
	operate->progress.whole = &call->progress;
	npumem_error_clear(&operate->error);
}

static void open_done(struct operate *operate, uint64_t payload)
{
	operate->is_open = true;
	operate->expected = payload + LENGTH_BYTES;
	reply_expect(operate->reply, operate->expected + LENGTH_BYTES);
	operate->used = reply_used(operate->reply);
	operate->mark = reply_open(operate->reply, operate->field, operate->expected);
}

int operate_begin(struct operate *operate, struct reply *reply, unsigned field, size_t index)
{
	struct op *op = &operate->prepared.op;
	uint64_t payload;
	int status;

	op->is_dry = operate->is_dry;
	status = operations_check(operate->call->session, op, &operate->error);
	payload = status || operate->is_dry ? 0 : prepare_payload_bytes(op);
	op->progress = &operate->progress;
	operate->reply = reply;
	operate->index = index;
	operate->start_ns = operate->end_ns = 0;
	operate->scratch_bytes = 0;
	operate->notes.n = 0;
	if (!status)
		status = charge(operate);
	if (!status)
		status = reply_check_cap(reply, payload + OPERATE_DONE_BYTES, &operate->error);
	if (!status)
		status = reply_make_room(reply, payload + OPERATE_DONE_BYTES + OPERATE_DETAILS_BYTES,
					 &operate->error);
	if (!status && !operate->is_dry)
		status = begin_to_keep(operate);
	if (status) {
		give_back(operate);
		return status;
	}
	operate->field = field;
	operate->is_open = false;
	if (op->kind == OP_READ && !op->system.segment && !operate->is_dry) {
		open_done(operate, payload);
		op->system.base = reply_bytes(reply, DONE_DATA, payload);
		op->system.bytes = payload;
	}
	operate->data_crc = 0;
	operate->is_recorded = !operate->is_dry && recorder_is_on(&operate->call->session->service->recorder);
	operate->transfer = operate->is_dry ? NULL : transfer_new(operate->call->session, op);
	return 0;
}

static void append_costs(const struct operate *operate)
{
	Npumem__V1__Done done = NPUMEM__V1__DONE__INIT;
	Npumem__V1__Costs to = NPUMEM__V1__COSTS__INIT;
	const struct npumem_costs *costs = &operate->costs;

	to.macs = (uint64_t)costs->macs;
	to.dma_bytes = (uint64_t)costs->dma_bytes;
	to.read_bytes = (uint64_t)costs->read_bytes;
	to.written_bytes = (uint64_t)costs->written_bytes;
	to.npus = (uint64_t)costs->npus;
	to.lanes = (uint64_t)costs->lanes;
	done.costs = &to;
	reply_fields(operate->reply, &done.base);
}

static int run(struct operate *operate)
{
	struct session *session = operate->call->session;
	const struct op *op = &operate->prepared.op;
	int status = operations_run(session, &operate->prepared.op, &operate->error);

	if (!status && operate->is_dry)
		op_costs(session->service->device, op, &operate->costs);
	else if (!status && operate->transfer)
		transfer_take(session, op, operate->transfer);
	else if (!status && operate->is_recorded && op->kind == OP_READ && !op->system.segment)
		operate->data_crc = digest_crc(0, op->system.base, op->system.bytes);
	return status;
}

void operate_work(void *arg)
{
	struct operate *operate = arg;
	uint64_t (*now_ns)(void) = operate->call->rpc->now_ns;

	if (!operate->start_ns)
		operate->start_ns = now_ns();
	operate->status = run(operate);
	operate->end_ns = now_ns();
}

bool operate_run(struct operate *operate, int64_t cost, void (*done)(void *operate))
{
	struct call *call = operate->call;

	if (call_is_long(cost) || call_waits_for_disk(call, &operate->prepared.op)) {
		if (perform_away(call, &operate->work, false, operate_work, done, operate))
			return true;
		operate->status = perform_refuse(call, &operate->error);
		if (operate->status)
			return false;
	}
	operate->start_ns = rpc_clock(call->rpc);
	operate_work(operate);
	call->rpc->clock_ns = operate->end_ns;
	return false;
}

bool operate_withdraw(struct operate *operate)
{
	if (!perform_withdraw(&operate->work))
		return false;
	operate_work(operate);
	return true;
}

void operate_end(struct operate *operate, size_t pending)
{
	if (operate->status) {
		if (operate->is_open)
			reply_rewind(operate->reply, operate->used);
		recorder_free_transfers(&operate->call->session->service->recorder, operate->transfer);
	} else {
		if (!operate->is_dry)
			operations_finish(operate->call->session, &operate->prepared.op);
		if (!operate->is_open)
			open_done(operate, 0);
		if (operate->is_dry)
			append_costs(operate);
		append_done(operate, pending);
		reply_close(operate->reply, operate->mark, operate->expected);
	}
	give_back(operate);
	if (!operate->is_dry)
		end_to_keep(operate, !operate->status);
}

void operate_give_up(struct operate *operate)
{
	recorder_free_transfers(&operate->call->session->service->recorder, operate->transfer);
	give_back(operate);
}

void operate_record(struct operate *operate)
{
	if (!operate->is_recorded)
		return;
	if (operate->transfer)
		operate->transfer->operation = (unsigned)operate->index;
	recording_op(&operate->call->recording, operate->digest, operate->transfer);
}
