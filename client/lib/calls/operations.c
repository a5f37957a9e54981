/* Operations that carry no data and are answered with a Done: fill, copy, run. */
#include "client/lib/calls/calls.h"

#include "client/lib/connection/engine/engine.h"
#include "client/lib/messages/message.h"
#include "client/lib/messages/reply.h"

static int take_done(struct npumem_request *request, const Npumem__V1__Response *response,
		     struct npumem_error *error)
{
	request->answer = reply_done(response->done, request->results);
	return request->answer ? 0 : request_no_memory(error);
}

int operations_start(struct npumem *npumem, Npumem__V1__Request *message, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_DONE, .take = take_done};
	return request_call(npumem, &kind, message, NULL, callback, context, request, error);
}

static int fill(struct npumem *npumem, Npumem__V1__FillRequest *message, uint64_t handle, NPUMEM_ASYNC)
{
	Npumem__V1__Ref ref;
	message->tensor = message_ref(handle, &ref);
	return operations_start(npumem, &MESSAGE_REQUEST(FILL, fill, message), callback, context, request, error);
}

int npumem_fill_async(struct npumem *npumem, uint64_t handle, int64_t value, NPUMEM_ASYNC)
{
	Npumem__V1__FillRequest message = NPUMEM__V1__FILL_REQUEST__INIT;
	message.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER;
	message.integer = value;
	return fill(npumem, &message, handle, callback, context, request, error);
}

int npumem_fill_float_async(struct npumem *npumem, uint64_t handle, double value, NPUMEM_ASYNC)
{
	Npumem__V1__FillRequest message = NPUMEM__V1__FILL_REQUEST__INIT;
	message.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_REAL;
	message.real = value;
	return fill(npumem, &message, handle, callback, context, request, error);
}

int npumem_copy_async(struct npumem *npumem, uint64_t destination, uint64_t source, NPUMEM_ASYNC)
{
	Npumem__V1__CopyRequest copy = NPUMEM__V1__COPY_REQUEST__INIT;
	Npumem__V1__Ref refs[2];
	copy.destination = message_ref(destination, &refs[0]);
	copy.source = message_ref(source, &refs[1]);
	return operations_start(npumem, &MESSAGE_REQUEST(COPY, copy, &copy), callback, context, request, error);
}

/* ---- running kernels by name ---- */

void run_message(const char *kernel, const struct npumem_operand *operands, unsigned n_operands,
		 const struct npumem_param *params, unsigned n_params, const struct run_parts *parts,
		 Npumem__V1__RunRequest *message)
{
	npumem__v1__run_request__init(message);
	message->kernel = (Npumem__V1__Kernel)npumem_kernel_by_name(kernel)->number;
	for (unsigned i = 0; i < n_operands; i++) {
		npumem__v1__operand__init(&parts->operands[i]);
		parts->operands[i].role = message_text(operands[i].role);
		parts->operands[i].tensor = message_ref(operands[i].handle, &parts->refs[i]);
		parts->operand_list[i] = &parts->operands[i];
	}
	for (unsigned i = 0; i < n_params; i++) {
		npumem__v1__param__init(&parts->params[i]);
		parts->params[i].key = (Npumem__V1__ParamKey)params[i].number;
		parts->params[i].n_values = params[i].n_values;
		parts->params[i].values = (int64_t *)(uintptr_t)params[i].values;
		parts->param_list[i] = &parts->params[i];
	}
	message->n_operands = n_operands;
	message->operands = parts->operand_list;
	message->n_params = n_params;
	message->params = parts->param_list;
}

int run_check(const char *kernel, unsigned n_operands, const struct npumem_param *params, unsigned n_params,
	      struct npumem_error *error)
{
	if (!kernel || !npumem_kernel_by_name(kernel))
		return npumem_error_set(error, NPUMEM_INVALID, "there is no kernel \"%s\"", kernel ? kernel : "");
	if (n_operands > NPUMEM_OPERANDS_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "%u operands are more than the %d of a call",
					n_operands, NPUMEM_OPERANDS_MAX);
	if (n_params > NPUMEM_PARAMS_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "%u parameters are more than the %d of a call",
					n_params, NPUMEM_PARAMS_MAX);
	for (unsigned i = 0; i < n_params; i++)
		if (params[i].n_values > NPUMEM_PARAM_VALUES_MAX)
			return npumem_error_set(error, NPUMEM_INVALID,
						"parameter %u has %u values; %d are the most", i,
						params[i].n_values, NPUMEM_PARAM_VALUES_MAX);
	return 0;
}

int npumem_run_async(struct npumem *npumem, const char *kernel, const struct npumem_operand *operands,
		     unsigned n_operands, const struct npumem_param *params, unsigned n_params, NPUMEM_ASYNC)
{
	Npumem__V1__Operand operand_messages[NPUMEM_OPERANDS_MAX], *operand_list[NPUMEM_OPERANDS_MAX];
	Npumem__V1__Ref refs[NPUMEM_OPERANDS_MAX];
	Npumem__V1__Param param_messages[NPUMEM_PARAMS_MAX], *param_list[NPUMEM_PARAMS_MAX];
	struct run_parts parts = {operand_messages, operand_list, refs, param_messages, param_list};
	Npumem__V1__RunRequest run;
	request_clear(error);
	int status = run_check(kernel, n_operands, params, n_params, error);
	if (status)
		return status;
	run_message(kernel, operands, n_operands, params, n_params, &parts, &run);
	return operations_start(npumem, &MESSAGE_REQUEST(RUN, run, &run), callback, context, request, error);
}
