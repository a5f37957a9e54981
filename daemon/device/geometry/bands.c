/* All layouts but strided are rows of equal blocks, N after N, each a feature and its padding, or empty as a
 * whole. Strided ones are painted, but for where they are all padding: with large strides a footprint may have few
 * elements and cover a whole device, and thousands such may lie over each other. */
#include "daemon/device/geometry/bands.h"

#include <string.h>

struct bands {
	int64_t from, to; /* what is asked for and not told yet */
	bands_visit *visit;
	void *ctx;
	int64_t at, end; /* a stretch that may still grow */
	unsigned kind;
};

/* The next stretch, in order: up to `end`. */
static void tell(struct bands *bands, int64_t end, unsigned kind)
{
	if (end > bands->to)
		end = bands->to;
	if (end <= bands->end)
		return;
	if (kind != bands->kind) {
		if (bands->at < bands->end)
			bands->visit(bands->ctx, bands->at, bands->end, bands->kind);
		bands->at = bands->end;
		bands->kind = kind;
	}
	bands->end = end;
}

/* ---- blocks ---- */

struct rows {
	int64_t first, end; /* block rows that have a channel on this NPU */
	int64_t last;	    /* the row of the last channel, where this NPU has it; else -1 */
};

static struct rows rows_of(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu)
{
	int64_t last = place->start_npu + place->shape.c - 1;
	return (struct rows){
		.first = npu < place->start_npu,
		.end = (last + geometry->n_npus - npu) / geometry->n_npus,
		.last = last % geometry->n_npus == npu ? last / geometry->n_npus : -1,
	};
}

/* `bytes` of whole words from `at` on, `used` bytes of each with elements. */
static void tell_words(struct bands *bands, int64_t at, int64_t bytes, int64_t word, int64_t used)
{
	if (used == word) {
		tell(bands, at + bytes, NPUMEM_BYTE_DATA);
		return;
	}
	int64_t i = bands->end > at ? (bands->end - at) / word : 0;
	for (; i < bytes / word && bands->end < bands->to; i++) {
		tell(bands, at + i * word + used, NPUMEM_BYTE_DATA);
		tell(bands, at + (i + 1) * word, NPUMEM_BYTE_DUMMY);
	}
}

/* The block rows of one N that have a channel here; `base` is that of row 0. */
static void tell_rows(struct bands *bands, const struct npumem_place *place, const struct rows *rows, int64_t base,
		      int64_t used)
{
	int64_t word = place->word_bytes, block = place->stride.c * word, feature = place->shape.h * word;
	int64_t wide = feature * place->shape.w, row = rows->first;
	if (bands->end > base + row * block)
		row = (bands->end - base) / block;
	if (wide == block && used == word) {
		int64_t whole = rows->last >= 0 ? rows->last : rows->end;
		tell(bands, base + whole * block, NPUMEM_BYTE_DATA);
		row = row > whole ? row : whole;
	}
	for (; row < rows->end && bands->end < bands->to; row++) {
		int64_t bytes = row == rows->last ? feature * place->last_w : wide;
		tell_words(bands, base + row * block, bytes, word, used);
		tell(bands, base + (row + 1) * block, NPUMEM_BYTE_PADDING);
	}
}

static void tell_blocks(struct bands *bands, const struct npumem_geometry *geometry,
			const struct npumem_place *place, int64_t npu, bool dummies)
{
	struct rows rows = rows_of(geometry, place, npu);
	int64_t batch = place->stride.n * place->word_bytes, block = place->stride.c * place->word_bytes;
	int64_t element = place->word_bytes / place->lanes;
	int64_t last_used = element * (place->shape.n - (place->words_n - 1) * place->lanes);
	if (rows.first >= rows.end)
		tell(bands, place->words_n * batch, NPUMEM_BYTE_EMPTY);
	for (int64_t n = bands->end / batch; n < place->words_n && bands->end < bands->to; n++) {
		int64_t base = n * batch;
		tell(bands, base + rows.first * block, NPUMEM_BYTE_EMPTY);
		tell_rows(bands, place, &rows, base,
			  dummies && n == place->words_n - 1 ? last_used : place->word_bytes);
		tell(bands, base + batch, NPUMEM_BYTE_EMPTY);
	}
	tell(bands, bands->to, NPUMEM_BYTE_PADDING);
}

/* ---- words anywhere ---- */

struct axis {
	int64_t last, bytes; /* the last step, and how far apart steps are */
};

/* The dimensions, the widest steps first. */
static void axes_of(const struct npumem_place *place, struct axis axes[4])
{
	const struct npumem_dims *stride = &place->stride;
	const struct axis given[4] = {{place->words_n - 1, stride->n * place->word_bytes},
				      {place->channels_per_npu - 1, stride->c * place->word_bytes},
				      {place->shape.h - 1, stride->h * place->word_bytes},
				      {place->shape.w - 1, stride->w * place->word_bytes}};
	for (unsigned i = 0, at; i < 4; i++) {
		for (at = i; at > 0 && axes[at - 1].bytes < given[i].bytes; at--)
			axes[at] = axes[at - 1];
		axes[at] = given[i];
	}
}

/* Whether any NPU may have a word in [from, to): exact, but true where that takes long to see. */
static bool may_touch(const struct npumem_place *place, int64_t from, int64_t to)
{
	struct axis axes[4];
	int64_t reach = place->word_bytes, base = 0;
	axes_of(place, axes);
	for (unsigned i = 0; i < 4; i++)
		reach += axes[i].last * axes[i].bytes;
	for (unsigned i = 0; i < 4; i++) {
		int64_t bytes = axes[i].bytes, first = 0, last = axes[i].last;
		/* From here on that of one step of this dimension. */
		reach -= last * bytes;
		if (from >= base + reach)
			first = (from - base - reach) / bytes + 1;
		if (to - 1 - base < last * bytes)
			last = (to - 1 - base) / bytes;
		if (first > last)
			return false;
		if (first < last)
			return true;
		base += first * bytes;
	}
	return true;
}

static void tell_painted(struct bands *bands, const struct npumem_geometry *geometry,
			 const struct npumem_place *place, int64_t npu, bool dummies)
{
	uint8_t kinds[1024];
	while (bands->end < bands->to) {
		int64_t at = bands->end, left = bands->to - at;
		int64_t n = left < (int64_t)sizeof(kinds) ? left : (int64_t)sizeof(kinds);
		if (!may_touch(place, at, at + n)) {
			tell(bands, at + n, NPUMEM_BYTE_PADDING);
			continue;
		}
		memset(kinds, 0, (size_t)n);
		npumem_place_paint(geometry, place, npu, at, at + n, kinds);
		for (int64_t i = 0; i < n; i++)
			tell(bands, at + i + 1,
			     !dummies && kinds[i] == NPUMEM_BYTE_DUMMY ? NPUMEM_BYTE_DATA : kinds[i]);
	}
}

void bands_each(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu,
		int64_t from, int64_t to, bool dummies, bands_visit *visit, void *ctx)
{
	struct bands bands = {.from = from, .to = to, .visit = visit, .ctx = ctx, .at = from, .end = from};
	if (place->layout == NPUMEM_STRIDED)
		tell_painted(&bands, geometry, place, npu, dummies);
	else
		tell_blocks(&bands, geometry, place, npu, dummies);
	visit(ctx, bands.at, bands.end, bands.kind);
}

bool bands_may_hold(const struct npumem_place *place, int64_t from, int64_t to)
{
	return place->layout != NPUMEM_STRIDED || may_touch(place, from, to);
}
