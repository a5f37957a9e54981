/* The marks of what a move has written, or had written when it was stopped. Setting them is never stopped; it
 * gives way as moves do. */
#ifndef DEVICE_MOVE_MARKS_H
#define DEVICE_MOVE_MARKS_H

#include "daemon/device/operations/move_box.h"
#include "daemon/device/memory/local.h"

struct move_marks {
	struct local *local;
	bool set; /* else they are taken back */
	struct move_watch watch, untold;
};

/* `watch`: that of the move, or NULL. */
struct move_marks move_marks_of(struct local *local, bool set, const struct move_watch *watch);

/* A move_box_act; `ctx` is a struct move_marks. */
void move_marks_piece(void *ctx, uint8_t *to, const uint8_t *from, const struct blocks *blocks, bool is_transpose);

/* All data of a place. `set` as above. */
void move_marks_all(struct local *local, const struct npumem_place *place, bool set,
		    const struct move_watch *watch);

#endif
