/* What each byte of a tensor's footprint is. A window is painted piece by piece into a small buffer, weakest kind
 * first, because the caller's bytes already hold the kinds of other tensors. Whatever lies outside the window is
 * stepped over by arithmetic, so that a window of a large tensor costs about as much as its own bytes.
 *
 * Knows nothing of who owns a byte; works for any strides > 0, so for the places of views too. */
#include <string.h>

#include "include/formulas/layout_row.h"
#include "include/formulas/sizes.h"

enum { PIECE_BYTES = 4096 };

/* Bytes [from, to) of one NPU, counted from the tensor's start. */
struct piece {
	int64_t from, to;
	uint8_t kinds[PIECE_BYTES];
};

/* Sets those of [at, at + bytes) that lie in the piece. */
static void piece_set(struct piece *piece, int64_t at, int64_t bytes, uint8_t kind)
{
	int64_t from = at > piece->from ? at : piece->from;
	int64_t to = at + bytes < piece->to ? at + bytes : piece->to;
	if (from < to)
		memset(&piece->kinds[from - piece->from], kind, (size_t)(to - from));
}

/* One dimension of the loops: `count` steps of `stride` bytes, each reaching `extent` bytes from its start. */
struct axis {
	int64_t count, stride, extent;
};

/* The steps [*from, *to) of an axis at `base` that may touch the piece. */
static void axis_clip(const struct axis *axis, int64_t base, const struct piece *piece, int64_t *from, int64_t *to)
{
	*from = 0;
	*to = axis->count;
	if (axis->count == 1)
		return;
	/* Step i covers [base + i * stride, base + i * stride + extent). */
	if (piece->from >= base + axis->extent)
		*from = (piece->from - base - axis->extent) / axis->stride + 1;
	if (piece->to <= base)
		*to = 0;
	else if ((piece->to - base - 1) / axis->stride + 1 < *to)
		*to = (piece->to - base - 1) / axis->stride + 1;
}

/* Loops over a feature, in bytes; `n` is outermost, rows are given one by one. */
struct loops {
	struct axis n, h, w;
	int64_t row_bytes; /* the C stride */
	int64_t word_bytes;
	bool dense; /* h and w are one run of bytes */
};

static struct loops loops_of(const struct npumem_place *place, int64_t width)
{
	const struct npumem_dims *stride = &place->stride;
	const int64_t word = place->word_bytes;
	struct loops loops = {.row_bytes = stride->c * word, .word_bytes = word};
	loops.w = (struct axis){.count = width, .stride = stride->w * word, .extent = word};
	int64_t w_reach = (width - 1) * loops.w.stride;
	loops.h = (struct axis){.count = place->shape.h, .stride = stride->h * word, .extent = w_reach + word};
	int64_t h_reach = (place->shape.h - 1) * loops.h.stride;
	loops.n = (struct axis){
		.count = place->words_n,
		.stride = stride->n * word,
		.extent = h_reach + loops.h.extent,
	};
	loops.dense = (width == 1 || stride->w == 1) && (place->shape.h == 1 || stride->h == width);
	return loops;
}

/* `bytes` bytes of whole words: `used` bytes of each are `kind`, what is left of them dummies. */
static void paint_run(struct piece *piece, int64_t at, int64_t bytes, int64_t word_bytes, int64_t used,
		      uint8_t kind)
{
	piece_set(piece, at, bytes, kind);
	if (used == word_bytes)
		return;
	int64_t word = piece->from > at ? (piece->from - at) / word_bytes : 0;
	for (; word < bytes / word_bytes && at + word * word_bytes < piece->to; word++)
		piece_set(piece, at + word * word_bytes + used, word_bytes - used, NPUMEM_BYTE_DUMMY);
}

/* The words of one feature; `used` bytes of each hold elements. */
static void paint_feature(struct piece *piece, const struct loops *loops, int64_t base, int64_t used, uint8_t kind)
{
	const int64_t word = loops->word_bytes;
	if (loops->dense) {
		paint_run(piece, base, loops->h.count * loops->w.count * word, word, used, kind);
		return;
	}
	int64_t h, h_to;
	axis_clip(&loops->h, base, piece, &h, &h_to);
	for (; h < h_to; h++) {
		int64_t line = base + h * loops->h.stride;
		if (loops->w.stride == word || loops->w.count == 1) {
			paint_run(piece, line, loops->w.count * word, word, used, kind);
			continue;
		}
		int64_t w, w_to;
		axis_clip(&loops->w, line, piece, &w, &w_to);
		for (; w < w_to; w++)
			paint_run(piece, line + w * loops->w.stride, word, word, used, kind);
	}
}

/* Block rows [row, row_end), whose features are `width` words wide, as `kind`; with `dummies` told apart where
 * they are this NPU's own. */
static void paint_rows(struct piece *piece, const struct npumem_place *place, int64_t width, int64_t row,
		       int64_t row_end, uint8_t kind, bool dummies)
{
	if (row >= row_end)
		return;
	const struct loops loops = loops_of(place, width);
	const int64_t last_lanes = place->shape.n - (place->words_n - 1) * place->lanes;
	int64_t row_reach = (row_end - row - 1) * loops.row_bytes;
	struct axis n_axis = loops.n;
	n_axis.extent += row_reach;
	int64_t first = row * loops.row_bytes;
	int64_t n, n_to;
	axis_clip(&n_axis, first, piece, &n, &n_to);
	for (; n < n_to; n++) {
		bool last = n == place->words_n - 1;
		int64_t used = dummies && last ? loops.word_bytes / place->lanes * last_lanes : loops.word_bytes;
		int64_t base = first + n * loops.n.stride;
		struct axis rows = {.count = row_end - row, .stride = loops.row_bytes, .extent = loops.n.extent};
		int64_t r, r_to;
		axis_clip(&rows, base, piece, &r, &r_to);
		for (; r < r_to; r++)
			paint_feature(piece, &loops, base + r * loops.row_bytes, used, kind);
	}
}

/* Blocks of the rows [row, row_end), which this NPU has no channel in. */
static void paint_empty_blocks(struct piece *piece, const struct npumem_place *place, int64_t row, int64_t row_end)
{
	if (row >= row_end)
		return;
	const int64_t block = place->stride.c * place->word_bytes;
	const struct axis n_axis = {
		.count = place->words_n,
		.stride = place->stride.n * place->word_bytes,
		.extent = (row_end - row) * block,
	};
	int64_t n, n_to;
	axis_clip(&n_axis, row * block, piece, &n, &n_to);
	for (; n < n_to; n++)
		piece_set(piece, row * block + n * n_axis.stride, n_axis.extent, NPUMEM_BYTE_EMPTY);
}

/* What the NPUs hold at each row: the last channel may be narrower than the others. */
struct rows {
	int64_t first, end; /* this NPU's */
	int64_t last_row;   /* of the last channel */
	bool has_last;	    /* this NPU has it */
	bool last_alone;    /* no other channel is in its row */
};

static void paint_piece(struct piece *piece, const struct npumem_place *place, const struct layout_row *layout,
			const struct rows *rows)
{
	const int64_t all = rows->last_row + 1;
	const int64_t w = place->shape.w;
	const int64_t narrow = rows->has_last ? 1 : 0;
	memset(piece->kinds, NPUMEM_BYTE_PADDING, (size_t)(piece->to - piece->from));
	if (layout->whole_blocks) {
		paint_empty_blocks(piece, place, 0, rows->first);
		paint_empty_blocks(piece, place, rows->end, all);
	} else {
		paint_rows(piece, place, w, 0, all - 1, NPUMEM_BYTE_EMPTY, false);
		paint_rows(piece, place, rows->last_alone ? place->last_w : w, all - 1, all, NPUMEM_BYTE_EMPTY,
			   false);
	}
	paint_rows(piece, place, w, rows->first, rows->end - narrow, NPUMEM_BYTE_DATA, true);
	if (rows->has_last)
		paint_rows(piece, place, place->last_w, rows->last_row, rows->last_row + 1, NPUMEM_BYTE_DATA,
			   true);
}

void npumem_place_paint(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu,
			int64_t from, int64_t to, uint8_t *kinds)
{
	const struct layout_row *layout = layout_row_by_number(place->layout);
	const int64_t last = place->start_npu + place->shape.c - 1;
	struct rows rows = {
		.last_row = last / geometry->n_npus,
		.has_last = last % geometry->n_npus == npu,
		.last_alone = last % geometry->n_npus == 0 || place->shape.c == 1,
	};
	layout_row_rows(geometry, place, npu, &rows.first, &rows.end);
	int64_t end = to < place->bytes_per_npu ? to : place->bytes_per_npu;
	struct piece piece;
	for (int64_t at = from; at < end; at = piece.to) {
		piece.from = at;
		piece.to = end - at < PIECE_BYTES ? end : at + PIECE_BYTES;
		paint_piece(&piece, place, layout, &rows);
		for (int64_t i = piece.from; i < piece.to; i++)
			kinds[i - from] |= piece.kinds[i - piece.from];
	}
}
