/* Requests about the device and the daemon as a whole; handle_stat.c has its statistics.
 * Invariant: only bytes of tensors that a dump has claimed, and that were found to be visible in this turn, are
 * copied. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/order/gate.h"
#include "proto/convert.h"
#include "proto/convert_numeric.h"
#include "proto/frame.h"
#include "proto/wire.h"

enum {
	FEATURES = NPUMEM__V1__FEATURE__FEATURE_SUBMIT,
	DUMP_DATA = 1, /* Dump.data */
};

static void fill_limits(const struct session *session, Npumem__V1__Limit rows[LIMITS_N],
			Npumem__V1__Limit *pointers[LIMITS_N])
{
	for (int key = 0; key < LIMITS_N; key++) {
		npumem__v1__limit__init(&rows[key]);
		rows[key].key = (char *)(uintptr_t)limits_name((enum limits_key)key);
		rows[key].most = limits_most(&session->service->limits, session->user, (enum limits_key)key);
		rows[key].now = session->user->now[key];
		pointers[key] = &rows[key];
	}
}

int handle_device_info(struct call *call)
{
	Npumem__V1__Limit limits[LIMITS_N], *pointers[LIMITS_N];
	const struct device_options *options = device_options(call->rpc->service->device);
	const struct persist *persist = &call->rpc->service->persist;
	Npumem__V1__Info info = NPUMEM__V1__INFO__INIT;

	info.version = (char *)NPUMEM_VERSION;
	info.features = FEATURES;
	if (persist_is_on(persist))
		info.features |= NPUMEM__V1__FEATURE__FEATURE_RESUME;
	info.n_npus = options->geometry.n_npus;
	info.npu_bytes = options->geometry.npu_bytes;
	info.n_banks = options->geometry.n_banks;
	info.eu_bytes = options->geometry.eu_bytes;
	info.rounding = (Npumem__V1__Rounding)options->rounding;
	info.uninitialized = (Npumem__V1__Uninitialized)options->uninitialized;
	info.unchecked_reuse = options->allow_unchecked;
	info.frame_bytes_max = FRAME_BYTES_MAX;
	info.uid = call->session->uid;
	info.session = call->session->id;
	info.pid = (uint32_t)getpid();
	info.isa = (char *)isa_name(options->isa);
	if (call->request->info->details) {
		fill_limits(call->session, limits, pointers);
		info.resume_seconds = persist->resume_seconds;
		info.state_dir = (char *)(uintptr_t)(persist->directory ? persist->directory : "");
		info.socket = (char *)(uintptr_t)(call->rpc->socket ? call->rpc->socket : "");
		info.n_limits = LIMITS_N;
		info.limits = pointers;
		info.uptime_ns = call->rpc->now_ns() - call->rpc->began_ns;
	}
	return reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_INFO, &info.base, call->error);
}

int handle_device_plan(struct call *call)
{
	const struct npumem_geometry *geometry = &device_options(call->rpc->service->device)->geometry;
	Npumem__V1__Plan message = NPUMEM__V1__PLAN__INIT;
	Npumem__V1__Width widths[NPUMEM_PLAN_WIDTHS_MAX], *pointers[NPUMEM_PLAN_WIDTHS_MAX];
	struct convert_place place;
	struct npumem_spec spec;
	struct npumem_plan plan;
	int status = wire_spec(call->request->plan->spec, &spec, call->error);

	if (!status)
		status = npumem_plan(geometry, &spec, &plan, call->error);
	if (status)
		return status;
	convert_place_to(&plan.place, &place);
	message.place = &place.message;
	message.waste = plan.waste;
	message.first_bank = plan.first_bank;
	message.last_bank = plan.last_bank;
	message.best_start_npu = plan.best_start_npu;
	message.best_start_saves = plan.best_start_saves;
	message.n_widths = plan.n_widths;
	message.widths = pointers;
	for (unsigned i = 0; i < plan.n_widths; i++) {
		npumem__v1__width__init(&widths[i]);
		widths[i].w = plan.widths[i].w;
		widths[i].channels = plan.widths[i].channels;
		widths[i].channels_per_npu = plan.widths[i].channels_per_npu;
		widths[i].bytes_per_npu = plan.widths[i].bytes_per_npu;
		pointers[i] = &widths[i];
	}
	return reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_PLAN, &message.base, call->error);
}

/* The formulas check and answer: no device or tensor is touched, so that every client may ask. */
int handle_device_numeric(struct call *call)
{
	struct npumem_numeric question;
	struct npumem_numeric_answer answer;
	struct convert_advise parts;
	struct convert_answer to;
	int status = convert_question_from(call->request->numeric, &parts, &question, call->error);

	if (!status)
		status = npumem_numeric(&question, &answer, call->error);
	if (status)
		return status;
	convert_answer_to(&answer, &to);
	return reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_NUMERIC, &to.message.base, call->error);
}

/* The server ends when this was answered. */
int handle_device_shutdown(struct call *call)
{
	Npumem__V1__ShuttingDown message = NPUMEM__V1__SHUTTING_DOWN__INIT;
	struct rpc *rpc = call->rpc;
	int status;

	if (!session_is_admin(call->session))
		return npumem_error_set(call->error, NPUMEM_PERMISSION_DENIED,
					"only root and uid %" PRIu32 ", as whom the daemon runs, may shut it down",
					rpc->service->uid);
	status =
		reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_SHUTTING_DOWN, &message.base, call->error);
	if (!status && rpc->shut_down)
		rpc->shut_down(rpc->ctx, call->session);
	return status;
}

/* ---- dump ---- */

/* The tensors of the range are claimed, checked once more in the turn of the dump, and copied in that turn of the
 * loop: where very many tensors lie, part by part. */
static int claim_root(void *ctx, struct tensor *tensor)
{
	return handler_claim(ctx, tensor, CLAIM_READ);
}

static int claim_part(struct call *call)
{
	return inspect_dump_part(&call->dumping.dump, claim_root, call, &call->dumping.claimed_bytes, call->error);
}

int resolve_dump(struct call *call)
{
	const Npumem__V1__DumpRequest *request = call->request->dump;
	int status = inspect_dump_begin(&call->dumping.dump, call->session, request->npu, request->offset,
					request->bytes, call->error);

	return status ? status : claim_part(call);
}

/* Copies the bytes of the part that was claimed; fewer where more tensors lie there by now. */
static int copy_part(struct call *call)
{
	struct call_dumping *dumping = &call->dumping;
	struct inspect_dump *dump = &dumping->dump;
	int64_t bytes;
	int status = inspect_dump_part(dump, NULL, NULL, &bytes, call->error);

	if (status)
		return status;
	bytes = bytes < dumping->claimed_bytes ? bytes : dumping->claimed_bytes;
	device_peek(call->rpc->service->device, dump->npu, dump->offset + dump->done_bytes, bytes,
		    dumping->data + dump->done_bytes);
	dump->done_bytes += bytes;
	return 0;
}

/* Else the copy would wait on the loop for each page that nobody has touched, or that is on a disk. */
static void fetch(struct call *call)
{
	const struct inspect_dump *dump = &call->dumping.dump;

	memset(call->dumping.data, 0, (size_t)dump->bytes);
	device_fetch(call->rpc->service->device, dump->npu, dump->offset, dump->bytes);
}

/* Requests that the session sent later wait for the end of the dump. */
static int dump_on(struct call *call)
{
	struct call_dumping *dumping = &call->dumping;
	int status;

	if (call_is_cancelled(call))
		return npumem_error_set(call->error, NPUMEM_CANCELLED, "the dump was cancelled");
	status = copy_part(call);
	if (status)
		return status;
	if (dumping->dump.done_bytes == dumping->dump.bytes) {
		reply_close(&call->reply, dumping->mark, (size_t)dumping->dump.bytes + REPLY_TAG_BYTES);
		return 0;
	}
	gate_leave_queues(call);
	claim_restart(&call->claim);
	status = claim_part(call);
	return status ? status : perform_go_behind(call, dump_on);
}

int handle_device_dump(struct call *call)
{
	size_t bytes = (size_t)call->request->dump->bytes, expected = bytes + REPLY_TAG_BYTES;
	int status = reply_reserve(&call->reply, bytes + 2 * REPLY_TAG_BYTES, call->error);

	if (status)
		return status;
	reply_expect(&call->reply, expected);
	call->dumping.mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_DUMP, expected);
	call->dumping.data = reply_bytes(&call->reply, DUMP_DATA, bytes);
	return perform_later(call, INT64_MAX, fetch, dump_on);
}
