/* Strides of the host are its client's, checked only where they lead somewhere: so products are made unsigned, as
 * those that lead nowhere may be of any size. */
#include "daemon/device/operations/move_side.h"

static uint8_t *host_at(const struct move_side *side, const struct npumem_dims *at)
{
	const struct npumem_dims *stride = &side->host.stride;
	uint64_t elements = (uint64_t)at->n * (uint64_t)stride->n + (uint64_t)at->c * (uint64_t)stride->c +
			    (uint64_t)at->h * (uint64_t)stride->h + (uint64_t)at->w * (uint64_t)stride->w;
	return (uint8_t *)((uintptr_t)side->host.base + elements * (uint64_t)side->element_bytes);
}

uint8_t *move_side_at(const struct move_side *side, const struct npumem_dims *at)
{
	const struct npumem_place *place = side->place;
	if (!place)
		return host_at(side, at);
	const struct npumem_geometry *geometry = &side->local->geometry;
	int64_t channel = place->start_npu + at->c;
	int64_t words = (uint32_t)at->n / (uint32_t)place->lanes * place->stride.n +
			parts_row(geometry, channel) * place->stride.c + at->h * place->stride.h +
			at->w * place->stride.w;
	return local_at(side->local, parts_npu(geometry, channel),
			place->offset + words * place->word_bytes +
				(at->n & (place->lanes - 1)) * side->element_bytes);
}

static int64_t product(int64_t a, int64_t b, int64_t c)
{
	return (int64_t)((uint64_t)a * (uint64_t)b * (uint64_t)c);
}

void move_side_pitches(const struct move_side *side, int64_t n_lanes, struct move_pitches *pitches)
{
	const struct npumem_place *place = side->place;
	const struct npumem_dims *stride = place ? &place->stride : &side->host.stride;
	int64_t n_npus = side->local->geometry.n_npus, word = place ? place->word_bytes : side->element_bytes;
	bool packed = place && place->lanes > 1;
	pitches->w = product(stride->w, word, 1);
	pitches->h = product(stride->h, word, 1);
	pitches->lane = packed ? side->element_bytes : product(stride->n, word, 1);
	pitches->word = product(stride->n, word, packed ? 1 : n_lanes);
	pitches->npu = place ? (int64_t)side->local->lane_pitch : product(stride->c, word, 1);
	pitches->row = product(stride->c, word, place ? 1 : n_npus);
}
