/* The observer of a move: it sees how far the move is, and may stop it. */
#ifndef DEVICE_MOVE_WATCH_H
#define DEVICE_MOVE_WATCH_H

#include "daemon/device/operations/kernel.h"

struct move_watch {
	struct kernel_progress *progress; /* NULL: nobody */
	bool tells;			  /* progress counts the elements; else it is only asked */
	bool goes_on;			  /* whether or not it is wanted: it gives way only */
	int64_t pending;		  /* 0 at first */
};

/* True where a test says how many elements lie between two looks. */
static inline bool move_watch_is_own(const struct move_watch *watch)
{
	return watch && watch->progress && watch->progress->piece;
}

/* Elements between two looks. `watch` may be NULL here and below. */
static inline int64_t move_watch_piece(const struct move_watch *watch)
{
	return move_watch_is_own(watch) ? watch->progress->piece : KERNEL_PIECE;
}

static inline void move_watch_tell(struct move_watch *watch)
{
	if (watch->tells)
		atomic_fetch_add_explicit(&watch->progress->done, watch->pending * KERNEL_PARTS,
					  memory_order_relaxed);
	watch->pending = 0;
}

/* After `elements` more. False where the rest is not wanted. */
static inline bool move_watch_look(struct move_watch *watch, int64_t elements)
{
	if (!watch || !watch->progress)
		return true;
	watch->pending += elements;
	if (watch->pending < move_watch_piece(watch))
		return true;
	move_watch_tell(watch);
	if (!watch->goes_on)
		return kernel_wanted(watch->progress);
	kernel_give_way(watch->progress);
	return true;
}

/* All is done. True. */
static inline bool move_watch_end(struct move_watch *watch)
{
	if (watch && watch->progress)
		move_watch_tell(watch);
	return true;
}

#endif
