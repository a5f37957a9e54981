/* A device that goes on over a copy of another one's memory, from what was kept of its tensors. */
#ifndef TESTS_DEVICE_RESTART_H
#define TESTS_DEVICE_RESTART_H

#include "daemon/device/internal.h"
#include "tests/unit/daemon/device/rig.h"

/* What a store keeps of a table: a cell for each slot, empty ones with a stamp. */
struct cells {
	uint32_t n;
	struct {
		struct device_saved saved;
		bool live;
		uint64_t stamp;
	} * all;
};

static inline struct cells cells_of(struct device *device)
{
	struct cells cells = {.n = device->n_slots};
	cells.all = calloc(cells.n + 1, sizeof(*cells.all));
	ck_assert_ptr_nonnull(cells.all);
	for (uint32_t i = 0; i < cells.n; i++) {
		const struct tensor *tensor = slot_at(device, i);
		bool is_unused = tensor->slot == TENSOR_SLOT_UNUSED;
		cells.all[i].live = tensor->slot == TENSOR_SLOT_LIVE;
		cells.all[i].stamp = !is_unused	      ? UINT64_C(1) << 32
				     : tensor->handle ? device_handle_stamp(tensor->handle)
						      : 0;
		if (cells.all[i].live)
			device_describe(device, tensor, &cells.all[i].saved);
	}
	return cells;
}

static inline void cells_free(struct cells *cells)
{
	free(cells->all);
	cells->all = NULL;
}

/* Zero or a status; `owners` gives each tensor its owner, by slot, or is NULL. */
static inline int cells_restore(const struct cells *cells, struct device *device, void *const *owners,
				const struct error_context *context)
{
	int status = device_restore_begin(device, cells->n, false);
	for (uint32_t i = cells->n; i-- > 0 && !status;)
		if (!cells->all[i].live)
			device_restore_free(device, i, cells->all[i].stamp);
	for (unsigned pass = 0; pass < 3; pass++)
		for (uint32_t i = 0; i < cells->n && !status; i++) {
			struct tensor *tensor;
			if (!cells->all[i].live || device_saved_pass(&cells->all[i].saved) != pass)
				continue;
			status = device_restore(device, &cells->all[i].saved, &tensor, context);
			if (!status && owners)
				tensor->owner = owners[i];
		}
	return status;
}

static inline void *restart_copy(const struct rig *rig, const void *memory)
{
	void *copy = rig_memory(&rig->options.geometry);
	memcpy(copy, memory, (size_t)device_memory_bytes(&rig->options.geometry));
	return copy;
}

/* The rig's device is another one over the same bytes. */
static inline void restart(struct rig *rig, bool scrub)
{
	struct device *device;
	struct cells cells = cells_of(rig->device);
	void **owners = calloc(cells.n + 1, sizeof(*owners)), *memory = restart_copy(rig, rig->memory);
	ck_assert_ptr_nonnull(owners);
	for (uint32_t i = 0; i < cells.n; i++)
		owners[i] = cells.all[i].live ? slot_at(rig->device, i)->owner : NULL;
	ck_assert_int_eq(device_new(&rig->options, &rig->scarce.heap, memory, &device), 0);
	npumem_error_clear(&rig->error);
	int status = cells_restore(&cells, device, owners, &rig->context);
	ck_assert_msg(!status, "not restored: %s", rig->error.message);
	device_restore_end(device, scrub);
	device_free(rig->device);
	free(rig->memory);
	rig->memory = memory;
	rig->device = device;
	free(owners);
	cells_free(&cells);
}

#endif
