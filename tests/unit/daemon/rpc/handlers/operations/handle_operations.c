#include <errno.h>
#include <stdio.h>

#include "daemon/service/observed/recorder.h"
#include "daemon/service/segments.h"
#include "tests/unit/daemon/rpc/talk.h"

FIXTURE_OBJECT(struct talk, talk, talk_init(&talk), talk_deinit(&talk))

TEST(what_is_written_is_read)
{
	uint8_t data[128];
	uint64_t handle = talk_tensor(&talk, "x");
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	ck_assert_int_eq(talk_read_as(&talk, &talk.session, handle, 0, 0), NPUMEM_FAILED_PRECONDITION);
	ck_assert_ptr_null(talk.response->done);
	ck_assert_int_eq(talk_write_as(&talk, &talk.session, handle, 0, data, 100), 0);
	ck_assert_ptr_nonnull(talk.response->done);
	ck_assert_int_eq(talk_write_as(&talk, &talk.session, handle, 100, data + 100, 28), 0);
	for (unsigned first = 0; first < 128; first++) {
		ck_assert_int_eq(talk_read_as(&talk, &talk.session, handle, first, 0), 0);
		ck_assert_uint_eq(talk.response->done->data.len, 128 - first);
		ck_assert_mem_eq(talk.response->done->data.data, data + first, 128 - first);
	}
	ck_assert_int_eq(talk_read_as(&talk, &talk.session, handle, 5, 9), 0);
	ck_assert_uint_eq(talk.response->done->data.len, 9);
	ck_assert_mem_eq(talk.response->done->data.data, data + 5, 9);
	ck_assert_int_eq(talk_read_as(&talk, &talk.neighbour, handle, 127, 1), 0);
}

TEST(what_a_transfer_refuses)
{
	static const int64_t bad[][2] = {{-1, 1},	 {128, 1}, {0, 129},	   {127, 2},
					 {0, INT64_MAX}, {0, -1},  {INT64_MAX, 1}, {INT64_MIN, 0}};
	Npumem__V1__WriteRequest write = NPUMEM__V1__WRITE_REQUEST__INIT;
	Npumem__V1__ReadRequest read = NPUMEM__V1__READ_REQUEST__INIT;
	uint8_t data[200] = {0};
	uint64_t handle = talk_tensor(&talk, "x");
	ck_assert_int_eq(talk_fill(&talk, handle, 1), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(talk_read_as(&talk, &talk.session, handle, bad[i][0], bad[i][1]), NPUMEM_INVALID);
	ck_assert_int_eq(talk_write_as(&talk, &talk.session, handle, 0, data, 129), NPUMEM_INVALID);
	ck_assert_int_eq(talk_write_as(&talk, &talk.session, handle, -1, data, 1), NPUMEM_INVALID);
	ck_assert_int_eq(talk_write_as(&talk, &talk.session, handle, 0, data, 0), NPUMEM_INVALID);
	ck_assert_int_eq(TALK(&talk, write, WRITE, &write), NPUMEM_INVALID);
	ck_assert_int_eq(TALK(&talk, read, READ, &read), NPUMEM_INVALID);
	ck_assert_int_eq(talk_write_as(&talk, &talk.stranger, handle, 0, data, 1), NPUMEM_NOT_FOUND);
	talk_fails(&talk, talk_fill(&talk, handle, 128), NPUMEM_INVALID, "128");
	ck_assert_int_eq(talk_fill(&talk, 12345, 1), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(talk_read_as(&talk, &talk.session, handle, 0, 0), 0);
	for (unsigned i = 0; i < 128; i++)
		ck_assert_int_eq(talk.response->done->data.data[i], 1);
}

TEST(data_comes_in_whole_elements)
{
	struct talk_spec spec;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT, *list = &allocation;
	allocation.spec = talk_spec(&spec, 2, 2);
	allocation.spec->dtype = NPUMEM__V1__DTYPE__INT32;
	Npumem__V1__AllocRequest request = {MESSAGE(alloc_request), .n_tensors = 1, .tensors = &list};
	ck_assert_int_eq(TALK(&talk, alloc, ALLOC, &request), 0);
	uint64_t handle = talk.response->allocated->tensors[0]->handle;
	talk_fails(&talk, talk_write_as(&talk, &talk.session, handle, 0, "0123456", 7), NPUMEM_INVALID, "7 bytes");
	ck_assert_int_eq(talk_write_as(&talk, &talk.session, handle, 0, "0123456789abcdef", 16), 0);
	ck_assert_int_eq(talk_read_as(&talk, &talk.session, handle, 1, 2), 0);
	ck_assert_uint_eq(talk.response->done->data.len, 8);
	ck_assert_mem_eq(talk.response->done->data.data, "456789ab", 8);
}

TEST(a_read_beyond_a_frame_is_refused_before_it_is_gathered)
{
	struct device_options options = {
		.geometry = {.n_npus = 64, .npu_bytes = 512 << 10, .n_banks = 8, .eu_bytes = 128},
		.uninitialized = NPUMEM_ALLOW,
	};
	talk_again(&talk, &options);
	ck_assert_int_eq(talk_alloc_as(&talk, &talk.session, "big", 64, 270000), 0);
	uint64_t handle = talk.response->allocated->tensors[0]->handle;
	ck_assert_int_eq(talk_read_as(&talk, &talk.session, handle, 0, 1), 0);
	size_t allocs = talk.world.n_allocs;
	talk_fails(&talk, talk_read_as(&talk, &talk.session, handle, 0, 0), NPUMEM_INVALID, "17280112");
	talk_says(&talk, "16777216");
	/* Of its message, as it waits for a thread. */
	ck_assert_uint_le(talk.world.n_allocs, allocs + 1);
	ck_assert_uint_lt(talk.out.room, 1 << 20);
	ck_assert_int_eq(talk_read_as(&talk, &talk.session, handle, 0, (16 << 20) - 256), 0);
	ck_assert_uint_eq(talk.response->done->data.len, (16 << 20) - 256);
}

static int copy(uint64_t to, uint64_t from)
{
	Npumem__V1__Ref destination = talk_ref(to, ""), source = talk_ref(from, "");
	Npumem__V1__CopyRequest request = {MESSAGE(copy_request), .destination = &destination,
					   .source = from ? &source : NULL};
	return TALK(&talk, copy, COPY, &request);
}

TEST(copies_and_fills)
{
	Npumem__V1__FillRequest fill = NPUMEM__V1__FILL_REQUEST__INIT;
	uint64_t a, b;
	a = talk_tensor(&talk, "a");
	b = talk_tensor(&talk, "b");
	ck_assert_int_eq(copy(b, a), NPUMEM_FAILED_PRECONDITION);
	ck_assert_int_eq(talk_fill(&talk, a, -128), 0);
	ck_assert_int_eq(copy(b, a), 0);
	ck_assert_int_eq(talk_read_as(&talk, &talk.session, b, 0, 0), 0);
	ck_assert_uint_eq(talk.response->done->data.data[127], 0x80);
	ck_assert_int_eq(copy(b, 0), NPUMEM_INVALID);
	ck_assert_int_eq(copy(b, 999), NPUMEM_NOT_FOUND);
	Npumem__V1__Ref ref = talk_ref(a, "");
	fill.tensor = &ref;
	ck_assert_int_eq(TALK(&talk, fill, FILL, &fill), NPUMEM_INVALID);
	fill.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_REAL;
	fill.real = 1.5;
	ck_assert_int_eq(TALK(&talk, fill, FILL, &fill), NPUMEM_INVALID);
}

struct run {
	Npumem__V1__RunRequest request;
	Npumem__V1__Operand operands[50], *operand_list[50];
	Npumem__V1__Ref refs[50];
	Npumem__V1__Param params[50], *param_list[50];
	int64_t values[50];
};

static Npumem__V1__RunRequest *run_init(struct run *run, int kernel)
{
	npumem__v1__run_request__init(&run->request);
	run->request.kernel = (Npumem__V1__Kernel)kernel;
	run->request.operands = run->operand_list;
	run->request.params = run->param_list;
	return &run->request;
}

static void run_operand(struct run *run, const char *role, uint64_t handle)
{
	size_t i = run->request.n_operands++;
	npumem__v1__operand__init(&run->operands[i]);
	run->operand_list[i] = &run->operands[i];
	run->refs[i] = talk_ref(handle, "");
	run->operands[i].role = (char *)role;
	run->operands[i].tensor = handle ? &run->refs[i] : NULL;
}

static void run_param(struct run *run, int key, int64_t value)
{
	size_t i = run->request.n_params++;
	npumem__v1__param__init(&run->params[i]);
	run->param_list[i] = &run->params[i];
	run->values[i] = value;
	run->params[i].key = (Npumem__V1__ParamKey)key;
	run->params[i].n_values = 1;
	run->params[i].values = &run->values[i];
}

static uint64_t fx8_tensor(const char *name)
{
	struct talk_spec spec;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT, *list = &allocation;
	allocation.spec = talk_spec(&spec, 8, 16);
	allocation.spec->dtype = NPUMEM__V1__DTYPE__FX8;
	allocation.spec->frac_bits_given_case = NPUMEM__V1__SPEC__FRAC_BITS_GIVEN_FRAC_BITS;
	allocation.spec->frac_bits = 4;
	allocation.name = (char *)name;
	Npumem__V1__AllocRequest request = {MESSAGE(alloc_request), .n_tensors = 1, .tensors = &list};
	ck_assert_int_eq(TALK(&talk, alloc, ALLOC, &request), 0);
	return talk.response->allocated->tensors[0]->handle;
}

TEST(a_kernel_runs)
{
	struct run run;
	uint64_t in, out;
	in = fx8_tensor("in");
	out = fx8_tensor("out");
	ck_assert_int_eq(talk_fill(&talk, in, -5), 0);
	ck_assert_int_eq(talk_write_as(&talk, &talk.session, in, 3, "\x07", 1), 0);
	run_init(&run, NPUMEM_KERNEL_RELU);
	run_operand(&run, "in", in);
	run_operand(&run, "out", out);
	run_param(&run, NPUMEM_PARAM_RELU, 2);
	ck_assert_int_eq(TALK(&talk, run, RUN, &run.request), 0);
	ck_assert_int_eq(talk_read_as(&talk, &talk.session, out, 0, 0), 0);
	ck_assert_int_eq(talk.response->done->data.data[3], 7);
	ck_assert_int_eq(talk.response->done->data.data[4], 0);
}

TEST(what_only_the_wire_can_get_wrong_in_a_run)
{
	struct run run;
	uint64_t in;
	in = fx8_tensor("in");
	talk_fails(&talk, TALK(&talk, run, RUN, run_init(&run, 4711)), NPUMEM_INVALID, "kernel 4711");
	ck_assert_int_ne(TALK(&talk, run, RUN, run_init(&run, 0)), 0);
	run_init(&run, NPUMEM_KERNEL_RELU);
	for (unsigned i = 0; i < NPUMEM_OPERANDS_MAX + 1; i++)
		run_operand(&run, "in", in);
	talk_fails(&talk, TALK(&talk, run, RUN, &run.request), NPUMEM_INVALID, "41 operands");
	run_init(&run, NPUMEM_KERNEL_RELU);
	for (unsigned i = 0; i < NPUMEM_PARAMS_MAX + 1; i++)
		run_param(&run, 1, 1);
	ck_assert_int_eq(TALK(&talk, run, RUN, &run.request), NPUMEM_INVALID);
	run_init(&run, NPUMEM_KERNEL_RELU);
	run_param(&run, 99, 1);
	talk_fails(&talk, TALK(&talk, run, RUN, &run.request), NPUMEM_INVALID, "parameter 99");
	run_init(&run, NPUMEM_KERNEL_RELU);
	run_param(&run, NPUMEM_PARAM_RELU, 1);
	run.params[0].n_values = 5;
	run.params[0].values = (int64_t[]){1, 1, 1, 1, 1};
	talk_fails(&talk, TALK(&talk, run, RUN, &run.request), NPUMEM_INVALID, "5 values");
	run_init(&run, NPUMEM_KERNEL_RELU);
	run_operand(&run, "a role of more than twenty-three bytes", in);
	ck_assert_int_eq(TALK(&talk, run, RUN, &run.request), NPUMEM_INVALID);
	run_init(&run, NPUMEM_KERNEL_RELU);
	run_operand(&run, "weights", 0);
	talk_fails(&talk, TALK(&talk, run, RUN, &run.request), NPUMEM_INVALID, "weights is not given");
	run_init(&run, NPUMEM_KERNEL_RELU);
	run_operand(&run, "in", in);
	run_operand(&run, "in", in);
	run_operand(&run, "out", in);
	ck_assert_int_eq(TALK(&talk, run, RUN, &run.request), NPUMEM_INVALID);
}

enum { SHARED_BYTES = 64 };

static uint8_t shared[SHARED_BYTES];
static uint64_t shared_bytes = SHARED_BYTES;

static int take_shared(void *ctx, struct segments_memory *memory, struct npumem_error *error)
{
	(void)ctx, (void)error;
	*memory = (struct segments_memory){.base = shared, .bytes = shared_bytes, .writable = true};
	return 0;
}

static void release_shared(void *ctx, const struct segments_memory *memory)
{
	(void)ctx;
	(void)memory;
}

static const struct segments_source source = {.take = take_shared, .release = release_shared};

static int count_work(void *ctx, struct limits_user *user, bool waits, void (*work)(void *arg),
		      void (*done)(void *arg), void *arg)
{
	(void)user;
	(void)waits;
	++*(unsigned *)ctx;
	work(arg);
	done(arg);
	return 0;
}

static int no_memory(void *ctx, struct limits_user *user, bool waits, void (*work)(void *arg),
		     void (*done)(void *arg), void *arg)
{
	(void)ctx;
	(void)user;
	(void)waits;
	(void)work;
	(void)done;
	(void)arg;
	return -ENOMEM;
}

static int write_shared(bool in_a_list)
{
	Npumem__V1__Operation operation = NPUMEM__V1__OPERATION__INIT, *operations = &operation;
	Npumem__V1__Ref ref = talk_ref(0, "x");
	Npumem__V1__WriteRequest request = {MESSAGE(write_request), .tensor = &ref, .segment = 1};
	if (!in_a_list)
		return TALK(&talk, write, WRITE, &request);
	operation.kind_case = NPUMEM__V1__OPERATION__KIND_WRITE;
	operation.write = &request;
	Npumem__V1__SubmitRequest list = {MESSAGE(submit_request), .n_operations = 1, .operations = &operations};
	return TALK(&talk, submit, SUBMIT, &list);
}

/* However short the operation is: a page fault in a client's memory can sleep. */
TEST(memory_of_a_client_is_touched_on_threads_only)
{
	Npumem__V1__ShareRequest share = NPUMEM__V1__SHARE_REQUEST__INIT;
	unsigned n = 0;
	talk.session.segments_source = &source;
	ck_assert_int_eq(TALK(&talk, share, SHARE, &share), 0);
	ck_assert_int_eq(talk_alloc_as(&talk, &talk.session, "x", 8, SHARED_BYTES / 8), 0);
	talk.rpc->executor = (struct rpc_executor){.submit = count_work, .ctx = &n};
	ck_assert_int_eq(write_shared(false), 0);
	ck_assert_uint_eq(n, 1);
	talk.rpc->executor = (struct rpc_executor){.submit = no_memory};
	for (int in_a_list = 0; in_a_list < 2; in_a_list++)
		ck_assert_int_eq(write_shared(in_a_list), NPUMEM_RESOURCE_EXHAUSTED);
}

/* Nothing but the operation itself touches a client's memory, which may fault: not even where the record, of which
 * it would be a part, has no room for it. */
TEST(memory_of_a_client_is_not_summed_for_a_record)
{
	Npumem__V1__ShareRequest share = NPUMEM__V1__SHARE_REQUEST__INIT;
	Npumem__V1__Ref ref = talk_ref(0, "x");
	talk.session.segments_source = &source;
	/* All behind the first bytes is nobody's: a read of it ends the process. */
	shared_bytes = UINT64_C(1) << 32;
	ck_assert_int_eq(TALK(&talk, share, SHARE, &share), 0);
	ck_assert_int_eq(talk_alloc_as(&talk, &talk.session, "x", 8, SHARED_BYTES / 8), 0);
	ck_assert_int_eq(write_shared(false), 0);
	talk.world.service.recorder.owner = &talk.session;
	talk.world.service.recorder.bytes = RECORDER_BYTES_MAX;
	Npumem__V1__ReadRequest request = {MESSAGE(read_request), .tensor = &ref, .segment = 1};
	ck_assert_int_eq(TALK(&talk, read, READ, &request), 0);
	talk.world.service.recorder.owner = NULL;
	talk.world.service.recorder.bytes = 0;
	talk_again(&talk, NULL);
	shared_bytes = SHARED_BYTES;
}
