/* Writes, reads, copies and fills of random tensors and views of every layout, of whole ones and of parts, against
 * a model that goes element by element by the public formulas. After each operation every byte of the device and
 * every mark is as the model has it: what is not the operation's own was not touched. */
#include "daemon/device/internal.h"
#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/rig.h"

enum { ELEMENTS_MAX = 6000, HOST_BYTES = 400000, TENSORS = 3 };

struct stage {
	struct rig rig;
	uint64_t random;
	int64_t n_npus, npu_bytes;
	uint8_t *bytes, *written; /* [npu][offset] */
	struct tensor *tensors[2 * TENSORS];
	unsigned n;
};

static uint8_t host[HOST_BYTES], image[HOST_BYTES];

static int64_t any(struct stage *stage, int64_t low, int64_t high)
{
	return oracle_between(&stage->random, low, high);
}

/* ---- the model ---- */

static struct npumem_dims nth(const struct npumem_place *p, int64_t i)
{
	int64_t batch = ((p->shape.c - 1) * p->shape.w + p->last_w) * p->shape.h, rest = i % batch;
	struct npumem_dims at = {i / batch, rest / (p->shape.h * p->shape.w), 0, 0};
	int64_t width = at.c == p->shape.c - 1 ? p->last_w : p->shape.w;
	rest -= at.c * p->shape.h * p->shape.w;
	at.h = rest / width;
	at.w = rest % width;
	return at;
}

/* Where element i lies in the model. */
static int64_t model_at(const struct stage *stage, const struct npumem_place *place, int64_t i)
{
	struct npumem_dims at = nth(place, i);
	int64_t npu, offset;
	npumem_place_locate(&stage->rig.options.geometry, place, at.n, at.c, at.h, at.w, &npu, &offset);
	return npu * stage->npu_bytes + place->offset + offset;
}

static int64_t size_of(const struct npumem_place *place)
{
	return place->word_bytes / place->lanes;
}

/* Sets element i, and puts 0 into the dummies beside one of the last n. */
static void model_set(struct stage *stage, const struct npumem_place *place, int64_t i, const void *value)
{
	int64_t size = size_of(place), at = model_at(stage, place, i), used = place->shape.n % place->lanes;
	memcpy(stage->bytes + at, value, (size_t)size);
	memset(stage->written + at, 1, (size_t)size);
	if (!used || nth(place, i).n != place->shape.n - 1)
		return;
	memset(stage->bytes + at + size, 0, (size_t)((place->lanes - used) * size));
	memset(stage->written + at + size, 1, (size_t)((place->lanes - used) * size));
}

static void same_everywhere(struct stage *stage)
{
	const struct local *local = &stage->rig.device->local;
	for (int64_t npu = 0; npu < stage->n_npus; npu++) {
		const uint8_t *written = stage->written + npu * stage->npu_bytes;
		if (memcmp(local_at(local, npu, 0), stage->bytes + npu * stage->npu_bytes,
			   (size_t)stage->npu_bytes))
			ck_abort_msg("bytes of NPU %ld differ", (long)npu);
		for (int64_t word = 0; word < stage->npu_bytes / 64; word++) {
			uint64_t bits = 0;
			for (int64_t i = 0; i < 64; i++)
				bits |= (uint64_t)written[word * 64 + i] << i;
			if (bits != local_written(local, npu)[word])
				ck_abort_msg("marks of NPU %ld, bytes from %ld differ", (long)npu,
					     (long)word * 64);
		}
	}
}

/* ---- tensors ---- */

static void choose_strides(struct stage *stage, struct npumem_spec *spec)
{
	const struct npumem_dims *shape = &spec->shape;
	int64_t rows = (spec->start_npu + shape->c + stage->n_npus - 1) / stage->n_npus;
	/* In any order of the dimensions, with gaps or without. */
	int64_t extent[4] = {shape->w, shape->h, rows, shape->n}, *stride[4], next = 1;
	int order[4] = {0, 1, 2, 3};
	stride[0] = &spec->stride.w;
	stride[1] = &spec->stride.h;
	stride[2] = &spec->stride.c;
	stride[3] = &spec->stride.n;
	for (int i = 3; i > 0; i--) {
		int k = (int)any(stage, 0, i), swap = order[i];
		order[i] = order[k];
		order[k] = swap;
	}
	for (int i = 0; i < 4; i++) {
		*stride[order[i]] = next * (any(stage, 0, 3) ? 1 : any(stage, 1, 3)) +
				    (any(stage, 0, 3) ? 0 : any(stage, 0, 5));
		next = *stride[order[i]] * extent[order[i]];
	}
}

static struct device_request choose(struct stage *stage, int dtype, const struct npumem_dims *shape, int layout)
{
	struct device_request request = rig_request(dtype, shape->n, shape->c, shape->h, shape->w);
	struct npumem_spec *spec = &request.spec;
	int size = (int)npumem_dtype_bytes(dtype);
	spec->start_npu = any(stage, 0, stage->n_npus - 1);
	if (any(stage, 0, 2) == 0)
		spec->mode = size == 1 ? NPUMEM_MODE_4N : size == 2 ? NPUMEM_MODE_2N : NPUMEM_MODE_2IC;
	spec->layout = layout;
	if (layout == NPUMEM_STRIDED)
		choose_strides(stage, spec);
	if (layout == NPUMEM_MATRIX) {
		spec->rows = shape->n;
		spec->cols = shape->c;
		spec->w = any(stage, 1, spec->cols);
		spec->shape = (struct npumem_dims){0, 0, 0, 0};
	}
	return request;
}

/* Tensors of one logical shape, and views of them. */
static void place_some(struct stage *stage)
{
	static const int dtypes[] = {NPUMEM_UINT8, NPUMEM_INT16, NPUMEM_FP32};
	int dtype = dtypes[any(stage, 0, 2)];
	struct npumem_dims shape;
	do {
		shape = (struct npumem_dims){any(stage, 1, 9), any(stage, 1, 70), 1, 1};
		if (any(stage, 0, 1)) {
			shape.h = any(stage, 1, 9);
			shape.w = any(stage, 1, any(stage, 0, 3) ? 20 : 70);
		}
	} while (shape.n * shape.c * shape.h * shape.w > ELEMENTS_MAX);
	for (stage->n = 0; stage->n < TENSORS;) {
		bool wide = shape.h * shape.w == 1;
		struct device_request request = choose(stage, dtype, &shape, (int)any(stage, 1, 4 - !wide));
		struct tensor *tensor;
		if (request.spec.layout == NPUMEM_MATRIX)
			request.spec.layout = wide ? NPUMEM_MATRIX : NPUMEM_STRIDED;
		if (request.spec.layout == NPUMEM_STRIDED && !request.spec.stride.w)
			choose_strides(stage, &request.spec);
		if (rig_try(&stage->rig, &request, &tensor) == 0)
			stage->tensors[stage->n++] = tensor;
	}
}

static void view_some(struct stage *stage)
{
	for (unsigned i = 0; i < TENSORS; i++) {
		const struct npumem_dims *shape = &TENSOR_PLACE(stage->tensors[i])->shape;
		int64_t lanes = tensor_place(stage->tensors[i]).lanes;
		struct device_slice slice;
		slice.from = (struct npumem_dims){any(stage, 0, (shape->n - 1) / lanes) * lanes,
						  any(stage, 0, shape->c - 1), any(stage, 0, shape->h - 1), 0};
		slice.to = (struct npumem_dims){shape->n, any(stage, slice.from.c + 1, shape->c),
						any(stage, slice.from.h + 1, shape->h), shape->w};
		if (any(stage, 0, 1) && slice.to.c < shape->c)
			slice.from.w = any(stage, 0, shape->w - 1);
		ck_assert_int_eq(device_view_slice(stage->rig.device, stage->tensors[i], &slice,
						   &stage->tensors[stage->n], &stage->rig.context),
				 0);
		stage->n++;
	}
}

/* ---- operations ---- */

struct watch {
	struct kernel_progress progress; /* first, so that the one is the other */
	int64_t n_looks, cancel_at;
};

static void looked(struct kernel_progress *progress)
{
	struct watch *watch = (struct watch *)progress;
	if (++watch->n_looks == watch->cancel_at)
		progress->cancelled = true;
}

/* A permutation of the dimensions, with gaps, as strides of the host; the bytes that they span. */
static int64_t host_strides(struct stage *stage, const struct npumem_place *place, struct npumem_dims *stride)
{
	int64_t extent[4] = {place->shape.w, place->shape.h, place->shape.c, place->shape.n}, next = 1;
	int64_t *of[4] = {&stride->w, &stride->h, &stride->c, &stride->n}, turn = any(stage, 0, 3);
	for (int i = 0; i < 4; i++) {
		int k = (int)((i + turn) % 4);
		*of[k] = next * (any(stage, 0, 4) ? 1 : 2) + (any(stage, 0, 4) ? 0 : any(stage, 0, 3));
		next = *of[k] * extent[k];
	}
	return next * size_of(place);
}

/* Byte of element i of the host. */
static int64_t host_at(const struct npumem_place *place, const struct op *op, int64_t i)
{
	struct npumem_dims at = nth(place, i);
	const struct npumem_dims *stride = &op->system.stride;
	if (!op->system.strided)
		return (i - op->first) * size_of(place);
	return (at.n * stride->n + at.c * stride->c + at.h * stride->h + at.w * stride->w) * size_of(place);
}

static void choose_range(struct stage *stage, struct op *op)
{
	const struct npumem_place *place = TENSOR_PLACE(op->tensor);
	int64_t elements = npumem_place_elements(place);
	op->count = elements;
	op->system = (struct op_system){.base = host, .bytes = HOST_BYTES};
	if (any(stage, 0, 2) == 0) {
		op->first = any(stage, 0, elements - 1);
		op->count = any(stage, 1, elements - op->first);
	} else if (any(stage, 0, 1) && place->layout != NPUMEM_MATRIX && place->last_w == place->shape.w &&
		   host_strides(stage, place, &op->system.stride) <= HOST_BYTES) {
		op->system.strided = true;
	}
}

static bool is_written(const struct stage *stage, const struct npumem_place *place, int64_t first, int64_t count)
{
	for (int64_t i = first; i < first + count; i++)
		for (int64_t k = 0; k < size_of(place); k++)
			if (!stage->written[model_at(stage, place, i) + k])
				return false;
	return true;
}

static void fill_host(struct stage *stage)
{
	for (int64_t i = 0; i < HOST_BYTES; i += 4) {
		uint32_t value = oracle_random(&stage->random);
		memcpy(host + i, &value, sizeof(value));
	}
}

static void do_write(struct stage *stage, struct op *op)
{
	const struct npumem_place *place = TENSOR_PLACE(op->tensor);
	choose_range(stage, op);
	stage->rig.op = *op;
	ck_assert_int_eq(rig_op(&stage->rig), 0);
	for (int64_t i = op->first; i < op->first + op->count; i++)
		model_set(stage, place, i, host + host_at(place, op, i));
}

static void do_read(struct stage *stage, struct op *op)
{
	const struct npumem_place *place = TENSOR_PLACE(op->tensor);
	choose_range(stage, op);
	memcpy(image, host, sizeof(image));
	stage->rig.op = *op;
	int status = rig_op(&stage->rig);
	ck_assert_int_eq(status, is_written(stage, place, op->first, op->count) ? 0 : NPUMEM_FAILED_PRECONDITION);
	for (int64_t i = op->first; !status && i < op->first + op->count; i++)
		memcpy(image + host_at(place, op, i), stage->bytes + model_at(stage, place, i),
		       (size_t)size_of(place));
	ck_assert(!memcmp(image, host, sizeof(image)));
}

static void do_fill(struct stage *stage, struct op *op)
{
	const struct npumem_place *place = TENSOR_PLACE(op->tensor);
	float real = (float)any(stage, 0, 100);
	int32_t value = (int32_t)real;
	op->value = value;
	stage->rig.op = *op;
	ck_assert_int_eq(rig_op(&stage->rig), 0);
	for (int64_t i = 0; i < npumem_place_elements(place); i++)
		model_set(stage, place, i, place->dtype == NPUMEM_FP32 ? (void *)&real : (void *)&value);
}

/* Another of the tensors, with all its elements. */
static void do_copy(struct stage *stage, struct op *op)
{
	const struct npumem_place *place = TENSOR_PLACE(op->tensor);
	op->source = stage->tensors[any(stage, 0, TENSORS - 1)];
	if (op->tensor->base || op->source == op->tensor)
		return;
	const struct npumem_place *from = TENSOR_PLACE(op->source);
	int64_t elements = npumem_place_elements(place);
	stage->rig.op = *op;
	int status = rig_op(&stage->rig);
	ck_assert_int_eq(status, is_written(stage, from, 0, elements) ? 0 : NPUMEM_FAILED_PRECONDITION);
	for (int64_t i = 0; !status && i < elements; i++)
		model_set(stage, place, i, stage->bytes + model_at(stage, from, i));
}

/* One that is cancelled: each element is as it was, or counts as never written. */
static void do_torn(struct stage *stage, struct op *op)
{
	const struct npumem_place *place = TENSOR_PLACE(op->tensor);
	struct watch watch = {.progress = {.piece = any(stage, 1, 300), .looked = looked}};
	int64_t elements = npumem_place_elements(place), size = size_of(place), taken = 0;
	const struct local *local = &stage->rig.device->local;
	watch.cancel_at = any(stage, 2, 10);
	if (watch.progress.piece * 2 * watch.cancel_at >= elements)
		return;
	op->kind = any(stage, 0, 1) ? OP_WRITE : OP_FILL;
	op->count = -1;
	op->value = 1;
	op->system = (struct op_system){.base = host, .bytes = HOST_BYTES};
	op->progress = &watch.progress;
	stage->rig.op = *op;
	ck_assert_int_eq(rig_op(&stage->rig), NPUMEM_CANCELLED);
	for (int64_t i = 0; i < elements; i++) {
		int64_t at = model_at(stage, place, i), npu = at / stage->npu_bytes, from = at % stage->npu_bytes;
		uint64_t n = bits_count(local_written(local, npu), (uint64_t)from, (uint64_t)size);
		if (n)
			continue;
		memset(stage->written + at, 0, (size_t)size);
		memcpy(stage->bytes + at, local_at(local, npu, from), (size_t)size);
		taken += size;
	}
	ck_assert_int_gt(taken, 0);
}

static void operate(struct stage *stage)
{
	static void (*const all[])(struct stage *, struct op *) = {
		[OP_WRITE] = do_write, [OP_READ] = do_read, [OP_FILL] = do_fill, [OP_COPY] = do_copy, do_torn};
	struct op op = {.kind = (enum op_kind)any(stage, OP_WRITE, OP_COPY + 1)};
	op.tensor = stage->tensors[any(stage, 0, stage->n - 1)];
	all[op.kind](stage, &op);
}

static void run(uint64_t seed, int64_t n_npus, int64_t npu_bytes, enum isa isa)
{
	struct stage stage = {.random = seed, .n_npus = n_npus, .npu_bytes = npu_bytes};
	rig_open_with(&stage.rig, n_npus, npu_bytes, (struct device_options){.isa = isa});
	stage.bytes = calloc((size_t)n_npus, (size_t)npu_bytes);
	stage.written = calloc((size_t)n_npus, (size_t)npu_bytes);
	ck_assert(stage.bytes && stage.written);
	place_some(&stage);
	view_some(&stage);
	fill_host(&stage);
	for (int i = 0; i < 12; i++) {
		operate(&stage);
		same_everywhere(&stage);
	}
	free(stage.bytes);
	free(stage.written);
	rig_close(&stage.rig);
}

TEST(random_tensors)
{
	const char *more = getenv("NPUMEM_MOVE_SEEDS");
	uint64_t seeds = more ? strtoull(more, NULL, 10) : 60;
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		uint64_t random = seed;
		int64_t n_npus = oracle_between(&random, 0, 3) ? oracle_between(&random, 1, 9) : 64;
		run(seed, n_npus,
		    n_npus == 64  ? 8192
		    : n_npus == 1 ? 262144
				  : 65536,
		    (enum isa)oracle_between(&random, ISA_SCALAR, isa_best()));
	}
}
