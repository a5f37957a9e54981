/* What is moved is cut into boxes that are regular on both sides, and these into pieces. Stopping one undoes the
 * marks of the pieces that were done by going through the same pieces again, so that the order of the pieces is
 * free, but for being always the same. */
#include "daemon/device/operations/move.h"

#include <string.h>

#include "daemon/device/operations/move_box.h"
#include "daemon/device/operations/move_columns.h"
#include "daemon/device/operations/move_marks.h"

struct move_host move_dense(const struct npumem_place *place, void *base, int64_t first)
{
	int64_t h = place->shape.h, w = place->shape.w;
	int64_t batch = ((place->shape.c - 1) * w + place->last_w) * h;
	struct move_host host = {.stride = {batch, h * w, w, 1}};
	host.base = (uint8_t *)((uintptr_t)base - (uintptr_t)(first * move_element_bytes(place)));
	return host;
}

/* ---- boxes of elements ---- */

/* A move on its way through its boxes. */
struct move {
	const struct move_side *to, *from;
	const struct npumem_place *place; /* the one whose elements are gone through */
	int64_t n_lanes, other_start;
	struct move_pitches to_pitches, from_pitches;
	move_box_act *act;
	void *ctx;
	struct move_watch *watch;
	int64_t done, most; /* elements */
};

/* The sides must stay. Member by member: a small move takes no longer than making and copying structs of this size
 * would. */
static void move_init(struct move *move, const struct move_side *to, const struct move_side *from,
		      struct move_watch *watch)
{
	move->to = to;
	move->from = from;
	move->place = to->place ? to->place : from->place;
	move->n_lanes = move->place->lanes;
	move->other_start = NPUMEM_ANY;
	if (to->place && from->place) {
		move->other_start = from->place->start_npu;
		if (from->place->lanes > move->n_lanes)
			move->n_lanes = from->place->lanes;
	}
	move_side_pitches(to, move->n_lanes, &move->to_pitches);
	move_side_pitches(from, move->n_lanes, &move->from_pitches);
	move->act = move_box_copy;
	move->ctx = (void *)(uintptr_t)to->local->blocks;
	move->watch = watch;
	move->done = 0;
	move->most = INT64_MAX;
}

static bool move_part(void *ctx, const struct parts_box *part)
{
	struct move *move = ctx;
	const struct move_pitches *to = &move->to_pitches, *from = &move->from_pitches;
	struct move_box box;
	move_box_init(&box, move_side_at(move->to, &part->at), move_side_at(move->from, &part->at),
		      move->to->element_bytes);
	move_box_add(&box, part->n_w, to->w, from->w);
	move_box_add(&box, part->n_h, to->h, from->h);
	move_box_add(&box, part->n_npus, to->npu, from->npu);
	move_box_add(&box, part->n_rows, to->row, from->row);
	move_box_add(&box, part->n_lanes, to->lane, from->lane);
	move_box_add(&box, part->n_words, to->word, from->word);
	return move_box_run(&box, move->act, move->ctx, move->watch, &move->done, move->most);
}

static bool move_range(struct move *move, const struct parts_range *range)
{
	return parts_each(&move->to->local->geometry, move->place, move->n_lanes, move->other_start, range,
			  move_part, move);
}

static bool move_ranges(struct move *move, const struct parts_range *ranges, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!move_range(move, &ranges[i]))
			return false;
	return true;
}

static struct move_side side_of_place(const struct local *local, const struct npumem_place *place)
{
	return (struct move_side){local, place, {NULL, {0, 0, 0, 0}}, move_element_bytes(place)};
}

static struct move_side side_of_host(const struct local *local, const struct npumem_place *place,
				     const struct move_host *host)
{
	return (struct move_side){local, NULL, *host, move_element_bytes(place)};
}

static bool is_all(const struct npumem_place *place, int64_t count)
{
	return count == npumem_place_elements(place);
}

static unsigned ranges_of(const struct npumem_place *place, int64_t first, int64_t count,
			  struct parts_range *ranges)
{
	if (!is_all(place, count))
		return parts_of(place, first, count, ranges);
	ranges[0] = parts_whole(place);
	return 1;
}

bool move_out(const struct local *local, const struct npumem_place *from, int64_t first, int64_t count,
	      const struct move_host *to, struct move_watch *watch)
{
	struct parts_range ranges[PARTS_RANGES_MAX];
	unsigned n = ranges_of(from, first, count, ranges);
	struct move_side there = side_of_host(local, from, to), here = side_of_place(local, from);
	struct move move;
	move_init(&move, &there, &here, watch);
	return move_ranges(&move, ranges, n) && move_watch_end(watch);
}

/* ---- what is written ---- */

/* Goes through the pieces again, as far as they were done. */
static void mark_again(const struct move *done, const struct parts_range *ranges, unsigned n, struct local *local,
		       bool set)
{
	struct move_marks marks = move_marks_of(local, set, done->watch);
	struct move again = *done;
	again.act = move_marks_piece;
	again.ctx = &marks;
	again.watch = &marks.untold;
	again.most = done->done;
	again.done = 0;
	if (again.most)
		move_ranges(&again, ranges, n);
}

/* Puts 0 into the dummies of the words that hold elements of the last n: as if there were more of those. */
static void zero_dummies(struct local *local, const struct npumem_place *to, const struct parts_range *ranges,
			 unsigned n, struct move_watch *watch)
{
	static uint8_t zero[sizeof(uint64_t)];
	const struct move_host zeros = {zero, {0, 0, 0, 0}};
	struct move_watch goes_on = {.progress = watch ? watch->progress : NULL, .goes_on = true};
	struct move_side there = side_of_place(local, to), here = side_of_host(local, to, &zeros);
	struct move move;
	move_init(&move, &there, &here, &goes_on);
	if (to->shape.n % to->lanes == 0)
		return;
	for (unsigned i = 0; i < n; i++) {
		struct parts_range dummies = ranges[i];
		if (dummies.to.n != to->shape.n)
			continue;
		dummies.from.n = to->shape.n;
		dummies.to.n = to->words_n * to->lanes;
		move.done = 0;
		move_range(&move, &dummies);
		mark_again(&move, &dummies, 1, local, true);
	}
}

bool move_in(struct local *local, const struct npumem_place *to, int64_t first, int64_t count,
	     const struct move_host *from, bool is_known, struct move_watch *watch)
{
	struct parts_range ranges[PARTS_RANGES_MAX];
	unsigned n = ranges_of(to, first, count, ranges);
	struct move_side there = side_of_place(local, to), here = side_of_host(local, to, from);
	struct move move;
	move_init(&move, &there, &here, watch);
	if (!move_ranges(&move, ranges, n)) {
		mark_again(&move, ranges, n, local, false);
		return false;
	}
	zero_dummies(local, to, ranges, n, watch);
	if (!is_known && is_all(to, count))
		move_marks_all(local, to, true, watch);
	else if (!is_known)
		mark_again(&move, ranges, n, local, true);
	return move_watch_end(watch);
}

void move_in_kernel(struct local *local, const struct npumem_place *to, const struct move_host *from,
		    struct kernel_progress *progress)
{
	struct move_watch watch = {.progress = progress, .goes_on = true};
	struct parts_range whole = parts_whole(to);
	struct move_side there = side_of_place(local, to), here = side_of_host(local, to, from);
	struct move move;
	move_init(&move, &there, &here, &watch);
	move_range(&move, &whole);
}

/* ---- within local memory ---- */

static bool same_channels(const struct npumem_place *a, const struct npumem_place *b)
{
	return a->shape.c == b->shape.c && a->shape.h == b->shape.h && a->shape.w == b->shape.w &&
	       a->last_w == b->last_w;
}

static bool copy_channels(struct local *local, const struct npumem_place *from, const struct npumem_place *to,
			  struct move_watch *watch)
{
	struct parts_range whole = parts_whole(to);
	struct move_side there = side_of_place(local, to), here = side_of_place(local, from);
	struct move move;
	move_init(&move, &there, &here, watch);
	if (move_range(&move, &whole))
		return true;
	mark_again(&move, &whole, 1, local, false);
	return false;
}

bool move_within(struct local *local, const struct npumem_place *from, const struct npumem_place *to,
		 bool is_known, struct move_watch *watch)
{
	const struct parts_range whole = parts_whole(to);
	bool all = same_channels(from, to) ? copy_channels(local, from, to, watch)
					   : move_columns(local, from, to, watch);
	if (!all)
		return false;
	zero_dummies(local, to, &whole, 1, watch);
	if (!is_known)
		move_marks_all(local, to, true, watch);
	return move_watch_end(watch);
}

/* ---- fill ---- */

bool move_fill(struct local *local, const struct npumem_place *to, const void *value, bool is_known,
	       struct move_watch *watch)
{
	struct move_box_fill fill = {.paths = local->blocks};
	const struct parts_range whole = parts_whole(to);
	struct move_side there = side_of_place(local, to);
	struct move move;
	size_t size = (size_t)there.element_bytes;
	memcpy(fill.pattern, value, size);
	for (; size < sizeof(fill.pattern); size *= 2)
		memcpy(fill.pattern + size, fill.pattern, size);
	move_init(&move, &there, &there, watch);
	move.act = move_box_fill;
	move.ctx = &fill;
	if (!move_range(&move, &whole)) {
		mark_again(&move, &whole, 1, local, false);
		return false;
	}
	zero_dummies(local, to, &whole, 1, watch);
	if (!is_known)
		move_marks_all(local, to, true, watch);
	return move_watch_end(watch);
}
