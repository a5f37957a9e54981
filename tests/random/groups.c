/* Tensors of one type and shape, so that all can be copied into each other and be a kernel's, in every layout,
 * mode and stride, over each other's empty blocks; and slices of them. A group of random operations on them must
 * be refused exactly where a byte, drawn from shapes and strides alone, says so. */
#include "tests/random/groups.h"

#include <stdio.h>
#include <stdlib.h>

#include "proto/convert.h"
#include "tests/random/daemon.h"
#include "tests/random/run.h"
#include "tests/support/bytemap.h"

enum { TENSORS = 10, OPS = 5, TRIES = 24, ROUNDS = 16, NPUS_MAX = 6, NPU_BYTES = 2048, READS = 1, WRITES = 2 };

struct subject {
	uint64_t handle, root; /* itself, or the base of a view */
	struct npumem_place place;
	bool is_view;
};

struct scene {
	struct run_talk talk; /* first: answers come to it */
	uint64_t random;
	struct npumem_geometry geometry;
	struct npumem_spec like;     /* of all, but for where they lie and how */
	struct npumem_dims from, to; /* of the slices */
	struct bytemap map;
	struct subject subjects[TENSORS];
	unsigned n;
	char *wrong;
	size_t wrong_bytes;
};

struct operation {
	enum trace_verb verb;
	const struct subject *to, *source;
	uint8_t touched[NPUS_MAX * NPU_BYTES];
};

static int64_t between(struct scene *scene, int64_t low, int64_t high)
{
	return low + (int64_t)(trace_random(&scene->random) % (uint64_t)(high - low + 1));
}

/* ---- tensors ---- */

static void draw_like(struct scene *scene)
{
	bool flat = between(scene, 0, 3) == 0;

	scene->geometry = (struct npumem_geometry){between(scene, 1, NPUS_MAX), NPU_BYTES, 8, 128};
	npumem_spec_init(&scene->like);
	scene->like.dtype = between(scene, 0, 1) ? NPUMEM_FX8 : NPUMEM_FX16;
	scene->like.frac_bits = 3;
	scene->like.shape =
		(struct npumem_dims){between(scene, 1, 6), between(scene, 1, 2 * scene->geometry.n_npus + 1),
				     flat ? 1 : between(scene, 1, 3), flat ? 1 : between(scene, 1, 9)};
	scene->to = scene->like.shape;
	scene->from =
		(struct npumem_dims){0, between(scene, 0, scene->to.c - 1), 0, between(scene, 0, scene->to.w - 1)};
}

static void draw_strides(struct scene *scene, struct npumem_spec *spec)
{
	const struct npumem_dims *shape = &spec->shape;
	int64_t rows = npumem_channels_per_npu(scene->geometry.n_npus, spec->start_npu, shape->c);

	spec->stride.w = between(scene, 1, 3);
	spec->stride.h = spec->stride.w * shape->w + between(scene, 0, 4);
	spec->stride.c = spec->stride.h * shape->h + between(scene, 0, 9);
	spec->stride.n = spec->stride.c * rows + between(scene, 0, 9);
}

static void draw_spec(struct scene *scene, struct npumem_spec *spec)
{
	static const int layouts[] = {NPUMEM_ALIGNED, NPUMEM_COMPACT, NPUMEM_STRIDED, NPUMEM_MATRIX};
	bool flat = scene->like.shape.h == 1 && scene->like.shape.w == 1;

	*spec = scene->like;
	spec->layout = layouts[between(scene, 0, flat ? 3 : 2)];
	spec->start_npu = between(scene, 0, scene->geometry.n_npus - 1);
	if (between(scene, 0, 1))
		spec->mode = spec->dtype == NPUMEM_FX8 ? NPUMEM_MODE_4N : NPUMEM_MODE_2N;
	if (spec->layout == NPUMEM_STRIDED)
		draw_strides(scene, spec);
	if (spec->layout == NPUMEM_MATRIX) {
		spec->rows = spec->shape.n;
		spec->cols = spec->shape.c;
		spec->w = between(scene, 1, spec->cols);
		spec->shape = (struct npumem_dims){0, 0, 0, 0};
	}
	if (between(scene, 0, 3))
		spec->address = spec->start_npu * NPU_BYTES + 4 * between(scene, 0, NPU_BYTES / 8);
}

static void learn(struct scene *scene, const Npumem__V1__Tensor *tensor)
{
	struct subject *subject = &scene->subjects[scene->n++];

	subject->handle = tensor->handle;
	subject->is_view = tensor->base_handle != 0;
	subject->root = subject->is_view ? tensor->base_handle : tensor->handle;
	convert_place_from(tensor->place, &subject->place);
}

static void place_one(struct scene *scene)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__AllocRequest alloc = NPUMEM__V1__ALLOC_REQUEST__INIT;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT, *list = &allocation;
	struct npumem_spec spec;
	struct convert_spec message;

	draw_spec(scene, &spec);
	convert_spec_to(&spec, &message);
	allocation.spec = &message.message;
	allocation.reuse = NPUMEM__V1__REUSE__UNCHECKED;
	alloc.n_tensors = 1;
	alloc.tensors = &list;
	request.call_case = NPUMEM__V1__REQUEST__CALL_ALLOC;
	request.alloc = &alloc;
	run_talk(&scene->talk, RUN_HOST, &request);
	if (!scene->talk.response->status)
		learn(scene, scene->talk.response->allocated->tensors[0]);
}

static void view_one(struct scene *scene, const struct subject *base)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__ViewRequest view = NPUMEM__V1__VIEW_REQUEST__INIT;
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT;
	Npumem__V1__Dims from, to;

	if (base->is_view || base->place.layout == NPUMEM_MATRIX)
		return;
	convert_dims_to(&scene->from, &from);
	convert_dims_to(&scene->to, &to);
	ref.handle = base->handle;
	view.tensor = &ref;
	view.from = &from;
	view.to = &to;
	request.call_case = NPUMEM__V1__REQUEST__CALL_VIEW;
	request.view = &view;
	run_talk(&scene->talk, RUN_HOST, &request);
	if (!scene->talk.response->status)
		learn(scene, scene->talk.response->tensor);
}

static void fill_all(struct scene *scene)
{
	for (unsigned i = 0; i < scene->n; i++) {
		Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
		Npumem__V1__FillRequest fill = NPUMEM__V1__FILL_REQUEST__INIT;
		Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT;

		ref.handle = scene->subjects[i].handle;
		fill.tensor = &ref;
		fill.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER;
		fill.integer = 5;
		request.call_case = NPUMEM__V1__REQUEST__CALL_FILL;
		request.fill = &fill;
		run_talk(&scene->talk, RUN_HOST, &request);
	}
}

/* ---- what operations touch ---- */

static void touch(const struct scene *scene, const struct subject *subject, bool footprint, uint8_t what,
		  uint8_t *touched)
{
	const struct bytemap *map = &scene->map;
	struct bytemap_tensor *t = bytemap_draw(map, &subject->place);

	for (int64_t i = 0; i < map->n_npus * t->place.bytes_per_npu; i++)
		if (footprint || bytemap_is_data(t->kind[i]))
			touched[bytemap_place_of(map, t, i)] |= what;
	bytemap_forget_drawing(t);
}

/* One that a copy may be from, or a kernel's input beside `to`: of another tensor, as parts of one may share
 * bytes. NULL where none was found. */
static const struct subject *draw_source(struct scene *scene, const struct subject *to)
{
	for (unsigned i = 0; i < TRIES; i++) {
		const struct subject *source = &scene->subjects[between(scene, 0, scene->n - 1)];

		if (source->is_view == to->is_view && source->root != to->root)
			return source;
	}
	return NULL;
}

static bool is_kernel(const struct operation *operation)
{
	return operation->verb == TRACE_RUN;
}

static void draw_operation(struct scene *scene, struct operation *operation)
{
	static const enum trace_verb verbs[] = {TRACE_READ, TRACE_FILL, TRACE_COPY, TRACE_RUN, TRACE_RUN};

	memset(operation, 0, sizeof(*operation));
	operation->verb = verbs[between(scene, 0, sizeof(verbs) / sizeof(verbs[0]) - 1)];
	operation->to = &scene->subjects[between(scene, 0, scene->n - 1)];
	operation->source = draw_source(scene, operation->to);
	if (operation->verb == TRACE_COPY && !operation->source)
		operation->verb = TRACE_FILL;
	if (!operation->source)
		operation->source = operation->to;
	touch(scene, operation->to, is_kernel(operation), operation->verb == TRACE_READ ? READS : WRITES,
	      operation->touched);
	if (operation->verb >= TRACE_COPY)
		touch(scene, operation->source, false, READS, operation->touched);
}

static bool clashes_at(const struct operation *a, const struct operation *b, int64_t at)
{
	return a->touched[at] && b->touched[at] && ((a->touched[at] | b->touched[at]) & WRITES);
}

static bool clashes(const struct scene *scene, const struct operation *a, const struct operation *b)
{
	for (int64_t at = 0; at < scene->map.n_npus * NPU_BYTES; at++)
		if (clashes_at(a, b, at))
			return is_kernel(a) != is_kernel(b);
	return false;
}

/* ---- one group ---- */

static void submit_group(struct scene *scene, const struct operation *operations, unsigned n)
{
	static const struct trace nameless;
	struct trace_request request = {.verb = TRACE_SUBMIT, .n_ops = n};
	struct message_handles handles = {0};
	uint8_t *message;
	size_t bytes;

	for (unsigned i = 0; i < n; i++) {
		request.ops[i] = (struct trace_op){.verb = operations[i].verb,
						   .group = 3,
						   .n_refs = operations[i].verb < TRACE_COPY ? 1 : 2,
						   .kernel = NPUMEM__V1__KERNEL__RELU,
						   .value = 7};
		handles.of[i][0] = operations[i].to->handle;
		handles.of[i][1] = operations[i].source->handle;
	}
	message = message_pack(&nameless, 0, &request, &handles, &(struct message_sent){.id = 1}, &bytes);
	run_talk_bytes(&scene->talk, RUN_HOST, message, bytes);
	free(message);
}

/* ---- what it says ---- */

static int64_t field_of(const struct scene *scene, const char *key)
{
	const Npumem__V1__Response *response = scene->talk.response;

	for (size_t i = 0; i < response->n_fields; i++)
		if (!strcmp(response->fields[i]->key, key) &&
		    response->fields[i]->value_case == NPUMEM__V1__FIELD__VALUE_NUMBER)
			return response->fields[i]->number;
	return -1;
}

static bool fail(struct scene *scene, const char *what)
{
	snprintf(scene->wrong, scene->wrong_bytes, "%s: status %d, \"%s\"", what,
		 (int)scene->talk.response->status, scene->talk.response->message);
	return false;
}

/* The two that it names conflict in all bytes that it names. */
static bool check_refusal(struct scene *scene, const struct operation *operations, unsigned n)
{
	int64_t first = field_of(scene, "first"), second = field_of(scene, "second"), npu = field_of(scene, "npu");
	int64_t offset = field_of(scene, "offset"), bytes = field_of(scene, "bytes"),
		at = npu * NPU_BYTES + offset;
	const struct operation *a, *b;

	if (first < 0 || second <= first || second >= n || npu < 0 || npu >= scene->map.n_npus || offset < 0 ||
	    bytes < 1 || offset + bytes > NPU_BYTES)
		return fail(scene, "a refusal that names no operations or bytes");
	a = &operations[first];
	b = &operations[second];
	if (is_kernel(a) == is_kernel(b))
		return fail(scene, "two of one queue are said to conflict");
	for (int64_t i = 0; i < bytes; i++)
		if (!clashes_at(a, b, at + i))
			return fail(scene, "a byte is named in which the two do not conflict");
	if (scene->talk.response->submitted && scene->talk.response->submitted->n_done)
		return fail(scene, "a part of a refused group ran");
	return true;
}

static bool check_group(struct scene *scene)
{
	static struct operation operations[OPS];
	unsigned n = (unsigned)between(scene, 2, OPS);
	bool expected = false;

	for (unsigned i = 0; i < n; i++)
		draw_operation(scene, &operations[i]);
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < i; k++)
			expected = expected || clashes(scene, &operations[i], &operations[k]);
	submit_group(scene, operations, n);
	if (scene->talk.response->status == NPUMEM__V1__STATUS__INTERNAL)
		return fail(scene, "an answer");
	if ((scene->talk.response->status == NPUMEM__V1__STATUS__ABORTED) != expected)
		return fail(scene, expected ? "a hazard is missed" : "a hazard is invented");
	return !expected || check_refusal(scene, operations, n);
}

/* ---- a scene ---- */

static bool check_scene(struct scene *scene)
{
	for (unsigned i = 0; i < TRIES && scene->n < TENSORS; i++)
		if (scene->n && between(scene, 0, 3) == 0)
			view_one(scene, &scene->subjects[between(scene, 0, scene->n - 1)]);
		else
			place_one(scene);
	for (unsigned i = 0; scene->n && i < ROUNDS; i++) {
		if (i % 4 == 0)
			fill_all(scene);
		if (!check_group(scene))
			return false;
	}
	return true;
}

bool groups_run(uint64_t seed, char *wrong, size_t bytes)
{
	static struct scene scene;
	struct daemon_options options = {
		.npu_bytes = NPU_BYTES, .threads = seed % 2, .answered = run_talk_answered, .ctx = &scene.talk};
	const char *left;

	memset(&scene, 0, sizeof(scene));
	scene.random = seed;
	scene.wrong = wrong;
	scene.wrong_bytes = bytes;
	draw_like(&scene);
	options.n_npus = scene.geometry.n_npus;
	bytemap_init(&scene.map, &scene.geometry);
	scene.talk.daemon = daemon_new(&options);
	daemon_open(scene.talk.daemon, RUN_HOST, 1001);
	daemon_open(scene.talk.daemon, RUN_ADMIN, 0);
	if (!check_scene(&scene))
		return false;
	run_sweep(&scene.talk);
	left = daemon_free(scene.talk.daemon);
	snprintf(wrong, bytes, "%s", left ? left : "");
	npumem__v1__response__free_unpacked(scene.talk.response, NULL);
	bytemap_deinit(&scene.map);
	return !left;
}
