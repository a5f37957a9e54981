/* One side of a move: a place in local memory, or a host array, as the boxes of elements that parts.h makes see
 * it. */
#ifndef DEVICE_MOVE_SIDE_H
#define DEVICE_MOVE_SIDE_H

#include "daemon/device/geometry/parts.h"
#include "daemon/device/memory/local.h"

/* A host array as element (n, c, h, w) of a logical shape at base + (n*n_stride + ...) elements; a matrix has its
 * row in n and its column in w. */
struct move_host {
	uint8_t *base; /* of element 0 */
	struct npumem_dims stride;
};

struct move_side {
	const struct local *local;
	const struct npumem_place *place; /* NULL: the host's */
	struct move_host host;
	int64_t element_bytes;
};

/* The byte size of one element. */
static inline int64_t move_element_bytes(const struct npumem_place *place)
{
	return place->word_bytes / place->lanes;
}

/* Bytes from one element to the next one in each loop of a box whose words have n_lanes. */
struct move_pitches {
	int64_t lane, word, npu, row, h, w;
};

uint8_t *move_side_at(const struct move_side *side, const struct npumem_dims *at);
void move_side_pitches(const struct move_side *side, int64_t n_lanes, struct move_pitches *pitches);

#endif
