/* A device and the byte map that it must be equal to: pairs of tensors, and the comparison of everything. */
#ifndef TESTS_DEVICE_MODEL_H
#define TESTS_DEVICE_MODEL_H

#include "daemon/device/internal.h"
#include "tests/support/bytemap.h"
#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/rig.h"

enum { MODEL_TENSORS_MAX = 48 };

struct model {
	struct rig rig;
	struct bytemap map;
	struct {
		struct tensor *tensor;
		struct bytemap_tensor *t;
	} live[MODEL_TENSORS_MAX];
	unsigned n_live;
	uint64_t random;
	unsigned n_steps;
	/* How often what happened: a trace that never gets somewhere tests nothing. */
	unsigned n_placed, n_over, n_full, n_unsafe, n_views, n_moved, n_poisoned, n_runs, n_damaged, n_unwritten,
		n_lost, n_restarts;
};

static inline int64_t model_draw(struct model *model, int64_t low, int64_t high)
{
	return oracle_between(&model->random, low, high);
}

static inline void model_open(struct model *model, int64_t n_npus, int64_t npu_bytes, uint64_t seed)
{
	memset(model, 0, sizeof(*model));
	rig_open(&model->rig, n_npus, npu_bytes);
	bytemap_init(&model->map, &model->rig.options.geometry);
	model->random = seed;
}

/* ---- pairs ---- */

static inline void model_add(struct model *model, struct tensor *tensor, struct bytemap_tensor *t)
{
	ck_assert_uint_lt(model->n_live, MODEL_TENSORS_MAX);
	model->live[model->n_live].tensor = tensor;
	model->live[model->n_live++].t = t;
}

static inline void model_gone(void *ctx, struct tensor *tensor)
{
	struct model *model = ctx;
	unsigned i = 0;
	while (model->live[i].tensor != tensor)
		ck_assert_uint_lt(++i, model->n_live);
	struct bytemap_tensor *t = model->live[i].t;
	model->live[i] = model->live[--model->n_live];
	if (t->base)
		bytemap_forget_drawing(t);
	else
		bytemap_remove(&model->map, t);
}

static inline void model_release(struct model *model, unsigned i)
{
	device_release(model->rig.device, model->live[i].tensor, model_gone, model);
}

static inline void model_close(struct model *model)
{
	while (model->n_live)
		model_release(model, 0);
	rig_close(&model->rig);
	bytemap_deinit(&model->map);
}

/* ---- everything is equal ---- */

static inline void model_compare_tensor(struct model *model, const struct tensor *tensor,
					const struct bytemap_tensor *t)
{
	const struct bytemap *map = &model->map;
	struct device_state state;
	device_state(model->rig.device, tensor, &state);
	int64_t lost = bytemap_lost(map, t, 0, t->n_elements);
	if (state.lost_bytes != lost)
		ck_abort_msg("%" PRIu64 ": %" PRId64 " lost bytes", tensor->handle, state.lost_bytes);
	if (state.unwritten_bytes != bytemap_count(map, t, map->written, false, 0, t->n_elements) - lost)
		ck_abort_msg("%" PRIu64 ": %" PRId64 " unwritten bytes", tensor->handle, state.unwritten_bytes);
	if (state.damaged_bytes != bytemap_count(map, t, map->damaged, true, 0, t->n_elements) - lost)
		ck_abort_msg("%" PRIu64 ": %" PRId64 " damaged bytes", tensor->handle, state.damaged_bytes);
	if (device_find(model->rig.device, tensor->handle) != tensor)
		ck_abort_msg("%" PRIu64 " is not found", tensor->handle);
	bool lends = false, borrows = false;
	const struct bytemap_tensor *root = t->base ? t->base : t;
	for (int64_t i = 0; i < map->n_npus * root->place.bytes_per_npu; i++) {
		const uint8_t *count = map->count[bytemap_place_of(map, root, i)];
		lends |= root->kind[i] == BYTEMAP_EMPTY && count[BYTEMAP_DATA];
		borrows |= root->kind[i] == BYTEMAP_DATA && count[BYTEMAP_EMPTY];
	}
	if (state.lends != lends || state.borrows != borrows)
		ck_abort_msg("%" PRIu64 ": lends %d borrows %d", tensor->handle, state.lends, state.borrows);
}

static inline void model_compare_bytes(struct model *model)
{
	const struct bytemap *map = &model->map;
	const struct local *local = &model->rig.device->local;
	uint8_t lane[8192];
	for (int64_t npu = 0; npu < map->n_npus; npu++) {
		device_peek(model->rig.device, npu, 0, map->npu_bytes, lane);
		for (int64_t i = 0, at = npu * map->npu_bytes; i < map->npu_bytes; i++, at++) {
			bool written = local_written(local, npu)[i / 64] >> i % 64 & 1;
			bool damaged = local_damaged(local, npu)[i / 64] >> i % 64 & 1;
			if (lane[i] != map->value[at] || written != map->written[at] ||
			    damaged != map->damaged[at])
				ck_abort_msg("NPU %ld, byte %ld is %02x %d%d, not %02x %d%d", (long)npu, (long)i,
					     lane[i], written, damaged, map->value[at], map->written[at],
					     map->damaged[at]);
		}
	}
}

static inline void model_compare_counts(struct model *model)
{
	struct bytemap_counts is = bytemap_counts(&model->map);
	struct device_counts says;
	device_stat(model->rig.device, &says);
	if (says.data != is.kind[BYTEMAP_DATA] || says.dummy != is.kind[BYTEMAP_DUMMY] ||
	    says.padding != is.kind[BYTEMAP_PADDING] || says.empty != is.kind[BYTEMAP_EMPTY] ||
	    says.free != is.free || says.lent != is.lent)
		ck_abort_msg("data %ld/%ld dummy %ld/%ld padding %ld/%ld empty %ld/%ld free %ld/%ld lent %ld/%ld",
			     (long)says.data, (long)is.kind[BYTEMAP_DATA], (long)says.dummy,
			     (long)is.kind[BYTEMAP_DUMMY], (long)says.padding, (long)is.kind[BYTEMAP_PADDING],
			     (long)says.empty, (long)is.kind[BYTEMAP_EMPTY], (long)says.free, (long)is.free,
			     (long)says.lent, (long)is.lent);
	if (says.total != model->map.n_npus * model->map.npu_bytes ||
	    says.tensors + says.views != (int64_t)model->n_live)
		ck_abort_msg("%ld bytes, %ld tensors, %ld views", (long)says.total, (long)says.tensors,
			     (long)says.views);
	int64_t room, largest_room, n_free = 0, largest = 0;
	for (int64_t at = 0, run = 0; at < model->map.npu_bytes; at += BYTEMAP_QUANTUM) {
		run = bytemap_is_free(&model->map, at, BYTEMAP_QUANTUM) ? run + BYTEMAP_QUANTUM : 0;
		n_free += run ? BYTEMAP_QUANTUM : 0;
		largest = run > largest ? run : largest;
	}
	device_room(model->rig.device, &room, &largest_room);
	if (says.largest_free != largest || largest_room != largest || room != n_free)
		ck_abort_msg("largest free %ld, not %ld", (long)says.largest_free, (long)largest);
}

static inline void model_compare(struct model *model)
{
	const char *wrong = device_check(model->rig.device);
	if (wrong)
		ck_abort_msg("%s", wrong);
	model_compare_counts(model);
	model_compare_bytes(model);
	for (unsigned i = 0; i < model->n_live; i++)
		model_compare_tensor(model, model->live[i].tensor, model->live[i].t);
}

/* ---- where the next tensor must go ---- */

/* What an allocation must answer: a status, and for 0 the one offset it must choose, or -1 for any free one. */
struct model_answer {
	int status;
	int64_t offset;
};

static inline struct model_answer model_expect(struct model *model, const struct device_request *request,
					       const struct bytemap_tensor *u)
{
	const struct npumem_place *p = &u->place;
	int64_t align = p->align_bytes < BYTEMAP_QUANTUM ? BYTEMAP_QUANTUM : p->align_bytes;
	bool never = request->reuse != NPUMEM_IF_SAFE && request->reuse != NPUMEM_UNCHECKED;
	if (request->spec.address != NPUMEM_ANY) {
		int64_t offset = request->spec.address % model->map.npu_bytes;
		if (never ? bytemap_meets_none(&model->map, offset, p->bytes_per_npu)
			  : bytemap_may_lie(&model->map, u, offset))
			return (struct model_answer){0, offset};
		return (struct model_answer){never ? NPUMEM_RESOURCE_EXHAUSTED : NPUMEM_FAILED_PRECONDITION, 0};
	}
	for (int64_t at = 0; at + p->bytes_per_npu <= model->map.npu_bytes; at += align)
		if (bytemap_is_free(&model->map, at, p->bytes_per_npu))
			return (struct model_answer){0, -1};
	for (int64_t at = 0; at + p->bytes_per_npu <= model->map.npu_bytes && !never; at += p->align_bytes)
		if (bytemap_may_lie(&model->map, u, at))
			return (struct model_answer){0, at};
	/* Where only writers are in the way, the refusal is about them. */
	for (int64_t at = 0; at + p->bytes_per_npu <= model->map.npu_bytes && !never; at += p->align_bytes)
		if (bytemap_data_fits(&model->map, u, at))
			return (struct model_answer){NPUMEM_FAILED_PRECONDITION, 0};
	return (struct model_answer){NPUMEM_RESOURCE_EXHAUSTED, 0};
}

#endif
