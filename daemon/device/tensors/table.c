/* A slot has the struct of its tensor, which stays for the next one. A handle is generation << 32 | index + 1. A
 * generation that has run out retires its slot: 2^32 tensors after it began, a handle must still not be given
 * twice. */
#include "daemon/device/tensors/table.h"

#include <assert.h>
#include <errno.h>

#include "daemon/device/tensors/meetings.h"

static size_t slot_bytes(const struct device *device)
{
	return sizeof(struct tensor) + device->owner_bytes;
}

/* Room for n slots; false without memory. */
static bool table_grow(struct device *device, uint32_t n)
{
	while (device->slots.n * TENSORS_PER_CHUNK < n)
		if (!chunks_add(&device->slots, device->heap, TENSORS_PER_CHUNK * slot_bytes(device)))
			return false;
	return true;
}

static void slot_fill(const struct device *device, struct tensor *tensor, uint64_t handle)
{
	memset(tensor, 0, slot_bytes(device));
	tensor->handle = handle;
	tensor->slot = TENSOR_SLOT_LIVE;
}

/* A slot keeps the handle of its last tensor. */
static uint64_t next_handle(const struct tensor *tensor, uint32_t index)
{
	return tensor->handle ? tensor->handle + (UINT64_C(1) << 32) : (uint64_t)index + 1;
}

struct tensor *table_add(struct device *device)
{
	uint32_t index = device->unused ? device->unused - 1 : device->n_slots;
	if (!table_grow(device, index + 1))
		return NULL;
	struct tensor *tensor = slot_at(device, index);
	if (device->unused)
		device->unused = tensor->next_unused;
	else
		device->n_slots++;
	slot_fill(device, tensor, next_handle(tensor, index));
	return tensor;
}

static void push_unused(struct device *device, uint32_t index)
{
	struct tensor *tensor = slot_at(device, index);
	tensor->slot = TENSOR_SLOT_UNUSED;
	tensor->next_unused = device->unused;
	device->unused = index + 1;
}

void table_remove(struct device *device, struct tensor *tensor)
{
	tensor->slot = TENSOR_SLOT_CLOSED;
	if (tensor->handle >> 32 != UINT32_MAX)
		push_unused(device, device_handle_slot(tensor->handle));
}

/* ---- as it was ---- */

int device_restore_begin(struct device *device, uint32_t n_slots, bool mixed)
{
	assert(!device->slots.n);
	if (!table_grow(device, n_slots))
		return -ENOMEM;
	device->n_slots = n_slots;
	device->restore.steps = DEVICE_RESTORE_STEPS;
	device->restore.mixed = mixed;
	return 0;
}

void device_restore_free(struct device *device, uint32_t slot, uint64_t stamp)
{
	assert(slot < device->n_slots && slot_at(device, slot)->slot == TENSOR_SLOT_CLOSED);
	if (stamp > UINT32_MAX)
		return;
	slot_at(device, slot)->handle = stamp ? (stamp - 1) << 32 | ((uint64_t)slot + 1) : 0;
	push_unused(device, slot);
}

bool table_can_put(const struct device *device, uint64_t handle)
{
	uint32_t index = device_handle_slot(handle);
	return index < device->n_slots && slot_at(device, index)->slot == TENSOR_SLOT_CLOSED;
}

struct tensor *table_put(struct device *device, uint64_t handle)
{
	struct tensor *tensor = slot_at(device, device_handle_slot(handle));
	assert(table_can_put(device, handle));
	slot_fill(device, tensor, handle);
	return tensor;
}

void table_take_back(struct tensor *tensor)
{
	tensor->slot = TENSOR_SLOT_CLOSED;
}

void table_deinit(struct device *device)
{
	for (uint32_t i = 0; i < device->n_slots; i++) {
		struct tensor *tensor = slot_at(device, i);
		if (tensor->slot != TENSOR_SLOT_LIVE || tensor->base)
			continue;
		meetings_end(device->heap, tensor);
		heap_free(device->heap, tensor->visit);
	}
	chunks_deinit(&device->slots, device->heap);
}

void device_keep_for_owner(struct device *device, size_t bytes)
{
	assert(!device->n_slots);
	device->owner_bytes = bytes;
}

/* A tensor whose place is still searched for has no owner yet, and its handle can be guessed. */
static bool is_seen(const struct tensor *tensor)
{
	return tensor->slot == TENSOR_SLOT_LIVE && !tensor->placing;
}

struct tensor *device_find(const struct device *device, uint64_t handle)
{
	uint32_t index = device_handle_slot(handle);
	if (index >= device->n_slots)
		return NULL;
	struct tensor *tensor = slot_at(device, index);
	return is_seen(tensor) && tensor->handle == handle ? tensor : NULL;
}

struct tensor *device_after(const struct device *device, uint64_t *at, unsigned *looks)
{
	/* A place is an index + 1, as in the lower half of a handle: what is above it says nothing about places.
	 */
	uint32_t i = (uint32_t)*at;
	for (; i < device->n_slots && *looks; i++) {
		--*looks;
		if (is_seen(slot_at(device, i))) {
			*at = i + 1;
			return slot_at(device, i);
		}
	}
	*at = i < device->n_slots ? i : 0;
	return NULL;
}

struct tensor *device_next(const struct device *device, const struct tensor *after)
{
	for (uint32_t i = after ? device_handle_slot(after->handle) + 1 : 0; i < device->n_slots; i++)
		if (is_seen(slot_at(device, i)))
			return slot_at(device, i);
	return NULL;
}
