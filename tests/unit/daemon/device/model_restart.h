/* The model goes on after a restart, in which nothing may change but what nobody can see. */
#ifndef TESTS_DEVICE_MODEL_RESTART_H
#define TESTS_DEVICE_MODEL_RESTART_H

#include "tests/unit/daemon/device/model.h"
#include "tests/unit/daemon/device/restart.h"

/* What a device answers of itself, of each tensor and of some bytes. */
struct answers {
	struct device_counts counts;
	int64_t npus[8], room[2];
	struct {
		uint64_t handle;
		struct tensor tensor;
		struct tensor_range range; /* of a view */
		bool is_guest;
		struct device_state state;
	} tensors[MODEL_TENSORS_MAX];
	unsigned n_tensors;
	struct {
		uint64_t handle_sum;
		unsigned n, kinds;
	} owners[64];
};

static inline void ask_owners(struct model *model, struct answers *answers)
{
	struct device_owner owners[MODEL_TENSORS_MAX];
	for (unsigned i = 0; i < 64; i++) {
		int64_t npu = i % model->map.n_npus, offset = model->map.npu_bytes * i / 64 + i;
		unsigned n = device_at(model->rig.device, npu, offset, owners, MODEL_TENSORS_MAX);
		answers->owners[i].n = n;
		for (unsigned k = 0; k < n; k++) {
			answers->owners[i].handle_sum += owners[k].tensor->handle;
			answers->owners[i].kinds += owners[k].kind;
		}
	}
}

static inline void ask_all(struct model *model, struct answers *answers)
{
	struct device *device = model->rig.device;
	memset(answers, 0, sizeof(*answers));
	device_stat(device, &answers->counts);
	device_npus(device, answers->npus);
	device_room(device, &answers->room[0], &answers->room[1]);
	for (struct tensor *t = device_next(device, NULL); t; t = device_next(device, t)) {
		unsigned n = answers->n_tensors++;
		answers->tensors[n].handle = t->handle;
		answers->tensors[n].tensor.packed = t->packed;
		if (t->base)
			answers->tensors[n].range = tensor_range(t);
		answers->tensors[n].tensor.is_reshaped = t->is_reshaped;
		answers->tensors[n].tensor.reuse = t->reuse;
		answers->tensors[n].tensor.sealed = t->sealed;
		answers->tensors[n].tensor.dma_only = t->dma_only;
		answers->tensors[n].tensor.pinned = t->pinned;
		answers->tensors[n].is_guest = tensor_is_guest(t);
		answers->tensors[n].tensor.n_meetings = t->n_meetings;
		device_state(device, t, &answers->tensors[n].state);
	}
	ask_owners(model, answers);
}

static inline void model_restart(struct model *model)
{
	static struct answers before, after;
	uint64_t handles[MODEL_TENSORS_MAX];
	for (unsigned i = 0; i < model->n_live; i++)
		handles[i] = model->live[i].tensor->handle;
	ask_all(model, &before);
	restart(&model->rig, model_draw(model, 0, 3) == 0);
	ask_all(model, &after);
	ck_assert_uint_eq(before.n_tensors, model->n_live);
	for (unsigned i = 0; i < before.n_tensors; i++)
		if (memcmp(&before.tensors[i], &after.tensors[i], sizeof(before.tensors[i])))
			ck_abort_msg("tensor %" PRIu64 " is another", before.tensors[i].handle);
	ck_assert_int_eq(memcmp(&before, &after, sizeof(before)), 0);
	for (unsigned i = 0; i < model->n_live; i++) {
		model->live[i].tensor = device_find(model->rig.device, handles[i]);
		ck_assert_ptr_nonnull(model->live[i].tensor);
	}
	model->n_restarts++;
}

static inline void step_lose(struct model *model, struct tensor *tensor, struct bytemap_tensor *t)
{
	int64_t first = model_draw(model, 0, t->n_elements - 1);
	int64_t count = model_draw(model, 1, t->n_elements - first);
	switch (model_draw(model, 0, 3)) {
	case 0:
		device_lose(model->rig.device, tensor, -1, count);
		first = 0;
		count = t->n_elements;
		break;
	case 1:
		device_lose(model->rig.device, tensor, first, INT64_MAX - first);
		count = t->n_elements - first;
		break;
	default:
		device_lose(model->rig.device, tensor, first, count);
	}
	bytemap_lose(&model->map, t, first, count);
}

#endif
