/* A row is the unit: W elements that share n, c and h. Where a row is contiguous on both sides it is one memcpy,
 * and whole features are, where their rows touch. Otherwise elements are moved one by one, with the element size
 * known at compile time so that the loop is loads and stores. */
#include "daemon/device/operations/move.h"

#include <string.h>

#include "daemon/device/geometry/runs.h"

struct move_host move_dense(const struct npumem_place *place, void *base, int64_t first)
{
	int64_t h = place->shape.h, w = place->shape.w;
	int64_t batch = ((place->shape.c - 1) * w + place->last_w) * h;
	struct move_host host = {.stride = {batch, h * w, w, 1}};
	host.base = (uint8_t *)((uintptr_t)base - (uintptr_t)(first * move_element_bytes(place)));
	return host;
}

/* n elements of a constant size, each side with its own step in bytes. */
static inline void step(uint8_t *to, int64_t to_step, const uint8_t *from, int64_t from_step, int64_t n,
			size_t size)
{
	for (int64_t i = 0; i < n; i++)
		memcpy(to + i * to_step, from + i * from_step, size);
}

static void move_elements(uint8_t *to, int64_t to_step, const uint8_t *from, int64_t from_step, int64_t n,
			  int64_t size)
{
	if (to_step == size && from_step == size)
		memcpy(to, from, (size_t)(n * size));
	else if (size == 1)
		step(to, to_step, from, from_step, n, 1);
	else if (size == 2)
		step(to, to_step, from, from_step, n, 2);
	else
		step(to, to_step, from, from_step, n, 4);
}

/* ---- who watches ---- */

static int64_t piece_of(const struct move_watch *watch)
{
	return watch && watch->progress && watch->progress->piece ? watch->progress->piece : KERNEL_PIECE;
}

static void watch_tell(struct move_watch *watch)
{
	if (watch->tells)
		atomic_fetch_add_explicit(&watch->progress->done, watch->pending * KERNEL_PARTS,
					  memory_order_relaxed);
	watch->pending = 0;
}

/* After `elements` more. */
static bool watch_look(struct move_watch *watch, int64_t elements)
{
	if (!watch || !watch->progress)
		return true;
	watch->pending += elements;
	if (watch->pending < piece_of(watch))
		return true;
	watch_tell(watch);
	if (!watch->goes_on)
		return kernel_wanted(watch->progress);
	kernel_give_way(watch->progress);
	return true;
}

static bool watch_end(struct move_watch *watch)
{
	if (watch && watch->progress)
		watch_tell(watch);
	return true;
}

/* A row in pieces; adds what was moved to *moved. False where it was stopped. */
static bool move_row(uint8_t *to, int64_t to_step, const uint8_t *from, int64_t from_step, int64_t n, int64_t size,
		     struct move_watch *watch, int64_t *moved)
{
	int64_t piece = piece_of(watch);
	for (int64_t i = 0; i < n; i += piece) {
		int64_t count = n - i < piece ? n - i : piece;
		move_elements(to + i * to_step, to_step, from + i * from_step, from_step, count, size);
		*moved += count;
		if (!watch_look(watch, count))
			return false;
	}
	return true;
}

static uint8_t *host_at(const struct move_host *host, const struct runs_row *row, int64_t size)
{
	return (uint8_t *)((uintptr_t)host->base +
			   (uintptr_t)((row->n * host->stride.n + row->c * host->stride.c +
					row->h * host->stride.h + row->w * host->stride.w) *
				       size));
}

/* True where whole features are one stretch on both sides, so that a walk over C and N is enough. */
static bool features_touch(const struct npumem_place *place, const struct move_host *host)
{
	int64_t w = place->shape.w;
	return place->lanes == 1 && place->last_w == w && place->stride.w == 1 && host->stride.w == 1 &&
	       (place->shape.h == 1 || (place->stride.h == w && host->stride.h == w));
}

/* The place with each feature as one row; as it is where features_touch does not hold. */
static struct npumem_place flatten(const struct npumem_place *place, const struct move_host *host)
{
	struct npumem_place flat = *place;
	if (features_touch(place, host)) {
		flat.shape.w *= flat.shape.h;
		flat.shape.h = 1;
		flat.last_w = flat.shape.w;
	}
	return flat;
}

bool move_out(const struct local *local, const struct npumem_place *from, int64_t first, int64_t count,
	      const struct move_host *to, struct move_watch *watch)
{
	struct npumem_place place = flatten(from, to);
	int64_t size = move_element_bytes(&place), pitch = place.stride.w * place.word_bytes, moved = 0;
	struct runs_walk walk;
	struct runs_row row;
	runs_walk_init(&walk, &local->geometry, &place, first, count);
	while (runs_walk_next(&walk, &row))
		if (!move_row(host_at(to, &row, size), to->stride.w * size, local_at(local, row.npu, row.offset),
			      pitch, row.n_w, size, watch, &moved))
			return false;
	return watch_end(watch);
}

/* Marking what was moved, or taking marks back: never stopped. */
struct marking {
	struct local *local;
	void (*mark)(struct local *local, int64_t npu, int64_t offset, int64_t bytes);
	struct move_watch watch;
};

static struct marking marking_of(struct local *local, bool set, const struct move_watch *watch)
{
	return (struct marking){local,
				set ? local_mark : local_unmark,
				{.progress = watch ? watch->progress : NULL, .goes_on = true}};
}

static bool mark_stretch(void *ctx, int64_t npu, int64_t offset, int64_t bytes)
{
	enum { BYTES_PER_STEP = 64 };
	struct marking *marking = ctx;
	marking->mark(marking->local, npu, offset, bytes);
	return watch_look(&marking->watch, 1 + bytes / BYTES_PER_STEP);
}

/* Elements that a stopped move has written. */
static bool take_back(struct local *local, const struct npumem_place *to, int64_t first, int64_t count,
		      const struct move_watch *watch)
{
	struct marking marking = marking_of(local, false, watch);
	runs_each_of(&local->geometry, to, first, count, mark_stretch, &marking);
	return false;
}

static void mark_row(struct local *local, const struct runs_row *row, int64_t pitch, int64_t size)
{
	if (pitch == size)
		local_mark(local, row->npu, row->offset, row->n_w * size);
	else
		for (int64_t i = 0; i < row->n_w; i++)
			local_mark(local, row->npu, row->offset + i * pitch, size);
}

static bool has_dummies(const struct npumem_place *place)
{
	return place->shape.n % place->lanes != 0;
}

/* Puts 0 into the dummies of the words that hold this row of the last n. */
static void zero_dummies(struct local *local, const struct npumem_place *place, const struct runs_row *row)
{
	int64_t used = place->shape.n % place->lanes, size = move_element_bytes(place);
	if (!has_dummies(place) || row->n != place->shape.n - 1)
		return;
	int64_t pitch = place->stride.w * place->word_bytes, bytes = (place->lanes - used) * size;
	for (int64_t i = 0; i < row->n_w; i++) {
		int64_t offset = row->offset + i * pitch + size;
		memset(local_at(local, row->npu, offset), 0, (size_t)bytes);
		local_mark(local, row->npu, offset, bytes);
	}
}

static bool move_in_range(struct local *local, const struct npumem_place *to, int64_t first, int64_t count,
			  const struct move_host *from, bool dummies, struct move_watch *watch)
{
	struct npumem_place place = flatten(to, from);
	int64_t size = move_element_bytes(&place), pitch = place.stride.w * place.word_bytes, moved = 0;
	/* Elements of a packed word are written far apart in time; what is written as a whole is marked as one. */
	bool whole = count == npumem_place_elements(&place);
	struct runs_walk walk;
	struct runs_row row;
	runs_walk_init(&walk, &local->geometry, &place, first, count);
	while (runs_walk_next(&walk, &row)) {
		if (!move_row(local_at(local, row.npu, row.offset), pitch, host_at(from, &row, size),
			      from->stride.w * size, row.n_w, size, watch, &moved))
			return take_back(local, &place, first, moved, watch);
		if (!whole)
			mark_row(local, &row, pitch, size);
		if (dummies)
			zero_dummies(local, &place, &row);
	}
	if (whole) {
		struct marking marking = marking_of(local, true, watch);
		runs_each(&local->geometry, &place, false, mark_stretch, &marking);
	}
	return watch_end(watch);
}

bool move_in(struct local *local, const struct npumem_place *to, int64_t first, int64_t count,
	     const struct move_host *from, struct move_watch *watch)
{
	return move_in_range(local, to, first, count, from, true, watch);
}

void move_in_kernel(struct local *local, const struct npumem_place *to, const struct move_host *from,
		    struct kernel_progress *progress)
{
	struct move_watch watch = {.progress = progress, .goes_on = true};
	move_in_range(local, to, 0, npumem_place_elements(to), from, false, &watch);
}

void move_mark(struct local *local, const struct npumem_place *place, struct kernel_progress *progress)
{
	struct marking marking = marking_of(local, true, &(struct move_watch){.progress = progress});
	runs_each(&local->geometry, place, false, mark_stretch, &marking);
}

void move_unmark(struct local *local, const struct npumem_place *place, struct kernel_progress *progress)
{
	struct marking marking = marking_of(local, false, &(struct move_watch){.progress = progress});
	runs_each(&local->geometry, place, false, mark_stretch, &marking);
}

bool move_within(struct local *local, const struct npumem_place *from, const struct npumem_place *to,
		 struct move_watch *watch)
{
	int64_t size = move_element_bytes(to), count = npumem_place_elements(to);
	int64_t from_pitch = from->stride.w * from->word_bytes, to_pitch = to->stride.w * to->word_bytes,
		moved = 0;
	for (int64_t first = 0; first < count;) {
		struct runs_walk a, b;
		struct runs_row src, dst;
		runs_walk_init(&a, &local->geometry, from, first, count - first);
		runs_walk_init(&b, &local->geometry, to, first, count - first);
		runs_walk_next(&a, &src);
		runs_walk_next(&b, &dst);
		/* Two matrices of other widths break their rows at other elements. */
		if (dst.n_w > src.n_w)
			dst.n_w = src.n_w;
		if (!move_row(local_at(local, dst.npu, dst.offset), to_pitch, local_at(local, src.npu, src.offset),
			      from_pitch, dst.n_w, size, watch, &moved))
			return take_back(local, to, 0, moved, watch);
		mark_row(local, &dst, to_pitch, size);
		zero_dummies(local, to, &dst);
		first += dst.n_w;
	}
	return watch_end(watch);
}

/* One value, many times over. */
struct fill {
	struct local *local;
	struct move_watch *watch;
	int64_t size;	/* of an element */
	int64_t filled; /* bytes that were visited */
	uint8_t values[4096];
};

static bool fill_stretch(void *ctx, int64_t npu, int64_t offset, int64_t bytes)
{
	struct fill *fill = ctx;
	fill->filled += bytes;
	local_mark(fill->local, npu, offset, bytes);
	for (uint8_t *to = local_at(fill->local, npu, offset); bytes > 0; to += sizeof(fill->values)) {
		size_t n = bytes < (int64_t)sizeof(fill->values) ? (size_t)bytes : sizeof(fill->values);
		memcpy(to, fill->values, n);
		bytes -= (int64_t)n;
		if (!watch_look(fill->watch, (int64_t)n / fill->size))
			return false;
	}
	return true;
}

struct unfill {
	struct marking marking;
	int64_t left; /* bytes that are still to be taken back */
};

static bool unfill_stretch(void *ctx, int64_t npu, int64_t offset, int64_t bytes)
{
	struct unfill *unfill = ctx;
	unfill->left -= bytes;
	return mark_stretch(&unfill->marking, npu, offset, bytes) && unfill->left > 0;
}

static bool take_back_fill(const struct fill *fill, const struct npumem_place *to, bool with_dummies)
{
	struct unfill unfill = {marking_of(fill->local, false, fill->watch), fill->filled};
	runs_each(&fill->local->geometry, to, with_dummies, unfill_stretch, &unfill);
	return false;
}

bool move_fill(struct local *local, const struct npumem_place *to, const void *value, struct move_watch *watch)
{
	struct move_watch untold = {.progress = watch ? watch->progress : NULL};
	struct fill fill = {.local = local, .watch = &untold, .size = move_element_bytes(to)};
	size_t size = (size_t)fill.size;
	/* Dummies first, with the elements beside them. */
	if (has_dummies(to) && !runs_each(&local->geometry, to, true, fill_stretch, &fill))
		return take_back_fill(&fill, to, true);
	/* By doubling, as element by element it takes longer than a small tensor's fill itself. */
	memcpy(fill.values, value, size);
	for (size_t n = size; n < sizeof(fill.values); n *= 2)
		memcpy(fill.values + n, fill.values, n);
	fill.watch = watch;
	/* Where there were dummies no element is what it was, though it is not filled again. */
	if (!has_dummies(to))
		fill.filled = 0;
	if (runs_each(&local->geometry, to, false, fill_stretch, &fill))
		return watch_end(watch);
	return take_back_fill(&fill, to, false);
}
