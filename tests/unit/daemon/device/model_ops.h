/* Operations on random tensors of the model: what must come of each is said before, and carried over to the map.
 */
#ifndef TESTS_DEVICE_MODEL_OPS_H
#define TESTS_DEVICE_MODEL_OPS_H

#include "tests/unit/daemon/device/model.h"

static inline struct npumem_dims logical(const struct npumem_place *place)
{
	if (place->layout == NPUMEM_MATRIX)
		return (struct npumem_dims){place->rows, place->cols, 1, 1};
	return place->shape;
}

static inline void random_bytes(struct model *model, uint8_t *bytes, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)model_draw(model, 1, 255);
}

static inline bool sealed(const struct bytemap_tensor *t)
{
	return (t->base ? t->base : t)->sealed;
}

static inline void expect(const struct model *model, int status, int expected, const char *what)
{
	if (status != expected)
		ck_abort_msg("%s: %d, not %d: %s", what, status, expected, model->rig.error.message);
}

static inline void step_write(struct model *model, struct tensor *tensor, struct bytemap_tensor *t, bool all)
{
	static uint8_t bytes[65536];
	int64_t first = 0, count = t->n_elements;
	if (!all && model_draw(model, 0, 1)) {
		first = model_draw(model, 0, t->n_elements - 1);
		count = model_draw(model, 1, t->n_elements - first);
	}
	random_bytes(model, bytes, count * t->element_bytes);
	int status = rig_write_some(&model->rig, tensor, first, count, bytes);
	expect(model, status, sealed(t) ? NPUMEM_FAILED_PRECONDITION : 0, "write");
	for (int64_t i = 0; i < count && !status; i++)
		bytemap_write(&model->map, t, first + i, bytes + i * t->element_bytes, false);
}

static inline void step_fill(struct model *model, struct tensor *tensor, struct bytemap_tensor *t)
{
	int8_t value = (int8_t)model_draw(model, 1, 100);
	int32_t integer = value;
	float real = value;
	int status = rig_fill(&model->rig, tensor, value);
	expect(model, status, sealed(t) ? NPUMEM_FAILED_PRECONDITION : 0, "fill");
	for (int64_t i = 0; i < t->n_elements && !status; i++)
		bytemap_write(&model->map, t, i,
			      t->place.dtype == NPUMEM_FP32 ? (uint8_t *)&real : (uint8_t *)&integer, false);
}

static inline void step_read(struct model *model, struct tensor *tensor, struct bytemap_tensor *t)
{
	static uint8_t bytes[65536];
	const struct bytemap *map = &model->map;
	int64_t first = model_draw(model, 0, 1) ? 0 : model_draw(model, 0, t->n_elements - 1);
	int64_t count = first ? model_draw(model, 1, t->n_elements - first) : t->n_elements;
	bool unwritten = bytemap_count(map, t, map->written, false, first, count) > 0;
	bool damaged = bytemap_count(map, t, map->damaged, true, first, count) > 0;
	int status = rig_read_some(&model->rig, tensor, first, count, bytes);
	int64_t lost = bytemap_lost(map, t, first, count);
	expect(model, status, lost ? NPUMEM_DATA_LOST : unwritten ? NPUMEM_FAILED_PRECONDITION : 0, "read");
	if (lost)
		ck_assert_int_eq(rig_field(&model->rig, "lost_bytes"), lost);
	model->n_lost += lost > 0;
	model->n_unwritten += unwritten;
	for (int64_t i = 0; i < count && !status; i++)
		if (memcmp(bytes + i * t->element_bytes, &map->value[bytemap_element(map, t, first + i)],
			   (size_t)t->element_bytes))
			ck_abort_msg("element %ld is another", (long)(first + i));
	if (!status && (model->rig.op.warning[0] != 0) != damaged)
		ck_abort_msg("damaged %d, warning \"%s\"", damaged, model->rig.op.warning);
}

/* Whether two tensors share an element's bytes, and whether all of them lie at the same places. */
static inline bool shares(const struct model *model, const struct bytemap_tensor *a,
			  const struct bytemap_tensor *b, bool *same)
{
	bool any = false;
	*same = a->n_elements == b->n_elements &&
		!memcmp(&a->place.shape, &b->place.shape, sizeof(a->place.shape));
	if ((a->base ? a->base : a) != (b->base ? b->base : b))
		return false;
	for (int64_t i = 0; i < a->n_elements; i++) {
		int64_t at = bytemap_element(&model->map, a, i);
		*same = *same && bytemap_element(&model->map, b, i) == at;
		for (int64_t j = 0; j < b->n_elements && !any; j++)
			any = bytemap_element(&model->map, b, j) == at;
	}
	return any;
}

/* The elements of one, copied into the other. */
static inline void carry(struct model *model, struct bytemap_tensor *to, const struct bytemap_tensor *from,
			 bool kernel)
{
	static uint8_t bytes[65536];
	int64_t size = from->element_bytes;
	for (int64_t i = 0; i < from->n_elements; i++)
		memcpy(bytes + i * size, &model->map.value[bytemap_element(&model->map, from, i)], (size_t)size);
	for (int64_t i = 0; i < from->n_elements; i++)
		bytemap_write(&model->map, to, i, bytes + i * size, kernel);
}

static inline void check_destroyed(struct model *model)
{
	const struct op *op = &model->rig.op;
	unsigned n = 0;
	for (unsigned i = 0; i < model->n_live; i++) {
		struct bytemap_tensor *t = model->live[i].t;
		const struct op_destroyed *found = NULL;
		for (unsigned k = 0; k < op->n_destroyed; k++)
			if (op->destroyed[k].tensor == model->live[i].tensor)
				found = &op->destroyed[k];
		ck_assert_int_eq(found ? found->total_bytes : 0, t->destroyed);
		n += found != NULL;
		if (found) {
			int64_t at = found->npu * model->map.npu_bytes + found->offset;
			for (int64_t b = 0; b < found->bytes; b++)
				ck_assert(model->map.damaged[at + b]);
			ck_assert_int_le(found->bytes, found->total_bytes);
			model->n_poisoned++;
		}
		t->destroyed = 0;
	}
	ck_assert_uint_eq(n, op->n_destroyed);
}

static inline void step_run(struct model *model, struct tensor *in, struct bytemap_tensor *a, struct tensor *out,
			    struct bytemap_tensor *b)
{
	const struct bytemap *map = &model->map;
	const struct bytemap_tensor *root = b->base ? b->base : b;
	bool same, share = shares(model, a, b, &same);
	int expected = 0;
	/* What is told without looking at bytes comes first. */
	if (root->sealed || root->dma_only)
		expected = NPUMEM_FAILED_PRECONDITION;
	else if (bytemap_count(map, a, map->damaged, true, 0, a->n_elements))
		expected = NPUMEM_DATA_LOST;
	else if (bytemap_count(map, a, map->written, false, 0, a->n_elements))
		expected = NPUMEM_FAILED_PRECONDITION;
	else if (share && !same)
		expected = NPUMEM_INVALID;
	int status = rig_relu(&model->rig, in, out);
	expect(model, status, expected, "relu");
	model->n_damaged += status == NPUMEM_DATA_LOST;
	if (status)
		return;
	model->n_runs++;
	carry(model, b, a, true);
	bytemap_poison(&model->map, b);
	check_destroyed(model);
}

static inline void step_copy(struct model *model, struct tensor *to, struct bytemap_tensor *a, struct tensor *from,
			     struct bytemap_tensor *b)
{
	bool same, share = shares(model, a, b, &same);
	int expected = 0;
	if (!sealed(a) && bytemap_lost(&model->map, b, 0, b->n_elements))
		expected = NPUMEM_DATA_LOST;
	else if (sealed(a) || bytemap_count(&model->map, b, model->map.written, false, 0, b->n_elements))
		expected = NPUMEM_FAILED_PRECONDITION;
	else if (share)
		expected = NPUMEM_INVALID;
	int status = rig_copy(&model->rig, to, from);
	expect(model, status, expected, "copy");
	if (!status)
		carry(model, a, b, false);
}

/* An operation between two tensors of one shape and type. */
static inline void step_pair(struct model *model, unsigned i)
{
	struct bytemap_tensor *a = model->live[i].t;
	struct npumem_dims shape = logical(&a->place);
	unsigned from = (unsigned)model_draw(model, 0, model->n_live - 1);
	for (unsigned k = 0; k < model->n_live; k++) {
		unsigned j = (from + k) % model->n_live;
		struct bytemap_tensor *b = model->live[j].t;
		struct npumem_dims other = logical(&b->place);
		if (a->place.dtype != b->place.dtype || memcmp(&shape, &other, sizeof(shape)))
			continue;
		if (a->place.dtype == NPUMEM_FP32 || model_draw(model, 0, 2) == 0)
			step_copy(model, model->live[i].tensor, a, model->live[j].tensor, b);
		else
			step_run(model, model->live[i].tensor, a, model->live[j].tensor, b);
		return;
	}
}

static inline void step_seal(struct model *model, struct tensor *tensor, struct bytemap_tensor *t)
{
	int64_t missing = bytemap_count(&model->map, t, model->map.written, false, 0, t->n_elements);
	npumem_error_clear(&model->rig.error);
	int status = rig_seal(&model->rig, tensor);
	int expected = missing ? NPUMEM_FAILED_PRECONDITION : 0;
	if (bytemap_lost(&model->map, t, 0, t->n_elements))
		expected = NPUMEM_DATA_LOST;
	expect(model, status, t->base ? NPUMEM_INVALID : expected, "seal");
	if (!status)
		t->sealed = true;
}

#endif
