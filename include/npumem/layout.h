/* Where a tensor lies in local memory: the formulas of the layouts. The functions are pure and need no daemon; the
 * daemon uses the same code. They do not clear `error` (npumem_error_clear).
 * Source of the formulas: the vendor's chapter "Tensor in Local Memory"; names in quotes are its sections.
 *
 * Units: addresses, offsets and sizes are in bytes; strides are in words. A word is one element, or the packed
 * group of elements of a storage mode: 4 of 8 bits, 2 of 16 bits, or 2 of fp32. */
#ifndef NPUMEM_LAYOUT_H
#define NPUMEM_LAYOUT_H

#include <npumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	NPUMEM_NPUS_MAX = 1024,
	NPUMEM_NPU_BYTES_QUANTUM = 128,
	NPUMEM_PLAN_WIDTHS_MAX = 16,
};
#define NPUMEM_NPU_BYTES_MAX (INT64_C(1) << 30)
/* The value of an address, a start NPU or frac_bits that is not given. */
#define NPUMEM_ANY INT64_C(-1)

/* The NPU array: X NPUs with S bytes of local memory each. Address Q * S + R is on NPU Q at offset R. */
struct npumem_geometry {
	int64_t n_npus;	   /* X, 1..1024 */
	int64_t npu_bytes; /* S, a multiple of 128 up to 2^30 */
	int64_t n_banks;   /* number of equal parts of an NPU's bytes */
	int64_t eu_bytes;  /* alignment of the aligned layout */
};

struct npumem_dims {
	int64_t n, c, h, w;
};

/* The type, shape and place that a caller wants for a tensor. npumem_spec_init sets each member to its default: 0,
 * and NPUMEM_ANY for `frac_bits`, `start_npu` and `address`, where 0 is a value. */
struct npumem_spec {
	int dtype;
	int64_t frac_bits; /* required for fx8 and fx16, refused for the others */
	int layout;
	int mode;
	struct npumem_dims shape; /* N,C,H,W in elements; unused for a matrix */
	int64_t rows, cols;	  /* for the layout matrix only */
	int64_t w;		  /* matrix: columns per channel; 0: the width with the least storage */
	/* For the layout strided only, in words. A stride may be 0 in a dimension of one step: n if N is one word,
	 * h or w if its extent is 1, c if there is one block row. */
	struct npumem_dims stride;
	int64_t start_npu; /* the NPU of channel 0; NPUMEM_ANY: that of the address, or 0 */
	int64_t address;   /* of the first element; NPUMEM_ANY: not given */
};

/* The bytes of a tensor on all NPUs, by kind; their sum is n_npus * bytes_per_npu. */
struct npumem_blocks {
	int64_t data;	 /* elements */
	int64_t dummy;	 /* the unused elements of a storage mode's last words */
	int64_t padding; /* all other bytes */
	int64_t empty;	 /* blocks of the first or last block row without a feature */
};

/* A resolved tensor: all values that follow from a spec and a geometry. */
struct npumem_place {
	int dtype;
	int64_t frac_bits; /* NPUMEM_ANY if the type has none */
	int layout;
	int mode;
	struct npumem_dims shape; /* in elements; a matrix is [rows, ceil(cols/w), 1, w] */
	int64_t rows, cols, w;	  /* for a matrix; else 0 */
	int64_t last_w; /* elements in a row of the last channel: shape.w, or the rest of a matrix's columns */
	int64_t lanes;	/* elements per word: 4, 2 or 1 */
	int64_t word_bytes;
	int64_t words_n;	   /* ceil(shape.n / lanes): the first dimension in words */
	struct npumem_dims stride; /* in words; c: from channel c to channel c + X */
	int64_t start_npu;
	int64_t channels_per_npu; /* block rows: ceil((start_npu + C) / X) */
	int64_t bytes_per_npu;
	int64_t align_bytes;
	int64_t address, npu, offset; /* NPUMEM_ANY without an address; else npu equals start_npu */
	struct npumem_blocks blocks;
};

void npumem_spec_init(struct npumem_spec *spec);

/* The default geometry, and that of a chip of chips.def; false: there is no chip of that name. */
void npumem_geometry_default(struct npumem_geometry *geometry);
bool npumem_geometry_chip(const char *name, struct npumem_geometry *geometry);
/* 0, or INVALID; the message has the wrong value and its limit. */
int npumem_geometry_check(const struct npumem_geometry *geometry, struct npumem_error *error);

/* Resolves `spec` on `geometry`, which has passed its check: checks all values, and computes defaults, strides,
 * sizes and blocks. 0, or INVALID; `place` is then unchanged. INVALID, too, if the tensor needs more bytes than an
 * NPU has. */
int npumem_place_resolve(const struct npumem_geometry *geometry, const struct npumem_spec *spec,
			 struct npumem_place *place, struct npumem_error *error);

/* Sets the address of a resolved place. 0, or INVALID: `address` is out of range, not aligned for the layout, or
 * on another NPU than start_npu; or the tensor would pass the end of the NPU. */
int npumem_place_at(const struct npumem_geometry *geometry, struct npumem_place *place, int64_t address,
		    struct npumem_error *error);

/* The number of block rows, ceil((Q + C) / X) ("Scatter Features to Different NPUs"). */
static inline int64_t npumem_channels_per_npu(int64_t n_npus, int64_t start_npu, int64_t c)
{
	return (start_npu + c + n_npus - 1) / n_npus;
}

/* The number of elements, without dummies; a matrix has rows * cols. */
int64_t npumem_place_elements(const struct npumem_place *place);

/* The place of element (n, c, h, w), which must exist: its NPU, and its offset there in bytes from the start of
 * the tensor. */
void npumem_place_locate(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t n,
			 int64_t c, int64_t h, int64_t w, int64_t *npu, int64_t *offset);

/* Kinds of bytes. They are flags, so that a byte of several tensors has the kinds of all; the highest one counts.
 */
enum npumem_byte {
	NPUMEM_BYTE_EMPTY = 1,
	NPUMEM_BYTE_PADDING = 2,
	NPUMEM_BYTE_DUMMY = 4,
	NPUMEM_BYTE_DATA = 8,
};

/* Adds the kind of byte `from` + i of the tensor on `npu` to kinds[i], by a bitwise or, for all bytes below `to`
 * and bytes_per_npu. Bytes count from the start of the tensor. `kinds` has to - from bytes. */
void npumem_place_paint(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu,
			int64_t from, int64_t to, uint8_t *kinds);

/* One width of a matrix plan. */
struct npumem_width {
	int64_t w, channels, channels_per_npu, bytes_per_npu;
};

/* A tensor's place, and how it could be better. */
struct npumem_plan {
	struct npumem_place place;
	int64_t waste;		       /* dummy + padding + empty bytes */
	int64_t first_bank, last_bank; /* the banks of its bytes; without an address as if at offset 0 */
	int64_t best_start_npu;	       /* the lowest start NPU with the least storage */
	int64_t best_start_saves;      /* bytes per NPU that it saves */
	unsigned n_widths;	       /* matrix: the best widths, the least storage first */
	struct npumem_width widths[NPUMEM_PLAN_WIDTHS_MAX];
};

/* 0, or INVALID; `plan` is then unchanged. The time is O(sqrt(cols)) for a matrix, else O(1). */
int npumem_plan(const struct npumem_geometry *geometry, const struct npumem_spec *spec, struct npumem_plan *plan,
		struct npumem_error *error);

/* The strides of a shape in continuous system memory, in elements ("Continuous Layout"). */
void npumem_continuous_stride(const struct npumem_dims *shape, struct npumem_dims *stride);

#ifdef __cplusplus
}
#endif
#endif
