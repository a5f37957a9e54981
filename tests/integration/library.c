/* libnpumem as its users meet it, against a real daemon of its own: system memory, submits with parallel groups, the
 * pipelined form. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <npumem/client.h>

static struct npumem *npumem;
static struct npumem_error error;

static void begin(void)
{
	ck_assert_msg(npumem_open("spawn:", &npumem, &error) == 0, "%s", error.message);
}

static void end(void)
{
	npumem_close(npumem);
}

#define ok(call) ck_assert_msg((call) == 0, "%s", error.message)

static struct npumem_tensor tensor_of(int dtype, int64_t frac_bits, int64_t n, int64_t c, int64_t h, int64_t w)
{
	struct npumem_allocation allocation = {.name = NULL};
	struct npumem_tensor tensor;
	npumem_spec_init(&allocation.spec);
	allocation.spec.dtype = dtype;
	allocation.spec.frac_bits = frac_bits;
	allocation.spec.shape = (struct npumem_dims){n, c, h, w};
	allocation.spec.start_npu = 61;
	ok(npumem_alloc(npumem, &allocation, 1, &tensor, &error));
	return tensor;
}

START_TEST(library_moves_data_through_a_segment)
{
	struct npumem_segment segment;
	struct npumem_tensor tensor = tensor_of(NPUMEM_INT16, NPUMEM_ANY, 2, 70, 5, 7);
	size_t n = 2 * 70 * 5 * 7;
	int16_t *data, *back = malloc(n * sizeof(*back));
	ok(npumem_segment_create(npumem, 1 << 20, &segment, &error));
	data = segment.base;
	for (size_t i = 0; i < n; i++)
		data[i] = (int16_t)(i * 31);
	ok(npumem_write_segment(npumem, tensor.handle, &segment, 0, NULL, 0, 0, &error));
	ok(npumem_read(npumem, &tensor, back, n * sizeof(*back), NULL, &error));
	ck_assert_mem_eq(back, data, n * sizeof(*back));

	/* Back with a gap behind each row, and only what belongs to the tensor is written. */
	struct npumem_dims stride = {70 * 5 * 9, 5 * 9, 9, 1};
	memset(segment.base, 0x5a, segment.bytes);
	ok(npumem_read_segment(npumem, tensor.handle, &segment, 64, &stride, 0, 0, NULL, &error));
	for (size_t i = 0; i < 2 * 70 * 5 * 9; i++)
		ck_assert_int_eq(data[32 + i], i % 9 < 7 ? back[i / 9 * 7 + i % 9] : 0x5a5a);
	ck_assert_int_eq(data[31], 0x5a5a);

	ck_assert_int_eq(npumem_write_segment(npumem, tensor.handle, &segment, segment.bytes - 1, NULL, 0, 0, &error),
			 NPUMEM_INVALID);
	ok(npumem_segment_close(npumem, &segment, &error));
	ck_assert_ptr_null(segment.base);
	segment.id = 1;
	ck_assert_int_eq(npumem_write_segment(npumem, tensor.handle, &segment, 0, NULL, 0, 0, &error), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(npumem_segment_create(npumem, 0, &segment, &error), NPUMEM_INVALID);
	free(back);
}
END_TEST

START_TEST(library_submits_a_parallel_group)
{
	struct npumem_segment segment;
	struct npumem_tensor x = tensor_of(NPUMEM_FX8, 4, 1, 64, 8, 8), y = tensor_of(NPUMEM_FX8, 4, 1, 64, 8, 8),
			     next = tensor_of(NPUMEM_FX8, 4, 1, 64, 8, 8);
	struct npumem_operand operands[] = {{"in", x.handle}, {"out", y.handle}};
	struct npumem_param gen;
	struct npumem_done done[4];
	unsigned n_ran;
	ok(npumem_param_parse("relu", "gen", &gen, &error));
	ok(npumem_segment_create(npumem, 65536, &segment, &error));
	int8_t *bytes = segment.base;
	for (int i = 0; i < 4096; i++)
		bytes[i] = (int8_t)i;
	struct npumem_operation operations[] = {
		{.kind = NPUMEM_OP_WRITE, .handle = x.handle, .segment = &segment},
		{.kind = NPUMEM_OP_RUN, .group = 1, .kernel = "relu", .operands = operands, .n_operands = 2,
		 .params = &gen, .n_params = 1},
		{.kind = NPUMEM_OP_WRITE, .group = 1, .handle = next.handle, .segment = &segment},
		{.kind = NPUMEM_OP_READ, .handle = y.handle, .segment = &segment, .segment_offset = 8192},
	};
	ok(npumem_submit(npumem, operations, 4, done, &n_ran, &error));
	ck_assert_uint_eq(n_ran, 4);
	for (int i = 0; i < 4096; i++)
		ck_assert_int_eq(bytes[8192 + i], bytes[i] > 0 ? bytes[i] : 0);

	operations[2].handle = x.handle;
	ck_assert_int_eq(npumem_submit(npumem, operations, 4, done, &n_ran, &error), NPUMEM_ABORTED);
	ck_assert_uint_eq(n_ran, 1);
	ck_assert_ptr_nonnull(strstr(error.message, "operations 1 (run relu"));
	ck_assert_int_eq(npumem_error_find(&error, "second", -1), 2);
}
END_TEST

struct counts {
	unsigned answered, refused;
};

static void count(void *context, const struct npumem_answer *answer)
{
	struct counts *counts = context;
	counts->answered++;
	counts->refused += answer->status != 0;
}

START_TEST(library_shares_while_a_pipeline_is_full)
{
	struct npumem_tensor tensor = tensor_of(NPUMEM_INT8, NPUMEM_ANY, 1, 64, 64, 64);
	struct npumem_segment segment;
	struct counts counts = {0, 0};
	uint8_t *data = calloc(1, 64 * 64 * 64);
	for (int i = 0; i < 100; i++)
		ok(npumem_write_send(npumem, tensor.handle, 0, data, 64 * 64 * 64, count, &counts, &error));
	ok(npumem_segment_create(npumem, 4096, &segment, &error));
	ok(npumem_flush(npumem, &error));
	ck_assert_uint_eq(counts.answered, 100);
	ck_assert_uint_eq(counts.refused, 0);
	free(data);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("library");
	TCase *tcase = tcase_create("library");
	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, library_moves_data_through_a_segment);
	tcase_add_test(tcase, library_submits_a_parallel_group);
	tcase_add_test(tcase, library_shares_while_a_pipeline_is_full);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
