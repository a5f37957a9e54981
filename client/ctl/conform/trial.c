/* One golden vector on the device. The tensors are anonymous and live as long as the trial; after the allocation
 * everything is sent at once, so that a trial costs two round trips. */
#include "client/ctl/conform/conform.h"

#include <inttypes.h>
#include <string.h>

#include "client/ctl/core/memory.h"

struct trial;

struct step {
	struct trial *trial;
	const char *what;
	unsigned tensor;
	bool is_read;
};

struct trial {
	struct npumem *npumem;
	const struct vectors_case *one;
	struct mapping mappings[NPUMEM_OPERANDS_MAX];
	const struct npumem_tensor *tensors[NPUMEM_OPERANDS_MAX];
	void *data[NPUMEM_OPERANDS_MAX]; /* written or read */
	struct step steps[NPUMEM_OPERANDS_MAX + 1];
	struct npumem_error *error; /* the first thing that went wrong */
};

static void compare(struct trial *trial, unsigned i)
{
	const struct vectors_tensor *tensor = &trial->one->tensors[i];
	const struct mapping *mapping = &trial->mappings[i];
	const void *data = trial->data[i];
	for (size_t k = 0; k < tensor->n; k++) {
		int64_t is = mapping_value(tensor->dtype, data, k),
			expected = mapping_expected(tensor, mapping, k);
		if (is == expected)
			continue;
		int64_t at = (int64_t)k, w = at % mapping->shape.w,
			h = (at /= mapping->shape.w) % mapping->shape.h;
		int64_t c = (at /= mapping->shape.h) % mapping->shape.c, n = at / mapping->shape.c;
		npumem_error_set(trial->error, NPUMEM_DATA_LOST,
				 "%s[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "] is %" PRId64 ", %" PRId64
				 " is expected",
				 tensor->role, n, c, h, w, is, expected);
		return;
	}
}

static void step_done(void *context, const struct npumem_answer *answer)
{
	const struct step *step = context;
	struct trial *trial = step->trial;
	if (answer->status)
		npumem_error_set(trial->error, answer->status, "%s: %.400s", step->what, answer->error->message);
	else if (step->is_read)
		compare(trial, step->tensor);
}

static int trial_alloc(struct trial *trial, const struct npumem_geometry *geometry, const struct variant *variant)
{
	struct npumem_allocation allocations[NPUMEM_OPERANDS_MAX];
	const struct vectors_case *one = trial->one;
	struct npumem_error why;
	for (unsigned i = 0; i < one->n_tensors; i++) {
		int status = mapping_tensor(one, &one->tensors[i], &trial->mappings[i], trial->error);
		if (status)
			return status;
		allocations[i] = (struct npumem_allocation)NPUMEM_ALLOCATION_INIT;
		variant_spec(variant, geometry, &one->tensors[i], &trial->mappings[i], &allocations[i].spec);
	}
	int status = npumem_alloc(trial->npumem, allocations, one->n_tensors, trial->tensors, &why);
	return status ? npumem_error_set(trial->error, status, "alloc: %.400s", why.message) : 0;
}

/* The array of a tensor, written or read in one piece; its data stay until all is answered. */
static int trial_move(struct trial *trial, unsigned i)
{
	const struct vectors_tensor *tensor = &trial->one->tensors[i];
	size_t bytes = tensor->n * npumem_dtype_bytes(tensor->dtype);
	void *data = trial->data[i] = memory_new(bytes, 1);
	struct step *step = &trial->steps[i];
	*step = (struct step){trial, tensor->output ? "read" : "write", i, tensor->output};
	if (tensor->output)
		return npumem_read_async(trial->npumem, trial->tensors[i], data, bytes, step_done, step, NULL,
					 trial->error);
	mapping_pack(tensor, &trial->mappings[i], data);
	return npumem_write_async(trial->npumem, trial->tensors[i], data, bytes, step_done, step, NULL,
				  trial->error);
}

/* Sends everything; a step that is refused here or by the daemon sets trial->error. */
static int trial_send(struct trial *trial, const struct npumem_kernel_row *row)
{
	struct npumem_operand operands[NPUMEM_OPERANDS_MAX];
	struct npumem_param params[NPUMEM_PARAMS_MAX];
	const struct vectors_case *one = trial->one;
	unsigned n_params;
	int status = mapping_params(one, row, params, &n_params, trial->error);
	for (unsigned i = 0; i < one->n_tensors && !status; i++) {
		operands[i] = (struct npumem_operand){one->tensors[i].role, trial->tensors[i]->handle};
		if (!one->tensors[i].output)
			status = trial_move(trial, i);
	}
	struct step *run = &trial->steps[one->n_tensors];
	*run = (struct step){trial, "run", 0, false};
	if (!status)
		status = npumem_run_async(trial->npumem, one->kernel, operands, one->n_tensors, params, n_params,
					  step_done, run, NULL, trial->error);
	for (unsigned i = 0; i < one->n_tensors && !status; i++)
		if (one->tensors[i].output)
			status = trial_move(trial, i);
	return status;
}

int trial_run(struct npumem *npumem, const struct npumem_geometry *geometry, const struct vectors_case *one,
	      const struct npumem_kernel_row *row, const struct variant *variant, struct npumem_error *error)
{
	uint64_t handles[NPUMEM_OPERANDS_MAX];
	struct trial *trial = memory_new(1, sizeof(*trial));
	npumem_error_clear(error);
	*trial = (struct trial){.npumem = npumem, .one = one, .error = error};
	int status = trial_alloc(trial, geometry, variant);
	if (!status) {
		struct npumem_error why;
		/* The first error stays. */
		trial_send(trial, row);
		for (unsigned i = 0; i < one->n_tensors; i++)
			handles[i] = trial->tensors[i]->handle;
		/* Waits for all that was sent before, too. */
		if (npumem_free(npumem, handles, one->n_tensors, &why) || npumem_flush(npumem, &why))
			npumem_error_set(error, why.status, "free: %.400s", why.message);
	}
	for (unsigned i = 0; i < one->n_tensors; i++) {
		npumem_release(trial->tensors[i]);
		memory_free(trial->data[i]);
	}
	memory_free(trial);
	return error->status;
}
