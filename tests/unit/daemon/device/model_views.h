/* Views of random tensors of the model, and compaction. */
#ifndef TESTS_DEVICE_MODEL_VIEWS_H
#define TESTS_DEVICE_MODEL_VIEWS_H

#include "tests/unit/daemon/device/model.h"

static inline int64_t width_of(const struct npumem_place *place, int64_t c)
{
	return c == place->shape.c - 1 ? place->last_w : place->shape.w;
}

static inline int64_t flat(const struct npumem_place *p, int64_t n, int64_t c, int64_t h, int64_t w)
{
	int64_t batch = p->shape.h * ((p->shape.c - 1) * p->shape.w + p->last_w);
	return n * batch + c * p->shape.h * p->shape.w + h * width_of(p, c) + w;
}

/* Makes the model of a view that the device has made; `of` are its elements in `from`'s numbers. */
static inline void add_view(struct model *model, struct tensor *view, struct bytemap_tensor *from, int32_t *of,
			    int64_t n)
{
	struct bytemap_tensor *t = calloc(1, sizeof(*t));
	ck_assert_ptr_nonnull(t);
	ck_assert_int_eq(tensor_elements(view), n);
	for (int64_t i = 0; i < n && from->base; i++)
		of[i] = from->of[of[i]];
	*t = (struct bytemap_tensor){
		.place = tensor_place(view), .base = from->base ? from->base : from, .of = of};
	t->n_elements = n;
	t->element_bytes = from->element_bytes;
	model->n_views++;
	model_add(model, view, t);
}

static inline void step_slice(struct model *model, struct tensor *base, struct bytemap_tensor *t)
{
	const struct npumem_place p = tensor_place(base);
	struct device_slice s = {.from = {model_draw(model, 0, p.shape.n - 1), model_draw(model, 0, p.shape.c - 1),
					  model_draw(model, 0, p.shape.h - 1), 0},
				 .to = p.shape};
	if (model_draw(model, 0, 1)) {
		s.from.w = model_draw(model, 0, p.shape.w - 1);
		s.to = (struct npumem_dims){
			model_draw(model, s.from.n + 1, p.shape.n), model_draw(model, s.from.c + 1, p.shape.c),
			model_draw(model, s.from.h + 1, p.shape.h), model_draw(model, s.from.w + 1, p.shape.w)};
	}
	bool cuts = s.from.n % p.lanes || (s.to.n % p.lanes && s.to.n != p.shape.n);
	bool whole = s.from.w == 0 && s.to.w == p.shape.w;
	bool past_tail = s.to.c == p.shape.c && !whole && s.to.w > p.last_w;
	struct tensor *view;
	npumem_error_clear(&model->rig.error);
	int status = device_view_slice(model->rig.device, base, &s, &view, &model->rig.context);
	ck_assert_int_eq(status, cuts || past_tail ? NPUMEM_INVALID : 0);
	if (status)
		return;
	int32_t *of = calloc((size_t)npumem_place_elements(&p), sizeof(*of));
	int64_t n_of = 0;
	ck_assert_ptr_nonnull(of);
	for (int64_t n = s.from.n; n < s.to.n; n++)
		for (int64_t c = s.from.c; c < s.to.c; c++)
			for (int64_t h = s.from.h; h < s.to.h; h++)
				for (int64_t w = s.from.w; w < s.to.w && w < width_of(&p, c); w++)
					of[n_of++] = (int32_t)flat(&p, n, c, h, w);
	add_view(model, view, t, of, n_of);
}

/* Whether some strides put element i of `shape` where element i of `t` is. */
static inline bool strides_exist(const struct model *model, const struct bytemap_tensor *t,
				 const struct npumem_dims *shape)
{
	int64_t features = shape->h * shape->w, batch = features * shape->c;
	for (int64_t c = 0; c < shape->c; c++) {
		int64_t zero = bytemap_element(&model->map, t, c * features), n_step = 0, h_step = 0, w_step = 0;
		if (shape->n > 1)
			n_step = bytemap_element(&model->map, t, batch + c * features) - zero;
		if (shape->h > 1)
			h_step = bytemap_element(&model->map, t, c * features + shape->w) - zero;
		if (shape->w > 1)
			w_step = bytemap_element(&model->map, t, c * features + 1) - zero;
		for (int64_t i = 0; i < shape->n * features; i++) {
			int64_t n = i / features, h = i % features / shape->w, w = i % shape->w;
			if (bytemap_element(&model->map, t, n * batch + c * features + i % features) !=
			    zero + n * n_step + h * h_step + w * w_step)
				return false;
		}
	}
	return true;
}

static inline void step_reshape(struct model *model, struct tensor *base, struct bytemap_tensor *t)
{
	const struct npumem_place p = tensor_place(base);
	int64_t n = npumem_place_elements(&p), inner = p.shape.h * p.shape.w;
	struct npumem_dims shape = p.shape;
	if (p.shape.c == 1 && model_draw(model, 0, 1)) {
		inner *= p.shape.n;
		shape.n = model_draw(model, 1, inner);
		inner /= shape.n;
	}
	shape.h = model_draw(model, 1, inner);
	shape.w = inner / shape.h;
	bool same_n = shape.n == p.shape.n || (p.shape.c == 1 && p.lanes == 1);
	bool fits = p.last_w == p.shape.w && shape.n * shape.c * shape.h * shape.w == n && same_n;
	/* Within a packed word the elements of one place are `lanes` n apart. */
	struct npumem_dims words = shape;
	struct bytemap_tensor first = *t;
	if (p.lanes > 1)
		words.n = 1;
	struct tensor *view;
	npumem_error_clear(&model->rig.error);
	int status = device_view_reshape(model->rig.device, base, &shape, &view, &model->rig.context);
	fits = fits && strides_exist(model, &first, &words);
	if ((status == 0) != fits)
		ck_abort_msg("%ld,%ld,%ld,%ld as %ld,%ld,%ld,%ld: %d %s", (long)p.shape.n, (long)p.shape.c,
			     (long)p.shape.h, (long)p.shape.w, (long)shape.n, (long)shape.c, (long)shape.h,
			     (long)shape.w, status, model->rig.error.message);
	if (status)
		return;
	int32_t *of = calloc((size_t)n, sizeof(*of));
	ck_assert_ptr_nonnull(of);
	for (int32_t i = 0; i < n; i++)
		of[i] = i;
	add_view(model, view, t, of, n);
}

/* ---- compaction ---- */

struct moves {
	struct device_move list[MODEL_TENSORS_MAX];
	unsigned n;
};

static inline void note_move(void *ctx, const struct device_move *move)
{
	struct moves *moves = ctx;
	moves->list[moves->n++] = *move;
}

/* The lowest offset, at or above `from`, to which nothing but this tensor lies up to its end. */
static inline int64_t lowest(const struct bytemap *map, const struct bytemap_tensor *t, int64_t from)
{
	int64_t align = t->place.align_bytes < BYTEMAP_QUANTUM ? BYTEMAP_QUANTUM : t->place.align_bytes;
	for (const struct bytemap_tensor *other = map->tensors; other; other = other->next) {
		int64_t end = other->place.offset + other->place.bytes_per_npu;
		if (other != t && other->place.offset < t->place.offset && end > from)
			from = end;
	}
	return (from + align - 1) / align * align;
}

static inline bool meets_another(const struct bytemap *map, const struct bytemap_tensor *t)
{
	for (const struct bytemap_tensor *other = map->tensors; other; other = other->next)
		if (other != t &&
		    bytemap_ranges_meet(t->place.offset / 4 * 4,
					(t->place.offset + t->place.bytes_per_npu + 3) / 4 * 4,
					other->place.offset / 4 * 4,
					(other->place.offset + other->place.bytes_per_npu + 3) / 4 * 4))
			return true;
	return false;
}

static inline void step_compact(struct model *model)
{
	static struct moves dry, wet;
	unsigned n_moved = 0;
	dry.n = wet.n = 0;
	ck_assert_int_eq(device_compact(model->rig.device, true, note_move, &dry), 0);
	model_compare(model);
	ck_assert_int_eq(device_compact(model->rig.device, false, note_move, &wet), 0);
	ck_assert_uint_eq(dry.n, wet.n);
	ck_assert_int_eq(memcmp(dry.list, wet.list, dry.n * sizeof(dry.list[0])), 0);
	for (unsigned m = 0; m < wet.n; m++)
		for (unsigned i = 0; i < model->n_live; i++)
			if (model->live[i].tensor == wet.list[m].tensor) {
				ck_assert_int_eq(model->live[i].t->place.offset, wet.list[m].from_offset);
				ck_assert(!wet.list[m].tensor->pinned);
				ck_assert(!meets_another(&model->map, model->live[i].t));
				bytemap_move(&model->map, model->live[i].t, wet.list[m].to_offset);
				n_moved++;
			}
	ck_assert_uint_eq(n_moved, wet.n);
	model->n_moved += n_moved;
	for (unsigned i = 0; i < model->n_live; i++) {
		struct bytemap_tensor *t = model->live[i].t;
		ck_assert(t->base || t->place.offset == tensor_place(model->live[i].tensor).offset);
		t->place = tensor_place(model->live[i].tensor);
		if (!t->base && !model->live[i].tensor->pinned && !meets_another(&model->map, t))
			ck_assert_int_eq(t->place.offset, lowest(&model->map, t, 0));
	}
}

#endif
