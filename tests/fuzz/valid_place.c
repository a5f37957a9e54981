/* Places are checked by the formulas of the layouts, on a device large enough for any of them. */
#include "tests/fuzz/valid_place.h"

enum { DIMS = 4, ALIGN_BYTES = 128 };

static void resolve(int64_t n_npus, struct valid_place *place)
{
	const struct npumem_geometry geometry = {
		.n_npus = n_npus, .npu_bytes = NPUMEM_NPU_BYTES_MAX, .n_banks = 8, .eu_bytes = ALIGN_BYTES};
	struct npumem_place resolved;

	place->bytes_per_npu = 0;
	if (!npumem_place_resolve(&geometry, &place->spec, &resolved, NULL))
		place->bytes_per_npu = resolved.bytes_per_npu + ALIGN_BYTES;
}

void valid_place_plain(const struct valid_tensor *tensor, int64_t n_npus, struct valid_place *place)
{
	*place = (struct valid_place){.how = VALID_WHOLE};
	npumem_spec_init(&place->spec);
	place->spec.dtype = tensor->dtype;
	place->spec.frac_bits = tensor->frac_bits;
	place->spec.shape = tensor->shape;
	resolve(n_npus, place);
}

/* The caller's own strides, in any order of the dimensions, with gaps. */
static void choose_strides(struct valid_run *run, int64_t n_npus, struct npumem_spec *spec)
{
	const struct npumem_dims *shape = &spec->shape;
	int64_t words_n = (shape->n + 3) / 4, next = 1 + valid_below(run, 3), first = valid_below(run, DIMS);
	const int64_t extents[DIMS] = {shape->w, shape->h,
				       npumem_channels_per_npu(n_npus, spec->start_npu, shape->c),
				       spec->mode == NPUMEM_MODE_PLAIN ? shape->n : words_n};
	int64_t *const strides[DIMS] = {&spec->stride.w, &spec->stride.h, &spec->stride.c, &spec->stride.n};

	/* Mostly as they follow each other, so that features lie in one piece. */
	first = first < 2 ? 0 : first;
	next = first ? next : 1;
	for (int64_t i = 0; i < DIMS; i++) {
		int64_t at = (first + i) % DIMS;

		*strides[at] = next;
		next = next * extents[at] + (i > 0 ? valid_below(run, 4) : 0);
	}
}

static void choose_mode(struct valid_run *run, struct npumem_spec *spec)
{
	unsigned bytes = npumem_dtype_bytes(spec->dtype);

	spec->mode = NPUMEM_MODE_PLAIN;
	if (valid_below(run, 3) == 1)
		spec->mode = bytes == 1			  ? NPUMEM_MODE_4N
			     : bytes == 2		  ? NPUMEM_MODE_2N
			     : spec->dtype == NPUMEM_FP32 ? NPUMEM_MODE_2IC
							  : NPUMEM_MODE_PLAIN;
}

/* A base that has more of some dimensions. */
static void choose_slice(struct valid_run *run, struct valid_place *place)
{
	int64_t *const extents[DIMS] = {&place->spec.shape.n, &place->spec.shape.c, &place->spec.shape.h,
					&place->spec.shape.w};
	int64_t *const from[DIMS] = {&place->from.n, &place->from.c, &place->from.h, &place->from.w};

	place->how = VALID_SLICE;
	for (unsigned i = 0; i < DIMS; i++) {
		int64_t n = valid_below(run, 16);

		*from[i] = n & 3;
		*extents[i] += (n & 3) + (n >> 2);
	}
}

static void choose(struct valid_run *run, int64_t n_npus, struct valid_place *place)
{
	enum { ALIGNED, COMPACT, STRIDED, MATRIX, SLICE, RESHAPE, KINDS };
	struct npumem_spec *spec = &place->spec;
	struct npumem_dims *shape = &spec->shape;
	int64_t kind = valid_below(run, KINDS);

	spec->start_npu = valid_below(run, n_npus);
	choose_mode(run, spec);
	if (kind == MATRIX && shape->h * shape->w == 1) {
		spec->layout = NPUMEM_MATRIX;
		spec->rows = shape->n;
		spec->cols = shape->c;
		spec->w = valid_below(run, 2) ? 0 : valid_extent(run, shape->c);
		*shape = (struct npumem_dims){0, 0, 0, 0};
		return;
	}
	if (kind == SLICE)
		choose_slice(run, place);
	if (kind == RESHAPE) {
		place->how = VALID_RESHAPE;
		shape->w *= shape->h;
		shape->h = 1;
	}
	spec->layout = kind == ALIGNED ? NPUMEM_ALIGNED : NPUMEM_COMPACT;
	if (kind == STRIDED || (kind == SLICE && valid_below(run, 3) == 1)) {
		spec->layout = NPUMEM_STRIDED;
		choose_strides(run, n_npus, spec);
	}
}

void valid_place_read(struct valid_run *run, const struct valid_tensor *tensor, int64_t n_npus,
		      struct valid_place *place)
{
	enum { BYTES_MAX = 1 << 19 };

	valid_place_plain(tensor, n_npus, place);
	choose(run, n_npus, place);
	resolve(n_npus, place);
	if (!place->bytes_per_npu || place->bytes_per_npu > BYTES_MAX)
		valid_place_plain(tensor, n_npus, place);
}
