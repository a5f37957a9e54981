/* Calls about the device as a whole. */
#include <unistd.h>

#include "daemon/rpc/handlers/handler.h"
#include "proto/wire.h"
#include "daemon/service/observed/inspect.h"
#include "proto/convert.h"
#include "proto/frame.h"

enum {
	FEATURES = NPUMEM__V1__FEATURE__FEATURE_SUBMIT,
	DUMP_DATA = 1,	       /* Dump.data */
	DUMP_ROOTS_MAX = 1024, /* that are claimed one by one */
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

int handle_device_info(struct call *call, const Npumem__V1__InfoRequest *request)
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
	if (request->details) {
		fill_limits(call->session, limits, pointers);
		info.resume_seconds = persist->resume_seconds;
		info.state_dir = (char *)(uintptr_t)(persist->directory ? persist->directory : "");
		info.socket = (char *)(uintptr_t)(call->rpc->socket ? call->rpc->socket : "");
		info.n_limits = LIMITS_N;
		info.limits = pointers;
		info.uptime_ns = call->rpc->now_ns ? call->rpc->now_ns() - call->rpc->began_ns : 0;
	}
	return reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_INFO, &info.base, call->error);
}

struct dumping {
	struct call *call;
	int status;
};

static bool claim_root(void *ctx, struct tensor *tensor)
{
	struct dumping *dumping = ctx;

	if (!record_of(tensor))
		return true;
	if (dumping->call->claim.n == DUMP_ROOTS_MAX)
		return false;
	dumping->status = call_claim(dumping->call, tensor, false);
	if (!dumping->status)
		dumping->call->claim.accesses[dumping->call->claim.n - 1].survives = true;
	return !dumping->status;
}

/* Reads these bytes of all that lies there; of very many tensors, as if of everything. */
int resolve_dump(struct call *call, const Npumem__V1__DumpRequest *request)
{
	struct dumping dumping = {call, 0};
	int status = inspect_dump_check(call->session, request->npu, request->offset, request->bytes, call->error);

	if (status)
		return status;
	if (device_each_at(call->rpc->service->device, request->offset, request->bytes, claim_root, &dumping))
		return 0;
	call->entry.is_exclusive = !dumping.status;
	return dumping.status;
}

int handle_device_dump(struct call *call, const Npumem__V1__DumpRequest *request)
{
	int status = inspect_dump_check(call->session, request->npu, request->offset, request->bytes, call->error);
	size_t bytes = (size_t)request->bytes, expected = bytes + REPLY_TAG_BYTES, mark;

	if (!status)
		status = reply_reserve(&call->reply, bytes + 2 * REPLY_TAG_BYTES, call->error);
	if (status)
		return status;
	reply_expect(&call->reply, expected);
	mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_DUMP, expected);
	device_peek(call->rpc->service->device, request->npu, request->offset, request->bytes,
		    reply_bytes(&call->reply, DUMP_DATA, bytes));
	reply_close(&call->reply, mark, expected);
	return 0;
}

int handle_device_plan(struct call *call, const Npumem__V1__PlanRequest *request)
{
	const struct npumem_geometry *geometry = &device_options(call->rpc->service->device)->geometry;
	Npumem__V1__Plan message = NPUMEM__V1__PLAN__INIT;
	Npumem__V1__Width widths[NPUMEM_PLAN_WIDTHS_MAX], *pointers[NPUMEM_PLAN_WIDTHS_MAX];
	struct convert_place place;
	struct npumem_spec spec;
	struct npumem_plan plan;
	int status = wire_spec(request->spec, &spec, call->error);

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
