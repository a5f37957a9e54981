/* Elements that are regular on both sides of a move: up to six loops, each with a pitch of its own on either side.
 * Knows nothing of tensors, only of bytes. */
#ifndef DEVICE_MOVE_BOX_H
#define DEVICE_MOVE_BOX_H

#include "daemon/device/memory/blocks.h"
#include "daemon/device/operations/move_watch.h"

enum { MOVE_BOX_LOOPS_MAX = 6 };

struct move_box {
	uint8_t *to;
	const uint8_t *from;
	int64_t bytes;	       /* of a block: an element at first, then all that touches on both sides */
	int64_t element_bytes; /* for the watch, which counts elements */
	unsigned n_loops;
	int64_t n[MOVE_BOX_LOOPS_MAX], to_pitch[MOVE_BOX_LOOPS_MAX], from_pitch[MOVE_BOX_LOOPS_MAX];
};

/* One element. Loops that are not there are left as they are. */
void move_box_init(struct move_box *box, uint8_t *to, const uint8_t *from, int64_t element_bytes);
/* n of what is in the box, in bytes apart; in any order. */
void move_box_add(struct move_box *box, int64_t n, int64_t to_pitch, int64_t from_pitch);

/* What is done with each piece of a box, which has about as many elements as lie between two looks. */
typedef void move_box_act(void *ctx, uint8_t *to, const uint8_t *from, const struct blocks *blocks,
			  bool is_transpose);

/* The act of moving the bytes; `ctx` is a struct blocks_paths. */
void move_box_copy(void *ctx, uint8_t *to, const uint8_t *from, const struct blocks *blocks, bool is_transpose);

/* The act of setting the bytes of `to`; `ctx` is a struct move_box_fill. `from` is not used: its pitches shall be
 * those of `to`, so that blocks are what touches there. */
struct move_box_fill {
	const struct blocks_paths *paths;
	uint8_t pattern[16]; /* repetitions of the element */
};
void move_box_fill(void *ctx, uint8_t *to, const uint8_t *from, const struct blocks *blocks, bool is_transpose);

/* Does all pieces, always in the same order, and adds the elements of those that were done to *done. Stops where
 * the watch says so, or *done reaches `most`; false then. */
bool move_box_run(struct move_box *box, move_box_act *act, void *ctx, struct move_watch *watch, int64_t *done,
		  int64_t most);

#endif
