/* Valid runs of every kernel, wherever its tensors lie and however it is asked for, against the same run in plain
 * C on one NPU: same bytes, same counts, and nothing else is written. The instruction set is the best of this
 * processor, or NPUMEM_FUZZ_ISA. A run that is refused is a finding, too: of valid.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/device/device.h"
#include "daemon/device/operations/kernel.h"
#include "proto/npumem.pb-c.h"
#include "tests/fuzz/valid_place.h"
#include "tests/random/daemon.h"

enum { RUNS_MAX = 3, OPS_MAX = 16, UID = 1001, SLACK_BYTES = 4096 };
enum way { SINGLE, PIPELINED, LIST, LONG_LIST, GROUP, WAYS };

/* One run of it, and what came of it. */
struct world {
	const struct valid_run *run;
	struct daemon_options options;
	struct valid_place places[VALID_TENSORS_MAX];
	enum way way;
	unsigned n_runs;

	struct daemon *daemon;
	size_t memory_bytes;
	uint64_t handles[VALID_TENSORS_MAX], other; /* other: a tensor that the kernel has nothing to do with */
	Npumem__V1__Response *answers[RUNS_MAX];
	unsigned n_answers;
	struct counts {
		int64_t saturated, wrapped, divided_by_zero, macs;
	} counts[RUNS_MAX];
	unsigned n_counts;
	uint8_t *data[VALID_TENSORS_MAX];
	size_t bytes[VALID_TENSORS_MAX];
};

static uint64_t n_inputs, n_moved;

static void on_answered(void *ctx, unsigned peer, const uint8_t *message, size_t bytes)
{
	struct world *world = ctx;
	Npumem__V1__Response *response = npumem__v1__response__unpack(NULL, bytes, message);

	(void)peer;
	if (!response || world->n_answers == RUNS_MAX)
		fuzz_fail("an answer that cannot be read, or one too many");
	world->answers[world->n_answers++] = response;
}

static void drop_answers(struct world *world)
{
	while (world->n_answers)
		npumem__v1__response__free_unpacked(world->answers[--world->n_answers], NULL);
}

static void send(struct world *world, Npumem__V1__Request *request)
{
	size_t bytes = npumem__v1__request__get_packed_size(request);
	uint8_t *message = malloc(bytes);

	if (!message)
		fuzz_fail("no memory");
	npumem__v1__request__pack(request, message);
	if (daemon_send(world->daemon, 0, message, bytes))
		fuzz_fail("a request was not taken");
	free(message);
}

static void settle(struct world *world, unsigned n_answers)
{
	while (daemon_tasks(world->daemon))
		daemon_done(world->daemon, 0);
	if (world->n_answers != n_answers)
		fuzz_fail("%u answers to %u requests", world->n_answers, n_answers);
}

static const char *describe(const struct world *world)
{
	static char text[2048];
	size_t used = (size_t)snprintf(text, sizeof(text), "%s on %d NPUs (%s)", world->run->row->name,
				       (int)world->options.n_npus, isa_name(world->options.isa));

	for (unsigned i = 0; i < world->run->n_tensors && used < sizeof(text); i++) {
		const struct valid_tensor *t = &world->run->tensors[i];

		used += (size_t)snprintf(text + used, sizeof(text) - used, " %s=%s.%d[%d,%d,%d,%d]%s", t->role,
					 npumem_dtype_name(t->dtype), (int)t->frac_bits, (int)t->shape.n,
					 (int)t->shape.c, (int)t->shape.h, (int)t->shape.w, t->is >= 0 ? "=" : "");
	}
	for (unsigned i = 0; i < world->run->n_params && used < sizeof(text); i++) {
		const struct npumem_param *p = &world->run->params[i];

		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 " %s=", npumem_param_by_number(p->number)->name);
		for (unsigned k = 0; k < p->n_values && used < sizeof(text); k++)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%" PRId64, k ? "," : "",
						 p->values[k]);
	}
	return text;
}

/* The answer to one request, or NULL where it was refused; it lives until the next one. */
static const Npumem__V1__Response *ask(struct world *world, Npumem__V1__Request *request, bool may_be_refused)
{
	drop_answers(world);
	request->id = 1;
	send(world, request);
	settle(world, 1);
	if (!world->answers[0]->status)
		return world->answers[0];
	if (!may_be_refused)
		fuzz_fail("%s: %s", world->answers[0]->message, describe(world));
	return NULL;
}

/* ---- tensors ---- */

static Npumem__V1__Dims dims_of(const struct npumem_dims *dims)
{
	Npumem__V1__Dims to = NPUMEM__V1__DIMS__INIT;

	to.n = dims->n;
	to.c = dims->c;
	to.h = dims->h;
	to.w = dims->w;
	return to;
}

/* Its handle, or 0. */
static uint64_t alloc(struct world *world, const struct npumem_spec *from, bool may_be_refused)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__AllocRequest call = NPUMEM__V1__ALLOC_REQUEST__INIT;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT, *list = &allocation;
	Npumem__V1__Spec spec = NPUMEM__V1__SPEC__INIT;
	Npumem__V1__Dims shape = dims_of(&from->shape), stride = dims_of(&from->stride);
	const Npumem__V1__Response *answer;

	spec.dtype = (Npumem__V1__Dtype)from->dtype;
	spec.layout = (Npumem__V1__Layout)from->layout;
	spec.mode = (Npumem__V1__Mode)from->mode;
	spec.rows = from->rows;
	spec.cols = from->cols;
	spec.w = from->w;
	if (from->layout != NPUMEM_MATRIX)
		spec.shape = &shape;
	if (from->layout == NPUMEM_STRIDED)
		spec.stride = &stride;
	if (from->frac_bits != NPUMEM_ANY) {
		spec.frac_bits_given_case = NPUMEM__V1__SPEC__FRAC_BITS_GIVEN_FRAC_BITS;
		spec.frac_bits = from->frac_bits;
	}
	if (from->start_npu != NPUMEM_ANY) {
		spec.start_npu_given_case = NPUMEM__V1__SPEC__START_NPU_GIVEN_START_NPU;
		spec.start_npu = from->start_npu;
	}
	allocation.spec = &spec;
	call.n_tensors = 1;
	call.tensors = &list;
	request.call_case = NPUMEM__V1__REQUEST__CALL_ALLOC;
	request.alloc = &call;
	answer = ask(world, &request, may_be_refused);
	return answer ? answer->allocated->tensors[0]->handle : 0;
}

static uint64_t view(struct world *world, uint64_t base, const struct valid_place *place,
		     const struct npumem_dims *shape)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__ViewRequest call = NPUMEM__V1__VIEW_REQUEST__INIT;
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT;
	Npumem__V1__Dims from = dims_of(&place->from), to = dims_of(shape);
	const Npumem__V1__Response *answer;

	ref.handle = base;
	call.tensor = &ref;
	if (place->how == VALID_RESHAPE) {
		call.shape = &to;
	} else {
		to.n += from.n;
		to.c += from.c;
		to.h += from.h;
		to.w += from.w;
		call.from = &from;
		call.to = &to;
	}
	request.call_case = NPUMEM__V1__REQUEST__CALL_VIEW;
	request.view = &call;
	answer = ask(world, &request, true);
	return answer ? answer->tensor->handle : 0;
}

/* Not every base has every slice: what has none lies plainly. */
static uint64_t place(struct world *world, unsigned i)
{
	const struct valid_tensor *tensor = &world->run->tensors[i];
	struct valid_place *at = &world->places[i], plain;
	uint64_t handle = alloc(world, &at->spec, true);

	if (handle && at->how != VALID_WHOLE)
		handle = view(world, handle, at, &tensor->shape);
	if (handle)
		return handle;
	n_moved++;
	valid_place_plain(tensor, world->options.n_npus, &plain);
	return alloc(world, &plain.spec, false);
}

static uint64_t next(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* Of the whole container, small ones, the extremes, mostly one of them, or nothing but one value. */
static uint64_t element(uint64_t *state, const struct valid_tensor *tensor)
{
	unsigned bits = 8 * npumem_dtype_bytes(tensor->dtype);
	uint64_t x = next(state), most = UINT64_C(1) << (bits - 1);

	switch (tensor->values % 8) {
	case 0:
		return 0;
	case 1:
		return most;
	case 2:
		return most - 1;
	case 3:
		return x % 16 ? most : most - 1;
	case 4:
		return (uint64_t)((int64_t)(x % 16) - 8);
	case 5:
		return x % 3 ? (uint64_t)((int64_t)(x % 256) - 128) : x >> 32;
	default:
		return x >> 32;
	}
}

static void make_data(struct world *world, unsigned i)
{
	const struct valid_tensor *tensor = &world->run->tensors[i];
	const struct npumem_dims *shape = &tensor->shape;
	unsigned bytes = npumem_dtype_bytes(tensor->dtype);
	int64_t n = shape->n * shape->c * shape->h * shape->w;
	uint64_t state = tensor->values + 257 * i;

	world->bytes[i] = (size_t)n * bytes;
	world->data[i] = malloc(world->bytes[i]);
	if (!world->data[i])
		fuzz_fail("no memory");
	for (int64_t k = 0; k < n; k++) {
		uint64_t x = element(&state, tensor);

		/* No NaN, which no type can hold. */
		if (tensor->dtype == NPUMEM_FP32 && (x & 0x7f800000) == 0x7f800000)
			x &= 0xff800000;
		memcpy(world->data[i] + k * bytes, &x, bytes);
	}
}

static void write(struct world *world, unsigned i)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__WriteRequest call = NPUMEM__V1__WRITE_REQUEST__INIT;
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT;

	make_data(world, i);
	ref.handle = world->handles[i];
	call.tensor = &ref;
	call.data = (ProtobufCBinaryData){world->bytes[i], world->data[i]};
	request.call_case = NPUMEM__V1__REQUEST__CALL_WRITE;
	request.write = &call;
	ask(world, &request, false);
}

/* What it holds takes the place of what was written. Whether that is the same. */
static bool read(struct world *world, unsigned i)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__ReadRequest call = NPUMEM__V1__READ_REQUEST__INIT;
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT;
	const ProtobufCBinaryData *data;
	bool same;

	ref.handle = world->handles[i];
	call.tensor = &ref;
	request.call_case = NPUMEM__V1__REQUEST__CALL_READ;
	request.read = &call;
	data = &ask(world, &request, false)->done->data;
	same = data->len == world->bytes[i] && !memcmp(data->data, world->data[i], data->len);
	free(world->data[i]);
	world->bytes[i] = data->len;
	world->data[i] = malloc(data->len);
	if (!world->data[i])
		fuzz_fail("no memory");
	memcpy(world->data[i], data->data, data->len);
	return same;
}

/* ---- the run ---- */

struct message {
	Npumem__V1__RunRequest run;
	Npumem__V1__Operand operands[VALID_TENSORS_MAX], *operand_list[VALID_TENSORS_MAX];
	Npumem__V1__Ref refs[VALID_TENSORS_MAX];
	Npumem__V1__Param params[NPUMEM_PARAMS_MAX], *param_list[NPUMEM_PARAMS_MAX];
	Npumem__V1__FillRequest fill;
	Npumem__V1__Ref other;
	Npumem__V1__Operation operations[OPS_MAX], *list[OPS_MAX];
};

static void make_run(const struct world *world, struct message *m)
{
	npumem__v1__run_request__init(&m->run);
	m->run.kernel = (Npumem__V1__Kernel)world->run->row->number;
	m->run.n_operands = world->run->n_tensors;
	m->run.operands = m->operand_list;
	for (unsigned i = 0; i < world->run->n_tensors; i++) {
		npumem__v1__operand__init(&m->operands[i]);
		npumem__v1__ref__init(&m->refs[i]);
		m->refs[i].handle = world->handles[i];
		m->operands[i].role = (char *)world->run->tensors[i].role;
		m->operands[i].tensor = &m->refs[i];
		m->operand_list[i] = &m->operands[i];
	}
	m->run.n_params = world->run->n_params;
	m->run.params = m->param_list;
	for (unsigned i = 0; i < world->run->n_params; i++) {
		npumem__v1__param__init(&m->params[i]);
		m->params[i].key = (Npumem__V1__ParamKey)world->run->params[i].number;
		m->params[i].n_values = world->run->params[i].n_values;
		m->params[i].values = (int64_t *)world->run->params[i].values;
		m->param_list[i] = &m->params[i];
	}
	npumem__v1__ref__init(&m->other);
	npumem__v1__fill_request__init(&m->fill);
	m->other.handle = world->other;
	m->fill.tensor = &m->other;
	m->fill.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER;
	m->fill.integer = 1;
}

static void take_counts(struct world *world, const Npumem__V1__Done *done)
{
	world->counts[world->n_counts++] =
		(struct counts){done->saturated, done->wrapped, done->divided_by_zero, done->macs};
	if (done->n_destroyed)
		fuzz_fail("a run destroyed something: %s", describe(world));
}

static void run_singly(struct world *world, struct message *m)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;

	request.call_case = NPUMEM__V1__REQUEST__CALL_RUN;
	request.run = &m->run;
	for (unsigned i = 0; i < world->n_runs && world->way == SINGLE; i++)
		take_counts(world, ask(world, &request, false)->done);
	if (world->way == SINGLE)
		return;
	drop_answers(world);
	for (request.id = 1; request.id <= world->n_runs; request.id++)
		send(world, &request);
	settle(world, world->n_runs);
	for (unsigned i = 0; i < world->n_runs; i++)
		if (world->answers[i]->status)
			fuzz_fail("%s: %s", world->answers[i]->message, describe(world));
	for (unsigned id = 1; id <= world->n_runs; id++)
		for (unsigned i = 0; i < world->n_runs; i++)
			if (world->answers[i]->id == id)
				take_counts(world, world->answers[i]->done);
}

/* A group's DMA runs beside the kernel; in a long list it comes between. */
static void run_in_list(struct world *world, struct message *m)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__SubmitRequest call = NPUMEM__V1__SUBMIT_REQUEST__INIT;
	unsigned fills = world->way == LIST ? 0 : world->way == LONG_LIST ? 4 : 1, n = 0;
	const Npumem__V1__Submitted *submitted;

	for (unsigned i = 0; i < world->n_runs; i++)
		for (unsigned k = 0; k <= fills; k++) {
			Npumem__V1__Operation *operation = m->list[n] = &m->operations[n];

			n++;
			npumem__v1__operation__init(operation);
			operation->group = world->way == GROUP;
			operation->kind_case =
				k ? NPUMEM__V1__OPERATION__KIND_FILL : NPUMEM__V1__OPERATION__KIND_RUN;
			if (k)
				operation->fill = &m->fill;
			else
				operation->run = &m->run;
		}
	call.n_operations = n;
	call.operations = m->list;
	request.call_case = NPUMEM__V1__REQUEST__CALL_SUBMIT;
	request.submit = &call;
	submitted = ask(world, &request, false)->submitted;
	if (submitted->n_done != n)
		fuzz_fail("%zu of %u operations were done: %s", submitted->n_done, n, describe(world));
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < n; k++)
			if (i % (fills + 1) == 0 && submitted->done[k]->operation == i)
				take_counts(world, submitted->done[k]);
}

/* Whether a tensor, or one that is it, is an output. */
static bool is_written(const struct valid_run *run, unsigned i)
{
	unsigned root = run->tensors[i].is < 0 ? i : (unsigned)run->tensors[i].is;

	for (unsigned k = 0; k < run->n_tensors; k++)
		if (run->tensors[k].is_output && (k == root || run->tensors[k].is == (int)root))
			return true;
	return false;
}

/* Zeros that cost nothing until they are touched. */
static void *map_memory(struct world *world)
{
	const struct npumem_geometry geometry = {.n_npus = world->options.n_npus,
						 .npu_bytes = world->options.npu_bytes,
						 .n_banks = 8,
						 .eu_bytes = 128};
	void *memory;

	world->memory_bytes = device_memory_bytes(&geometry);
	memory = mmap(NULL, world->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		fuzz_fail("no memory");
	return memory;
}

static void set_up(struct world *world)
{
	static const struct npumem_spec other = {.dtype = NPUMEM_INT8,
						 .frac_bits = NPUMEM_ANY,
						 .shape = {1, 1, 1, 64},
						 .start_npu = NPUMEM_ANY,
						 .address = NPUMEM_ANY};
	struct valid_place plain;

	world->options.answered = on_answered;
	world->options.ctx = world;
	world->options.npu_bytes = SLACK_BYTES;
	/* A uid gets half of what others left; what is moved lies beside the first try. */
	for (unsigned i = 0; i < world->run->n_tensors; i++) {
		valid_place_plain(&world->run->tensors[i], world->options.n_npus, &plain);
		world->options.npu_bytes += 2 * (world->places[i].bytes_per_npu + plain.bytes_per_npu);
	}
	world->options.npu_bytes += -world->options.npu_bytes & (NPUMEM_NPU_BYTES_QUANTUM - 1);
	world->options.memory = map_memory(world);
	world->daemon = daemon_new(&world->options);
	if (!world->daemon || daemon_open(world->daemon, 0, UID))
		fuzz_fail("no daemon");
	world->other = alloc(world, &other, false);
}

static void run_world(struct world *world)
{
	const struct valid_run *run = world->run;
	struct message message;
	const char *wrong;

	set_up(world);
	for (unsigned i = 0; i < run->n_tensors; i++)
		if (run->tensors[i].is < 0)
			world->handles[i] = place(world, i);
	for (unsigned i = 0; i < run->n_tensors; i++)
		if (run->tensors[i].is >= 0)
			world->handles[i] = world->handles[run->tensors[i].is];
	for (unsigned i = 0; i < run->n_tensors; i++)
		if (!run->tensors[i].is_output && run->tensors[i].is < 0)
			write(world, i);
	make_run(world, &message);
	if (world->way <= PIPELINED)
		run_singly(world, &message);
	else
		run_in_list(world, &message);
	for (unsigned i = 0; i < run->n_tensors; i++)
		if (run->tensors[i].is < 0 && !read(world, i) && !is_written(run, i))
			fuzz_fail("%s was changed: %s", run->tensors[i].role, describe(world));
	daemon_close(world->daemon, 0);
	settle(world, world->n_answers);
	drop_answers(world);
	wrong = daemon_free(world->daemon);
	munmap(world->options.memory, world->memory_bytes);
	if (wrong)
		fuzz_fail("%s: %s", wrong, describe(world));
}

static void compare(const struct world *a, const struct world *b)
{
	for (unsigned i = 0; i < a->n_runs; i++)
		if (memcmp(&a->counts[i], &b->counts[i], sizeof(a->counts[i])) != 0)
			fuzz_fail("run %u counts otherwise (saturated %" PRId64 " %" PRId64 " wrapped %" PRId64
				  " %" PRId64 " macs %" PRId64 " %" PRId64 "): %s",
				  i, a->counts[i].saturated, b->counts[i].saturated, a->counts[i].wrapped,
				  b->counts[i].wrapped, a->counts[i].macs, b->counts[i].macs, describe(b));
	for (unsigned i = 0; i < a->run->n_tensors; i++)
		for (size_t k = 0; k < a->bytes[i]; k++)
			if (a->data[i][k] != b->data[i][k])
				fuzz_fail("byte %zu of %s differs: %s", k, a->run->tensors[i].role, describe(b));
}

static void free_world(struct world *world)
{
	for (unsigned i = 0; i < VALID_TENSORS_MAX; i++)
		free(world->data[i]);
}

static int isa(void)
{
	const char *name = getenv("NPUMEM_FUZZ_ISA");
	int wanted = name ? (int)isa_parse(name) : (int)isa_best();

	if (!wanted || !isa_runs((enum isa)wanted))
		fuzz_fail("NPUMEM_FUZZ_ISA=%s is not of this processor", name);
	return wanted;
}

static void tell(void)
{
	fprintf(stderr, "%" PRIu64 " valid runs with %s; %" PRIu64 " tensors had to lie elsewhere\n", n_inputs,
		isa_name(isa()), n_moved);
}

static void choose_world(struct valid_run *run, struct world *world)
{
	static const int16_t n_npus[] = {64, 1, 2, 3, 4, 5, 7, 8, 16, 33, 64, 128};

	world->options.n_npus = n_npus[valid_below(run, sizeof(n_npus) / sizeof(n_npus[0]))];
	world->options.threads = valid_below(run, 2);
	world->way = (enum way)valid_below(run, WAYS);
	world->n_runs = 1 + (unsigned)valid_below(run, RUNS_MAX);
	for (unsigned i = 0; i < run->n_tensors; i++)
		valid_place_read(run, &run->tensors[i], world->options.n_npus, &world->places[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static struct world plain, world;
	struct valid_run run;

	if (!n_inputs++)
		atexit(tell);
	valid_read(bytes, n, &run);
	plain = (struct world){.run = &run, .options = {.n_npus = 1, .isa = ISA_SCALAR}, .way = SINGLE};
	world = (struct world){.run = &run, .options = {.isa = isa()}};
	choose_world(&run, &world);
	plain.n_runs = world.n_runs;
	for (unsigned i = 0; i < run.n_tensors; i++)
		valid_place_plain(&run.tensors[i], 1, &plain.places[i]);
	if (getenv("NPUMEM_FUZZ_VERBOSE"))
		fprintf(stderr, "%s, way %d, %u runs\n", describe(&world), (int)world.way, world.n_runs);
	run_world(&plain);
	run_world(&world);
	compare(&plain, &world);
	free_world(&plain);
	free_world(&world);
	return 0;
}
