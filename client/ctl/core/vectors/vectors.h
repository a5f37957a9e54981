/* Golden vectors: reading, placing, recording. */
#ifndef CTL_CORE_VECTORS_VECTORS_H
#define CTL_CORE_VECTORS_VECTORS_H

#include <jansson.h>
#include <npumem/kernels.h>
#include <npumem/layout.h>
#include <npumem/types.h>

/* vectors.c. Golden vectors as they lie in their files: cases of a kernel with its tensors and the expected
 * outputs. How a case becomes a run on the device is mapping.c's. */

enum {
	VECTORS_DIMS_MAX = 4,
	VECTORS_TEXT_BYTES = 40,
	VECTORS_ELEMENTS_MAX = 1 << 21, /* so that the largest tensor fits one message */
};

struct vectors_tensor {
	char role[NPUMEM_FIELD_KEY_BYTES];
	bool output;
	int dtype;
	int64_t frac_bits;	       /* NPUMEM_ANY: none */
	int mode;		       /* 0: none asked for */
	char dims[VECTORS_TEXT_BYTES]; /* their names: "O,I,H,W" */
	unsigned n_dims;
	int64_t shape[VECTORS_DIMS_MAX];
	size_t n;
	int64_t *data; /* row-major over the dims */
};

struct vectors_case {
	const char *name, *kernel, *rounding; /* of the JSON that was read */
	const json_t *params;
	struct vectors_tensor tensors[NPUMEM_OPERANDS_MAX];
	unsigned n_tensors;
};

/* Loads a file. *cases is its array of cases, and belongs to *root, which the caller may drop with json_decref;
 * NULL where the file is JSON but holds no vectors. 0 or INVALID (unreadable, no JSON). */
int vectors_load(const char *path, json_t **root, const json_t **cases, struct npumem_error *error);

/* Reads one case. 0; INVALID, with the reason. */
int vectors_case(const json_t *json, struct vectors_case *one, struct npumem_error *error);
/* Gives its memory back before its time: files have thousands. */
void vectors_case_deinit(struct vectors_case *one);

/* mapping.c. How a golden vector becomes a run: where the dimensions of its tensors go in N,C,H,W, and what its
 * parameters are called here. Tables: another kernel family needs a row where it has names of its own. */

/* The N,C,H,W of a vector's tensor, and which of the vector's dims each is (-1: extent 1). */
struct mapping {
	struct npumem_dims shape;
	int from[4];
};
/* 0 or INVALID: no row for these dims. */
int mapping_tensor(const struct vectors_case *one, const struct vectors_tensor *tensor, struct mapping *mapping,
		   struct npumem_error *error);
/* Reorders between the vector's order and N,C,H,W: to[i] is for element i in N,C,H,W order; the container's type.
 */
void mapping_pack(const struct vectors_tensor *tensor, const struct mapping *mapping, void *to);
/* The expected value at element i in N,C,H,W order. */
int64_t mapping_expected(const struct vectors_tensor *tensor, const struct mapping *mapping, size_t i);
/* The inverse, for a vector that is yet to be written: the dims named so, of a tensor that lies as `shape`. Sets
 * dims, shape and n of `tensor`. False where `kernel` has no such dims, or they leave out an extent above 1. */
bool mapping_dims(const char *kernel, const char *dims, const struct npumem_dims *shape,
		  struct vectors_tensor *tensor, struct mapping *mapping);
/* Fills tensor->data, tensor->n long, from a container array in N,C,H,W order. */
void mapping_unpack(const struct vectors_tensor *tensor, const struct mapping *mapping, const void *from);
/* Element i of a container array. */
int64_t mapping_value(int dtype, const void *data, size_t i);

/* The parameters of a run, rounding included. 0 or INVALID, naming the one that has no meaning here. */
int mapping_params(const struct vectors_case *one, const struct npumem_kernel_row *row,
		   struct npumem_param *params, unsigned *n_params, struct npumem_error *error);
/* True where a tensor of that role already says the parameter, so that a case must not say it again. */
bool mapping_implies(const char *kernel, const char *role, const char *param);

/* variant.c. The ways to place a golden vector's tensors: the answer must be the same in all of them. */

struct variant {
	int layout, mode;
	int64_t start_npu;
};

/* The spec of one tensor in this variant. What it cannot take (a mode of another width, a matrix of more than two
 * dimensions, strides that do not fit an NPU) it does without. */
void variant_spec(const struct variant *variant, const struct npumem_geometry *geometry,
		  const struct vectors_tensor *tensor, const struct mapping *mapping, struct npumem_spec *spec);

/* The same for any tensor: `plain` has type, frac_bits, shape, and the mode that it keeps, or 0. */
void variant_place(const struct variant *variant, const struct npumem_geometry *geometry,
		   const struct npumem_spec *plain, struct npumem_spec *spec);

/* "[compact, start NPU 3, 4n]". */
const char *variant_text(const struct variant *variant, char *text, size_t bytes);

/* golden.c. A run that was seen, as a golden vector: the inverse of mapping.c. */

struct golden_tensor {
	const char *role;
	int dtype, mode;
	int64_t frac_bits;	  /* NPUMEM_ANY: none */
	struct npumem_dims shape; /* a matrix: rows, cols, 1, 1 */
	const void *data;	  /* dense, row-major, in the container's type */
};

struct golden {
	const struct npumem_kernel_row *row;
	const struct npumem_param *params;
	unsigned n_params;
	int rounding; /* the device's, for a run that names none */
	struct golden_tensor tensors[NPUMEM_OPERANDS_MAX];
	unsigned n_tensors;
};

/* 0, or INVALID: why a golden vector cannot hold the tensor (its type, its size). Does not look at its data. */
int golden_check(const struct golden_tensor *tensor, struct npumem_error *error);

/* A new case named KERNEL/DTYPE/recordedNUMBER@ROUNDING of tensors that passed the check. */
json_t *golden_case(const struct golden *golden, unsigned number);

/* recorded_file.c. A file of recorded vectors, DIR/<kernel>.json: opened, given a case more, replaced as a whole.
 */

struct recorded_file {
	int directory; /* locked against other recorders */
	char kernel[64], path[512];
	json_t *root;
};

/* Reads the kernel's file in a folder that exists, or starts one in memory. Waits for others that record there.
 * 0; INVALID (the folder, or a file that is not of this family and recorded), and then nothing is to be closed.
 * Writes nothing. */
int recorded_file_open(struct recorded_file *recorded, const char *directory, const char *kernel,
		       struct npumem_error *error);
/* The number after the largest that a case "…/recordedN@…" of it has; 1 for the first. */
unsigned recorded_file_next(const struct recorded_file *recorded);
/* Adds the case and writes the file anew: a reader sees it with or without the case, never half. 0 or INVALID: it
 * cannot be written, and is as it was. */
int recorded_file_append(struct recorded_file *recorded, json_t *one, struct npumem_error *error);
void recorded_file_close(struct recorded_file *recorded);

#endif
