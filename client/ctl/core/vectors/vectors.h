/* Golden vectors as they lie in their files: cases of a kernel with its tensors and the expected outputs.
 * How a case becomes a run on the device is mapping.h's. */
#ifndef CTL_CORE_VECTORS_H
#define CTL_CORE_VECTORS_H

#include <jansson.h>

#include <npumem/kernels.h>
#include <npumem/layout.h>

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

/* Reads one case. 0 or INVALID: what is wrong with it. */
int vectors_case(const json_t *json, struct vectors_case *one, struct npumem_error *error);
/* Gives its memory back before its time: files have thousands. */
void vectors_case_deinit(struct vectors_case *one);

#endif
