/* Dimensions in another order: out dim i = in dim perm[i]; of any type. Three numbers permute C,H,W, 0 being C. */
#include <string.h>

#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/order_dims.h"

enum { IN, OUT };

static int refuse(const struct kernel_call *call, const char *text, struct npumem_error *error)
{
	npumem_error_set(error, NPUMEM_INVALID, "%s: perm %s", call->row->name, text);
	npumem_error_text(error, "parameter", "perm");
	return NPUMEM_INVALID;
}

static int check_perm(const struct kernel_call *call, struct npumem_error *error)
{
	const struct npumem_param *perm = &call->params.given[NPUMEM_PARAM_PERM];
	bool seen[ORDER_DIMS] = {false};
	if (perm->n_values < ORDER_DIMS - 1)
		return refuse(call, "is missing: a permutation of 0 to 3, or of 0 to 2 for C,H,W", error);
	for (unsigned i = 0; i < perm->n_values; i++) {
		int status = operands_check_param(call, NPUMEM_PARAM_PERM, "", perm->values[i], 0,
						  (int64_t)perm->n_values - 1, error);
		if (status)
			return status;
		if (seen[perm->values[i]])
			return refuse(call, "names a dimension twice", error);
		seen[perm->values[i]] = true;
	}
	return 0;
}

/* The dimension of in that dimension i of out is. */
static void read_perm(const struct kernel_call *call, int64_t from[ORDER_DIMS])
{
	const struct npumem_param *perm = &call->params.given[NPUMEM_PARAM_PERM];
	unsigned kept = ORDER_DIMS - perm->n_values;
	for (unsigned i = 0; i < ORDER_DIMS; i++)
		from[i] = i < kept ? i : kept + perm->values[i - kept];
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int64_t from[ORDER_DIMS], extents[ORDER_DIMS], permuted[ORDER_DIMS];
	int status = operands_check_choices(call, error);
	if (!status)
		status = check_perm(call, error);
	if (!status)
		status = operands_check_same_dtype(call, OUT, IN, error);
	if (!status)
		status = operands_check_same_frac_bits(call, OUT, IN, error);
	if (status)
		return status;
	read_perm(call, from);
	order_dims_split(&operands_get(call, IN)->shape, extents);
	for (int i = 0; i < ORDER_DIMS; i++)
		permuted[i] = extents[from[i]];
	struct npumem_dims want = order_dims_join(permuted);
	return operands_check_shape(call, OUT, &want, "in and perm give", error);
}

#define COPY(type)                                                                                                \
	do {                                                                                                      \
		const type *source = (const type *)in + at;                                                       \
		for (int64_t i = 0; i < n; i++)                                                                   \
			((type *)to)[i] = source[i * step];                                                       \
	} while (0)

/* Elements at, at + step, … (n of them) of `in`. */
static void copy_row(void *to, const void *in, int64_t at, int64_t step, int64_t n, unsigned bytes)
{
	if (step == 1)
		memcpy(to, (const uint8_t *)in + at * bytes, (size_t)n * bytes);
	else if (bytes == 1)
		COPY(uint8_t);
	else if (bytes == 2)
		COPY(uint16_t);
	else
		COPY(uint32_t);
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN), *out = operands_get(call, OUT);
	const struct npumem_dims *shape = &out->shape;
	unsigned bytes = npumem_dtype_bytes(in->dtype);
	int64_t from[ORDER_DIMS], step[ORDER_DIMS];
	struct npumem_dims stride;
	npumem_continuous_stride(&in->shape, &stride);
	order_dims_split(&stride, step);
	read_perm(call, from);
	call->counts = (struct kernel_counts){.saturated = 0};
	uint8_t *to = out->data;
	int64_t pending = 0, piece = kernel_piece(call);
	for (int64_t n = 0; n < shape->n; n++)
		for (int64_t c = 0; c < shape->c; c++)
			for (int64_t h = 0; h < shape->h; h++) {
				int64_t at = n * step[from[0]] + c * step[from[1]] + h * step[from[2]];
				for (int64_t w = 0; w < shape->w; w += piece) {
					int64_t count = shape->w - w < piece ? shape->w - w : piece;
					copy_row(to, in->data, at + w * step[from[3]], step[from[3]], count,
						 bytes);
					to += count * bytes;
					if (!kernel_step_rarely(call, count, &pending))
						return;
				}
			}
	kernel_step(call, pending);
}

const struct kernel kernel_permute = {
	.number = NPUMEM_KERNEL_PERMUTE,
	.check = check,
	.run = run,
};
