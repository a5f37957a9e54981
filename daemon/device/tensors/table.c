/* A handle is generation << 32 | index + 1. A generation that has run out retires its slot: 2^32 tensors after it
 * began, a handle must still not be given twice. */
#include "daemon/device/tensors/table.h"

#include <assert.h>

#include "daemon/device/tensors/meetings.h"

static uint32_t index_of(uint64_t handle)
{
	return (uint32_t)handle - 1;
}

static bool table_grow(struct device *device)
{
	uint32_t capacity = device->capacity ? device->capacity * 2 : 32;
	struct slot *slots = heap_zalloc(device->heap, capacity, sizeof(*slots));
	if (!slots)
		return false;
	if (device->n_slots)
		memcpy(slots, device->slots, device->n_slots * sizeof(*slots));
	heap_free(device->heap, device->slots);
	device->slots = slots;
	device->capacity = capacity;
	return true;
}

struct tensor *table_add(struct device *device)
{
	uint32_t index = device->unused ? device->unused - 1 : device->n_slots;
	if (index == device->capacity && !table_grow(device))
		return NULL;
	struct slot *slot = &device->slots[index];
	if (!slot->tensor) {
		slot->tensor = heap_alloc(device->heap, sizeof(*slot->tensor) + device->owner_bytes);
		if (!slot->tensor)
			return NULL;
	}
	if (device->unused)
		device->unused = slot->next_unused;
	else
		device->n_slots++;
	slot->live = true;
	memset(slot->tensor, 0, sizeof(*slot->tensor) + device->owner_bytes);
	slot->tensor->handle = (uint64_t)slot->generation << 32 | (index + 1);
	return slot->tensor;
}

void table_remove(struct device *device, struct tensor *tensor)
{
	uint32_t index = index_of(tensor->handle);
	struct slot *slot = &device->slots[index];
	slot->live = false;
	if (slot->generation++ == UINT32_MAX)
		return;
	slot->next_unused = device->unused;
	device->unused = index + 1;
}

void table_deinit(struct device *device)
{
	for (uint32_t i = 0; i < device->n_slots; i++)
		if (device->slots[i].live)
			meetings_end(device->heap, device->slots[i].tensor);
	for (uint32_t i = 0; i < device->n_slots; i++)
		heap_free(device->heap, device->slots[i].tensor);
	heap_free(device->heap, device->slots);
}

void device_keep_for_owner(struct device *device, size_t bytes)
{
	assert(!device->n_slots);
	device->owner_bytes = bytes;
}

struct tensor *device_find(const struct device *device, uint64_t handle)
{
	uint32_t index = index_of(handle);
	if (index >= device->n_slots)
		return NULL;
	const struct slot *slot = &device->slots[index];
	return slot->live && slot->tensor->handle == handle ? slot->tensor : NULL;
}

static bool is_seen(const struct slot *slot)
{
	return slot->live && !slot->tensor->placing;
}

struct tensor *device_after(const struct device *device, uint64_t *at, unsigned *looks)
{
	/* A place is an index + 1, as in the lower half of a handle: what is above it says nothing about places.
	 */
	uint32_t i = (uint32_t)*at;
	for (; i < device->n_slots && *looks; i++) {
		--*looks;
		if (is_seen(&device->slots[i])) {
			*at = i + 1;
			return device->slots[i].tensor;
		}
	}
	*at = i < device->n_slots ? i : 0;
	return NULL;
}

struct tensor *device_next(const struct device *device, const struct tensor *after)
{
	for (uint32_t i = after ? index_of(after->handle) + 1 : 0; i < device->n_slots; i++)
		if (is_seen(&device->slots[i]))
			return device->slots[i].tensor;
	return NULL;
}
