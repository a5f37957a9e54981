/* From a spec to a place: every value checked, every default filled in, and where each element then lies.
 * What differs between layouts is in their rows (layout_row.h); nothing here asks which layout it is. */
#include <inttypes.h>

#include "include/formulas/layout_row.h"
#include "include/formulas/sizes.h"

struct mode_row {
	int number;
	int64_t lanes, element_bytes; /* element_bytes 0: any */
	bool fp32_only;
};

static const struct mode_row mode_rows[] = {
#define MODE(NAME, name, number, lanes, bytes, fp32) {number, lanes, bytes, fp32},
#include <npumem/modes.def>
#undef MODE
};

static const struct mode_row *mode_by_number(int number)
{
	for (size_t i = 0; i < sizeof(mode_rows) / sizeof(mode_rows[0]); i++) {
		if (mode_rows[i].number == number)
			return &mode_rows[i];
	}
	return NULL;
}

void npumem_spec_init(struct npumem_spec *spec)
{
	*spec = (struct npumem_spec){
		.frac_bits = NPUMEM_ANY,
		.start_npu = NPUMEM_ANY,
		.address = NPUMEM_ANY,
	};
}

static int resolve_frac_bits(const struct npumem_spec *spec, struct npumem_place *place,
			     struct npumem_error *error)
{
	const char *dtype = npumem_dtype_name(place->dtype);
	if (!npumem_dtype_is_fixed(place->dtype)) {
		if (spec->frac_bits != NPUMEM_ANY)
			return npumem_error_set(error, NPUMEM_INVALID,
						"frac_bits %" PRId64
						" given for %s, which has none (fx8 and fx16 do)",
						spec->frac_bits, dtype);
	} else if (spec->frac_bits == NPUMEM_ANY) {
		return npumem_error_set(error, NPUMEM_INVALID, "%s needs frac_bits, in 0..%d", dtype,
					NPUMEM_FRAC_BITS_MAX);
	} else if (spec->frac_bits < 0 || spec->frac_bits > NPUMEM_FRAC_BITS_MAX) {
		return npumem_error_set(error, NPUMEM_INVALID, "frac_bits %" PRId64 " of %s is not in 0..%d",
					spec->frac_bits, dtype, NPUMEM_FRAC_BITS_MAX);
	}
	place->frac_bits = spec->frac_bits;
	return 0;
}

/* Element type, layout, storage mode. */
static int resolve_type(const struct npumem_spec *spec, struct npumem_place *place, struct npumem_error *error)
{
	place->dtype = spec->dtype ? spec->dtype : NPUMEM_INT8;
	place->layout = spec->layout ? spec->layout : NPUMEM_ALIGNED;
	place->mode = spec->mode ? spec->mode : NPUMEM_MODE_PLAIN;
	int64_t element_bytes = npumem_dtype_bytes(place->dtype);
	if (element_bytes == 0)
		return npumem_error_set(error, NPUMEM_INVALID, "there is no element type %d", spec->dtype);
	if (!layout_row_by_number(place->layout))
		return npumem_error_set(error, NPUMEM_INVALID, "there is no layout %d", spec->layout);
	const struct mode_row *mode = mode_by_number(place->mode);
	if (!mode)
		return npumem_error_set(error, NPUMEM_INVALID, "there is no storage mode %d", spec->mode);
	if (mode->fp32_only && place->dtype != NPUMEM_FP32)
		return npumem_error_set(error, NPUMEM_INVALID, "storage mode %s takes fp32, not %s",
					npumem_mode_name(place->mode), npumem_dtype_name(place->dtype));
	if (mode->element_bytes && mode->element_bytes != element_bytes)
		return npumem_error_set(error, NPUMEM_INVALID, "storage mode %s takes %d-bit types, not %s",
					npumem_mode_name(place->mode), (int)mode->element_bytes * 8,
					npumem_dtype_name(place->dtype));
	place->lanes = mode->lanes;
	place->word_bytes = mode->lanes * element_bytes;
	return resolve_frac_bits(spec, place, error);
}

static int check_address(const struct npumem_geometry *geometry, int64_t address, struct npumem_error *error)
{
	int64_t device_bytes = geometry->n_npus * geometry->npu_bytes;
	if (address >= 0 && address < device_bytes)
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID,
				"address %" PRId64 " is not below the %" PRId64 " bytes of this device", address,
				device_bytes);
}

static int resolve_start(const struct npumem_geometry *geometry, const struct npumem_spec *spec,
			 struct npumem_place *place, struct npumem_error *error)
{
	if (spec->start_npu < NPUMEM_ANY || spec->start_npu >= geometry->n_npus)
		return npumem_error_set(error, NPUMEM_INVALID,
					"start NPU %" PRId64 " is not %s the %" PRId64 " NPUs of this device",
					spec->start_npu, spec->start_npu < 0 ? "one of" : "below",
					geometry->n_npus);
	place->start_npu = spec->start_npu == NPUMEM_ANY ? 0 : spec->start_npu;
	if (spec->address == NPUMEM_ANY)
		return 0;
	int status = check_address(geometry, spec->address, error);
	if (status)
		return status;
	int64_t npu = spec->address / geometry->npu_bytes;
	if (spec->start_npu != NPUMEM_ANY && spec->start_npu != npu)
		return npumem_error_set(error, NPUMEM_INVALID,
					"start NPU %" PRId64 " does not go with address %" PRId64
					", which is on NPU %" PRId64,
					spec->start_npu, spec->address, npu);
	place->start_npu = npu;
	return 0;
}

static int resolve_size(const struct npumem_geometry *geometry, const struct layout_row *row,
			struct npumem_place *place, struct npumem_error *error)
{
	/* To a multiple of 4: what the allocator and the compact layout count in. */
	place->bytes_per_npu = sizes_round_up(sizes_mul(row->words_per_npu(place), place->word_bytes), 4);
	if (place->bytes_per_npu <= geometry->npu_bytes)
		return 0;
	npumem_error_set(
		error, NPUMEM_INVALID, "the tensor needs %s%" PRId64 " bytes on each NPU; an NPU has %" PRId64,
		place->bytes_per_npu == INT64_MAX ? "more than " : "", place->bytes_per_npu, geometry->npu_bytes);
	npumem_error_number(error, "bytes_per_npu", place->bytes_per_npu);
	npumem_error_number(error, "npu_bytes", geometry->npu_bytes);
	return NPUMEM_INVALID;
}

/* The size has passed: nothing here can overflow. */
static void resolve_blocks(const struct npumem_geometry *geometry, const struct layout_row *row,
			   struct npumem_place *place)
{
	int64_t element_bytes = place->word_bytes / place->lanes;
	int64_t features = (place->shape.c - 1) * place->shape.w + place->last_w;
	int64_t dummies = place->words_n * place->lanes - place->shape.n;
	struct npumem_blocks *blocks = &place->blocks;
	blocks->data = place->shape.n * place->shape.h * features * element_bytes;
	blocks->dummy = dummies * place->shape.h * features * element_bytes;
	blocks->empty = row->empty_words(geometry, place) * place->word_bytes;
	blocks->padding = geometry->n_npus * place->bytes_per_npu - blocks->data - blocks->dummy - blocks->empty;
}

int npumem_place_resolve(const struct npumem_geometry *geometry, const struct npumem_spec *spec,
			 struct npumem_place *place, struct npumem_error *error)
{
	struct npumem_place p = {.address = NPUMEM_ANY, .npu = NPUMEM_ANY, .offset = NPUMEM_ANY};
	int status = resolve_type(spec, &p, error);
	if (status)
		return status;
	const struct layout_row *row = layout_row_by_number(p.layout);
	const struct npumem_dims *stride = &spec->stride;
	if (!row->own_stride && (stride->n || stride->c || stride->h || stride->w))
		return npumem_error_set(error, NPUMEM_INVALID,
					"strides are for the strided layout; those of %s follow from the shape",
					npumem_layout_name(p.layout));
	status = resolve_start(geometry, spec, &p, error);
	if (!status)
		status = row->set_shape(geometry, spec, &p, error);
	if (status)
		return status;
	p.words_n = sizes_ceil_div(p.shape.n, p.lanes);
	p.channels_per_npu = npumem_channels_per_npu(geometry->n_npus, p.start_npu, p.shape.c);
	status = row->set_stride(geometry, spec, &p, error);
	if (!status)
		status = resolve_size(geometry, row, &p, error);
	if (!status && row->check)
		status = row->check(geometry, &p, error);
	if (status)
		return status;
	resolve_blocks(geometry, row, &p);
	if (spec->address != NPUMEM_ANY)
		status = npumem_place_at(geometry, &p, spec->address, error);
	if (!status)
		*place = p;
	return status;
}

int npumem_place_at(const struct npumem_geometry *geometry, struct npumem_place *place, int64_t address,
		    struct npumem_error *error)
{
	int status = check_address(geometry, address, error);
	if (status)
		return status;
	int64_t npu = address / geometry->npu_bytes;
	int64_t offset = address % geometry->npu_bytes;
	if (npu != place->start_npu)
		return npumem_error_set(error, NPUMEM_INVALID,
					"address %" PRId64 " is on NPU %" PRId64
					", but the tensor starts at NPU %" PRId64,
					address, npu, place->start_npu);
	if (address % place->align_bytes != 0)
		return npumem_error_set(error, NPUMEM_INVALID,
					"address %" PRId64 " is not a multiple of %" PRId64
					", as layout %s needs it",
					address, place->align_bytes, npumem_layout_name(place->layout));
	if (offset > geometry->npu_bytes - place->bytes_per_npu)
		return npumem_error_set(error, NPUMEM_INVALID,
					"at offset %" PRId64 " the tensor's %" PRId64
					" bytes per NPU run past the end of the NPU, at %" PRId64,
					offset, place->bytes_per_npu, geometry->npu_bytes);
	place->address = address;
	place->npu = npu;
	place->offset = offset;
	return 0;
}

int64_t npumem_place_elements(const struct npumem_place *place)
{
	return place->shape.n * place->shape.h * ((place->shape.c - 1) * place->shape.w + place->last_w);
}

void npumem_place_locate(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t n,
			 int64_t c, int64_t h, int64_t w, int64_t *npu, int64_t *offset)
{
	const struct npumem_dims *stride = &place->stride;
	int64_t row = (place->start_npu + c) / geometry->n_npus;
	int64_t words = n / place->lanes * stride->n + row * stride->c + h * stride->h + w * stride->w;
	*npu = (place->start_npu + c) % geometry->n_npus;
	*offset = words * place->word_bytes + n % place->lanes * (place->word_bytes / place->lanes);
}

void npumem_continuous_stride(const struct npumem_dims *shape, struct npumem_dims *stride)
{
	stride->w = 1;
	stride->h = shape->w;
	stride->c = sizes_mul(shape->h, shape->w);
	stride->n = sizes_mul(shape->c, stride->c);
}
