/* Columns that are regular on both sides, with all rows, are a box. */
#include "daemon/device/operations/move_columns.h"

#include "daemon/device/operations/move_box.h"
#include "daemon/device/operations/move_marks.h"
#include "daemon/device/operations/move_side.h"

struct columns {
	const struct move_side *to, *from;
	int64_t n_lanes;
	move_box_act *act;
	void *ctx;
	struct move_watch *watch;
	int64_t done, most;
};

/* Columns from `column` on that stand evenly: those of its channel, or channels of one column each up to the last
 * NPU. */
static int64_t even_columns(const struct move_side *side, int64_t column)
{
	int64_t width = side->place->shape.w, n_npus = side->local->geometry.n_npus;
	return width > 1 ? width - column % width : n_npus - (side->place->start_npu + column) % n_npus;
}

static struct npumem_dims element_at(const struct move_side *side, int64_t row, int64_t column)
{
	int64_t width = side->place->shape.w;
	return (struct npumem_dims){row, column / width, 0, column % width};
}

static int64_t column_pitch(const struct move_side *side, const struct move_pitches *pitches)
{
	return side->place->shape.w > 1 ? pitches->w : pitches->npu;
}

/* n columns of all rows: whole words, and what is left of the last one. */
static bool move_some(struct columns *columns, int64_t column, int64_t n)
{
	const struct move_side *to = columns->to, *from = columns->from;
	struct move_pitches here, there;
	int64_t rows = to->place->shape.n, lanes = columns->n_lanes;
	move_side_pitches(to, lanes, &here);
	move_side_pitches(from, lanes, &there);
	for (int64_t row = 0; row < rows;) {
		struct npumem_dims a = element_at(to, row, column), b = element_at(from, row, column);
		struct move_box box;
		int64_t words = (rows - row) / lanes, n_lanes = words ? lanes : rows - row;
		words += !words;
		move_box_init(&box, move_side_at(to, &a), move_side_at(from, &b), to->element_bytes);
		move_box_add(&box, n, column_pitch(to, &here), column_pitch(from, &there));
		move_box_add(&box, n_lanes, here.lane, there.lane);
		move_box_add(&box, words, here.word, there.word);
		if (!move_box_run(&box, columns->act, columns->ctx, columns->watch, &columns->done, columns->most))
			return false;
		row += words * n_lanes;
	}
	return true;
}

static bool move_all(struct columns *columns)
{
	const struct npumem_place *place = columns->to->place;
	int64_t n_columns = (place->shape.c - 1) * place->shape.w + place->last_w, n;
	for (int64_t column = 0; column < n_columns; column += n) {
		int64_t a = even_columns(columns->to, column), b = even_columns(columns->from, column);
		n = a < b ? a : b;
		n = n < n_columns - column ? n : n_columns - column;
		if (!move_some(columns, column, n))
			return false;
	}
	return true;
}

bool move_columns(struct local *local, const struct npumem_place *from, const struct npumem_place *to,
		  struct move_watch *watch)
{
	const struct move_side here = {.local = local, .place = to, .element_bytes = move_element_bytes(to)};
	const struct move_side there = {.local = local, .place = from, .element_bytes = here.element_bytes};
	struct columns columns = {.to = &here, .from = &there, .n_lanes = to->lanes, .act = move_box_copy};
	struct move_marks marks = move_marks_of(local, false, watch);
	if (from->lanes > columns.n_lanes)
		columns.n_lanes = from->lanes;
	columns.watch = watch;
	columns.most = INT64_MAX;
	columns.ctx = (void *)(uintptr_t)local->blocks;
	if (move_all(&columns))
		return true;
	columns.most = columns.done;
	columns.done = 0;
	columns.act = move_marks_piece;
	columns.ctx = &marks;
	columns.watch = &marks.untold;
	if (columns.most)
		move_all(&columns);
	return false;
}
