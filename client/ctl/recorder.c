/* Recording: what can be refused (the tensors' types, the file) is refused before the kernel runs; then the inputs
 * are read, since an output may lie on one of them, then the outputs. Does not keep others from writing between.
 */
#include "client/ctl/recorder.h"

#include <stdlib.h>

#include "client/ctl/call.h"
#include "client/ctl/core/arrays/array.h"
#include "client/ctl/core/arrays/recorded_file.h"
#include "client/ctl/core/record.h"
#include "client/ctl/core/roles.h"

struct recorder {
	struct ctl *ctl;
	struct call call;
	struct record record;
	size_t bytes[NPUMEM_OPERANDS_MAX];
	void *data[NPUMEM_OPERANDS_MAX];
};

static int prepare(struct recorder *recorder)
{
	struct ctl *ctl = recorder->ctl;
	const struct call *call = &recorder->call;
	const struct npumem_info *info;
	if (npumem_info(ctl->npumem, &info, &ctl->error))
		return CTL_FAILED;
	recorder->record = (struct record){.row = call->row,
					   .params = call->params,
					   .n_params = call->n_params,
					   .rounding = info->rounding,
					   .n_tensors = call->n_tensors};
	for (unsigned i = 0; i < call->n_tensors; i++) {
		const struct npumem_place *place = &call->tensors[i]->place;
		struct array array;
		if (array_of(call->tensors[i], &array, &ctl->error))
			return CTL_FAILED;
		struct record_tensor *tensor = &recorder->record.tensors[i];
		*tensor = (struct record_tensor){.role = call->roles[i],
						 .dtype = place->dtype,
						 .mode = place->mode,
						 .frac_bits = place->frac_bits,
						 .shape = place->shape};
		if (place->layout == NPUMEM_MATRIX)
			tensor->shape = (struct npumem_dims){place->rows, place->cols, 1, 1};
		if (record_check(tensor, &ctl->error))
			return CTL_FAILED;
		recorder->bytes[i] = array.bytes;
		tensor->data = recorder->data[i] = malloc(array.bytes);
		if (!tensor->data)
			return ctl_fail(ctl, "no memory for an array of %zu bytes", array.bytes);
	}
	return CTL_OK;
}

static int read_all(struct recorder *recorder, bool outputs)
{
	struct ctl *ctl = recorder->ctl;
	const struct call *call = &recorder->call;
	for (unsigned i = 0; i < call->n_tensors; i++) {
		const struct npumem_done *done;
		if (roles_is_output(call->row, call->roles[i]) != outputs)
			continue;
		if (npumem_read(ctl->npumem, call->tensors[i], recorder->data[i], recorder->bytes[i], &done,
				&ctl->error))
			return CTL_FAILED;
		ctl_warn(ctl, done->warning);
	}
	return CTL_OK;
}

static int print_case(struct ctl *ctl, const struct recorded_file *recorded, const char *name)
{
	if (ctl->json)
		return ctl_print(ctl, json_pack("{s:s, s:s}", "file", recorded->path, "case", name));
	printf("%s in %s\n", name, recorded->path);
	return CTL_OK;
}

static int run_and_keep(struct recorder *recorder, struct recorded_file *recorded)
{
	struct ctl *ctl = recorder->ctl;
	const struct npumem_done *done;
	int code = read_all(recorder, false);
	if (!code)
		code = call_run(ctl, &recorder->call, &done);
	if (code)
		return code;
	ctl_warn(ctl, done->warning);
	code = read_all(recorder, true);
	if (code)
		return code;
	json_t *one = json_incref(record_case(&recorder->record, recorded_file_next(recorded)));
	code = recorded_file_append(recorded, one, &ctl->error) ? CTL_FAILED : CTL_OK;
	if (!code)
		code = print_case(ctl, recorded, json_string_value(json_object_get(one, "name")));
	json_decref(one);
	return code;
}

int recorder_run(struct ctl *ctl, const char *directory, const struct args *args)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	struct recorded_file recorded;
	if (!recorder)
		return ctl_fail(ctl, "no memory");
	recorder->ctl = ctl;
	int code = call_open(ctl, args, &recorder->call);
	if (!code)
		code = prepare(recorder);
	if (!code)
		code = recorded_file_open(&recorded, directory, recorder->call.row->name, &ctl->error) ? CTL_FAILED
												       : CTL_OK;
	if (!code) {
		code = run_and_keep(recorder, &recorded);
		recorded_file_close(&recorded);
	}
	for (unsigned i = 0; i < recorder->call.n_tensors; i++)
		free(recorder->data[i]);
	free(recorder);
	return code;
}
