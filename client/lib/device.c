/* Calls about the device as a whole: info, dump, compact, plan. */
#include <string.h>

#include "client/lib/call.h"
#include "client/lib/reply.h"
#include "proto/convert.h"

/* What this library knows of; a daemon never refuses over it. */
#define DEVICE_FEATURES NPUMEM__V1__FEATURE__FEATURE_SUBMIT

static int take_info(struct call *call, const Npumem__V1__Response *response)
{
	return reply_info(response->info, call->result);
}

int npumem_info(struct npumem *npumem, struct npumem_info *info, struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__InfoRequest message = NPUMEM__V1__INFO_REQUEST__INIT;
	struct call call = {.take = take_info, .result = info};
	message.features = DEVICE_FEATURES;
	request.call_case = NPUMEM__V1__REQUEST__CALL_INFO;
	request.info = &message;
	return call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_INFO, &call, error);
}

static int take_dump(struct call *call, const Npumem__V1__Response *response)
{
	if (response->dump->data.len != call->n)
		return -1;
	if (call->n)
		memcpy(call->result, response->dump->data.data, call->n);
	return 0;
}

int npumem_dump(struct npumem *npumem, int64_t npu, int64_t offset, int64_t bytes, void *to,
		struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__DumpRequest message = NPUMEM__V1__DUMP_REQUEST__INIT;
	struct call call = {.take = take_dump, .result = to, .n = bytes > 0 ? (size_t)bytes : 0};
	message.npu = npu;
	message.offset = offset;
	message.bytes = bytes;
	request.call_case = NPUMEM__V1__REQUEST__CALL_DUMP;
	request.dump = &message;
	return call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_DUMP, &call, error);
}

/* Takes an array whose length only the answer tells. Its memory is the user's to free. */
struct taken {
	const struct memory *memory;
	struct npumem_move *moves;
	bool no_memory;
};

static int take_moves(struct call *call, const Npumem__V1__Response *response)
{
	struct taken *taken = call->result;
	call->n = response->compacted->n_moves;
	if (!call->n)
		return 0;
	taken->moves = memory_array(taken->memory, call->n, sizeof(*taken->moves));
	taken->no_memory = !taken->moves;
	for (size_t i = 0; i < call->n && taken->moves; i++)
		reply_move(response->compacted->moves[i], &taken->moves[i]);
	return 0;
}

int npumem_compact(struct npumem *npumem, bool dry_run, struct npumem_move **moves, unsigned *n_moves,
		   struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__CompactRequest message = NPUMEM__V1__COMPACT_REQUEST__INIT;
	struct taken taken = {.memory = npumem->memory};
	struct call call = {.take = take_moves, .result = &taken};
	message.dry_run = dry_run;
	request.call_case = NPUMEM__V1__REQUEST__CALL_COMPACT;
	request.compact = &message;
	*moves = NULL;
	*n_moves = 0;
	int status = call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_COMPACTED, &call, error);
	if (status)
		return status;
	if (taken.no_memory)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"no memory in this process for the list of %zu moves", call.n);
	*moves = taken.moves;
	*n_moves = (unsigned)call.n;
	return 0;
}

static int take_plan(struct call *call, const Npumem__V1__Response *response)
{
	return reply_plan(response->plan, call->result);
}

int npumem_plan_remote(struct npumem *npumem, const struct npumem_spec *spec, struct npumem_plan *plan,
		       struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__PlanRequest message = NPUMEM__V1__PLAN_REQUEST__INIT;
	struct convert_spec converted;
	struct call call = {.take = take_plan, .result = plan};
	convert_spec_to(spec, &converted);
	message.spec = &converted.message;
	request.call_case = NPUMEM__V1__REQUEST__CALL_PLAN;
	request.plan = &message;
	return call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_PLAN, &call, error);
}
