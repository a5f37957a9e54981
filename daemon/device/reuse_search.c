/* The verdict's question asked of every offset at once. Bytes that may not be entered are bits, in one map for
 * each class of NPUs of the new tensor. Its elements lie in arithmetic progressions (bytes of a word, w, h, block
 * rows, n), so a map that is ored with itself, shifted down by every step of one progression after the other, says
 * which offsets are blocked; doubling makes that a few shifts for each. The cost does not depend on how many
 * elements there are. */
#include <errno.h>

#include "daemon/device/meet.h"
#include "daemon/device/overlap.h"
#include "daemon/device/reuse.h"

struct search {
	const struct device *device;
	const struct npumem_place *place;
	const struct reuse_wish *wish;
	size_t n_words;		      /* of a map */
	uint64_t *maps[MEET_CLASSES]; /* by class of the new tensor: bytes that its data may not enter */
	uint64_t *hard;		      /* bytes that not even its footprint may enter */
	uint64_t *blocked;	      /* offsets at which it may not lie */
	uint64_t *scratch;
	int64_t class_npu[MEET_CLASSES]; /* an NPU with data of each class; -1: there is none */
};

/* ---- maps ---- */

/* to |= from >> shift; bits beyond the end are 0. The two may be one map. */
static void or_shifted(uint64_t *to, const uint64_t *from, size_t n_words, uint64_t shift)
{
	size_t words = (size_t)(shift / 64);
	unsigned bits = shift % 64;
	for (size_t i = 0; i + words < n_words; i++) {
		uint64_t value = from[i + words] >> bits;
		if (bits && i + words + 1 < n_words)
			value |= from[i + words + 1] << (64 - bits);
		to[i] |= value;
	}
}

/* Bit o becomes whether any of the bits o, o + step, … (`count` of them) is set. */
static void gather(uint64_t *map, size_t n_words, int64_t count, int64_t step)
{
	int64_t have = 1;
	for (; have * 2 <= count; have *= 2)
		or_shifted(map, map, n_words, (uint64_t)(have * step));
	if (have < count)
		or_shifted(map, map, n_words, (uint64_t)((count - have) * step));
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
	gather(scratch, n, word, 1);
	gather(scratch, n, width, stride->w * word);
	gather(scratch, n, place->shape.h, stride->h * word);
	gather(scratch, n, end - row, stride->c * word);
	gather(scratch, n, place->words_n, stride->n * word);
	/* Row 0 begins at the tensor's own offset. */
	or_shifted(search->blocked, scratch, n, (uint64_t)(row * stride->c * word));
}

/* ---- what is in the way ---- */

/* Sets the bits of every byte of a tensor that the new one's data may not enter, on NPUs of one class of the
 * tensor, in the maps of those classes of the new one that it meets there. */
static void paint_class(struct search *search, const struct npumem_place *place, int64_t npu, unsigned into)
{
	uint8_t kinds[4096];
	unsigned blocked = search->wish->reuse == NPUMEM_IF_SAFE ? MEET_DATA | NPUMEM_BYTE_PADDING : MEET_DATA;
	const struct npumem_geometry *geometry = &search->device->options.geometry;
	for (int64_t at = 0; at < place->bytes_per_npu; at += (int64_t)sizeof(kinds)) {
		int64_t left = place->bytes_per_npu - at;
		int64_t n = left < (int64_t)sizeof(kinds) ? left : (int64_t)sizeof(kinds);
		memset(kinds, 0, (size_t)n);
		npumem_place_paint(geometry, place, npu, at, at + n, kinds);
		for (int64_t i = 0, end; i < n; i = end) {
			bool set = kinds[i] & blocked;
			for (end = i + 1; end < n && !!(kinds[end] & blocked) == set; end++)
				;
			for (unsigned k = 0; set && k < MEET_CLASSES; k++)
				if (into >> k & 1)
					bits_set(search->maps[k], (uint64_t)(place->offset + at + i),
						 (uint64_t)(end - i));
		}
	}
}

static bool paint_tensor(void *ctx, struct tensor *tensor)
{
	struct search *search = ctx;
	const struct npumem_geometry *geometry = &search->device->options.geometry;
	const struct npumem_place *place = &tensor->place;
	unsigned into[MEET_CLASSES] = {0};
	int64_t npus[MEET_CLASSES];
	if (search->wish->reuse == NPUMEM_IF_SAFE && !search->wish->any_writer && !tensor_is_dma_only(tensor)) {
		bits_set(search->hard, (uint64_t)place->offset, (uint64_t)place->bytes_per_npu);
		return true;
	}
	for (int64_t npu = 0; npu < geometry->n_npus; npu++) {
		unsigned class = meet_class(geometry, place, npu);
		if (!meet_has_data(geometry, search->place, npu))
			continue;
		npus[class] = npu;
		into[class] |= 1U << meet_class(geometry, search->place, npu);
	}
	for (unsigned k = 0; k < MEET_CLASSES; k++)
		if (into[k])
			paint_class(search, place, npus[k], into[k]);
	return true;
}

/* ---- offsets ---- */

/* The block rows in which an NPU of a class has data; the narrow one's last row is a feature of its own width. */
static void block_class(struct search *search, unsigned class)
{
	const struct npumem_place *place = search->place;
	int64_t n_npus = search->device->options.geometry.n_npus, npu = search->class_npu[class];
	int64_t last = place->start_npu + place->shape.c - 1;
	int64_t first_row = npu < place->start_npu, end = last / n_npus + (npu <= last % n_npus);
	bool narrow = class == MEET_CLASSES - 1;
	block_rows(search, search->maps[class], first_row, end - narrow, place->shape.w);
	if (narrow)
		block_rows(search, search->maps[class], end - 1, end, place->last_w);
}

static int search_begin(struct search *search)
{
	const struct npumem_geometry *geometry = &search->device->options.geometry;
	search->n_words = (size_t)geometry->npu_bytes / 64;
	uint64_t *maps = heap_zalloc(search->device->heap, MEET_CLASSES + 3, search->n_words * sizeof(*maps));
	if (!maps)
		return -ENOMEM;
	search->hard = maps;
	search->blocked = maps + search->n_words;
	search->scratch = maps + 2 * search->n_words;
	for (unsigned k = 0; k < MEET_CLASSES; k++) {
		search->maps[k] = maps + (k + 3) * search->n_words;
		search->class_npu[k] = -1;
	}
	for (int64_t npu = 0; npu < geometry->n_npus; npu++)
		if (meet_has_data(geometry, search->place, npu))
			search->class_npu[meet_class(geometry, search->place, npu)] = npu;
	return 0;
}

int reuse_search(const struct device *device, const struct npumem_place *place, const struct reuse_wish *wish,
		 int64_t *offset)
{
	struct search search = {.device = device, .place = place, .wish = wish};
	int64_t npu_bytes = device->options.geometry.npu_bytes, last = npu_bytes - place->bytes_per_npu;
	if (wish->reuse == NPUMEM_IF_SAFE && !wish->dma_only && !wish->any_writer)
		return NPUMEM_RESOURCE_EXHAUSTED;
	if (search_begin(&search))
		return -ENOMEM;
	overlap_each(device, 0, npu_bytes, NULL, paint_tensor, &search);
	for (unsigned k = 0; k < MEET_CLASSES; k++)
		if (search.class_npu[k] >= 0)
			block_class(&search, k);
	gather(search.hard, search.n_words, place->bytes_per_npu, 1);
	for (size_t i = 0; i < search.n_words; i++)
		search.blocked[i] |= search.hard[i];
	int64_t at = 0;
	while (at <= last && search.blocked[at / 64] >> at % 64 & 1)
		at += place->align_bytes;
	heap_free(device->heap, search.hard);
	if (at > last)
		return NPUMEM_RESOURCE_EXHAUSTED;
	*offset = at;
	return 0;
}
