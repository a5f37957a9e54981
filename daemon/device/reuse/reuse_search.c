/* The verdict's question asked of many offsets at once. Bytes that may not be entered are bits, in one map for
 * each class of NPUs of the new tensor. Its elements lie in arithmetic progressions (bytes of a word, w, h, block
 * rows, n), so a map that is ored with itself, shifted down by every step of one progression after the other, says
 * which offsets are blocked; doubling makes that a few shifts for each. The cost does not depend on how many
 * elements there are.
 *
 * Offsets are asked in windows, lowest first, so that neither host memory nor time depends on the size of the
 * device where there is room early. */
#include <errno.h>

#include "daemon/device/geometry/bands.h"
#include "daemon/device/geometry/classes.h"
#include "daemon/device/reuse/overlap.h"
#include "daemon/device/reuse/reuse.h"
#include "daemon/device/tensors/meetings.h"

enum { WINDOW_OFFSETS = 1 << 17 };

struct search {
	const struct device *device;
	const struct npumem_place *place;
	const struct reuse_wish *wish;
	struct classes classes;	      /* of the new tensor, on NPUs where it has data */
	int64_t most;		      /* offsets in a window */
	int64_t at, n;		      /* the window: offsets that are asked about */
	int64_t end;		      /* of the bytes that they are about */
	size_t n_words;		      /* of a map, in which bit 0 is byte or offset `at` */
	uint64_t *maps[MEET_CLASSES]; /* by class of the new tensor: bytes that its data may not enter */
	uint64_t *hard;		      /* bytes that not even its footprint may enter */
	uint64_t *blocked;	      /* offsets at which it may not lie */
	uint64_t *scratch;
	/* Of the tensor looked at last: most look like the one before. */
	const struct npumem_place *other;
	struct classes other_classes;
	unsigned into[MEET_CLASSES]; /* by its class: classes of the new one that it meets there */
};

/* ---- maps ---- */

/* to |= from >> shift; bits beyond the end are 0. The two may be one map. */
static void or_shifted(uint64_t *to, const uint64_t *from, size_t n_words, uint64_t shift)
{
	size_t words = (size_t)(shift / 64), n = n_words > words ? n_words - words : 0;
	unsigned bits = shift % 64;
	from += words;
	if (!bits) {
		for (size_t i = 0; i < n; i++)
			to[i] |= from[i];
		return;
	}
	for (size_t i = 0; i + 1 < n; i++)
		to[i] |= from[i] >> bits | from[i + 1] << (64 - bits);
	if (n)
		to[n - 1] |= from[n - 1] >> bits;
}

static bool all_set(const uint64_t *map, int64_t n_bits)
{
	int64_t words = n_bits / 64, rest = n_bits % 64;
	for (int64_t i = 0; i < words; i++)
		if (map[i] != UINT64_MAX)
			return false;
	return !rest || !(~map[words] << (64 - rest));
}

/* Bit o becomes whether any of the bits o, o + step, … (`count` of them) is set. */
static void gather(const struct search *search, uint64_t *map, int64_t count, int64_t step)
{
	int64_t have = 1;
	/* Most is taken in a device that is searched for empty blocks, so that soon no bit may be left to set. */
	for (; have < count && !all_set(map, search->end - search->at); have *= 2)
		or_shifted(map, map, search->n_words,
			   (uint64_t)((have * 2 <= count ? have : count - have) * step));
}

/* Sets the bits of bytes [from, to) that the map has. Nobody else sees it: no need for bits_set's care. */
static void map_set(const struct search *search, uint64_t *map, int64_t from, int64_t to)
{
	from = from > search->at ? from - search->at : 0;
	to = (to < search->end ? to : search->end) - search->at;
	if (from >= to)
		return;
	uint64_t first = UINT64_MAX << from % 64, last = UINT64_MAX >> (63 - (to - 1) % 64);
	int64_t w = from / 64, end = (to - 1) / 64;
	if (w == end) {
		map[w] |= first & last;
		return;
	}
	map[w++] |= first;
	while (w < end)
		map[w++] = UINT64_MAX;
	map[end] |= last;
}

/* Adds to `blocked` the offsets at which features of `width` words in block rows [row, end) would meet the map. */
static void block_rows(struct search *search, const uint64_t *map, int64_t row, int64_t end, int64_t width)
{
	const struct npumem_place *place = search->place;
	const struct npumem_dims *stride = &place->stride;
	uint64_t *scratch = search->scratch;
	size_t n = search->n_words;
	int64_t word = place->word_bytes;
	if (row >= end)
		return;
	memcpy(scratch, map, n * sizeof(*map));
	gather(search, scratch, word, 1);
	gather(search, scratch, width, stride->w * word);
	gather(search, scratch, place->shape.h, stride->h * word);
	gather(search, scratch, end - row, stride->c * word);
	gather(search, scratch, place->words_n, stride->n * word);
	/* Row 0 begins at the tensor's own offset. */
	or_shifted(search->blocked, scratch, n, (uint64_t)(row * stride->c * word));
}

/* ---- what is in the way ---- */

struct painting {
	const struct search *search;
	const struct npumem_place *place;
	unsigned into; /* classes of the new tensor */
};

static void paint_band(void *ctx, int64_t from, int64_t to, unsigned kind)
{
	const struct painting *painting = ctx;
	int64_t offset = painting->place->offset;
	unsigned blocked =
		painting->search->wish->reuse == NPUMEM_IF_SAFE ? MEET_DATA | NPUMEM_BYTE_PADDING : MEET_DATA;
	for (unsigned k = 0; kind & blocked && k < MEET_CLASSES; k++)
		if (painting->into >> k & 1)
			map_set(painting->search, painting->search->maps[k], offset + from, offset + to);
}

/* Finds out which classes of the new tensor each class of another has NPUs in common with. */
static void meet_classes(struct search *search, const struct npumem_place *other)
{
	const struct classes *own = &search->classes, *its = &search->other_classes;
	const struct npumem_place *last = search->other;
	search->other = other;
	if (last && last->start_npu == other->start_npu && last->shape.c == other->shape.c &&
	    (last->last_w == last->shape.w) == (other->last_w == other->shape.w))
		return;
	classes_of(&search->device->options.geometry, other, &search->other_classes);
	for (unsigned class = 0; class < MEET_CLASSES; class ++) {
		search->into[class] = 0;
		for (unsigned k = 0; k < MEET_CLASSES && its->first[class] >= 0; k++)
			for (unsigned w = 0; w < own->n_words && own->first[k] >= 0; w++)
				search->into[class] |= (unsigned)!!(own->npus[k][w] & its->npus[class][w]) << k;
	}
}

/* Sets the bits of every byte of a tensor that the new one's data may not enter, on NPUs of each class of the
 * tensor, in the maps of those classes of the new one that it meets there. */
static bool paint_tensor(void *ctx, struct tensor *tensor)
{
	struct search *search = ctx;
	const struct npumem_geometry *geometry = &search->device->options.geometry;
	const struct npumem_place *place = &tensor->place;
	struct painting painting = {search, place, 0};
	int64_t from = search->at > place->offset ? search->at - place->offset : 0;
	int64_t to = search->end < place_end(place) ? search->end - place->offset : place->bytes_per_npu;
	if (from >= to)
		return true;
	bool writer =
		search->wish->reuse == NPUMEM_IF_SAFE && !search->wish->any_writer && !tensor_is_dma_only(tensor);
	if (writer || tensor->n_meetings == MEETINGS_MAX) {
		map_set(search, search->hard, place->offset, place_end(place));
		return true;
	}
	meet_classes(search, place);
	for (unsigned class = 0; class < MEET_CLASSES; class ++) {
		painting.into = search->into[class];
		if (painting.into)
			bands_each(geometry, place, search->other_classes.first[class], from, to, false,
				   paint_band, &painting);
	}
	return true;
}

/* ---- offsets ---- */

/* The block rows in which an NPU of a class has data; the narrow one's last row is a feature of its own width. */
static void block_class(struct search *search, unsigned class)
{
	const struct npumem_place *place = search->place;
	int64_t n_npus = search->device->options.geometry.n_npus, npu = search->classes.first[class];
	int64_t last = place->start_npu + place->shape.c - 1;
	int64_t first_row = npu < place->start_npu, end = last / n_npus + (npu <= last % n_npus);
	bool narrow = class == MEET_CLASSES - 1;
	block_rows(search, search->maps[class], first_row, end - narrow, place->shape.w);
	if (narrow)
		block_rows(search, search->maps[class], end - 1, end, place->last_w);
}

/* Finds the offsets of the window at which the tensor may not lie; first those where a kernel may write what is
 * there, as these may be all. */
static void block_window(struct search *search)
{
	size_t bytes = search->n_words * sizeof(uint64_t);
	memset(search->hard, 0, (MEET_CLASSES + 3) * bytes);
	overlap_each(search->device, search->at, search->end - search->at, NULL, paint_tensor, search);
	gather(search, search->hard, search->place->bytes_per_npu, 1);
	memcpy(search->blocked, search->hard, bytes);
	for (unsigned k = 0; k < MEET_CLASSES && !all_set(search->blocked, search->n); k++)
		if (search->classes.first[k] >= 0)
			block_class(search, k);
}

/* The first offset of the window, at or after *at, that is not blocked: in *at, or the first one behind it. */
static bool find_free(const struct search *search, int64_t *at)
{
	int64_t align = search->place->align_bytes, end = search->at + search->n;
	while (*at < end) {
		uint64_t word = search->blocked[(*at - search->at) / 64], bit = (uint64_t)(*at - search->at) % 64;
		if (!(word >> bit & 1))
			return true;
		int64_t skip = word == UINT64_MAX && align < 64 ? (int64_t)(64 - bit) : 1;
		*at += (skip + align - 1) / align * align;
	}
	return false;
}

/* The classes of the new tensor, without the NPUs on which it has no data. */
static void data_classes(struct search *search)
{
	const struct npumem_geometry *geometry = &search->device->options.geometry;
	struct classes *classes = &search->classes;
	uint64_t with_data[CLASSES_WORDS_MAX];
	classes_of(geometry, search->place, classes);
	classes_with_data(geometry, search->place, with_data);
	for (unsigned k = 0; k < MEET_CLASSES; k++) {
		classes->first[k] = -1;
		for (unsigned w = classes->n_words; w-- > 0;) {
			uint64_t bits = classes->npus[k][w] &= with_data[w];
			if (bits)
				classes->first[k] = (int64_t)w * 64 + __builtin_ctzll(bits);
		}
	}
}

static int search_begin(struct search *search, int64_t last)
{
	int64_t bytes = search->place->bytes_per_npu;
	/* No fewer than the bytes that have to be looked at for the last of them. */
	search->most = bytes > WINDOW_OFFSETS ? bytes : WINDOW_OFFSETS;
	search->most = search->most < last + 1 ? search->most : last + 1;
	data_classes(search);
	search->n_words = (size_t)(search->most + bytes + 63) / 64;
	uint64_t *maps = heap_alloc(search->device->heap, (MEET_CLASSES + 3) * search->n_words * sizeof(*maps));
	if (!maps)
		return -ENOMEM;
	search->hard = maps;
	search->blocked = maps + search->n_words;
	search->scratch = maps + 2 * search->n_words;
	for (unsigned k = 0; k < MEET_CLASSES; k++)
		search->maps[k] = maps + (k + 3) * search->n_words;
	return 0;
}

int reuse_search(const struct device *device, const struct npumem_place *place, const struct reuse_wish *wish,
		 int64_t *offset)
{
	struct search search = {.device = device, .place = place, .wish = wish};
	int64_t last = device->options.geometry.npu_bytes - place->bytes_per_npu;
	if (wish->reuse == NPUMEM_IF_SAFE && !wish->dma_only && !wish->any_writer)
		return NPUMEM_RESOURCE_EXHAUSTED;
	if (search_begin(&search, last))
		return -ENOMEM;
	int64_t at = 0;
	bool found = false;
	for (; !found && search.at <= last; search.at += search.n) {
		search.n = last + 1 - search.at < search.most ? last + 1 - search.at : search.most;
		search.end = search.at + search.n - 1 + place->bytes_per_npu;
		block_window(&search);
		found = find_free(&search, &at);
	}
	heap_free(device->heap, search.hard);
	if (!found)
		return NPUMEM_RESOURCE_EXHAUSTED;
	*offset = at;
	return 0;
}
