/* Bytes that a part of the tensor may not enter are bits of a map. The part is a strided box, so a map that is
 * ored with itself, shifted down by every step of one axis after the other, says at which offsets the part would
 * meet one; doubling makes that a few shifts for each axis. The cost does not depend on how many elements there
 * are.
 *
 * A bit is 128 or 64 bytes where runs of the tensor can only begin at multiples of that. Of such a run the last
 * unit may be used in part: what may be in the way of that is in a map of its own.
 *
 * Offsets are asked in windows, lowest first and small ones first, so that neither memory nor time depends on the
 * size of the device where there is room early. */
#include "daemon/device/reuse/reuse_search.h"

#include <errno.h>
#include <inttypes.h>

#include "daemon/device/geometry/intersect.h"
#include "daemon/device/tensors/meetings.h"

enum {
	WINDOW_OFFSETS = 1 << 14, /* where the tensor has fewer units; else as many as it has */
	FIRST_WINDOW = 1 << 10,
	GROWTH = 4,
	SLACK_WORDS = KIND_MASK_WORDS + 2,
	WORDS_PER_STEP = 1024, /* that one step shifts */
	TANGLED_STEPS = 64,    /* that a look at strides which do not nest counts for: it takes up to 40 us */
	PIECE_WORDS = 256, /* that one step clears or copies: half a page, which the host may have to find first */
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

/* Nobody else sees the map: no need for bits_set's care. */
static void set_range(uint64_t *map, int64_t from, int64_t to)
{
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

/* ---- what is in the way ---- */

static const struct strided_box *box_of(const struct reuse_search *search)
{
	return &search->parts[search->part].box;
}

/* The offset of bit 0, and of the first unit that no offset of the window is about. */
static int64_t map_from(const struct reuse_search *search)
{
	return search->at * search->unit;
}

static int64_t map_to(const struct reuse_search *search)
{
	return (search->at + search->n - 1 + search->bytes) * search->unit;
}

/* The bytes of a unit that the last unit of a run uses; all zero where runs end with a unit. */
static void ahead_bits(const struct reuse_search *search, uint64_t bits[2])
{
	const struct strided_box *box = box_of(search);
	int64_t rest = box->run % search->unit;
	bits[0] = box->stamp ? box->stamp : rest >= 64 ? UINT64_MAX : ~(UINT64_MAX << rest);
	bits[1] = !box->stamp && rest > 64 ? ~(UINT64_MAX << (rest - 64)) : 0;
}

/* Adds bits of the bytes from `from` on, which begins a unit. */
static void add_bits(struct reuse_search *search, int64_t from, const uint64_t *bits, unsigned n_words)
{
	int64_t first = (from - map_from(search)) / search->unit;
	unsigned each = (unsigned)(search->unit / 64);
	uint64_t ahead[2];
	if (search->unit == 1) {
		for (unsigned w = 0; w < n_words; w++)
			search->taken[first / 64 + w] |= bits[w];
		return;
	}
	ahead_bits(search, ahead);
	for (unsigned w = 0; w < n_words; w++) {
		int64_t unit = first + w / each;
		if (bits[w])
			search->taken[unit / 64] |= UINT64_C(1) << unit % 64;
		if (bits[w] & ahead[w % each])
			search->taken_ahead[unit / 64] |= UINT64_C(1) << unit % 64;
	}
}

/* Adds whole units. */
static void add_range(struct reuse_search *search, int64_t from, int64_t to, int64_t *steps)
{
	int64_t first = (from - map_from(search)) / search->unit, end = (to - map_from(search)) / search->unit;
	*steps -= (end - first) / 64 / WORDS_PER_STEP;
	set_range(search->taken, first, end);
	if (search->unit > 1)
		set_range(search->taken_ahead, first, end);
}

/* Adds the next bytes of the tensor at hand: from one look to the next by whole units, and by words where a unit
 * is a byte. */
static void add_bytes(struct reuse_search *search, int64_t *steps)
{
	enum { SOLID_BYTES = 512 };
	struct reuse_search_other *other = &search->other;
	const struct kind_mask *mask = &other->mask;
	int64_t base = map_from(search), grain = search->unit > 64 ? search->unit : 64;
	int64_t at = other->at, end = other->end;
	uint64_t bits[KIND_MASK_WORDS];
	bool in;
	*steps -= other->steps;
	int64_t until = kind_mask_until(mask, at > mask->from ? at : mask->from, &in);
	int64_t whole = base + ((until < end ? until : end) - base) / grain * grain;
	if (!in && until >= end) {
		other->at = end;
	} else if (whole > at && (!in || (at >= mask->from && whole - at >= SOLID_BYTES))) {
		if (in)
			add_range(search, at, whole, steps);
		other->at = whole;
	} else {
		int64_t n = (end - at + grain - 1) / grain * (grain / 64);
		n = n < KIND_MASK_WORDS ? n : KIND_MASK_WORDS;
		kind_mask_bits(mask, at, (unsigned)n, bits);
		add_bits(search, at, bits, (unsigned)n);
		other->at = at + 64 * n;
	}
}

/* No byte of its footprint may be entered. */
static bool is_hard(const struct reuse_search *search, const struct tensor *tensor)
{
	const struct reuse_wish *wish = &search->wish;
	return tensor->n_meetings == MEETINGS_MAX ||
	       (wish->reuse == NPUMEM_IF_SAFE && !wish->any_writer && !tensor_is_dma_only(tensor));
}

/* Takes a tensor in hand, if it is in the way of this part. */
static void begin_tensor(struct reuse_search *search, const struct tensor *tensor)
{
	const struct npumem_geometry *geometry = &search->device->options.geometry;
	struct reuse_search_other *other = &search->other;
	bool hard = is_hard(search, tensor);
	if (hard != (search->part == 0))
		return;
	other->kinds = hard				      ? KINDS_FOOTPRINT
		       : search->wish.reuse == NPUMEM_IF_SAFE ? KINDS_DATA | NPUMEM_BYTE_PADDING
							      : KINDS_DATA;
	other->place = tensor_place(tensor);
	other->group = 0;
	npu_groups_init(&other->groups, geometry);
	npu_groups_cut(&other->groups, geometry, &other->place, other->kinds);
}

static bool is_tangled(const struct kind_mask *mask)
{
	for (unsigned part = 0; part < KIND_MASK_PARTS; part++)
		for (unsigned i = 0; i < mask->n[part]; i++)
			if (mask->boxes[part][i].n_tangled)
				return true;
	return false;
}

/* Begins with the tensor at hand on its next NPUs that the part has, too. False: there are none. */
static bool next_group(struct reuse_search *search)
{
	const struct reuse_search_part *part = &search->parts[search->part];
	struct reuse_search_other *other = &search->other;
	const struct npumem_place *place = &other->place;
	const int64_t *npu;
	do {
		if (other->group == other->groups.n)
			return false;
		npu = &other->groups.first[other->group++];
	} while (npu[0] >= part->end_npu || npu[1] <= part->npu);
	kind_mask_init(&other->mask, &search->device->options.geometry, place, place->offset, npu[0],
		       other->kinds);
	other->steps = is_tangled(&other->mask) ? TANGLED_STEPS : 1;
	int64_t base = map_from(search), to = map_to(search), grain = search->unit > 64 ? search->unit : 64;
	other->at = place->offset > base ? base + (place->offset - base) / grain * grain : base;
	other->end = place_end(place) < to ? place_end(place) : to;
	return true;
}

/* ---- offsets ---- */

static void begin_pieces(struct reuse_search *search, int phase, uint64_t *from, uint64_t *to)
{
	search->phase = phase;
	search->piece = from;
	search->pieces_end = to;
}

/* The words of the next piece, or 0 at the end. */
static size_t next_piece(const struct reuse_search *search)
{
	size_t left = (size_t)(search->pieces_end - search->piece);
	return left < PIECE_WORDS ? left : PIECE_WORDS;
}

/* False at the end. */
static bool clear_piece(struct reuse_search *search)
{
	size_t n = next_piece(search);
	memset(search->piece, 0, n * sizeof(uint64_t));
	search->piece += n;
	return n;
}

/* No run has a whole unit that begins where it does. */
static bool begins_empty(const struct reuse_search *search)
{
	return box_of(search)->stamp || box_of(search)->run < search->unit;
}

/* Begins a map of gathered offsets as one of what is taken. False at the end. */
static bool copy_piece(struct reuse_search *search)
{
	size_t n = next_piece(search);
	if (begins_empty(search))
		memset(search->piece, 0, n * sizeof(uint64_t));
	else
		memcpy(search->piece, search->taken + (search->piece - search->gathered), n * sizeof(uint64_t));
	search->piece += n;
	return n;
}

static void begin_gathering(struct reuse_search *search)
{
	search->axis = 0;
	search->have = begins_empty(search) ? 0 : 1;
	begin_pieces(search, REUSE_SEARCH_COPY, search->gathered, search->gathered + search->n_words);
}

/* Ors the map with itself once more, so that `have` of `count` steps are gathered. False where they are. */
static bool double_steps(struct reuse_search *search, int64_t count, int64_t step)
{
	int64_t have = search->have, more = have * 2 <= count ? have : count - have;
	/* Most is taken in a device that is searched for empty blocks, so that soon no bit may be left to set. */
	if (have >= count || all_set(search->gathered, search->n + box_of(search)->low / search->unit))
		return false;
	or_shifted(search->gathered, search->gathered, search->n_words, (uint64_t)(more * step));
	search->have += more;
	return true;
}

/* The next bit of a stamp of single bytes. */
static bool add_stamp_bit(struct reuse_search *search)
{
	uint64_t left = search->have < 64 ? box_of(search)->stamp >> search->have : 0;
	if (!left)
		return false;
	search->have += __builtin_ctzll(left);
	or_shifted(search->gathered, search->taken, search->n_words, (uint64_t)search->have++);
	return true;
}

/* One shift of the run of a box. False at its end. */
static bool gather_run(struct reuse_search *search)
{
	const struct strided_box *box = box_of(search);
	int64_t units = box->stamp && search->unit > 1 ? 0 : box->run / search->unit;
	if (box->stamp && search->unit == 1)
		return add_stamp_bit(search);
	if (units && double_steps(search, units, 1))
		return true;
	if (search->unit > 1 && (box->stamp || box->run % search->unit))
		or_shifted(search->gathered, search->taken_ahead, search->n_words, (uint64_t)units);
	return false;
}

/* One shift. False when the part is gathered, and added to `blocked`. */
static bool gather(struct reuse_search *search)
{
	const struct strided_box *box = box_of(search);
	if (search->axis == 0) {
		if (gather_run(search))
			return true;
	} else {
		const struct strided_box_axis *axis = &box->axes[box->n - search->axis];
		if (double_steps(search, axis->count, axis->stride / search->unit))
			return true;
	}
	search->have = 1;
	if (search->axis++ < box->n)
		return true;
	or_shifted(search->blocked, search->gathered, search->n_words, (uint64_t)(box->low / search->unit));
	return false;
}

/* The first offset of the window that is not blocked, in units; -1: there is none. */
static int64_t find_free(const struct reuse_search *search)
{
	int64_t align = search->place.align_bytes / search->unit;
	int64_t at = (search->at + align - 1) / align * align, end = search->at + search->n;
	while (at < end) {
		uint64_t word = search->blocked[(at - search->at) / 64], bit = (uint64_t)(at - search->at) % 64;
		if (!(word >> bit & 1))
			return at;
		int64_t skip = word == UINT64_MAX && align < 64 ? (int64_t)(64 - bit) : 1;
		at += (skip + align - 1) / align * align;
	}
	return -1;
}

static void begin_part(struct reuse_search *search)
{
	search->cursor = (struct overlap_cursor){.offset = 0};
	begin_pieces(search, REUSE_SEARCH_CLEAR, search->taken, search->gathered);
}

static void begin_window(struct reuse_search *search)
{
	int64_t left = search->last + 1 - search->at;
	search->n = search->n < search->most / GROWTH ? search->n * GROWTH : search->most;
	search->n = search->n < left ? search->n : left;
	search->n_words = (size_t)(search->n + search->bytes + 63) / 64;
	search->blocked = search->memory;
	search->taken = search->blocked + search->n_words + SLACK_WORDS;
	search->taken_ahead = search->taken + search->n_words + SLACK_WORDS;
	search->gathered =
		search->unit == 1 ? search->taken_ahead : search->taken_ahead + search->n_words + SLACK_WORDS;
	search->part = 0;
	begin_part(search);
	search->piece = search->blocked;
}

/* True where the window is done. */
static bool end_part(struct reuse_search *search)
{
	search->part++;
	if (search->part == search->n_parts || all_set(search->blocked, search->n))
		return true;
	begin_part(search);
	return false;
}

/* Adds the next bounded piece of the tensors that are in the way. */
static void collect(struct reuse_search *search, int64_t *steps)
{
	if (search->other.at < search->other.end) {
		add_bytes(search, steps);
		return;
	}
	if (next_group(search))
		return;
	const struct tensor *tensor =
		overlap_next(search->device, map_from(search), map_to(search) - map_from(search), &search->cursor);
	--*steps;
	if (tensor)
		begin_tensor(search, tensor);
	else
		begin_gathering(search);
}

/* The phases but the last, which may end the window. */
static void prepare(struct reuse_search *search, int64_t *steps)
{
	if (search->phase == REUSE_SEARCH_COLLECT) {
		collect(search, steps);
		return;
	}
	--*steps;
	if (search->phase == REUSE_SEARCH_CLEAR ? clear_piece(search) : copy_piece(search))
		return;
	search->phase = search->phase == REUSE_SEARCH_CLEAR ? REUSE_SEARCH_COLLECT : REUSE_SEARCH_GATHER;
}

enum reuse_search_answer reuse_search_step(struct reuse_search *search, int64_t *steps, int64_t *offset)
{
	while (search->at <= search->last) {
		if (*steps <= 0)
			return REUSE_SEARCH_PAUSE;
		if (search->phase != REUSE_SEARCH_GATHER) {
			prepare(search, steps);
			continue;
		}
		*steps -= (int64_t)(search->n_words / WORDS_PER_STEP) + 1;
		if (gather(search) || !end_part(search))
			continue;
		int64_t found = find_free(search);
		if (found >= 0) {
			*offset = found * search->unit;
			return REUSE_SEARCH_FOUND;
		}
		search->at += search->n;
		if (search->at <= search->last)
			begin_window(search);
	}
	return REUSE_SEARCH_NONE;
}

/* ---- beginning ---- */

static void add_parts(struct reuse_search *search)
{
	const struct npumem_geometry *geometry = &search->device->options.geometry;
	const struct npumem_place *place = &search->place;
	struct npu_groups groups;
	struct kind_mask mask;
	search->n_parts = 1;
	search->parts[0] = (struct reuse_search_part){.end_npu = geometry->n_npus};
	strided_box_init(&search->parts[0].box, 0, place->bytes_per_npu, NULL, 0);
	npu_groups_init(&groups, geometry);
	npu_groups_cut(&groups, geometry, place, KINDS_DATA);
	for (unsigned i = 0; i < groups.n; i++) {
		kind_mask_init(&mask, geometry, place, 0, groups.first[i], KINDS_DATA);
		for (unsigned k = 0; k < mask.n[KIND_MASK_WORD]; k++)
			search->parts[search->n_parts++] = (struct reuse_search_part){
				groups.first[i], groups.first[i + 1], mask.boxes[KIND_MASK_WORD][k]};
	}
}

/* Whether all runs of the tensor begin at multiples of `unit`. */
static bool lies_in(const struct reuse_search *search, int64_t unit)
{
	int64_t rest = search->place.align_bytes % unit;
	for (unsigned i = 0; i < search->n_parts; i++) {
		const struct strided_box *box = &search->parts[i].box;
		rest |= box->low % unit;
		for (unsigned k = 0; k < box->n; k++)
			rest |= box->axes[k].stride % unit;
	}
	return rest == 0;
}

static int refuse_size(const struct reuse_search *search, const struct error_context *context)
{
	return npumem_error_set(context->error, NPUMEM_RESOURCE_EXHAUSTED,
				"no free room, and no search for a place over others for a tensor of %" PRId64
				" bytes on each NPU: %" PRId64 " is the most in its layout; choose an address",
				search->place.bytes_per_npu, search->unit * REUSE_SEARCH_UNITS_MAX);
}

int reuse_search_begin(struct reuse_search *search, const struct device *device, const struct npumem_place *place,
		       const struct reuse_wish *wish, const struct error_context *context)
{
	int64_t npu_bytes = device->options.geometry.npu_bytes;
	*search = (struct reuse_search){.device = device, .place = *place, .wish = *wish, .last = -1};
	/* Nothing can be safe where a kernel may write the new tensor. */
	if (wish->reuse == NPUMEM_IF_SAFE && !wish->dma_only && !wish->any_writer)
		return 0;
	add_parts(search);
	search->unit = lies_in(search, 128) ? 128 : lies_in(search, 64) ? 64 : 1;
	search->bytes = (place->bytes_per_npu + search->unit - 1) / search->unit;
	if (search->bytes > REUSE_SEARCH_UNITS_MAX)
		return refuse_size(search, context);
	int64_t last = (npu_bytes - place->bytes_per_npu) / search->unit;
	search->most = search->bytes > WINDOW_OFFSETS ? search->bytes : WINDOW_OFFSETS;
	search->most = search->most < last + 1 ? search->most : last + 1;
	size_t n_words = (size_t)(search->most + search->bytes + 63) / 64 + SLACK_WORDS;
	search->memory_bytes = (search->unit == 1 ? 3 : 4) * n_words * sizeof(*search->memory);
	search->memory = heap_alloc(device->heap, search->memory_bytes);
	if (!search->memory)
		return -ENOMEM;
	search->last = last;
	search->n = search->bytes / GROWTH > FIRST_WINDOW ? search->bytes / GROWTH : FIRST_WINDOW;
	search->n /= GROWTH;
	begin_window(search);
	return 0;
}

void reuse_search_end(struct reuse_search *search)
{
	heap_free(search->device->heap, search->memory);
	search->memory = NULL;
	search->memory_bytes = 0;
}
