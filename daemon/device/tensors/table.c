/* A handle is generation << 32 | index + 1. A generation that has run out retires its slot: 2^32 tensors after it
 * began, a handle must still not be given twice. */
#include "daemon/device/tensors/table.h"

#include <assert.h>
#include <errno.h>

#include "daemon/device/tensors/meetings.h"

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

/* Takes the struct of a slot; false without memory. */
static bool slot_fill(struct device *device, struct slot *slot)
{
	size_t bytes = sizeof(*slot->tensor) + device->owner_bytes;
	if (!slot->tensor)
		slot->tensor = heap_alloc(device->heap, bytes);
	if (!slot->tensor)
		return false;
	memset(slot->tensor, 0, bytes);
	slot->tensor->handle = (uint64_t)slot->generation << 32 | ((uint64_t)(slot - device->slots) + 1);
	slot->live = true;
	return true;
}

struct tensor *table_add(struct device *device)
{
	uint32_t index = device->unused ? device->unused - 1 : device->n_slots;
	if (index == device->capacity && !table_grow(device))
		return NULL;
	struct slot *slot = &device->slots[index];
	if (!slot_fill(device, slot))
		return NULL;
	if (device->unused)
		device->unused = slot->next_unused;
	else
		device->n_slots++;
	slot->is_unused = false;
	return slot->tensor;
}

static void push_unused(struct device *device, uint32_t index)
{
	struct slot *slot = &device->slots[index];
	slot->is_unused = true;
	slot->next_unused = device->unused;
	device->unused = index + 1;
}

void table_remove(struct device *device, struct tensor *tensor)
{
	uint32_t index = device_handle_slot(tensor->handle);
	struct slot *slot = &device->slots[index];
	slot->live = false;
	if (slot->generation++ != UINT32_MAX)
		push_unused(device, index);
}

/* ---- as it was ---- */

int device_restore_begin(struct device *device, uint32_t n_slots)
{
	assert(!device->slots);
	if (!n_slots)
		return 0;
	device->slots = heap_zalloc(device->heap, n_slots, sizeof(*device->slots));
	if (!device->slots)
		return -ENOMEM;
	device->capacity = device->n_slots = n_slots;
	return 0;
}

void device_restore_free(struct device *device, uint32_t slot, uint64_t stamp)
{
	assert(slot < device->n_slots && !device->slots[slot].live && !device->slots[slot].is_unused);
	if (stamp > UINT32_MAX)
		return;
	device->slots[slot].generation = (uint32_t)stamp;
	push_unused(device, slot);
}

bool table_can_put(const struct device *device, uint64_t handle)
{
	uint32_t index = device_handle_slot(handle);
	return index < device->n_slots && !device->slots[index].live && !device->slots[index].is_unused;
}

struct tensor *table_put(struct device *device, uint64_t handle)
{
	struct slot *slot = &device->slots[device_handle_slot(handle)];
	assert(table_can_put(device, handle));
	slot->generation = (uint32_t)(handle >> 32);
	return slot_fill(device, slot) ? slot->tensor : NULL;
}

void table_take_back(struct device *device, struct tensor *tensor)
{
	device->slots[device_handle_slot(tensor->handle)].live = false;
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
	uint32_t index = device_handle_slot(handle);
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
	for (uint32_t i = after ? device_handle_slot(after->handle) + 1 : 0; i < device->n_slots; i++)
		if (is_seen(&device->slots[i]))
			return device->slots[i].tensor;
	return NULL;
}
