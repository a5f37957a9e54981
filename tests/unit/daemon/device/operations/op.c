/* Which operations may run at once: against the bytes that each of them reads and writes, drawn one by one. */
#include "daemon/device/internal.h"
#include "daemon/device/tensors/page_cost.h"
#include "daemon/device/tensors/written.h"
#include "daemon/device/kernel_support/windows/convolution.h"
#include "daemon/device/operations/op.h"

#include "tests/support/bytemap.h"
#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/rig.h"

FIXTURE_OBJECT(struct rig, rig, rig_open(&rig, 4, 4096), rig_close(&rig))

/* ---- against sets of bytes ---- */

enum { READS = 1, WRITES = 2, BYTES_MAX = 5 * 1024 };

struct bytes {
	uint8_t what[BYTES_MAX]; /* [npu][offset] */
};

static void touch(struct bytes *bytes, const struct bytemap *map, const struct tensor *tensor, bool footprint,
		  uint8_t what)
{
	struct bytemap_tensor *t = bytemap_draw(map, TENSOR_PLACE(tensor));
	for (int64_t i = 0; i < map->n_npus * t->place.bytes_per_npu; i++)
		if (footprint || bytemap_is_data(t->kind[i]))
			bytes->what[bytemap_place_of(map, t, i)] |= what;
	bytemap_forget_drawing(t);
}

static void touched(struct bytes *bytes, const struct bytemap *map, const struct op *op)
{
	memset(bytes, 0, sizeof(*bytes));
	if (op->kind == OP_RUN) {
		touch(bytes, map, op->operands[0].tensor, false, READS);
		touch(bytes, map, op->operands[1].tensor, true, WRITES);
	} else {
		touch(bytes, map, op->tensor, false, op->kind == OP_READ ? READS : WRITES);
	}
	if (op->kind == OP_COPY)
		touch(bytes, map, op->source, false, READS);
}

static bool clash(const struct bytes *a, const struct bytes *b, int64_t i)
{
	return (a->what[i] & WRITES && b->what[i]) || (b->what[i] & WRITES && a->what[i]);
}

/* One of each queue. */
static void compare(const struct bytemap *map, struct op *a, struct op *b, unsigned *n_conflicts)
{
	static struct bytes a_bytes, b_bytes;
	struct op *ops[] = {a, b};
	int64_t npu, offset, bytes;
	bool expected = false, conflict;
	npumem_error_clear(&rig.error);
	conflict = op_group_check(rig.device, ops, 2, 0, &rig.context) == NPUMEM_ABORTED;
	npu = rig_field(&rig, "npu");
	offset = rig_field(&rig, "offset");
	bytes = rig_field(&rig, "bytes");
	touched(&a_bytes, map, a);
	touched(&b_bytes, map, b);
	for (int64_t i = 0; i < map->n_npus * map->npu_bytes; i++)
		expected = expected || clash(&a_bytes, &b_bytes, i);
	if (conflict != expected)
		ck_abort_msg("kinds %d and %d: %d, not %d", a->kind, b->kind, conflict, expected);
	*n_conflicts += conflict;
	for (int64_t i = 0; conflict && i < bytes; i++)
		if (!clash(&a_bytes, &b_bytes, npu * map->npu_bytes + offset + i))
			ck_abort_msg("NPU %ld, byte %ld is no conflict", (long)npu, (long)(offset + i));
}

static struct tensor *random_tensor(uint64_t *random)
{
	struct tensor *tensor = NULL;
	while (!tensor) {
		struct device_request request =
			rig_request(NPUMEM_FX8, oracle_between(random, 1, 5), oracle_between(random, 1, 8),
				    oracle_between(random, 1, 2), oracle_between(random, 1, 6));
		request.reuse = NPUMEM_UNCHECKED;
		request.spec.layout = oracle_random(random) % 2 ? NPUMEM_ALIGNED : NPUMEM_COMPACT;
		request.spec.mode = oracle_random(random) % 2 ? NPUMEM_MODE_PLAIN : NPUMEM_MODE_4N;
		request.spec.start_npu = oracle_between(random, 0, rig.options.geometry.n_npus - 1);
		rig_try(&rig, &request, &tensor);
	}
	const struct npumem_dims shape = tensor_place(tensor).shape;
	struct device_slice slice = {{0, oracle_between(random, 0, shape.c - 1), 0, 0}, shape};
	struct tensor *view = tensor;
	if (oracle_random(random) % 2)
		ck_assert_int_eq(device_view_slice(rig.device, tensor, &slice, &view, &rig.context), 0);
	return view;
}

TEST(against_sets_of_bytes)
{
	unsigned n_conflicts = 0;
	for (uint64_t seed = 1; seed <= 25; seed++) {
		struct bytemap map;
		struct tensor *tensors[8];
		uint64_t random = seed;
		rig_reopen(&rig, oracle_between(&random, 1, 5), 1024);
		bytemap_init(&map, &rig.options.geometry);
		for (unsigned i = 0; i < 6; i++)
			tensors[i] = random_tensor(&random);
		/* The bases of views, too. */
		for (unsigned i = 6; i < 8; i++)
			tensors[i] = tensor_root(tensors[i - 6]);
		for (int i = 0; i < 30; i++) {
			struct op ops[2];
			struct op_operand operands[2][2] = {{{.role = "in"}, {.role = "out"}},
							    {{.role = "in"}, {.role = "out"}}};
			for (unsigned k = 0; k < 2; k++) {
				ops[k] = (struct op){
					.kind = k == (unsigned)i % 2
							? OP_RUN
							: (enum op_kind)oracle_between(&random, OP_WRITE, OP_COPY),
					.tensor = tensors[oracle_random(&random) % 8],
					.source = tensors[oracle_random(&random) % 8],
					.kernel = NPUMEM_KERNEL_RELU,
					.operands = operands[k],
					.n_operands = 2};
				operands[k][0].tensor = ops[k].source;
				operands[k][1].tensor = ops[k].tensor;
			}
			compare(&map, &ops[0], &ops[1], &n_conflicts);
		}
		bytemap_deinit(&map);
	}
	ck_assert_uint_ge(n_conflicts, 100);
	ck_assert_uint_le(n_conflicts, 650);
}

/* ---- groups ---- */

/* Two whose elements lie between each other, with strides that have nothing to do with each other: that they share
 * nothing is told, however often it is asked; and asking can be cancelled. */
TEST(irregular_strides)
{
	enum { FILLS = 2000 };
	struct op_operand operands[2];
	struct op fill = {.kind = OP_FILL}, *ops[FILLS + 1];
	struct kernel_progress progress = {.cancelled = false};
	rig_reopen(&rig, 1, 524288);
	struct device_request request = rig_request(NPUMEM_FX8, 7, 8, 4, 3);
	request.reuse = NPUMEM_UNCHECKED;
	request.spec.layout = NPUMEM_STRIDED;
	request.spec.stride = (struct npumem_dims){35661, 16224, 11372, 4113};
	request.spec.address = 41489;
	struct tensor *in = rig_place(&rig, &request);
	request.spec.shape = (struct npumem_dims){3, 4, 2, 10};
	request.spec.stride = (struct npumem_dims){2628, 37254, 8920, 1726};
	request.spec.address = 49221;
	fill.tensor = rig_place(&rig, &request);
	request = rig_request(NPUMEM_FX8, 7, 8, 4, 3);
	operands[0] = (struct op_operand){"in", in};
	operands[1] = (struct op_operand){"out", rig_place(&rig, &request)};
	struct op run = {.kind = OP_RUN, .kernel = NPUMEM_KERNEL_RELU, .operands = operands, .n_operands = 2};
	for (unsigned i = 0; i < FILLS; i++)
		ops[i] = &fill;
	ops[FILLS] = &run;
	run.progress = &progress;
	ck_assert_int_eq(op_group_check(rig.device, ops + 1, FILLS, 0, &rig.context), 0);
	ck_assert_int_eq(op_group_check(rig.device, ops, FILLS + 1, 0, &rig.context), 0);
	/* As an output it takes all of its footprint. */
	operands[1].tensor = in;
	rig_fails(&rig, op_group_check(rig.device, ops, FILLS + 1, 0, &rig.context), NPUMEM_ABORTED,
		  "operations 0 (fill #2) and 2000 (run relu out=#1) of one group conflict");
	operands[1].tensor = operands[0].tensor;
	operands[0].tensor = fill.tensor;
	operands[1].tensor = rig_place(&rig, &request);
	fill.kind = OP_READ;
	ck_assert_int_eq(op_group_check(rig.device, ops, FILLS + 1, 0, &rig.context), 0);
	progress.cancelled = true;
	rig_fails(&rig, op_group_check(rig.device, ops, FILLS + 1, 0, &rig.context), NPUMEM_CANCELLED,
		  "the group was cancelled before it began");
	ck_assert_int_eq(op_group_cost(ops + 3, 3), 0);
}

/* Four NPUs, three tensors of 4 channels with 2 batches, each batch a block row, and views of `x`: of its batches,
 * and of the first two and the last two channels of batch 0. */
struct stage {
	struct tensor *x, *y, *z, *first, *second, *left, *right;
};

static void stage_open(struct stage *stage)
{
	rig_reopen(&rig, 4, 1024);
	struct device_request request = rig_request(NPUMEM_FX8, 2, 4, 1, 8);
	struct tensor **tensors[] = {&stage->x, &stage->y, &stage->z};
	static const char *const names[] = {"x", "y", "z"};
	for (unsigned i = 0; i < 3; i++) {
		*tensors[i] = rig_place(&rig, &request);
		(*tensors[i])->owner = (void *)(uintptr_t)names[i];
	}
	const struct device_slice slices[] = {{{0, 0, 0, 0}, {1, 4, 1, 8}},
					      {{1, 0, 0, 0}, {2, 4, 1, 8}},
					      {{0, 0, 0, 0}, {1, 2, 1, 8}},
					      {{0, 2, 0, 0}, {1, 4, 1, 8}}};
	struct tensor **views[] = {&stage->first, &stage->second, &stage->left, &stage->right};
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(device_view_slice(rig.device, stage->x, &slices[i], views[i], &rig.context), 0);
}

static struct op dma(enum op_kind kind, struct tensor *tensor, struct tensor *source)
{
	return (struct op){.kind = kind, .tensor = tensor, .source = source};
}

static struct op relu(struct op_operand operands[2], struct tensor *in, struct tensor *out)
{
	operands[0] = (struct op_operand){"in", in};
	operands[1] = (struct op_operand){"out", out};
	return (struct op){.kind = OP_RUN, .kernel = NPUMEM_KERNEL_RELU, .operands = operands, .n_operands = 2};
}

static int group(struct op *a, struct op *b)
{
	struct op *ops[] = {a, b};
	npumem_error_clear(&rig.error);
	return op_group_check(rig.device, ops, 2, 0, &rig.context);
}

TEST(lanes)
{
	struct stage stage;
	struct op_operand operands[2][2];
	stage_open(&stage);
	struct op write_x = dma(OP_WRITE, stage.x, NULL), read_x = dma(OP_READ, stage.x, NULL);
	struct op copy_xy = dma(OP_COPY, stage.x, stage.y), fill_z = dma(OP_FILL, stage.z, NULL);
	struct op run_xy = relu(operands[0], stage.x, stage.y), run_yx = relu(operands[1], stage.y, stage.x);
	ck_assert_int_eq(op_queue(&write_x), OP_DMA);
	ck_assert_int_eq(op_queue(&read_x), OP_DMA);
	ck_assert_int_eq(op_queue(&copy_xy), OP_DMA);
	ck_assert_int_eq(op_queue(&fill_z), OP_DMA);
	ck_assert_int_eq(op_queue(&run_xy), OP_COMPUTE);
	/* Operations of one lane keep their order, whatever they share. */
	ck_assert_int_eq(group(&write_x, &read_x), 0);
	ck_assert_int_eq(group(&write_x, &copy_xy), 0);
	ck_assert_int_eq(group(&run_xy, &run_yx), 0);
	/* Reading beside reading is fine, as is what has nothing to do with it. */
	ck_assert_int_eq(group(&read_x, &run_xy), 0);
	ck_assert_int_eq(group(&fill_z, &run_xy), 0);
	/* Writing what is read, reading what is written, writing what is written. */
	ck_assert_int_eq(group(&write_x, &run_xy), NPUMEM_ABORTED);
	ck_assert_int_eq(group(&run_yx, &read_x), NPUMEM_ABORTED);
	ck_assert_int_eq(group(&copy_xy, &run_xy), NPUMEM_ABORTED);
	ck_assert_int_eq(group(&run_yx, &write_x), NPUMEM_ABORTED);
}

TEST(who_and_where)
{
	struct stage stage;
	struct op_operand operands[2];
	stage_open(&stage);
	struct op fill_z = dma(OP_FILL, stage.z, NULL), read_x = dma(OP_READ, stage.x, NULL);
	struct op run = relu(operands, stage.y, stage.x);
	struct op *ops[] = {&fill_z, &run, &fill_z, &read_x};
	npumem_error_clear(&rig.error);
	rig_fails(&rig, op_group_check(rig.device, ops, 4, 20, &rig.context), NPUMEM_ABORTED,
		  "operations 21 (run relu out=x) and 23 (read x) of one group conflict on NPU 0, bytes 0 to 7; "
		  "nothing "
		  "of the group ran");
	ck_assert_int_eq(rig_field(&rig, "first"), 21);
	ck_assert_int_eq(rig_field(&rig, "second"), 23);
	ck_assert_int_eq(rig_field(&rig, "npu"), 0);
	ck_assert_int_eq(rig_field(&rig, "offset"), 0);
	ck_assert_int_eq(rig_field(&rig, "bytes"), 8);
	ck_assert_str_eq(rig_text(&rig, "first_tensor"), "x");
	ck_assert_str_eq(rig_text(&rig, "second_tensor"), "x");
}

/* Views of one base: those of other block rows are apart; in one row a kernel takes what the other's NPUs have
 * there. */
TEST(views_of_one_base)
{
	struct stage stage;
	struct op_operand operands[2];
	stage_open(&stage);
	struct op write_first = dma(OP_WRITE, stage.first, NULL), write_left = dma(OP_WRITE, stage.left, NULL);
	struct op write_right = dma(OP_WRITE, stage.right, NULL), read_y = dma(OP_READ, stage.y, NULL);
	struct op run = relu(operands, stage.z, stage.second);
	ck_assert_int_eq(group(&write_first, &run), 0);
	ck_assert_int_eq(group(&read_y, &run), 0);
	run = relu(operands, stage.second, stage.z);
	ck_assert_int_eq(group(&write_first, &run), 0);
	/* As an input it is its data alone, */
	run = relu(operands, stage.left, stage.z);
	ck_assert_int_eq(group(&write_right, &run), 0);
	ck_assert_int_eq(group(&write_left, &run), NPUMEM_ABORTED);
	/* as an output its whole row. */
	run = relu(operands, stage.z, stage.left);
	ck_assert_int_eq(group(&write_right, &run), NPUMEM_ABORTED);
	ck_assert_int_eq(rig_field(&rig, "npu"), 2);
	ck_assert_int_eq(rig_field(&rig, "offset"), 0);
	ck_assert_int_eq(rig_field(&rig, "bytes"), 8);
}

/* What lies in an empty block of an output conflicts with the kernel. */
TEST(empty_blocks)
{
	struct op_operand operands[2];
	rig_reopen(&rig, 4, 1024);
	struct device_request request = rig_request(NPUMEM_FX8, 1, 3, 1, 64);
	request.spec.address = 0;
	struct tensor *host = rig_place(&rig, &request), *in;
	request.spec.address = 512;
	in = rig_place(&rig, &request);
	request = rig_request(NPUMEM_FX8, 1, 1, 1, 64);
	request.spec.address = 3 * 1024;
	request.reuse = NPUMEM_UNCHECKED;
	struct tensor *guest = rig_place(&rig, &request);
	struct op run = relu(operands, in, host), read_guest = dma(OP_READ, guest, NULL);
	struct op *ops[] = {&run, &read_guest};
	npumem_error_clear(&rig.error);
	ck_assert_int_eq(op_group_check(rig.device, ops, 2, 0, &rig.context), NPUMEM_ABORTED);
	ck_assert_int_eq(rig_field(&rig, "npu"), 3);
	ck_assert_int_eq(rig_field(&rig, "offset"), 0);
	ck_assert_int_eq(rig_field(&rig, "bytes"), 64);
	char name[ERROR_CONTEXT_NAME_BYTES];
	ck_assert_str_eq(rig_text(&rig, "first_tensor"), error_context_name(&rig.context, host, name));
	ck_assert_str_eq(rig_text(&rig, "second_tensor"), error_context_name(&rig.context, guest, name));
}

TEST(descriptions)
{
	struct stage stage;
	char text[OP_DESCRIPTION_BYTES], small[12];
	struct op_operand operands[2];
	stage_open(&stage);
	struct error_context *context = &rig.context;
	struct op op = dma(OP_WRITE, stage.x, NULL);
	ck_assert_str_eq(op_describe(&op, context, text, sizeof(text)), "write x");
	op.kind = OP_FILL;
	ck_assert_str_eq(op_describe(&op, context, text, sizeof(text)), "fill x");
	op.kind = OP_READ;
	ck_assert_str_eq(op_describe(&op, context, text, sizeof(text)), "read x");
	op = dma(OP_COPY, stage.x, stage.y);
	ck_assert_str_eq(op_describe(&op, context, text, sizeof(text)), "copy x");
	op = relu(operands, stage.y, stage.z);
	ck_assert_str_eq(op_describe(&op, context, text, sizeof(text)), "run relu out=z");
	ck_assert_str_eq(op_describe(&op, context, small, sizeof(small)), "run relu ou");
	op.kernel = 9999;
	ck_assert_str_eq(op_describe(&op, context, text, sizeof(text)), "run ? out=z");
}

/* An upper bound is enough, but a convolution must not look like a copy. */
TEST(costs)
{
	struct device_request request = rig_request(NPUMEM_FX8, 1, 4, 8, 8);
	struct tensor *in = rig_place(&rig, &request), *out = rig_place(&rig, &request);
	request = rig_request(NPUMEM_FX8, 4, 4, 3, 3);
	struct tensor *weights = rig_place(&rig, &request);
	struct op op = dma(OP_WRITE, in, NULL);
	op.count = 17;
	op.system.segment = (struct segment *)&op;
	/* A page of bytes and one of bits. */
	ck_assert_int_gt(op_cost(rig.device, &op), 2 * 2 * 1000);
	written_note(in);
	written_note(out);
	written_note(weights);
	ck_assert_int_eq(op_cost(rig.device, &op), 17 / 4);
	/* What is in the message is cheaper, but for finding where it goes. */
	op.system.segment = NULL;
	ck_assert_int_le(op_cost(rig.device, &op), 17 / 8 + 1);
	op.count = 128;
	ck_assert_int_eq(op_cost(rig.device, &op), 128 / 8 + 2 * 8);
	op.count = -1;
	op.system.segment = (struct segment *)&op;
	/* Four features, found one by one. */
	ck_assert_int_eq(op_cost(rig.device, &op), 256 / 4 + 4 * 8);
	op.kind = OP_FILL;
	ck_assert_int_eq(op_cost(rig.device, &op), 256 / 4 + 4 * 8);
	struct op_operand operands[2];
	op = relu(operands, in, out);
	ck_assert_int_ge(op_cost(rig.device, &op), 2 * (256 / 4 + 4 * 8));
	ck_assert_int_lt(op_cost(rig.device, &op), 2000);
	/* The same number of elements in more features is dearer. */
	request = rig_request(NPUMEM_FX8, 1, 32, 8, 1);
	op = dma(OP_FILL, rig_place(&rig, &request), NULL);
	written_note(op.tensor);
	ck_assert_int_eq(op_cost(rig.device, &op), 256 / 4 + 32 * 8);
	/* No more than there is, whatever is asked for. */
	op = dma(OP_READ, in, NULL);
	op.count = -1;
	int64_t all = op_cost(rig.device, &op);
	op.count = INT64_MAX;
	ck_assert_int_eq(op_cost(rig.device, &op), all);
}

/* Columns of one tensor lie between each other: whether they share bytes takes longer than to copy them. */
TEST(costs_of_neighbours)
{
	enum { ROWS = 64 };
	struct device_request request = rig_request(NPUMEM_FX8, 1, 1, ROWS, 2);
	struct tensor *base = rig_place(&rig, &request), *other = rig_place(&rig, &request), *column[2];
	for (int i = 0; i < 2; i++) {
		struct device_slice slice = {{0, 0, 0, i}, {1, 1, ROWS, i + 1}};
		ck_assert_int_eq(device_view_slice(rig.device, base, &slice, &column[i], &rig.context), 0);
	}
	written_note(base);
	written_note(other);
	struct op op = dma(OP_COPY, column[0], column[1]);
	int64_t between = op_cost(rig.device, &op);
	op.source = other;
	ck_assert_int_ge(between, op_cost(rig.device, &op) + 2 * ROWS * 100);
	struct op_operand operands[2];
	op = relu(operands, column[1], column[0]);
	ck_assert_int_ge(op_cost(rig.device, &op), between);
	/* An output's role may begin with another word. */
	op.kernel = NPUMEM_KERNEL_LSTM_CELL;
	operands[0] = (struct op_operand){"cell_in", column[0]};
	operands[1] = (struct op_operand){"cell_out", column[1]};
	ck_assert_int_ge(op_cost(rig.device, &op), between);
	/* In place there is nothing to look for. */
	op = relu(operands, column[0], column[0]);
	ck_assert_int_lt(op_cost(rig.device, &op), between);
}

/* Checked as it is when it is about to run. */
static int64_t checked_cost(struct op *op, bool runs)
{
	ck_assert_int_eq(op_check(rig.device, op, &rig.context), 0);
	int64_t cost = op_cost(rig.device, op);
	if (runs)
		ck_assert_int_eq(op_run(rig.device, op, &rig.context), 0);
	op_deinit(rig.device, op);
	return cost;
}

/* What a kept pack saves is known: to make it. */
TEST(costs_with_a_pack)
{
	enum { CHANNELS = 64, SIDE = 16, PACK = CHANNELS * CHANNELS * CONVOLUTION_PACK_STEPS };
	rig_reopen_with(&rig, 4, 1 << 18, (struct device_options){.allow_unchecked = true, .pack_bytes = 1 << 20});
	struct device_request request = rig_request(NPUMEM_FX8, 1, CHANNELS, SIDE, SIDE);
	struct tensor *in = rig_place(&rig, &request), *out = rig_place(&rig, &request);
	request = rig_request(NPUMEM_FX8, CHANNELS, CHANNELS, 1, 1);
	struct tensor *weights = rig_place(&rig, &request);
	ck_assert_int_eq(rig_fill(&rig, in, 1), 0);
	ck_assert_int_eq(rig_fill(&rig, weights, 1), 0);
	struct op_operand operands[3];
	struct op op = relu(operands, in, out);
	operands[2] = (struct op_operand){"weights", weights};
	op.kernel = NPUMEM_KERNEL_CONV2D;
	op.n_operands = 3;
	int64_t first = checked_cost(&op, true), cost = checked_cost(&op, false);
	ck_assert_int_gt(cost, SIDE * SIDE * CHANNELS / 8);
	ck_assert_int_ge(first, cost + PACK);
	ck_assert_int_ge(op_cost(rig.device, &op), cost + PACK); /* not checked */
	ck_assert_int_eq(rig_fill(&rig, weights, 2), 0);
	ck_assert_int_ge(checked_cost(&op, false), cost + PACK);
}

/* What a client does all day stays short, whatever parameters it was given; windows as wide as half a row are not.
 */
TEST(costs_of_windows)
{
	enum { SHORT = 200000, WIDTH = 20000 };
	rig_reopen(&rig, 4, 1 << 16);
	struct device_request request = rig_request(NPUMEM_FX8, 1, 4, 32, 32);
	struct tensor *in = rig_place(&rig, &request), *out = rig_place(&rig, &request);
	struct op_operand operands[3];
	struct op op = relu(operands, in, out);
	/* With a page or two of each NPU that nobody has touched yet. */
	ck_assert_int_lt(op_cost(rig.device, &op), SHORT / 2);
	request = rig_request(NPUMEM_FX8, 1, 4, 16, 16);
	struct tensor *half = rig_place(&rig, &request);
	struct npumem_param params[] = {{.number = NPUMEM_PARAM_KERNEL, .n_values = 2, .values = {2, 2}},
					{.number = NPUMEM_PARAM_STRIDE, .n_values = 2, .values = {2, 2}}};
	op = relu(operands, in, half);
	op.kernel = NPUMEM_KERNEL_MAXPOOL;
	op.params = params;
	op.n_params = 2;
	ck_assert_int_lt(op_cost(rig.device, &op), SHORT / 2);
	request = rig_request(NPUMEM_FX8, 1, 1, 1, WIDTH);
	struct tensor *row = rig_place(&rig, &request);
	request = rig_request(NPUMEM_FX8, 1, 1, 1, WIDTH / 2 + 1);
	struct tensor *rest = rig_place(&rig, &request);
	params[0].values[0] = 1;
	params[0].values[1] = WIDTH / 2;
	op = relu(operands, row, rest);
	op.params = params;
	op.n_params = 1;
	for (int kernel = 0; kernel < 2; kernel++) {
		op.kernel = kernel ? NPUMEM_KERNEL_AVEPOOL : NPUMEM_KERNEL_MAXPOOL;
		ck_assert_int_gt(op_cost(rig.device, &op), 10 * SHORT);
	}
	/* Without its parameters it will be refused. */
	op.n_params = 0;
	ck_assert_int_lt(op_cost(rig.device, &op), SHORT / 2);
}

/* What is read may have to be looked at first. */
TEST(costs_of_looking)
{
	struct device_request request = rig_request(NPUMEM_FX8, 1, 4, 1, 500);
	request.spec.layout = NPUMEM_STRIDED;
	request.spec.stride = (struct npumem_dims){2, 2, 2, 2};
	struct tensor *from = rig_place(&rig, &request);
	request = rig_request(NPUMEM_FX8, 1, 4, 1, 500);
	struct tensor *to = rig_place(&rig, &request);
	int64_t look = written_scan_cost(TENSOR_PLACE(from));
	ck_assert_int_ge(look, 2000);
	struct op read = dma(OP_READ, from, NULL), copy = dma(OP_COPY, to, from);
	struct op_operand operands[2];
	struct op run = relu(operands, from, to);
	read.count = -1;
	struct op *const ops[] = {&read, &copy, &run};
	for (unsigned i = 0; i < 3; i++) {
		from->all_written = true;
		int64_t known = op_cost(rig.device, ops[i]);
		ck_assert_int_ge(known, op_reach_cost(from, 2000) + (i ? 2000 / 4 : 0));
		from->all_written = false;
		int64_t faults = page_cost_read(rig.device, from, 0, 2000);
		ck_assert_int_gt(faults, 0);
		ck_assert_int_eq(op_cost(rig.device, ops[i]), known + look + faults);
		rig.device->local.n_damaged++;
		ck_assert_int_ge(op_cost(rig.device, ops[i]), known + 2 * look);
		rig.device->local.n_damaged--;
	}
	/* Of a part its share; of what is written nothing. */
	read.count = 500;
	from->all_written = true;
	int64_t known = op_cost(rig.device, &read);
	from->all_written = false;
	ck_assert_int_eq(op_cost(rig.device, &read), known + look / 4 + page_cost_read(rig.device, from, 0, 500));
	struct op fill = dma(OP_FILL, from, NULL);
	from->all_written = true;
	ck_assert_int_eq(op_cost(rig.device, &fill), op_reach_cost(from, 2000));
}

static const void *missing;

static bool are_there(const void *at, size_t bytes)
{
	return missing < at || missing >= (const void *)((const uint8_t *)at + bytes);
}

/* On a disk, also a small operation is long while its page, or that of its bits, is not in memory. */
TEST(costs_of_waiting_for_a_disk)
{
	enum { LONG = 200000 };
	struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, 500);
	struct tensor *tensor = rig_place(&rig, &request);
	const struct local *local = &rig.device->local;
	int64_t npu = TENSOR_PLACE(tensor)->start_npu, offset = tensor_offset(tensor);
	const uint8_t *byte = local_at(local, npu, offset + 100);
	const void *bit = (const uint8_t *)local_written(local, npu) + (offset + 100) / 8;
	struct op read = dma(OP_READ, tensor, NULL), fill = dma(OP_FILL, tensor, NULL);
	rig.device->options.are_there = are_there;
	tensor->touched = true;
	for (unsigned known = 0; known < 2; known++) {
		tensor->all_written = known;
		read.first = 100;
		read.count = 1;
		missing = NULL;
		ck_assert_int_lt(op_cost(rig.device, &read), LONG);
		missing = byte;
		ck_assert_int_gt(op_cost(rig.device, &read), LONG);
		missing = bit;
		ck_assert_int_eq(op_cost(rig.device, &read) > LONG, !known);
		ck_assert_int_eq(device_scan_cost(rig.device, tensor) > LONG, !known);
		missing = byte;
		read.first = 300;
		ck_assert_int_lt(op_cost(rig.device, &read), LONG);
		/* Is refused. */
		read.first = 500;
		ck_assert_int_lt(op_cost(rig.device, &read), LONG);
	}
	missing = NULL;
	ck_assert_int_lt(op_cost(rig.device, &fill), LONG);
	ck_assert_int_lt(device_forget_cost(rig.device, tensor), LONG);
	/* Each byte is marked. */
	missing = bit;
	ck_assert_int_gt(op_cost(rig.device, &fill), LONG);
	ck_assert_int_gt(device_forget_cost(rig.device, tensor), LONG);
	rig.device->local.n_damaged++;
	missing = (const uint8_t *)local_damaged(local, npu) + (offset + 100) / 8;
	read.first = 100;
	ck_assert_int_gt(op_cost(rig.device, &read), LONG);
	rig.device->local.n_damaged--;
}

/* ---- what is asked before the first byte ---- */

struct moment {
	uint8_t *before; /* all that is kept */
	unsigned n_asked;
	int answer;
	struct kernel_progress progress;
	int64_t n_looks, stop_at;
};

static size_t kept_bytes(void)
{
	return (size_t)device_memory_bytes(&rig.options.geometry);
}

static bool has_changed(const struct moment *moment)
{
	return memcmp(moment->before, rig.memory, kept_bytes()) != 0;
}

static int ask(void *ctx, struct npumem_error *error)
{
	struct moment *moment = ctx;
	moment->n_asked++;
	ck_assert(!has_changed(moment));
	return moment->answer ? npumem_error_set(error, moment->answer, "not now") : 0;
}

static void stop_some_time(struct kernel_progress *progress)
{
	struct moment *moment = (struct moment *)(void *)((char *)progress - offsetof(struct moment, progress));
	if (++moment->n_looks == moment->stop_at)
		progress->cancelled = true;
}

/* rig.op; what has begun has been asked once, and nothing else has changed a byte. */
static int run_asked(struct moment *moment)
{
	moment->before = malloc(kept_bytes());
	memcpy(moment->before, rig.memory, kept_bytes());
	moment->n_asked = 0;
	moment->n_looks = 0;
	moment->progress = (struct kernel_progress){.piece = 16, .looked = stop_some_time};
	rig.op.begins = ask;
	rig.op.begins_ctx = moment;
	rig.op.progress = &moment->progress;
	int status = rig_op(&rig);
	ck_assert_uint_le(moment->n_asked, 1);
	if (status && status == moment->answer)
		ck_assert_uint_eq(moment->n_asked, 1);
	if (!moment->n_asked || moment->answer)
		ck_assert(!has_changed(moment));
	free(moment->before);
	return status;
}

enum { BEGIN_BYTES = 3 * 16 * 16, BEGIN_KINDS = 6 };

struct begin_stage {
	struct tensor *in, *out, *apart, *nan, *unwritten;
};

static struct tensor *place_one(int dtype, int64_t stride)
{
	struct device_request request = rig_request(dtype, 1, 3, 16, 16);
	if (stride) {
		request.spec.layout = NPUMEM_STRIDED;
		request.spec.stride =
			(struct npumem_dims){16 * 16 * stride, 16 * 16 * stride, 16 * stride, stride};
	}
	return rig_place(&rig, &request);
}

static void begin_stage_open(struct begin_stage *stage)
{
	static uint8_t nans[4 * BEGIN_BYTES];
	rig_reopen(&rig, 4, 16384);
	stage->in = place_one(NPUMEM_FX8, 0);
	stage->out = place_one(NPUMEM_FX8, 0);
	stage->apart = place_one(NPUMEM_FX8, 2);
	stage->unwritten = place_one(NPUMEM_FX8, 0);
	stage->nan = place_one(NPUMEM_FP32, 0);
	memset(nans, 0xff, sizeof(nans));
	ck_assert_int_eq(rig_fill(&rig, stage->in, 3), 0);
	ck_assert_int_eq(rig_fill(&rig, stage->out, 55), 0);
	ck_assert_int_eq(rig_fill(&rig, stage->apart, 55), 0);
	ck_assert_int_eq(rig_write(&rig, stage->nan, nans), 0);
	ck_assert_int_eq(rig_write_some(&rig, stage->unwritten, 0, BEGIN_BYTES - 1, nans), 0);
}

/* One that writes, of each kind; a kernel that writes where its output lies, and one whose output is copied. */
static void set_op(struct begin_stage *stage, unsigned kind, uint8_t *data)
{
	rig.op = dma(kind == 0 ? OP_WRITE : kind == 1 ? OP_FILL : OP_COPY, stage->out, stage->in);
	if (kind == 0)
		rig.op.system = (struct op_system){.base = data, .bytes = BEGIN_BYTES};
	rig.op.count = kind == 0 ? -1 : 0;
	rig.op.value = 9;
	if (kind == 3)
		rig_relu_op(&rig, stage->in, stage->out);
	else if (kind == 4)
		rig_relu_op(&rig, stage->in, stage->apart);
	else if (kind == 5)
		rig_relu_op(&rig, stage->out, stage->out);
}

TEST(asked_before_the_first_byte)
{
	uint8_t *data = rig_ramp(BEGIN_BYTES, 1);
	for (unsigned kind = 0; kind < BEGIN_KINDS; kind++) {
		int64_t n_not_asked = 0;
		int status = NPUMEM_CANCELLED;
		for (int64_t at = 1; status; at++) {
			struct begin_stage stage;
			begin_stage_open(&stage);
			struct moment moment = {.stop_at = at};
			set_op(&stage, kind, data);
			status = run_asked(&moment);
			ck_assert(!status || status == NPUMEM_CANCELLED);
			n_not_asked += !moment.n_asked;
			if (!status)
				ck_assert_uint_eq(moment.n_asked, 1);
		}
		/* Who reads looks first, and may be stopped there. */
		ck_assert(kind < 2 || n_not_asked > 0);
	}
	free(data);
}

TEST(not_asked_where_it_is_refused)
{
	struct begin_stage stage;
	uint8_t *data = rig_ramp(BEGIN_BYTES, 1);
	begin_stage_open(&stage);
	struct moment moment = {.before = NULL};
	rig.op = dma(OP_COPY, stage.out, stage.unwritten);
	ck_assert_int_eq(run_asked(&moment), NPUMEM_FAILED_PRECONDITION);
	ck_assert_uint_eq(moment.n_asked, 0);
	rig_relu_op(&rig, stage.unwritten, stage.out);
	ck_assert_int_eq(run_asked(&moment), NPUMEM_FAILED_PRECONDITION);
	ck_assert_uint_eq(moment.n_asked, 0);
	/* Which only the kernel sees. */
	rig_relu_op(&rig, stage.nan, stage.out);
	rig.op.kernel = NPUMEM_KERNEL_CONVERT_TENSOR;
	ck_assert_int_eq(run_asked(&moment), NPUMEM_INVALID);
	ck_assert_uint_eq(moment.n_asked, 0);
	/* Who asks may be told no. */
	moment.answer = NPUMEM_RESOURCE_EXHAUSTED;
	for (unsigned kind = 0; kind < BEGIN_KINDS; kind++) {
		set_op(&stage, kind, data);
		rig_fails(&rig, run_asked(&moment), NPUMEM_RESOURCE_EXHAUSTED, "not now");
	}
	free(data);
}
