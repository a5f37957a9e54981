/* Two steps: less bytes at the peak, then as little between them as can be. To place intervals of an NPU's bytes
 * and of operations without a gap is NP-complete; first fit is good in a good order, and orders are cheap to try.
 * The tries are counted and not timed, so that the same network gives the same places everywhere. */
#include "client/ctl/core/network/planning/planning.h"

#include <string.h>

#include "client/ctl/core/memory.h"

enum {
	TRIES_MAX = 4000,
	COMPARED_MAX = 200000000, /* pairs of tensors, over all tries: about a second */
};

struct packing {
	struct network *network;
	const struct npumem_geometry *geometry;
	struct lives lives;
	size_t *order, *best, *sorted; /* indices of lives.list */
	int64_t *offsets, *best_offsets;
	int64_t best_reach;
};

static bool says(const struct network_tensor *tensor, const char *key)
{
	return json_object_get(tensor->json, key) != NULL;
}

/* ---- layouts ---- */

static bool may_be_compact(const struct network_tensor *tensor)
{
	return tensor->spec.layout != NPUMEM_MATRIX && !tensor->spec.rows && !tensor->has_views &&
	       !tensor->reuse && !says(tensor, "layout") && !says(tensor, "stride") && !says(tensor, "address");
}

/* How many bytes of each NPU its compact layout would save. */
static int64_t saving(const struct packing *packing, const struct lives_tensor *one)
{
	struct npumem_spec spec = packing->network->tensors[one->tensor].spec;
	struct npumem_place place;
	if (!may_be_compact(&packing->network->tensors[one->tensor]) || spec.layout == NPUMEM_COMPACT)
		return 0;
	spec.layout = NPUMEM_COMPACT;
	if (npumem_place_resolve(packing->geometry, &spec, &place, NULL))
		return 0;
	return one->place.bytes_per_npu - place.bytes_per_npu;
}

/* The one of those at the peak that saves most; NULL: none does. */
static const struct lives_tensor *find_saver(const struct packing *packing)
{
	const struct lives *lives = &packing->lives;
	const struct lives_tensor *best = NULL;
	int64_t most = 0;
	for (size_t i = 0; i < lives->n; i++) {
		const struct lives_tensor *one = &lives->list[i];
		bool is_there = one->from <= lives->peak_at && lives->peak_at < one->to;
		int64_t some = is_there ? saving(packing, one) : 0;
		if (some > most) {
			most = some;
			best = one;
		}
	}
	return best;
}

static int recompute(struct packing *packing, struct npumem_error *error)
{
	memory_free(packing->lives.list);
	return lives_compute(packing->network, packing->geometry, &packing->lives, error);
}

static void set(struct network_tensor *tensor, const char *key, json_t *value)
{
	json_object_set_new((json_t *)(uintptr_t)tensor->json, key, value);
}

static int lower_peak(struct packing *packing, struct optimized *optimized, struct npumem_error *error)
{
	const struct lives_tensor *saver;
	int status = 0;
	while (!status && (saver = find_saver(packing))) {
		struct network_tensor *tensor = &packing->network->tensors[saver->tensor];
		tensor->spec.layout = NPUMEM_COMPACT;
		set(tensor, "layout", json_string("compact"));
		optimized->n_compact++;
		status = recompute(packing, error);
	}
	return status;
}

/* ---- places ---- */

static bool is_fixed(const struct packing *packing, size_t i)
{
	return packing->lives.list[i].place.offset != NPUMEM_ANY;
}

/* The lowest offset at which it overlaps none of the first n tensors of the order that live at the same time. */
static int64_t first_fit(struct packing *packing, size_t n, size_t index)
{
	const struct lives_tensor *list = packing->lives.list, *one = &list[index];
	int64_t align = one->place.align_bytes, offset = 0;
	/* `sorted`: by offset. */
	for (size_t i = 0; i < n; i++) {
		const struct lives_tensor *other = &list[packing->sorted[i]];
		int64_t begin = packing->offsets[packing->sorted[i]], end = begin + other->place.bytes_per_npu;
		if (one->from >= other->to || other->from >= one->to || end <= offset)
			continue;
		if (offset + one->place.bytes_per_npu <= begin)
			break;
		offset = (end + align - 1) / align * align;
	}
	return offset;
}

static void insert(struct packing *packing, size_t n, size_t index)
{
	size_t at = n;
	while (at && packing->offsets[packing->sorted[at - 1]] > packing->offsets[index])
		at--;
	memmove(packing->sorted + at + 1, packing->sorted + at, (n - at) * sizeof(*packing->sorted));
	packing->sorted[at] = index;
}

/* Places all in the order; how far they reach. */
static int64_t reach_of(struct packing *packing)
{
	const struct lives *lives = &packing->lives;
	int64_t reach = 0;
	for (size_t i = 0; i < lives->n; i++) {
		size_t index = packing->order[i];
		const struct npumem_place *place = &lives->list[index].place;
		packing->offsets[index] = is_fixed(packing, index) ? place->offset : first_fit(packing, i, index);
		insert(packing, i, index);
		if (packing->offsets[index] + place->bytes_per_npu > reach)
			reach = packing->offsets[index] + place->bytes_per_npu;
	}
	return reach;
}

/* True where it is no worse than the best one, which it becomes. */
static bool try_order(struct packing *packing)
{
	int64_t reach = reach_of(packing);
	size_t n = packing->lives.n;
	if (reach > packing->best_reach)
		return false;
	packing->best_reach = reach;
	memcpy(packing->best, packing->order, n * sizeof(*packing->best));
	memcpy(packing->best_offsets, packing->offsets, n * sizeof(*packing->best_offsets));
	return true;
}

/* Fixed ones first; then by size, by how long they live, or by both, the largest first. */
static int64_t weight(const struct packing *packing, size_t i, unsigned rule)
{
	const struct lives_tensor *one = &packing->lives.list[i];
	int64_t bytes = one->place.bytes_per_npu, life = (int64_t)(one->to - one->from);
	if (is_fixed(packing, i))
		return INT64_MAX;
	return rule == 0 ? bytes : rule == 1 ? life : bytes / 128 * life;
}

enum { RULES = 3 };

static void sort(struct packing *packing, unsigned rule)
{
	for (size_t i = 0; i < packing->lives.n; i++) {
		size_t at = i;
		for (; at && weight(packing, packing->order[at - 1], rule) < weight(packing, i, rule); at--)
			packing->order[at] = packing->order[at - 1];
		packing->order[at] = i;
	}
}

/* Another place in the order for one; xorshift64. */
static void move_one(struct packing *packing, uint64_t *random)
{
	size_t n = packing->lives.n, from, to, index;
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	from = *random % n;
	to = (*random >> 32) % n;
	index = packing->order[from];
	if (is_fixed(packing, index) || is_fixed(packing, packing->order[to]))
		return;
	if (from < to)
		memmove(packing->order + from, packing->order + from + 1, (to - from) * sizeof(*packing->order));
	else
		memmove(packing->order + to + 1, packing->order + to, (from - to) * sizeof(*packing->order));
	packing->order[to] = index;
}

static void pack(struct packing *packing, struct optimized *optimized)
{
	size_t n = packing->lives.n;
	uint64_t random = 1, tries = COMPARED_MAX / (n * n + 1) + RULES;
	packing->best_reach = INT64_MAX;
	for (unsigned rule = 0; rule < RULES; rule++) {
		sort(packing, rule);
		try_order(packing);
	}
	optimized->n_orders = RULES;
	for (; optimized->n_orders < tries && optimized->n_orders < TRIES_MAX && n > 1 &&
	       packing->best_reach > packing->lives.peak;
	     optimized->n_orders++) {
		memcpy(packing->order, packing->best, n * sizeof(*packing->order));
		move_one(packing, &random);
		try_order(packing);
	}
}

static void give_addresses(struct packing *packing, struct optimized *optimized)
{
	for (size_t i = 0; i < packing->lives.n; i++) {
		const struct lives_tensor *one = &packing->lives.list[i];
		struct network_tensor *tensor = &packing->network->tensors[one->tensor];
		if (is_fixed(packing, i) || tensor->reuse)
			continue;
		tensor->spec.address =
			one->place.start_npu * packing->geometry->npu_bytes + packing->best_offsets[i];
		set(tensor, "address", json_integer(tensor->spec.address));
		optimized->n_placed++;
	}
}

static void place_all(struct packing *packing, struct optimized *optimized)
{
	size_t n = packing->lives.n;
	packing->order = memory_new(n, sizeof(*packing->order));
	packing->best = memory_new(n, sizeof(*packing->best));
	packing->sorted = memory_new(n, sizeof(*packing->sorted));
	packing->offsets = memory_new(n, sizeof(*packing->offsets));
	packing->best_offsets = memory_new(n, sizeof(*packing->best_offsets));
	pack(packing, optimized);
	/* What first fit in the order of the operations gives may be as good. */
	if (packing->best_reach < optimized->reach_before || optimized->n_compact)
		give_addresses(packing, optimized);
}

int optimize_network(struct network *network, const struct npumem_geometry *geometry, struct optimized *optimized,
		     struct npumem_error *error)
{
	struct packing packing = {.network = network, .geometry = geometry};
	int status = lives_compute(network, geometry, &packing.lives, error);
	if (status)
		return status;
	*optimized = (struct optimized){.peak_before = packing.lives.peak, .reach_before = packing.lives.reach};
	/* Without room for one it reaches farther than it says. */
	if (packing.lives.crowded < packing.lives.n)
		optimized->reach_before = INT64_MAX;
	status = lower_peak(&packing, optimized, error);
	if (status)
		return status;
	place_all(&packing, optimized);
	status = recompute(&packing, error);
	optimized->peak = packing.lives.peak;
	optimized->reach = packing.lives.reach;
	return status;
}
