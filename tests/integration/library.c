/* libnpumem as its users meet it, against a real daemon of its own, or another's (NPUMEM_TEST_ADDRESS): system
 * memory, submits with parallel groups, the form that does not wait, and the life of the private daemon. */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <npumem/async.h>

static struct npumem *npumem;
static struct npumem_error error;

/* NPUMEM_TEST_ADDRESS: a daemon that is there, and keeps nothing between two connections. */
static void begin(void)
{
	const char *address = getenv("NPUMEM_TEST_ADDRESS");
	ck_assert_msg(npumem_open(address ? address : "spawn:", NULL, &npumem, &error) == 0, "%s", error.message);
}

static void end(void)
{
	npumem_close(npumem);
}

#define ok(call) ck_assert_msg((call) == 0, "%s", error.message)

static const struct npumem_tensor *tensor_of(int dtype, int64_t frac_bits, int64_t n, int64_t c, int64_t h,
					     int64_t w)
{
	struct npumem_allocation allocation = NPUMEM_ALLOCATION_INIT;
	const struct npumem_tensor *tensor;
	allocation.spec.dtype = dtype;
	allocation.spec.frac_bits = frac_bits;
	allocation.spec.shape = (struct npumem_dims){n, c, h, w};
	allocation.spec.start_npu = 61;
	ok(npumem_alloc(npumem, &allocation, 1, &tensor, &error));
	return tensor;
}

/* ---- system memory and lists ---- */

START_TEST(data_through_a_segment)
{
	const struct npumem_segment *segment;
	const struct npumem_tensor *tensor = tensor_of(NPUMEM_INT16, NPUMEM_ANY, 2, 70, 5, 7);
	size_t n = 2 * 70 * 5 * 7;
	int16_t *data, *back = malloc(n * sizeof(*back));
	ok(npumem_segment_create(npumem, 1 << 20, &segment, &error));
	data = segment->base;
	for (size_t i = 0; i < n; i++)
		data[i] = (int16_t)(i * 31);
	ok(npumem_write_segment(npumem, tensor->handle, segment, 0, NULL, 0, 0, &error));
	ok(npumem_read(npumem, tensor, back, n * sizeof(*back), NULL, &error));
	ck_assert_mem_eq(back, data, n * sizeof(*back));

	/* Back with a gap behind each row, and only what belongs to the tensor is written. */
	struct npumem_dims stride = {70 * 5 * 9, 5 * 9, 9, 1};
	memset(segment->base, 0x5a, segment->bytes);
	ok(npumem_read_segment(npumem, tensor->handle, segment, 64, &stride, 0, 0, NULL, &error));
	for (size_t i = 0; i < 2 * 70 * 5 * 9; i++)
		ck_assert_int_eq(data[32 + i], i % 9 < 7 ? back[i / 9 * 7 + i % 9] : 0x5a5a);
	ck_assert_int_eq(data[31], 0x5a5a);

	ck_assert_int_eq(
		npumem_write_segment(npumem, tensor->handle, segment, segment->bytes - 1, NULL, 0, 0, &error),
		NPUMEM_INVALID);
	struct npumem_segment closed = *segment;
	ok(npumem_segment_close(npumem, segment, &error));
	ck_assert_int_eq(npumem_write_segment(npumem, tensor->handle, &closed, 0, NULL, 0, 0, &error),
			 NPUMEM_NOT_FOUND);
	ck_assert_int_eq(npumem_segment_create(npumem, 0, &segment, &error), NPUMEM_INVALID);
	ck_assert_ptr_null(segment);
	free(back);
}
END_TEST

START_TEST(a_parallel_group)
{
	const struct npumem_segment *segment;
	const struct npumem_submitted *ran;
	const struct npumem_tensor *x = tensor_of(NPUMEM_FX8, 4, 1, 64, 8, 8),
				   *y = tensor_of(NPUMEM_FX8, 4, 1, 64, 8, 8),
				   *next = tensor_of(NPUMEM_FX8, 4, 1, 64, 8, 8);
	struct npumem_operand operands[] = {{"in", x->handle}, {"out", y->handle}};
	struct npumem_param gen;
	enum { SIZE = sizeof(struct npumem_operation) };
	ok(npumem_param_parse("relu", "gen", &gen, &error));
	ok(npumem_segment_create(npumem, 65536, &segment, &error));
	int8_t *bytes = segment->base;
	for (int i = 0; i < 4096; i++)
		bytes[i] = (int8_t)i;
	struct npumem_operation operations[] = {
		{.size = SIZE, .kind = NPUMEM_OP_WRITE, .handle = x->handle, .segment = segment},
		{.size = SIZE,
		 .kind = NPUMEM_OP_RUN,
		 .group = 1,
		 .kernel = "relu",
		 .operands = operands,
		 .n_operands = 2,
		 .params = &gen,
		 .n_params = 1},
		{.size = SIZE, .kind = NPUMEM_OP_WRITE, .group = 1, .handle = next->handle, .segment = segment},
		{.size = SIZE,
		 .kind = NPUMEM_OP_READ,
		 .handle = y->handle,
		 .segment = segment,
		 .segment_offset = 8192},
	};
	ok(npumem_submit(npumem, operations, 4, &ran, &error));
	ck_assert_uint_eq(ran->n_ran, 4);
	for (int i = 0; i < 4096; i++)
		ck_assert_int_eq(bytes[8192 + i], bytes[i] > 0 ? bytes[i] : 0);
	npumem_release(ran);

	operations[2].handle = x->handle;
	ck_assert_int_eq(npumem_submit(npumem, operations, 4, &ran, &error), NPUMEM_ABORTED);
	ck_assert_uint_eq(ran->n_ran, 1);
	ck_assert_ptr_nonnull(strstr(error.message, "operations 1 (run relu"));
	ck_assert_int_eq(npumem_error_find(&error, "second", -1), 2);
}
END_TEST

/* It reads to where its operations say, each time, and from another segment's place where it is told so. */
START_TEST(a_kept_list)
{
	enum { N = 128, SIZE = sizeof(struct npumem_operation), CHANGE = sizeof(struct npumem_change) };
	const struct npumem_tensor *x = tensor_of(NPUMEM_INT8, NPUMEM_ANY, 1, 8, 1, 16),
				   *y = tensor_of(NPUMEM_INT8, NPUMEM_ANY, 1, 8, 1, 16);
	const struct npumem_segment *segment;
	const struct npumem_submitted *ran;
	const struct npumem_kept *kept;
	int8_t back[N];
	ok(npumem_segment_create(npumem, 4096, &segment, &error));
	memset(segment->base, 3, N);
	memset((char *)segment->base + N, 5, N);
	struct npumem_operation operations[] = {
		{.size = SIZE, .kind = NPUMEM_OP_WRITE, .handle = x->handle, .segment = segment},
		{.size = SIZE, .kind = NPUMEM_OP_COPY, .handle = y->handle, .source = x->handle},
		{.size = SIZE, .kind = NPUMEM_OP_READ, .handle = y->handle, .data = back, .bytes = N},
	};
	struct npumem_change changes[] = {
		{.size = CHANGE, .operation = 0, .segment = segment, .segment_offset = N},
		{.size = CHANGE, .operation = 1, .role = "source", .handle = x->handle},
	};
	/* Between hosts a segment's elements would be those of the moment when the list was kept. */
	if (getenv("NPUMEM_TEST_ADDRESS")) {
		ck_assert_int_eq(npumem_keep_list(npumem, operations, 3, &kept, &error), NPUMEM_INVALID);
		ck_assert_str_eq(error.message,
				 "operation 0 has a segment, which a kept list over ssh cannot have");
		ok(npumem_write(npumem, x, segment->base, N, &error));
		ok(npumem_keep_list(npumem, operations + 1, 2, &kept, &error));
		ok(npumem_run_list(npumem, kept, NULL, 0, &ran, &error));
		ck_assert_uint_eq(ran->n_ran, 2);
		return;
	}
	ok(npumem_keep_list(npumem, operations, 3, &kept, &error));
	ck_assert_uint_eq(kept->n, 3);
	ck_assert_uint_gt(kept->bytes, 0);
	ok(npumem_run_list(npumem, kept, NULL, 0, &ran, &error));
	ck_assert_uint_eq(ran->n_ran, 3);
	ck_assert_int_eq(back[N - 1], 3);
	npumem_release(ran);
	ok(npumem_run_list(npumem, kept, changes, 2, &ran, &error));
	ck_assert_int_eq(back[N - 1], 5);
	npumem_release(ran);
	changes[1].operation = 3;
	ck_assert_int_eq(npumem_run_list(npumem, kept, changes, 2, &ran, &error), NPUMEM_INVALID);
	ck_assert_int_eq(npumem_error_find(&error, "change", -1), 1);
	changes[1].size = 8;
	ck_assert_int_eq(npumem_run_list(npumem, kept, changes, 2, &ran, &error), NPUMEM_INVALID);
	ok(npumem_free(npumem, &x->handle, 1, &error));
	ck_assert_int_eq(npumem_run_list(npumem, kept, NULL, 0, &ran, &error), NPUMEM_NOT_FOUND);
	ok(npumem_drop_list(npumem, kept, &error));
	ck_assert_int_eq(npumem_keep_list(npumem, operations, 0, &kept, &error), NPUMEM_INVALID);
}
END_TEST

/* ---- without waiting ---- */

struct counts {
	unsigned answered, refused;
	int status;
};

static void count(void *context, const struct npumem_answer *answer)
{
	struct counts *counts = context;
	counts->answered++;
	counts->refused += answer->status != 0;
	counts->status = answer->status;
}

START_TEST(shares_while_a_pipeline_is_full)
{
	const struct npumem_tensor *tensor = tensor_of(NPUMEM_INT8, NPUMEM_ANY, 1, 64, 64, 64);
	const struct npumem_segment *segment;
	struct counts counts = {0, 0, 0};
	uint8_t *data = calloc(1, 64 * 64 * 64);
	for (int i = 0; i < 100; i++)
		ok(npumem_write_async(npumem, tensor, data, 64 * 64 * 64, count, &counts, NULL, &error));
	ok(npumem_segment_create(npumem, 4096, &segment, &error));
	ok(npumem_flush(npumem, &error));
	ck_assert_uint_eq(counts.answered, 100);
	ck_assert_uint_eq(counts.refused, 0);
	free(data);
}
END_TEST

/* Larger than what is in flight at once, both ways, from and to arrays that the library only borrows. */
START_TEST(arrays_of_many_chunks)
{
	const struct npumem_tensor *tensor = tensor_of(NPUMEM_INT16, NPUMEM_ANY, 3, 128, 100, 101);
	size_t n = (size_t)3 * 128 * 100 * 101, bytes = n * 2;
	uint16_t *data = malloc(bytes), *back = malloc(bytes);
	struct counts counts = {0, 0, 0};
	for (size_t i = 0; i < n; i++)
		data[i] = (uint16_t)(i * 40503u);
	ok(npumem_write_async(npumem, tensor, data, bytes, count, &counts, NULL, &error));
	ok(npumem_read_async(npumem, tensor, back, bytes, count, &counts, NULL, &error));
	ok(npumem_flush(npumem, &error));
	ck_assert_uint_eq(counts.answered, 2);
	ck_assert_uint_eq(counts.refused, 0);
	/* The read takes effect behind all of the write. */
	ck_assert(!memcmp(data, back, bytes));
	free(data);
	free(back);
}
END_TEST

/* A kernel of 2 * 10^11 multiplications, whose end nobody waits for, and tensors for it. The run may take so long,
 * 0: any time. */
static void run_long(unsigned timeout_ms, struct counts *counts, struct npumem_request **request)
{
	const struct npumem_tensor *in = tensor_of(NPUMEM_FX8, 4, 1, 128, 200, 200),
				   *weights = tensor_of(NPUMEM_FX8, 4, 128, 64, 31, 31),
				   *out = tensor_of(NPUMEM_FX8, 4, 1, 64, 170, 170);
	struct npumem_operand operands[] = {
		{"in", in->handle}, {"weights", weights->handle}, {"out", out->handle}};
	ok(npumem_fill(npumem, in->handle, 1, &error));
	ok(npumem_fill(npumem, weights->handle, 1, &error));
	npumem_set_timeout(npumem, timeout_ms);
	ok(npumem_run_async(npumem, "conv2d", operands, 3, NULL, 0, count, counts, request, &error));
}

START_TEST(a_kernel_is_taken_back)
{
	struct counts counts = {0, 0, 0};
	struct npumem_request *request;
	run_long(0, &counts, &request);
	npumem_cancel(request);
	ok(npumem_flush(npumem, &error));
	ck_assert_uint_eq(counts.answered, 1);
	ck_assert_int_eq(counts.status, NPUMEM_CANCELLED);
}
END_TEST

START_TEST(a_kernel_is_let_go)
{
	struct counts counts = {0, 0, 0};
	struct npumem_request *request;
	run_long(0, &counts, &request);
	npumem_let_go(request);
	ck_assert_uint_eq(npumem_in_flight(npumem), 0);
	ok(npumem_info(npumem, NULL, &error));
	ck_assert_uint_eq(counts.answered, 0);
}
END_TEST

START_TEST(a_call_takes_too_long)
{
	struct counts counts = {0, 0, 0};
	struct npumem_request *request;
	npumem_set_timeout(npumem, 60000);
	ok(npumem_info(npumem, NULL, &error));
	run_long(50, &counts, &request);
	ok(npumem_flush(npumem, &error));
	ck_assert_int_eq(counts.status, NPUMEM_DEADLINE_EXCEEDED);
	/* It was taken back, and the connection is as good as before. */
	npumem_set_timeout(npumem, 0);
	ok(npumem_info(npumem, NULL, &error));
}
END_TEST

/* ---- the private daemon ---- */

static void *open_here(void *context)
{
	*(int *)context = npumem_open("spawn:", NULL, &npumem, &error);
	return NULL;
}

START_TEST(a_daemon_outlives_the_thread_that_opened_it)
{
	pthread_t thread;
	int status = -1;
	ck_assert_int_eq(pthread_create(&thread, NULL, open_here, &status), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(status, 0);
	for (unsigned i = 0; i < 20; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		ok(npumem_info(npumem, NULL, &error));
	}
	npumem_close(npumem);
}
END_TEST

/* With a kernel that runs, and no goodbye. The daemon holds the end of a pipe as long as it lives. */
START_TEST(a_daemon_ends_with_its_client)
{
	struct counts counts = {0, 0, 0};
	int ends[2];
	char byte;
	ck_assert_int_eq(pipe(ends), 0);
	pid_t pid = fork();
	if (!pid) {
		begin();
		run_long(0, &counts, NULL);
		npumem_process(npumem, NULL);
		raise(SIGKILL);
	}
	close(ends[1]);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq((int)read(ends[0], &byte, 1), 0);
	close(ends[0]);
}
END_TEST

int main(void)
{
	/* A test case takes its time limit when it is made. */
	setenv("CK_DEFAULT_TIMEOUT", "240", 0);
	Suite *suite = suite_create("library");
	TCase *tcase = tcase_create("library"), *alone = tcase_create("private daemon");
	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, data_through_a_segment);
	tcase_add_test(tcase, a_parallel_group);
	tcase_add_test(tcase, a_kept_list);
	tcase_add_test(tcase, shares_while_a_pipeline_is_full);
	tcase_add_test(tcase, arrays_of_many_chunks);
	tcase_add_test(tcase, a_kernel_is_taken_back);
	tcase_add_test(tcase, a_kernel_is_let_go);
	tcase_add_test(tcase, a_call_takes_too_long);
	tcase_add_test(alone, a_daemon_outlives_the_thread_that_opened_it);
	tcase_add_test(alone, a_daemon_ends_with_its_client);
	suite_add_tcase(suite, tcase);
	suite_add_tcase(suite, alone);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
