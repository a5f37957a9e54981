/* Invariant: at least half of the slots are free, and from a handle's home slot to where it is none is. A
 * segment's memory goes with its last reference, whichever of a request, the caller and the list that is. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "client/lib/messages/staged.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { STAGED_SLOTS_LEAST = 64 };

/* ---- tensors ---- */

static unsigned home(const struct staged *staged, uint64_t handle)
{
	return (unsigned)(handle * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (staged->n_slots - 1);
}

static struct staged_tensor *slot(const struct staged *staged, uint64_t handle)
{
	unsigned i = home(staged, handle);
	while (staged->tensors[i].handle && staged->tensors[i].handle != handle)
		i = (i + 1) & (staged->n_slots - 1);
	return &staged->tensors[i];
}

static bool grow(struct staged *staged, const struct memory *memory)
{
	struct staged more = *staged;
	if (staged->n_slots && 2 * (staged->used + 1) <= staged->n_slots)
		return true;
	if (staged->n_slots > UINT32_MAX / 4)
		return false;
	more.n_slots = staged->n_slots ? 2 * staged->n_slots : STAGED_SLOTS_LEAST;
	more.tensors = memory_array(memory, more.n_slots, sizeof(*more.tensors));
	if (!more.tensors)
		return false;
	memset(more.tensors, 0, more.n_slots * sizeof(*more.tensors));
	for (unsigned i = 0; i < staged->n_slots; i++)
		if (staged->tensors[i].handle)
			*slot(&more, staged->tensors[i].handle) = staged->tensors[i];
	memory_free(memory, staged->tensors);
	*staged = more;
	return true;
}

/* The place came from a daemon, and another uid's has none. */
static bool shape_of(const struct npumem_tensor *tensor, struct staged_tensor *to)
{
	const struct npumem_place *place = &tensor->place;
	int64_t size = npumem_dtype_bytes(place->dtype), columns;
	*to = (struct staged_tensor){.handle = tensor->handle, .element_bytes = (uint32_t)size};
	to->is_matrix = place->layout == NPUMEM_MATRIX;
	to->extent[0] = place->shape.n;
	to->extent[1] = place->shape.c;
	to->extent[2] = place->shape.h;
	to->extent[3] = place->shape.w;
	if (to->is_matrix) {
		if (__builtin_mul_overflow(place->shape.c - 1, place->shape.w, &columns) ||
		    __builtin_add_overflow(columns, place->last_w, &to->extent[1]))
			return false;
		to->extent[3] = 1;
	}
	for (unsigned i = 0; i < 4; i++)
		if (to->extent[i] < 1 || __builtin_mul_overflow(size, to->extent[i], &size))
			return false;
	return size > 0 && tensor->handle;
}

void staged_note(struct staged *staged, const struct memory *memory, const struct npumem_tensor *tensor)
{
	struct staged_tensor one;
	if (!shape_of(tensor, &one) || !grow(staged, memory))
		return;
	struct staged_tensor *to = slot(staged, one.handle);
	staged->used += !to->handle;
	*to = one;
}

/* What follows moves up, where its home lets it. */
void staged_forget(struct staged *staged, uint64_t handle)
{
	unsigned mask = staged->n_slots - 1;
	if (!staged->n_slots || !slot(staged, handle)->handle)
		return;
	unsigned hole = (unsigned)(slot(staged, handle) - staged->tensors);
	for (unsigned i = (hole + 1) & mask; staged->tensors[i].handle; i = (i + 1) & mask) {
		unsigned from_home = (i - home(staged, staged->tensors[i].handle)) & mask;
		if (from_home >= ((i - hole) & mask)) {
			staged->tensors[hole] = staged->tensors[i];
			hole = i;
		}
	}
	staged->tensors[hole].handle = 0;
	staged->used--;
}

const struct staged_tensor *staged_find(const struct staged *staged, uint64_t handle)
{
	if (!staged->n_slots || !handle)
		return NULL;
	const struct staged_tensor *found = slot(staged, handle);
	return found->handle ? found : NULL;
}

/* ---- segments ---- */

int staged_share(struct staged *staged, const struct memory *memory, size_t bytes, struct staged_segment **out)
{
	struct staged_segment *segment = memory_alloc(memory, sizeof(*segment));
	if (!segment)
		return -ENOMEM;
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) {
		memory_free(memory, segment);
		return -ENOMEM;
	}
	*segment = (struct staged_segment){.memory = memory, .next = staged->segments, .id = ++staged->last_id};
	segment->references = 2;
	segment->base = base;
	segment->bytes = bytes;
	staged->segments = segment;
	*out = segment;
	return 0;
}

struct staged_segment *staged_segment(const struct staged *staged, uint64_t id)
{
	struct staged_segment *segment = staged->segments;
	while (segment && segment->id != id)
		segment = segment->next;
	return segment;
}

bool staged_unshare(struct staged *staged, uint64_t id)
{
	for (struct staged_segment **at = &staged->segments; *at; at = &(*at)->next)
		if ((*at)->id == id) {
			struct staged_segment *segment = *at;
			*at = segment->next;
			staged_drop(segment);
			return true;
		}
	return false;
}

void staged_keep(struct staged_segment *segment)
{
	segment->references++;
}

void staged_drop(struct staged_segment *segment)
{
	if (!segment || --segment->references)
		return;
	munmap(segment->base, segment->bytes);
	memory_free(segment->memory, segment);
}

void staged_deinit(struct staged *staged, const struct memory *memory)
{
	while (staged->segments)
		staged_unshare(staged, staged->segments->id);
	memory_free(memory, staged->tensors);
	*staged = (struct staged){.tensors = NULL};
}
