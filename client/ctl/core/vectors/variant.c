/* The ways to place a golden vector's tensors. A tensor that a vector gives a storage mode keeps it. */
#include "client/ctl/core/vectors/vectors.h"

#include <inttypes.h>
#include <stdio.h>

static bool fits(const struct npumem_geometry *geometry, const struct npumem_spec *spec)
{
	struct npumem_place place;
	return !npumem_place_resolve(geometry, spec, &place, NULL);
}

/* Gaps everywhere: between elements, lines, channels and n. */
static void set_strides(const struct npumem_geometry *geometry, struct npumem_spec *spec)
{
	const struct npumem_dims *shape = &spec->shape;
	struct npumem_dims *stride = &spec->stride;
	stride->w = 2;
	stride->h = 2 * shape->w + 1;
	stride->c = stride->h * shape->h + 3;
	stride->n = stride->c * npumem_channels_per_npu(geometry->n_npus, spec->start_npu, shape->c) + 5;
}

void variant_place(const struct variant *variant, const struct npumem_geometry *geometry,
		   const struct npumem_spec *plain, struct npumem_spec *spec)
{
	npumem_spec_init(spec);
	spec->dtype = plain->dtype;
	spec->frac_bits = plain->frac_bits;
	spec->shape = plain->shape;
	spec->start_npu = variant->start_npu;
	spec->mode = plain->mode ? plain->mode : variant->mode;
	if (!fits(geometry, spec))
		spec->mode = plain->mode;
	struct npumem_spec aligned = *spec;
	spec->layout = variant->layout;
	if (variant->layout == NPUMEM_MATRIX) {
		spec->rows = spec->shape.n;
		spec->cols = spec->shape.c;
		spec->shape = (struct npumem_dims){0, 0, 0, 0};
		if (plain->shape.h > 1 || plain->shape.w > 1)
			*spec = aligned;
	} else if (variant->layout == NPUMEM_STRIDED) {
		set_strides(geometry, spec);
	}
	if (!fits(geometry, spec))
		*spec = aligned;
}

void variant_spec(const struct variant *variant, const struct npumem_geometry *geometry,
		  const struct vectors_tensor *tensor, const struct mapping *mapping, struct npumem_spec *spec)
{
	const struct npumem_spec plain = {.dtype = tensor->dtype,
					  .frac_bits = tensor->frac_bits,
					  .shape = mapping->shape,
					  .mode = tensor->mode};
	variant_place(variant, geometry, &plain, spec);
}

const char *variant_text(const struct variant *variant, char *text, size_t bytes)
{
	snprintf(text, bytes, "[%s, start NPU %" PRId64 ", %s]", npumem_layout_name(variant->layout),
		 variant->start_npu, npumem_mode_name(variant->mode));
	return text;
}
