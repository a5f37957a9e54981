/* One side of a move: a place in local memory, or a host array, as the boxes of elements that parts.h makes see
 * it. */
#ifndef DEVICE_MOVE_SIDE_H
#define DEVICE_MOVE_SIDE_H

#include "daemon/device/geometry/parts.h"
#include "daemon/device/operations/move.h"

struct move_side {
	const struct local *local;
	const struct npumem_place *place; /* NULL: the host's */
	struct move_host host;
	int64_t element_bytes;
};

/* Bytes from one element to the next one in each loop of a box whose words have n_lanes. */
struct move_pitches {
	int64_t lane, word, npu, row, h, w;
};

uint8_t *move_side_at(const struct move_side *side, const struct npumem_dims *at);
void move_side_pitches(const struct move_side *side, int64_t n_lanes, struct move_pitches *pitches);

#endif
