/* Choices from bytes, and what all kernels have in common. What does not decide about shapes is chosen here, from
 * the rows alone. */
#include "tests/fuzz/valid.h"

#include <stdio.h>
#include <string.h>

#include "daemon/device/operations/kernel.h"

int64_t valid_below(struct valid_run *run, int64_t n)
{
	int64_t value = fuzz_byte(&run->bytes);

	if (n > 256)
		value = value << 8 | fuzz_byte(&run->bytes);
	return value % n;
}

int64_t valid_extent(struct valid_run *run, int64_t most)
{
	static const int16_t extents[] = {1,   1,   2,	 3,   4,   5,	6,   7,	  8,	9,    11,   13,
					  15,  16,  17,	 18,  23,  31,	32,  33,  47,	48,   49,   63,
					  64,  65,  66,	 95,  96,  97,	127, 128, 129,	130,  191,  192,
					  193, 255, 256, 257, 300, 511, 512, 513, 1000, 1025, 2049, 4097};
	int64_t chosen = extents[valid_below(run, sizeof(extents) / sizeof(extents[0]))];

	return most < 1 ? 1 : chosen < most ? chosen : most;
}

int64_t valid_frac_bits(struct valid_run *run, int64_t most)
{
	static const uint8_t extremes[] = {0, 7, 8, 15, 16, 31, 32, 40, 63, 64, 100, NPUMEM_FRAC_BITS_MAX};
	int64_t n = valid_below(run, 64), chosen;

	chosen = n < 48 ? n % 16 : extremes[(n - 48) % (int64_t)sizeof(extremes)];
	return chosen < most ? chosen : most;
}

void valid_param(struct valid_run *run, int number, unsigned n, const int64_t *values)
{
	struct npumem_param *param = &run->params[run->n_params++];

	*param = (struct npumem_param){.number = number, .n_values = n};
	memcpy(param->values, values, n * sizeof(*values));
}

static int64_t count_words(const char *text)
{
	int64_t n = *text != '\0';

	for (; *text; text++)
		n += *text == ' ';
	return n;
}

int64_t valid_choice(struct valid_run *run, int number)
{
	const struct npumem_param_row *row = npumem_param_by_number(number);
	bool is_needed = !*row->fallback;
	int64_t value = valid_below(run, count_words(row->choices) + !is_needed) + is_needed;

	if (value)
		valid_param(run, number, 1, &value);
	return value;
}

struct valid_tensor *valid_tensor(struct valid_run *run, const char *role, int dtype, int64_t frac_bits,
				  struct npumem_dims shape)
{
	struct valid_tensor *tensor = &run->tensors[run->n_tensors++];

	if (run->n_tensors > VALID_TENSORS_MAX)
		fuzz_fail("more tensors than there is room for");
	*tensor = (struct valid_tensor){.dtype = dtype,
					.frac_bits = npumem_dtype_is_fixed(dtype) ? frac_bits : NPUMEM_ANY,
					.shape = shape,
					.is = -1};
	snprintf(tensor->role, sizeof(tensor->role), "%s", role);
	tensor->is_output =
		strstr(role, "out") && strcmp(role, "prev_out") != 0 && strcmp(role, "weights_out") != 0;
	if (!tensor->is_output)
		tensor->values = fuzz_byte(&run->bytes);
	return tensor;
}

/* ---- what follows from the row ---- */

static void choose_types(struct valid_run *run)
{
	static const int ints[] = {NPUMEM_INT8,	  NPUMEM_UINT8, NPUMEM_INT16,
				   NPUMEM_UINT16, NPUMEM_INT32, NPUMEM_UINT32};
	const char *types = run->row->types;

	for (int64_t n = valid_below(run, count_words(types)); n; n--)
		types = strchr(types, ' ') + 1;
	if (!strncmp(types, "fx16w8", 6))
		run->data = NPUMEM_FX16, run->weights = NPUMEM_FX8;
	else if (!strncmp(types, "fx16", 4))
		run->data = run->weights = NPUMEM_FX16;
	else if (!strncmp(types, "fx8", 3))
		run->data = run->weights = NPUMEM_FX8;
	else if (!strncmp(types, "fp32", 4))
		run->data = run->weights = NPUMEM_FP32;
	else
		run->data = run->weights = ints[valid_below(run, !strncmp(types, "packed", 6) ? 4 : 6)];
}

static bool is_given(const struct valid_run *run, int number)
{
	for (unsigned i = 0; i < run->n_params; i++)
		if (run->params[i].number == number)
			return true;
	return false;
}

static bool takes(const struct npumem_kernel_row *row, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = row->parameters; (at = strstr(at, name)); at += n)
		if ((at == row->parameters || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
			return true;
	return false;
}

/* Those with choices that nobody chose yet: 0 is a choice of none, as LSTM's direction is by some rules. */
static void choose_rest(struct valid_run *run)
{
	static const int64_t up = NPUMEM_UP;
	int64_t exact;

	for (unsigned i = 0; i < npumem_n_param_rows; i++) {
		const struct npumem_param_row *row = &npumem_param_rows[i];

		if (*row->choices && takes(run->row, row->name) && !is_given(run, row->number) &&
		    (row->number == NPUMEM_PARAM_RELU || row->number == NPUMEM_PARAM_LUT))
			valid_choice(run, row->number);
	}
	if (takes(run->row, "exact")) {
		exact = valid_below(run, 2);
		valid_param(run, NPUMEM_PARAM_EXACT, 1, &exact);
	}
	if (strcmp(run->row->types, "packed") != 0)
		valid_choice(run, NPUMEM_PARAM_ROUNDING);
	else if (valid_below(run, 2))
		valid_param(run, NPUMEM_PARAM_ROUNDING, 1, &up);
}

static bool are_alike(const struct valid_tensor *a, const struct valid_tensor *b)
{
	return a->dtype == b->dtype && a->frac_bits == b->frac_bits &&
	       !memcmp(&a->shape, &b->shape, sizeof(a->shape));
}

/* Whether another tensor is this one: an output, or any. */
static bool is_taken(const struct valid_run *run, unsigned as, bool any)
{
	for (unsigned i = 0; i < run->n_tensors; i++)
		if (run->tensors[i].is == (int)as && (any || run->tensors[i].is_output))
			return true;
	return false;
}

/* Two inputs may be one tensor; so may an input and an output of a kernel that works in place. */
static void choose_same(struct valid_run *run)
{
	bool in_place = kernel_by_number(run->row->number)->in_place;

	for (unsigned i = 1; i < run->n_tensors; i++)
		for (unsigned k = 0; k < run->n_tensors; k++) {
			struct valid_tensor *a = &run->tensors[i], *b = &run->tensors[k];

			if (a->is >= 0 || b->is >= 0 || b->is_output || !are_alike(a, b) || is_taken(run, i, true))
				continue;
			if (a->is_output ? !in_place || is_taken(run, k, false) || valid_below(run, 3) != 1
					 : k >= i || valid_below(run, 8) != 1)
				continue;
			a->is = (int)k;
		}
}

void valid_read(const uint8_t *bytes, size_t n, struct valid_run *run)
{
	*run = (struct valid_run){.bytes = {bytes, bytes + n}};
	run->row = &npumem_kernel_rows[valid_below(run, npumem_n_kernel_rows)];
	choose_types(run);
	valid_shapes(run);
	choose_rest(run);
	choose_same(run);
}
