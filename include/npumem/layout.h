/* Where a tensor lies in local memory: the formulas of the layouts, pure and without state.
 * Source of the formulas: the vendor's "Tensor in Local Memory" chapter; section names are quoted below.
 * The same code answers on both sides of the socket; a compiler can link it without a daemon.
 *
 * Units: addresses, offsets and sizes in bytes; strides in words, a word being one element, or the packed
 * group of elements of a storage mode (4 x 8 bit, 2 x 16 bit, 2 x fp32). */
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
/* No address, no start NPU, no frac_bits: the caller leaves it open. */
#define NPUMEM_ANY INT64_C(-1)

/* The array: X NPUs of S bytes. Address A = Q * S + R lies on NPU Q at offset R. */
struct npumem_geometry {
	int64_t n_npus;    /* X, 1..1024 */
	int64_t npu_bytes; /* S, a multiple of 128 up to 2^30 */
	int64_t n_banks;   /* equal parts of an NPU's bytes */
	int64_t eu_bytes;  /* what the aligned layout aligns to */
};

struct npumem_dims {
	int64_t n, c, h, w;
};

/* What a caller asks for. Zeroed, every member means its default, except `frac_bits`, `start_npu` and
 * `address`, for which 0 is a value: npumem_spec_init sets them to NPUMEM_ANY. */
struct npumem_spec {
	int dtype;
	int64_t frac_bits; /* required for fx8 and fx16, refused for the others */
	int layout;
	int mode;
	struct npumem_dims shape;  /* logical N,C,H,W; unused for a matrix */
	int64_t rows, cols;        /* matrix only */
	int64_t w;                 /* matrix: columns per channel; 0: the width with the least storage */
	/* Strided only, in words; may be 0 where it makes no sense: n of one word, h or w of extent 1, c where an NPU
	 * has one channel. */
	struct npumem_dims stride;
	int64_t start_npu;         /* NPUMEM_ANY: that of the address, or 0 */
	int64_t address;           /* NPUMEM_ANY: anywhere */
};

/* Bytes over all NPUs, by kind; their sum is n_npus * bytes_per_npu. */
struct npumem_blocks {
	int64_t data;    /* elements */
	int64_t dummy;   /* what fills up a storage mode's last word */
	int64_t padding; /* the rest */
	int64_t empty;   /* blocks of the first or last row that store no feature */
};

/* A resolved tensor: everything that follows from a spec and a geometry. */
struct npumem_place {
	int dtype;
	int64_t frac_bits; /* NPUMEM_ANY where the type has none */
	int layout;
	int mode;
	struct npumem_dims shape;  /* logical; a matrix is [rows, ceil(cols/w), 1, w] */
	int64_t rows, cols, w;     /* matrix only, else 0 */
	int64_t last_w;            /* elements of a row that the last channel holds: shape.w, or a matrix's tail */
	int64_t lanes;             /* elements per word: 4, 2 or 1 */
	int64_t word_bytes;
	int64_t words_n;           /* ceil(shape.n / lanes): the first dimension in words */
	struct npumem_dims stride; /* in words; c goes from channel c to c + X */
	int64_t start_npu;
	int64_t channels_per_npu;  /* block rows: ceil((start_npu + C) / X) */
	int64_t bytes_per_npu;
	int64_t align_bytes;
	int64_t address, npu, offset; /* NPUMEM_ANY while nowhere; npu equals start_npu */
	struct npumem_blocks blocks;
};

void npumem_spec_init(struct npumem_spec *spec);

/* The default geometry, or the one of a chip preset. False for an unknown name. */
void npumem_geometry_default(struct npumem_geometry *geometry);
bool npumem_geometry_chip(const char *name, struct npumem_geometry *geometry);
/* 0, or INVALID with the offending value and its limit. */
int npumem_geometry_check(const struct npumem_geometry *geometry, struct npumem_error *error);

/* Resolves `spec` on `geometry` (which has passed its check): checks every value, fills in defaults, strides,
 * sizes and block counts. 0, or INVALID; `place` is then unchanged. A size beyond one NPU's bytes is refused
 * here, since no device of this geometry can hold it. */
int npumem_place_resolve(const struct npumem_geometry *geometry, const struct npumem_spec *spec,
			 struct npumem_place *place, struct npumem_error *error);

/* Puts a resolved place at `address`: 0, or INVALID where it is out of range, misaligned for the layout, on
 * another NPU than start_npu, or past the end of the NPU. */
int npumem_place_at(const struct npumem_geometry *geometry, struct npumem_place *place, int64_t address,
		    struct npumem_error *error);

/* Channels per NPU, ceil((Q + C) / X) ("Scatter Features to Different NPUs"). */
static inline int64_t npumem_channels_per_npu(int64_t n_npus, int64_t start_npu, int64_t c)
{
	return (start_npu + c + n_npus - 1) / n_npus;
}

/* Logical elements of a place; a matrix has rows * cols. */
int64_t npumem_place_elements(const struct npumem_place *place);

/* Where element (n, c, h, w) lies: its NPU, and the byte offset on that NPU from the start of the tensor. The
 * element must exist. */
void npumem_place_locate(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t n,
			 int64_t c, int64_t h, int64_t w, int64_t *npu, int64_t *offset);

/* Kinds of bytes, as flags so that several tensors can be painted over each other. A higher flag is the
 * stronger kind. */
enum npumem_byte {
	NPUMEM_BYTE_EMPTY = 1,
	NPUMEM_BYTE_PADDING = 2,
	NPUMEM_BYTE_DUMMY = 4,
	NPUMEM_BYTE_DATA = 8,
};

/* Ors into kinds[i] the kind that byte `from + i` (counted from the start of the tensor) of this tensor's
 * footprint has on `npu`, for from <= byte < min(to, bytes_per_npu). `kinds` holds to - from bytes. */
void npumem_place_paint(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu,
			int64_t from, int64_t to, uint8_t *kinds);

/* One width of a matrix plan. */
struct npumem_width {
	int64_t w, channels, channels_per_npu, bytes_per_npu;
};

/* What `plan` answers beyond the place itself. */
struct npumem_plan {
	struct npumem_place place;
	int64_t waste;                  /* dummy + padding + empty bytes */
	int64_t first_bank, last_bank;  /* that the footprint touches, from its offset or from 0 */
	int64_t best_start_npu;         /* the lowest with the least storage */
	int64_t best_start_saves;       /* bytes per NPU saved by it */
	unsigned n_widths;              /* matrix: the widths that no other beats, least storage first */
	struct npumem_width widths[NPUMEM_PLAN_WIDTHS_MAX];
};

/* 0, or INVALID; `plan` is then unchanged. Takes O(sqrt(cols)) for a matrix, O(1) otherwise. */
int npumem_plan(const struct npumem_geometry *geometry, const struct npumem_spec *spec, struct npumem_plan *plan,
		struct npumem_error *error);

/* The strides of continuous system memory for a shape ("Continuous Layout"), in elements. */
void npumem_continuous_stride(const struct npumem_dims *shape, struct npumem_dims *stride);

#ifdef __cplusplus
}
#endif
#endif
