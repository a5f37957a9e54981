/* Random traces of everything that a device can do, on small devices. Before each step the model says what must
 * come of it, a refusal included; after it every byte, bit, count and tensor is compared. */
#include "tests/unit/daemon/device/model_ops.h"
#include "tests/unit/daemon/device/model_restart.h"
#include "tests/unit/daemon/device/model_views.h"

/* ---- allocation ---- */

static void choose_shape(struct model *model, struct npumem_spec *spec)
{
	static const struct {
		int mode, dtype;
	} types[] = {
		{NPUMEM_MODE_PLAIN, NPUMEM_FX8},  {NPUMEM_MODE_4N, NPUMEM_FX8},
		{NPUMEM_MODE_PLAIN, NPUMEM_FX16}, {NPUMEM_MODE_2N, NPUMEM_FX16},
		{NPUMEM_MODE_PLAIN, NPUMEM_FP32}, {NPUMEM_MODE_2IC, NPUMEM_FP32},
	};
	int64_t n_npus = model->map.n_npus;
	unsigned type = (unsigned)model_draw(model, 0, 5);
	spec->dtype = types[type].dtype;
	spec->mode = types[type].mode;
	spec->shape = (struct npumem_dims){model_draw(model, 1, model_draw(model, 1, 6)),
					   model_draw(model, 1, model_draw(model, 1, 2 * n_npus + 1)),
					   model_draw(model, 1, 3), model_draw(model, 1, 4)};
	/* Often what another one is, so that they can be copied and run. */
	if (model->n_live && model_draw(model, 0, 2)) {
		const struct npumem_place *twin = &model->live[model_draw(model, 0, model->n_live - 1)].t->place;
		spec->shape = logical(twin);
		spec->dtype = twin->dtype;
		spec->mode = model_draw(model, 0, 1) ? twin->mode : NPUMEM_MODE_PLAIN;
	}
	spec->frac_bits = npumem_dtype_is_fixed(spec->dtype) ? 7 : NPUMEM_ANY;
}

static void choose_request(struct model *model, struct device_request *request)
{
	struct npumem_spec *spec = &request->spec;
	*request = (struct device_request){.reuse = (int)model_draw(model, 0, 3)};
	/* Moods, so that there are times of many guests of one kind. */
	if (model->n_steps / 64 % 3)
		request->reuse = model->n_steps / 64 % 3 == 1 ? NPUMEM_IF_SAFE : NPUMEM_UNCHECKED;
	npumem_spec_init(spec);
	choose_shape(model, spec);
	spec->layout = (int)model_draw(model, 1, 4);
	spec->start_npu = model_draw(model, -1, model->map.n_npus - 1);
	if (spec->layout == NPUMEM_MATRIX && spec->shape.h * spec->shape.w != 1)
		spec->layout = NPUMEM_ALIGNED;
	if (spec->layout == NPUMEM_MATRIX) {
		spec->rows = spec->shape.n;
		spec->cols = spec->shape.c;
		spec->w = model_draw(model, 0, spec->cols);
		spec->shape = (struct npumem_dims){0, 0, 0, 0};
	}
	if (spec->layout == NPUMEM_STRIDED) {
		int64_t w = model_draw(model, 1, 2), h = w * spec->shape.w + model_draw(model, 0, 2);
		int64_t c = h * spec->shape.h + model_draw(model, 0, 3);
		spec->stride = (struct npumem_dims){4 * c + model_draw(model, 0, 9), c, h, w};
	}
	request->dma_only = model_draw(model, 0, 3) < (request->reuse == NPUMEM_IF_SAFE ? 3 : 1);
	request->pinned = model_draw(model, 0, 3) == 0;
}

static void choose_address(struct model *model, struct device_request *request, const struct npumem_place *place)
{
	int64_t steps = (model->map.npu_bytes - place->bytes_per_npu) / place->align_bytes;
	int64_t near = model_draw(model, 0, steps) * place->align_bytes;
	/* Often where another one is, or just behind it. */
	if (model->n_live && model_draw(model, 0, 1)) {
		const struct npumem_place *other = &model->live[model_draw(model, 0, model->n_live - 1)].t->place;
		near = (other->offset + (model_draw(model, 0, 1) ? other->bytes_per_npu : 0)) /
		       place->align_bytes * place->align_bytes;
	}
	if (near + place->bytes_per_npu <= model->map.npu_bytes)
		request->spec.address = place->start_npu * model->map.npu_bytes + near;
}

static void step_alloc(struct model *model)
{
	struct device_request request;
	struct npumem_place place;
	struct tensor *tensor = NULL;
	choose_request(model, &request);
	if (model->n_live > MODEL_TENSORS_MAX / 2 ||
	    npumem_place_resolve(&model->rig.options.geometry, &request.spec, &place, NULL))
		return;
	if (model_draw(model, 0, 2) == 0)
		choose_address(model, &request, &place);
	struct bytemap_tensor *u = bytemap_draw(&model->map, &place);
	u->dma_only = request.dma_only;
	u->unchecked = request.reuse == NPUMEM_UNCHECKED;
	struct model_answer expected = model_expect(model, &request, u);
	int status = rig_try(&model->rig, &request, &tensor);
	if (status != expected.status ||
	    (!status && expected.offset >= 0 && tensor_place(tensor).offset != expected.offset))
		ck_abort_msg("%ld bytes, reuse %d, at %ld: %d at %ld, not %d at %ld: %s",
			     (long)place.bytes_per_npu, request.reuse, (long)request.spec.address, status,
			     (long)(tensor ? tensor_place(tensor).offset : -1), expected.status,
			     (long)expected.offset, model->rig.error.message);
	model->n_full += status == NPUMEM_RESOURCE_EXHAUSTED;
	model->n_unsafe += status == NPUMEM_FAILED_PRECONDITION;
	if (status) {
		bytemap_forget_drawing(u);
		return;
	}
	if (expected.offset < 0)
		ck_assert(bytemap_is_free(&model->map, tensor_place(tensor).offset, place.bytes_per_npu));
	model->n_placed++;
	model->n_over += tensor_is_guest(tensor);
	u->place = tensor_place(tensor);
	bytemap_add(&model->map, u);
	model_add(model, tensor, u);
	if (model_draw(model, 0, 1))
		step_write(model, tensor, u, true);
}

/* All or none, whatever it was that made one of them fail. */
static void step_alloc_several(struct model *model)
{
	struct device_request requests[4];
	struct tensor *tensors[4];
	if (model->n_live > MODEL_TENSORS_MAX / 2)
		return;
	for (unsigned i = 0; i < 4; i++)
		choose_request(model, &requests[i]);
	npumem_error_clear(&model->rig.error);
	if (device_alloc(model->rig.device, requests, 4, tensors, &model->rig.context)) {
		ck_assert_int_ge(npumem_error_find(&model->rig.error, "tensor_index", -1), 0);
		return;
	}
	for (unsigned i = 0; i < 4; i++) {
		struct bytemap_tensor *u = bytemap_draw(&model->map, TENSOR_PLACE(tensors[i]));
		u->dma_only = requests[i].dma_only;
		u->unchecked = requests[i].reuse == NPUMEM_UNCHECKED;
		ck_assert(bytemap_is_free(&model->map, u->place.offset, u->place.bytes_per_npu) ||
			  bytemap_may_lie(&model->map, u, u->place.offset));
		bytemap_add(&model->map, u);
		model_add(model, tensors[i], u);
	}
}

/* ---- traces ---- */

static void step(struct model *model)
{
	int what = (int)model_draw(model, 0, 31);
	model->n_steps++;
	unsigned i = model->n_live ? (unsigned)model_draw(model, 0, model->n_live - 1) : 0;
	if (what < 8 || !model->n_live)
		step_alloc(model);
	else if (what == 8)
		step_alloc_several(model);
	else if (what < 12)
		model_release(model, i);
	else if (what < 17)
		step_write(model, model->live[i].tensor, model->live[i].t, false);
	else if (what < 18)
		step_fill(model, model->live[i].tensor, model->live[i].t);
	else if (what < 21)
		step_read(model, model->live[i].tensor, model->live[i].t);
	else if (what < 28)
		step_pair(model, i);
	else if (what == 28)
		step_seal(model, model->live[i].tensor, model->live[i].t);
	else if (what == 29)
		step_compact(model);
	else if (model->n_live > MODEL_TENSORS_MAX / 2)
		model_release(model, i);
	else if (what == 30)
		step_slice(model, model->live[i].tensor, model->live[i].t);
	else
		step_reshape(model, model->live[i].tensor, model->live[i].t);
}

static const struct {
	int64_t n_npus, npu_bytes;
} geometries[] = {{1, 1024}, {2, 1024}, {4, 2048}, {5, 1024}, {4, 4096}};

TEST(traces, .to = sizeof(geometries) / sizeof(geometries[0]))
{
	static struct model model;
	model_open(&model, geometries[_i].n_npus, geometries[_i].npu_bytes, 100 + (uint64_t)_i);
	for (int i = 0; i < 600; i++) {
		step(&model);
		model_compare(&model);
	}
	ck_assert_uint_ge(model.n_placed, 40);
	ck_assert_uint_ge(model.n_over, 5);
	ck_assert_uint_ge(model.n_full, 5);
	ck_assert_uint_ge(model.n_unsafe, 5);
	ck_assert_uint_ge(model.n_views, 10);
	ck_assert_uint_ge(model.n_moved, 3);
	ck_assert_uint_ge(model.n_runs, 10);
	ck_assert_uint_ge(model.n_unwritten, 10);
	/* Few small tensors overlap by chance; with five NPUs there are enough. */
	if (geometries[_i].n_npus == 5)
		ck_assert_uint_ge(model.n_poisoned, 20);
	model_close(&model);
}

/* The same with restarts, which nobody notices, and with bytes that are lost. */
TEST(traces_with_restarts, .to = sizeof(geometries) / sizeof(geometries[0]))
{
	static struct model model;
	model_open(&model, geometries[_i].n_npus, geometries[_i].npu_bytes, 200 + (uint64_t)_i);
	for (int i = 0; i < 400; i++) {
		step(&model);
		if (model.n_live && model_draw(&model, 0, 11) == 0) {
			unsigned k = (unsigned)model_draw(&model, 0, model.n_live - 1);
			step_lose(&model, model.live[k].tensor, model.live[k].t);
		}
		if (model_draw(&model, 0, 5) == 0)
			model_restart(&model);
		model_compare(&model);
	}
	ck_assert_uint_ge(model.n_restarts, 40);
	ck_assert_uint_ge(model.n_over, 3);
	ck_assert_uint_ge(model.n_views, 6);
	ck_assert_uint_ge(model.n_lost, 3);
	model_close(&model);
}
