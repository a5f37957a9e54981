/* A valid run of any kernel, read from any bytes: no input is refused. Extents, formats and parameters are chosen
 * from the rows of kernels.def and params.def such that every branch of every planner is reached: windows that
 * dwarf their input, single elements, thousands of terms, strides beyond the kernel, odd numbers of channels. */
#ifndef TESTS_FUZZ_VALID_H
#define TESTS_FUZZ_VALID_H

#include <npumem/kernels.h>
#include <npumem/layout.h>

#include "tests/fuzz/fuzz.h"

enum {
	VALID_TENSORS_MAX = 24,
	VALID_FAMILY_MAX = 6,
};
/* Of a tensor and of a run, or little more, and of a cell; a test may define larger ones. */
#ifndef VALID_ELEMENTS_MAX
#define VALID_ELEMENTS_MAX (1 << 13)
#define VALID_PRODUCTS_MAX (1 << 18)
#define VALID_SEQUENCE_MAX 20
#endif

struct valid_tensor {
	char role[NPUMEM_FIELD_KEY_BYTES];
	bool is_output;
	int dtype;
	int64_t frac_bits;	  /* NPUMEM_ANY: its type has none */
	struct npumem_dims shape; /* as the kernel has it: a matrix is [rows, cols, 1, 1] */
	uint8_t values;		  /* how its elements are chosen */
	int is;			  /* the tensor before it that it is, or -1 */
};

struct valid_run {
	struct fuzz_bytes bytes;
	const struct npumem_kernel_row *row;
	unsigned n_tensors, n_params;
	struct valid_tensor tensors[VALID_TENSORS_MAX];
	struct npumem_param params[NPUMEM_PARAMS_MAX];
	/* Of the row's types, one. */
	int data, weights;
};

/* Leaves in run->bytes what it did not need. */
void valid_read(const uint8_t *bytes, size_t n, struct valid_run *run);

/* ---- choices, for valid_shapes.c ---- */

/* 0 to n - 1. */
int64_t valid_below(struct valid_run *run, int64_t n);
/* 1 to `most`, mostly a number around which something changes. */
int64_t valid_extent(struct valid_run *run, int64_t most);
int64_t valid_frac_bits(struct valid_run *run, int64_t most);
/* A given parameter. */
void valid_param(struct valid_run *run, int number, unsigned n, const int64_t *values);
/* One of its choices, or 0: it is not given. */
int64_t valid_choice(struct valid_run *run, int number);
/* The next operand of a role; its type has frac_bits or not. */
struct valid_tensor *valid_tensor(struct valid_run *run, const char *role, int dtype, int64_t frac_bits,
				  struct npumem_dims shape);

/* Operands and those parameters that decide about shapes. */
void valid_shapes(struct valid_run *run);

#endif
