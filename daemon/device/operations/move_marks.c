/* A piece of a move is a series of stretches again, but where a loop of it goes from NPU to NPU: then each block
 * is looked up. */
#include "daemon/device/operations/move_marks.h"

#include "daemon/device/geometry/runs.h"

struct move_marks move_marks_of(struct local *local, bool set, const struct move_watch *watch)
{
	struct move_watch goes_on = {.progress = watch ? watch->progress : NULL, .goes_on = true};
	return (struct move_marks){local, set, goes_on, {.progress = NULL}};
}

static void mark(struct move_marks *marks, const struct runs_series *series)
{
	if (marks->set)
		local_mark_series(marks->local, series->npu, series->offset, series->bytes, series->n,
				  series->pitch);
	else
		local_unmark_series(marks->local, series->npu, series->offset, series->bytes, series->n,
				    series->pitch);
	move_watch_look(&marks->watch, runs_steps(series));
}

/* In pieces: of a stretch, 64 bytes are a step. A stretch may be as long as a tensor. */
static void mark_series(struct move_marks *marks, const struct runs_series *series)
{
	int64_t piece = move_watch_piece(&marks->watch), longest = piece * RUNS_BYTES_PER_STEP;
	int64_t most = piece / (1 + series->bytes / RUNS_BYTES_PER_STEP);
	if (most < 1)
		most = 1;
	for (int64_t i = 0; i < series->n; i += most) {
		struct runs_series some = *series;
		some.n = series->n - i < most ? series->n - i : most;
		some.offset += i * series->pitch;
		/* Longer ones come one by one. */
		for (int64_t left = series->bytes; left > 0; left -= longest, some.offset += longest) {
			some.bytes = left < longest ? left : longest;
			mark(marks, &some);
		}
	}
}

/* n blocks from `to` on, of which any may be on another NPU. */
static void mark_blocks(struct move_marks *marks, const uint8_t *to, int64_t bytes, int64_t n, int64_t pitch)
{
	const struct local *local = marks->local;
	for (int64_t i = 0; i < n; i++) {
		uint64_t at = (uint64_t)(to - local->lanes) + (uint64_t)(i * pitch);
		struct runs_series one = {(int64_t)(at / local->lane_pitch), (int64_t)(at % local->lane_pitch),
					  bytes, 1, 0};
		mark_series(marks, &one);
	}
}

void move_marks_piece(void *ctx, uint8_t *to, const uint8_t *from, const struct blocks *blocks, bool is_transpose)
{
	struct move_marks *marks = ctx;
	const struct local *local = marks->local;
	int64_t n = blocks->n[0], pitch = blocks->to_pitch[0], span = (n - 1) * pitch + blocks->bytes;
	(void)from;
	(void)is_transpose;
	for (int64_t j = 0; j < blocks->n[1]; j++, to += blocks->to_pitch[1]) {
		uint64_t at = (uint64_t)(to - local->lanes);
		struct runs_series series = {(int64_t)(at / local->lane_pitch), (int64_t)(at % local->lane_pitch),
					     blocks->bytes, n, pitch};
		if (pitch == blocks->bytes) {
			series.bytes = span;
			series.n = 1;
		}
		if (series.offset + span <= local->geometry.npu_bytes)
			mark_series(marks, &series);
		else
			mark_blocks(marks, to, blocks->bytes, n, pitch);
	}
}

static bool mark_all(void *ctx, const struct runs_series *series)
{
	mark_series(ctx, series);
	return true;
}

void move_marks_all(struct local *local, const struct npumem_place *place, bool set,
		    const struct move_watch *watch)
{
	struct move_marks marks = move_marks_of(local, set, watch);
	runs_each(&local->geometry, place, false, mark_all, &marks);
}
