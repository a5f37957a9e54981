/* Rows are walked in row-major order of the logical shape, so that a row's elements are neighbours in dense
 * arrays. A matrix's row of W elements is a row here too; its last channel holds last_w of them. */
#include "daemon/device/geometry/runs.h"

static int64_t row_elements(const struct npumem_place *place, int64_t c)
{
	return c == place->shape.c - 1 ? place->last_w : place->shape.w;
}

/* Elements of all channels of one n; a tail in the last channel makes it less than C * H * W. */
static int64_t batch_elements(const struct npumem_place *place)
{
	return ((place->shape.c - 1) * place->shape.w + place->last_w) * place->shape.h;
}

void runs_walk_init(struct runs_walk *walk, const struct npumem_geometry *geometry,
		    const struct npumem_place *place, int64_t first, int64_t count)
{
	int64_t batch = batch_elements(place), feature = place->shape.h * place->shape.w;
	int64_t rest = first % batch;
	*walk = (struct runs_walk){.geometry = geometry, .place = place, .index = first, .end = first + count};
	walk->n = first / batch;
	walk->c = rest / feature;
	rest -= walk->c * feature;
	int64_t width = row_elements(place, walk->c);
	walk->h = rest / width;
	walk->skip = rest % width;
}

bool runs_walk_next(struct runs_walk *walk, struct runs_row *row)
{
	const struct npumem_place *place = walk->place;
	if (walk->index >= walk->end)
		return false;
	int64_t channel = place->start_npu + walk->c, n_npus = walk->geometry->n_npus;
	int64_t width = row_elements(place, walk->c);
	row->n = walk->n;
	row->c = walk->c;
	row->h = walk->h;
	row->w = walk->skip;
	row->n_w = width - walk->skip;
	if (row->n_w > walk->end - walk->index)
		row->n_w = walk->end - walk->index;
	row->index = walk->index;
	row->npu = channel % n_npus;
	row->offset = place->offset +
		      (walk->n / place->lanes * place->stride.n + channel / n_npus * place->stride.c +
		       walk->h * place->stride.h + walk->skip * place->stride.w) *
			      place->word_bytes +
		      walk->n % place->lanes * (place->word_bytes / place->lanes);
	walk->index += row->n_w;
	walk->skip = 0;
	if (++walk->h == place->shape.h) {
		walk->h = 0;
		if (++walk->c == place->shape.c) {
			walk->c = 0;
			walk->n++;
		}
	}
	return true;
}

/* Visits `n` pieces of `bytes` that stand `pitch` apart, as one where they touch. */
static bool visit_pieces(int64_t npu, int64_t offset, int64_t n, int64_t pitch, int64_t bytes, runs_visit *visit,
			 void *ctx)
{
	if (pitch == bytes)
		return visit(ctx, npu, offset, n * bytes);
	for (int64_t i = 0; i < n; i++)
		if (!visit(ctx, npu, offset + i * pitch, bytes))
			return false;
	return true;
}

bool runs_each_of(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t first,
		  int64_t count, runs_visit *visit, void *ctx)
{
	struct runs_walk walk;
	struct runs_row row;
	int64_t element = place->word_bytes / place->lanes, pitch = place->stride.w * place->word_bytes;
	runs_walk_init(&walk, geometry, place, first, count);
	while (runs_walk_next(&walk, &row))
		if (!visit_pieces(row.npu, row.offset, row.n_w, pitch, element, visit, ctx))
			return false;
	return true;
}

/* The bytes of one word that are data: fewer than all only in the last word of a packed mode. */
static int64_t word_data_bytes(const struct npumem_place *place, int64_t m, bool with_dummies)
{
	int64_t lanes = place->shape.n - m * place->lanes;
	if (with_dummies || lanes > place->lanes)
		lanes = place->lanes;
	return place->word_bytes / place->lanes * lanes;
}

static bool visit_feature(const struct npumem_place *place, int64_t npu, int64_t offset, int64_t width,
			  int64_t bytes, runs_visit *visit, void *ctx)
{
	int64_t word = place->word_bytes, pitch = place->stride.w * word;
	if (bytes == word && place->stride.w == 1 && (place->stride.h == width || place->shape.h == 1))
		return visit(ctx, npu, offset, place->shape.h * width * word);
	for (int64_t h = 0; h < place->shape.h; h++)
		if (!visit_pieces(npu, offset + h * place->stride.h * word, width, pitch, bytes, visit, ctx))
			return false;
	return true;
}

bool runs_each(const struct npumem_geometry *geometry, const struct npumem_place *place, bool with_dummies,
	       runs_visit *visit, void *ctx)
{
	for (int64_t m = 0; m < place->words_n; m++) {
		int64_t bytes = word_data_bytes(place, m, with_dummies);
		for (int64_t c = 0; c < place->shape.c; c++) {
			int64_t channel = place->start_npu + c;
			int64_t words = m * place->stride.n + channel / geometry->n_npus * place->stride.c;
			if (!visit_feature(place, channel % geometry->n_npus,
					   place->offset + words * place->word_bytes, row_elements(place, c),
					   bytes, visit, ctx))
				return false;
		}
	}
	return true;
}
