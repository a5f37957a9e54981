/* Random places of every layout, storage mode and number of NPUs: strides that nest or not, narrow last channels,
 * slices, and slices of slices. */
#ifndef TESTS_SUPPORT_RANDOM_PLACE_H
#define TESTS_SUPPORT_RANDOM_PLACE_H

#include <npumem/layout.h>

#include "tests/support/oracle.h"

/* What a slice of whole words has of a place, as views have it. */
static inline void random_place_slice(uint64_t *random, const struct npumem_geometry *geometry,
				      struct npumem_place *p)
{
	const struct npumem_dims *stride = &p->stride;
	int64_t n = oracle_between(random, 0, p->words_n - 1), c = oracle_between(random, 0, p->shape.c - 1);
	int64_t h = oracle_between(random, 0, p->shape.h - 1), whole = oracle_between(random, 0, 1);
	int64_t w = whole ? 0 : oracle_between(random, 0, p->last_w - 1);
	int64_t w_end = whole ? p->shape.w : oracle_between(random, w + 1, p->last_w);
	int64_t c_end = oracle_between(random, c + 1, p->shape.c), channel = p->start_npu + c;
	int64_t n_end = oracle_between(random, n + 1, p->words_n) * p->lanes;
	n_end = n_end < p->shape.n ? n_end : p->shape.n;
	p->offset += (n * stride->n + channel / geometry->n_npus * stride->c + h * stride->h + w * stride->w) *
		     p->word_bytes;
	p->last_w = whole && c_end == p->shape.c ? p->last_w : w_end - w;
	p->shape = (struct npumem_dims){n_end - n * p->lanes, c_end - c,
					oracle_between(random, h + 1, p->shape.h) - h, w_end - w};
	if (p->layout != NPUMEM_MATRIX || !whole)
		p->layout = NPUMEM_STRIDED;
	p->start_npu = p->npu = channel % geometry->n_npus;
	p->words_n = (p->shape.n + p->lanes - 1) / p->lanes;
	p->channels_per_npu = npumem_channels_per_npu(geometry->n_npus, p->start_npu, p->shape.c);
	p->bytes_per_npu = (1 + (p->words_n - 1) * stride->n + (p->channels_per_npu - 1) * stride->c +
			    (p->shape.h - 1) * stride->h + (p->shape.w - 1) * stride->w) *
			   p->word_bytes;
	p->address = p->start_npu * geometry->npu_bytes + p->offset;
}

static inline struct npumem_spec random_place_spec(uint64_t *random, const struct npumem_geometry *geometry)
{
	static const int dtypes[] = {NPUMEM_INT8, NPUMEM_INT16, NPUMEM_FP32};
	int64_t type = oracle_between(random, 0, 2), wide = oracle_between(random, 0, 9) ? 1 : 8;
	int64_t w = oracle_between(random, 1, 7 * wide), h = oracle_between(random, 1, 4);
	struct npumem_spec spec;
	npumem_spec_init(&spec);
	spec.dtype = dtypes[type];
	spec.layout = (int)oracle_between(random, 1, 4);
	spec.mode = oracle_between(random, 0, 1) ? NPUMEM_MODE_PLAIN : 2 + (int)type;
	spec.start_npu = oracle_between(random, 0, geometry->n_npus - 1);
	spec.shape = (struct npumem_dims){oracle_between(random, 1, 9),
					  oracle_between(random, 1, 2 * geometry->n_npus + 1), h, w};
	if (spec.layout == NPUMEM_STRIDED) {
		spec.stride = (struct npumem_dims){oracle_between(random, 1, 90), oracle_between(random, 1, 90),
						   oracle_between(random, 1, 40), oracle_between(random, 1, 40)};
		if (oracle_between(random, 0, 3) == 0) {
			spec.stride.w = oracle_between(random, 1, 3);
			spec.stride.h = spec.stride.w * w + oracle_between(random, 0, 3);
			spec.stride.c = spec.stride.h * h + oracle_between(random, 0, 9);
			spec.stride.n = spec.stride.c * 5;
		}
	}
	if (spec.layout == NPUMEM_MATRIX) {
		spec.rows = spec.shape.n;
		spec.cols = oracle_between(random, 1, 5 * geometry->n_npus);
		spec.w = oracle_between(random, 1, spec.cols);
		spec.shape = (struct npumem_dims){0, 0, 0, 0};
	}
	return spec;
}

/* A tensor, or where `slices` some of the time a slice of one, at an offset of up to 320. */
static inline struct npumem_place random_place(uint64_t *random, const struct npumem_geometry *geometry,
					       bool slices)
{
	struct npumem_place place;
	struct npumem_spec spec;
	do {
		spec = random_place_spec(random, geometry);
	} while (npumem_place_resolve(geometry, &spec, &place, NULL) ||
		 place.bytes_per_npu > geometry->npu_bytes - 320);
	place.offset = oracle_between(random, 0, 40) * 8;
	place.npu = place.start_npu;
	place.address = place.npu * geometry->npu_bytes + place.offset;
	for (int i = 0; slices && i < 2; i++)
		if (oracle_between(random, 0, 2) == 0)
			random_place_slice(random, geometry, &place);
	return place;
}

#endif
