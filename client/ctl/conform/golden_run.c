/* Recording: what can be refused (the tensors' types, the file) is refused before the kernel runs; then the inputs
 * are read, since an output may lie on one of them, then the outputs. Does not keep others from writing between.
 */
#include "client/ctl/conform/conform.h"

#include <sys/stat.h>

#include "client/ctl/core/arrays/stream.h"
#include "client/ctl/core/kernels/kernels.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/vectors/vectors.h"
#include "client/ctl/ctl.h"

struct run {
	struct ctl *ctl;
	struct call call;
	struct golden golden;
	size_t bytes[NPUMEM_OPERANDS_MAX];
	void *data[NPUMEM_OPERANDS_MAX];
};

static int prepare(struct run *run)
{
	struct ctl *ctl = run->ctl;
	const struct call *call = &run->call;
	const struct npumem_info *info;
	if (npumem_info(ctl->npumem, &info, &ctl->error))
		return CTL_FAILED;
	run->golden = (struct golden){.row = call->row,
				      .params = call->params,
				      .n_params = call->n_params,
				      .rounding = info->rounding,
				      .n_tensors = call->n_tensors};
	for (unsigned i = 0; i < call->n_tensors; i++) {
		const struct npumem_place *place = &call->tensors[i]->place;
		struct array array;
		if (array_of(call->tensors[i], &array, &ctl->error))
			return CTL_FAILED;
		struct golden_tensor *tensor = &run->golden.tensors[i];
		*tensor = (struct golden_tensor){.role = call->roles[i],
						 .dtype = place->dtype,
						 .mode = place->mode,
						 .frac_bits = place->frac_bits,
						 .shape = place->shape};
		if (place->layout == NPUMEM_MATRIX)
			tensor->shape = (struct npumem_dims){place->rows, place->cols, 1, 1};
		if (golden_check(tensor, &ctl->error))
			return CTL_FAILED;
		run->bytes[i] = array.bytes;
		tensor->data = run->data[i] = memory_new(array.bytes, 1);
	}
	return CTL_OK;
}

static int read_all(struct run *run, bool outputs)
{
	struct ctl *ctl = run->ctl;
	const struct call *call = &run->call;
	for (unsigned i = 0; i < call->n_tensors; i++) {
		const struct npumem_done *done;
		if (roles_is_output(call->row, call->roles[i]) != outputs)
			continue;
		if (npumem_read(ctl->npumem, call->tensors[i], run->data[i], run->bytes[i], &done, &ctl->error))
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

static int run_and_keep(struct run *run, struct recorded_file *recorded)
{
	struct ctl *ctl = run->ctl;
	const struct npumem_done *done;
	int code = read_all(run, false);
	if (!code)
		code = call_run(ctl, &run->call, &done);
	if (code)
		return code;
	ctl_warn(ctl, done->warning);
	code = read_all(run, true);
	if (code)
		return code;
	json_t *one = golden_case(&run->golden, recorded_file_next(recorded));
	if (recorded_file_append(recorded, one, &ctl->error))
		return CTL_FAILED;
	return print_case(ctl, recorded, json_string_value(json_object_get(one, "name")));
}

int golden_run_record(struct ctl *ctl, const char *directory, const struct args *args)
{
	struct run *run = memory_new(1, sizeof(*run));
	struct recorded_file recorded;
	run->ctl = ctl;
	int code = call_open(ctl, args, &run->call);
	if (!code)
		code = prepare(run);
	if (code)
		return code;
	mkdir(directory, 0777);
	if (recorded_file_open(&recorded, directory, run->call.row->name, &ctl->error))
		return CTL_FAILED;
	code = run_and_keep(run, &recorded);
	recorded_file_close(&recorded);
	return code;
}
