/* Kernels through the device: roles and parameters against the row, operands in every layout, and nothing written
 * by a run that was refused. The kernels' own arithmetic is tested beside them. */
#include "tests/support/oracle.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/device/rig.h"

/* Runs rig->op, which must be refused so. */
static void refused(struct rig *rig, int status, const char *part)
{
	ck_assert_int_eq(rig_op(rig), status);
	rig_said(rig, status, part);
	ck_assert_ptr_null(rig->op.work);
	rig_sound(rig);
}

struct stage {
	struct rig rig;
	struct tensor *x, *y, *out;
	struct op_operand operands[NPUMEM_OPERANDS_MAX + 1];
	struct npumem_param params[3];
};

static void stage_open(struct stage *stage)
{
	memset(stage, 0, sizeof(*stage));
	rig_open(&stage->rig, 4, 4096);
	struct device_request request = rig_request(NPUMEM_FX8, 2, 3, 2, 2);
	struct tensor **tensors[] = {&stage->x, &stage->y, &stage->out};
	for (unsigned i = 0; i < 3; i++)
		*tensors[i] = rig_place(&stage->rig, &request);
	ck_assert_int_eq(rig_fill(&stage->rig, stage->x, 3), 0);
	ck_assert_int_eq(rig_fill(&stage->rig, stage->y, 4), 0);
}

static void call(struct stage *stage, int kernel)
{
	stage->rig.op = (struct op){
		.kind = OP_RUN, .kernel = kernel, .operands = stage->operands, .params = stage->params};
	memset(stage->operands, 0, sizeof(stage->operands));
}

static void operand(struct stage *stage, const char *role, struct tensor *tensor)
{
	struct op_operand *to = &stage->operands[stage->rig.op.n_operands++];
	memcpy(to->role, role, strlen(role) + 1);
	to->tensor = tensor;
}

static void add(struct stage *stage)
{
	call(stage, NPUMEM_KERNEL_ELTWISE_ADD);
	operand(stage, "in1", stage->x);
	operand(stage, "in2", stage->y);
	operand(stage, "out", stage->out);
}

TEST(roles)
{
	struct stage stage;
	stage_open(&stage);
	struct rig *rig = &stage.rig;
	call(&stage, 9999);
	refused(rig, NPUMEM_INVALID, "kernel number 9999 is not known");
	call(&stage, 0);
	refused(rig, NPUMEM_INVALID, "kernel number 0 is not known");
	call(&stage, NPUMEM_KERNEL_ELTWISE_ADD);
	refused(rig, NPUMEM_INVALID, "kernel eltwise_add: role in1 is missing (its roles: in1, in2, out)");
	add(&stage);
	rig->op.n_operands = 2;
	refused(rig, NPUMEM_INVALID, "kernel eltwise_add: role out is missing");
	add(&stage);
	operand(&stage, "in2", stage.x);
	refused(rig, NPUMEM_INVALID, "kernel eltwise_add: role in2 is given twice");
	static const char *const unknown[] = {"in", "in3", "in10", "out1", "Out", ""};
	for (unsigned i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		char part[96];
		add(&stage);
		operand(&stage, unknown[i], stage.x);
		snprintf(part, sizeof(part), "kernel eltwise_add has no role %s (its roles: in1, in2, out)",
			 unknown[i]);
		refused(rig, NPUMEM_INVALID, part);
	}
	call(&stage, NPUMEM_KERNEL_ELTWISE_ADD);
	for (unsigned i = 0; i < NPUMEM_OPERANDS_MAX + 1; i++)
		operand(&stage, "in1", stage.x);
	refused(rig, NPUMEM_INVALID, "41 operands are more than the 40 of one call");
	/* In any order. */
	call(&stage, NPUMEM_KERNEL_ELTWISE_ADD);
	operand(&stage, "out", stage.out);
	operand(&stage, "in2", stage.y);
	operand(&stage, "in1", stage.x);
	ck_assert_int_eq(rig_op(rig), 0);
	rig_close(rig);
}

TEST(families)
{
	struct stage stage;
	uint8_t bytes[48];
	stage_open(&stage);
	struct rig *rig = &stage.rig;
	struct device_request request = rig_request(NPUMEM_FX8, 2, 3, 2, 4);
	struct tensor *wide = rig_place(rig, &request);
	stage.params[0] = (struct npumem_param){.number = NPUMEM_PARAM_AXIS, .n_values = 1, .values = {5}};
	/* In the order of their numbers, not in that of the call. */
	call(&stage, NPUMEM_KERNEL_CONCAT);
	rig->op.n_params = 1;
	operand(&stage, "in1", stage.y);
	operand(&stage, "out", wide);
	operand(&stage, "in0", stage.x);
	ck_assert_int_eq(rig_op(rig), 0);
	ck_assert_int_eq(rig_read(rig, wide, bytes), 0);
	for (int i = 0; i < 48; i++)
		ck_assert_int_eq(bytes[i], i % 4 < 2 ? 3 : 4);
	call(&stage, NPUMEM_KERNEL_CONCAT);
	operand(&stage, "in0", stage.x);
	operand(&stage, "in2", stage.y);
	operand(&stage, "out", wide);
	refused(rig, NPUMEM_INVALID, "kernel concat: role in1 is missing before in2");
	call(&stage, NPUMEM_KERNEL_CONCAT);
	operand(&stage, "out", wide);
	refused(rig, NPUMEM_INVALID, "kernel concat: role in0 is missing");
	static const char *const unknown[] = {"in", "in01", "in40", "in-1", "in1x"};
	for (unsigned i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		call(&stage, NPUMEM_KERNEL_CONCAT);
		operand(&stage, unknown[i], stage.x);
		refused(rig, NPUMEM_INVALID, "kernel concat has no role in");
	}
	rig_close(rig);
}

static void param(struct stage *stage, int number, unsigned n_values, int64_t value)
{
	struct npumem_param *to = &stage->params[stage->rig.op.n_params++];
	*to = (struct npumem_param){
		.number = number, .n_values = n_values, .values = {value, value, value, value}};
}

static void relu(struct stage *stage)
{
	call(stage, NPUMEM_KERNEL_RELU);
	operand(stage, "in", stage->x);
	operand(stage, "out", stage->out);
}

/* Nothing is guessed, before anything else of the kernel is looked at. */
TEST(parameters_without_a_default)
{
	static const struct {
		int kernel;
		const char *roles, *said;
	} cases[] = {
		{NPUMEM_KERNEL_BASIC_RNN_CELL, "in prev_out weights out",
		 "kernel basic_rnn_cell: parameter act is missing, one of: none tanh sigm"},
		{NPUMEM_KERNEL_LSTM_CELL, "in prev_out cell_in out cell_out",
		 "kernel lstm_cell: parameter act is missing, one of: none tanh sigm"},
		{NPUMEM_KERNEL_MAXPOOL, "in out", "kernel maxpool: parameter kernel is missing"},
		{NPUMEM_KERNEL_AVEPOOL, "in out", "kernel avepool: parameter kernel is missing"},
		{NPUMEM_KERNEL_PERMUTE, "in out", "kernel permute: parameter perm is missing"},
	};
	struct stage stage;
	stage_open(&stage);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char names[64], *rest;
		strcpy(names, cases[i].roles);
		call(&stage, cases[i].kernel);
		for (char *role = strtok_r(names, " ", &rest); role; role = strtok_r(NULL, " ", &rest))
			operand(&stage, role, strstr(role, "out") == role ? stage.out : stage.x);
		refused(&stage.rig, NPUMEM_INVALID, cases[i].said);
	}
	rig_close(&stage.rig);
}

TEST(parameters)
{
	struct stage stage;
	stage_open(&stage);
	struct rig *rig = &stage.rig;
	relu(&stage);
	param(&stage, 39, 1, 1);
	refused(rig, NPUMEM_INVALID, "parameter number 39 is not known");
	relu(&stage);
	param(&stage, -1, 1, 1);
	refused(rig, NPUMEM_INVALID, "parameter number -1 is not known");
	relu(&stage);
	param(&stage, NPUMEM_PARAM_STRIDE, 2, 1);
	refused(rig, NPUMEM_INVALID, "kernel relu takes no parameter stride (it takes: relu rounding)");
	add(&stage);
	param(&stage, NPUMEM_PARAM_RELU, 1, 1);
	refused(rig, NPUMEM_INVALID, "kernel eltwise_add takes no parameter relu (it takes: rounding)");
	relu(&stage);
	param(&stage, NPUMEM_PARAM_RELU, 1, 2);
	param(&stage, NPUMEM_PARAM_RELU, 1, 2);
	refused(rig, NPUMEM_INVALID, "kernel relu: parameter relu is given twice");
	relu(&stage);
	param(&stage, NPUMEM_PARAM_RELU, 2, 2);
	refused(rig, NPUMEM_INVALID, "kernel relu: parameter relu has 2 values, not 1 to 1");
	relu(&stage);
	param(&stage, NPUMEM_PARAM_RELU, 0, 2);
	refused(rig, NPUMEM_INVALID, "kernel relu: parameter relu has 0 values, not 1 to 1");
	static const int64_t values[] = {0, 5, -1, INT64_MAX};
	for (unsigned i = 0; i < 4; i++) {
		char part[96];
		relu(&stage);
		param(&stage, NPUMEM_PARAM_RELU, 1, values[i]);
		snprintf(part, sizeof(part), "kernel relu: parameter relu is %" PRId64 ", not one of 1 to 4",
			 values[i]);
		refused(rig, NPUMEM_INVALID, part);
	}
	relu(&stage);
	param(&stage, NPUMEM_PARAM_ROUNDING, 1, 4);
	refused(rig, NPUMEM_INVALID, "parameter rounding is 4, not one of 1 to 3 (convergent up nearest)");
	relu(&stage);
	rig->op.kernel = NPUMEM_KERNEL_REDUCE_SUM;
	param(&stage, NPUMEM_PARAM_AXES, 2, 1);
	stage.params[0].values[1] = 5;
	refused(rig, NPUMEM_INVALID, "kernel reduce_sum: parameter axes is 5, not one of 1 to 4 (n c h w)");
	relu(&stage);
	param(&stage, NPUMEM_PARAM_RELU, 1, 2);
	param(&stage, NPUMEM_PARAM_ROUNDING, 1, 2);
	ck_assert_int_eq(rig_op(rig), 0);
	rig_close(rig);
}

/* 5 / 2 and 3 / 2 by each mode, and by the device's default where none is given. */
TEST(rounding)
{
	static const int8_t rounded[][2] = {{2, 2}, {3, 2}, {3, 2}};
	for (int mode = NPUMEM_CONVERGENT; mode <= NPUMEM_NEAREST; mode++) {
		for (int by_default = 0; by_default < 2; by_default++) {
			struct rig rig;
			uint8_t bytes[2];
			rig_open_with(&rig, 1, 1024,
				      (struct device_options){.rounding = by_default ? mode : NPUMEM_CONVERGENT});
			struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, 2);
			request.spec.frac_bits = 1;
			struct tensor *in = rig_place(&rig, &request);
			request.spec.frac_bits = 0;
			struct tensor *out = rig_place(&rig, &request);
			ck_assert_int_eq(rig_write(&rig, in, "\005\003"), 0);
			struct npumem_param param = {NPUMEM_PARAM_ROUNDING, 1, {mode}};
			rig_relu_op(&rig, in, out);
			rig.op.kernel = NPUMEM_KERNEL_CONVERT_TENSOR;
			rig.op.params = &param;
			rig.op.n_params = by_default ? 0 : 1;
			ck_assert_int_eq(rig_op(&rig), 0);
			ck_assert_int_eq(rig_read(&rig, out, bytes), 0);
			ck_assert_int_eq(bytes[0], rounded[mode - 1][0]);
			ck_assert_int_eq(bytes[1], rounded[mode - 1][1]);
			rig_close(&rig);
		}
	}
}

TEST(what_the_kernel_refuses)
{
	struct stage stage;
	uint8_t bytes[24];
	float reals[24];
	stage_open(&stage);
	struct rig *rig = &stage.rig;
	struct device_request request = rig_request(NPUMEM_FX8, 2, 3, 2, 1);
	call(&stage, NPUMEM_KERNEL_RELU);
	operand(&stage, "in", stage.x);
	operand(&stage, "out", rig_place(rig, &request));
	refused(rig, NPUMEM_INVALID, "relu: out has W 1, but in has 2");
	/* What only the data tells, before any of it is written. */
	request = rig_request(NPUMEM_FP32, 2, 3, 2, 2);
	struct tensor *nan = rig_place(rig, &request);
	for (int i = 0; i < 24; i++)
		reals[i] = (float)i;
	reals[17] = __builtin_nanf("");
	ck_assert_int_eq(rig_write(rig, nan, reals), 0);
	ck_assert_int_eq(rig_fill(rig, stage.out, 55), 0);
	call(&stage, NPUMEM_KERNEL_CONVERT_TENSOR);
	operand(&stage, "in", nan);
	operand(&stage, "out", stage.out);
	refused(rig, NPUMEM_INVALID, "convert_tensor: in");
	ck_assert_int_eq(rig_read(rig, stage.out, bytes), 0);
	for (int i = 0; i < 24; i++)
		ck_assert_int_eq(bytes[i], 55);
	rig_close(rig);
}

TEST(in_place)
{
	struct stage stage;
	uint8_t bytes[24];
	stage_open(&stage);
	struct rig *rig = &stage.rig;
	stage.out = stage.x;
	add(&stage);
	ck_assert_int_eq(rig_op(rig), 0);
	ck_assert_int_eq(rig_read(rig, stage.x, bytes), 0);
	for (int i = 0; i < 24; i++)
		ck_assert_int_eq(bytes[i], 7);
	/* The same tensor twice as an input. */
	stage.y = stage.x;
	add(&stage);
	ck_assert_int_eq(rig_op(rig), 0);
	/* Elements that move must not be overwritten while they are needed. */
	call(&stage, NPUMEM_KERNEL_MAXPOOL);
	operand(&stage, "in", stage.x);
	operand(&stage, "out", stage.x);
	param(&stage, NPUMEM_PARAM_KERNEL, 2, 1);
	refused(rig, NPUMEM_INVALID, "kernel maxpool cannot work in place: out and in are one tensor");
	rig_close(rig);
}

/* Host memory beside the op's own. */
static uint64_t run_bytes(struct stage *stage, uint64_t own_bytes)
{
	struct rig *rig = &stage->rig;
	npumem_error_clear(&rig->error);
	ck_assert_int_eq(op_check(rig->device, &rig->op, &rig->context), 0);
	uint64_t bytes = op_scratch_bytes(&rig->op);
	op_deinit(rig->device, &rig->op);
	ck_assert_int_eq(rig_op(rig), 0); /* takes just as much */
	return bytes - own_bytes;
}

static void add_pair(struct stage *stage, struct tensor *one, struct tensor *other)
{
	stage->x = one;
	stage->y = other;
	add(stage);
}

/* What has several roles is gathered once. */
TEST(gathered_once)
{
	struct stage stage;
	int8_t bytes[24];
	stage_open(&stage);
	struct rig *rig = &stage.rig;
	relu(&stage);
	/* 24 elements of each, in lines of 64 bytes, and a line to begin with. */
	uint64_t own = run_bytes(&stage, 0) - 3 * 64;
	add(&stage);
	ck_assert_uint_eq(run_bytes(&stage, own), 4 * 64);
	add_pair(&stage, stage.x, stage.x);
	ck_assert_uint_eq(run_bytes(&stage, own), 3 * 64);
	ck_assert_int_eq(rig_read(rig, stage.out, bytes), 0);
	for (int i = 0; i < 24; i++)
		ck_assert_int_eq(bytes[i], 6);
	/* Another view of the same elements is no other tensor; a view of others is. */
	struct tensor *view, *host = stage.x, *halves[2];
	ck_assert_int_eq(device_view_reshape(rig->device, host, &TENSOR_PLACE(host)->shape, &view, &rig->context),
			 0);
	add_pair(&stage, host, view);
	ck_assert_uint_eq(run_bytes(&stage, own), 3 * 64);
	struct device_request request = rig_request(NPUMEM_FX8, 1, 3, 2, 2);
	stage.out = rig_place(rig, &request);
	for (int i = 0; i < 2; i++) {
		struct device_slice slice = {.from = {.n = i}, .to = tensor_place(host).shape};
		slice.to.n = i + 1;
		ck_assert_int_eq(device_view_slice(rig->device, host, &slice, &halves[i], &rig->context), 0);
		ck_assert_int_eq(rig_fill(rig, halves[i], 5 + i), 0);
	}
	add_pair(&stage, halves[0], halves[1]);
	ck_assert_uint_eq(run_bytes(&stage, own), 4 * 64);
	ck_assert_int_eq(rig_read(rig, stage.out, bytes), 0);
	for (int i = 0; i < 12; i++)
		ck_assert_int_eq(bytes[i], 11);
	/* A family. */
	call(&stage, NPUMEM_KERNEL_CONCAT);
	for (int i = 0; i < 3; i++) {
		char role[] = {'i', 'n', (char)('0' + i), '\0'};
		operand(&stage, role, host);
	}
	request = rig_request(NPUMEM_FX8, 2, 9, 2, 2);
	operand(&stage, "out", rig_place(rig, &request));
	stage.rig.op.n_params = 1;
	stage.params[0] = (struct npumem_param){.number = NPUMEM_PARAM_AXIS, .n_values = 1, .values = {3}};
	ck_assert_uint_eq(run_bytes(&stage, own), 64 + 64 + 128);
	rig_close(rig);
}

/* A run that is cancelled before it begins writes nothing. */
TEST(cancelled)
{
	struct stage stage;
	uint8_t bytes[24];
	struct kernel_progress progress = {.cancelled = false};
	stage_open(&stage);
	struct rig *rig = &stage.rig;
	ck_assert_int_eq(rig_fill(rig, stage.out, 55), 0);
	add(&stage);
	rig->op.progress = &progress;
	ck_assert_int_eq(rig_op(rig), 0);
	ck_assert_int_eq(progress.done, 24 * KERNEL_PARTS);
	ck_assert_int_eq(progress.total, progress.done);
	ck_assert_int_eq(rig_fill(rig, stage.out, 55), 0);
	progress.cancelled = true;
	add(&stage);
	rig->op.progress = &progress;
	ck_assert_int_eq(rig_op(rig), NPUMEM_CANCELLED);
	rig_said(rig, NPUMEM_CANCELLED, "nothing was written");
	ck_assert_int_eq(rig_read(rig, stage.out, bytes), 0);
	for (int i = 0; i < 24; i++)
		ck_assert_int_eq(bytes[i], 55);
	rig_close(rig);
}

struct stop {
	struct kernel_progress progress; /* first, so that the one is the other */
	int64_t n_looks, at;
};

static void stop_at(struct kernel_progress *progress)
{
	struct stop *stop = (struct stop *)progress;
	if (++stop->n_looks == stop->at)
		progress->cancelled = true;
}

/* One that was stopped has written nothing, or what it wrote counts as never written: nobody reads half of each.
 */
TEST(cancelled_on_its_way)
{
	enum { ELEMENTS = 3 * 16 * 16 };
	static uint8_t bytes[ELEMENTS];
	int64_t n_torn = 0;
	int status = NPUMEM_CANCELLED;
	for (int64_t at = 1; status; at++) {
		struct stage stage;
		struct stop stop = {.progress = {.piece = 16, .looked = stop_at}, .at = at};
		struct device_request request = rig_request(NPUMEM_FX8, 1, 3, 16, 16);
		stage_open(&stage);
		struct rig *rig = &stage.rig;
		stage.x = rig_place(rig, &request);
		stage.out = rig_place(rig, &request);
		ck_assert_int_eq(rig_fill(rig, stage.x, 3), 0);
		ck_assert_int_eq(rig_fill(rig, stage.out, 55), 0);
		call(&stage, NPUMEM_KERNEL_RELU);
		operand(&stage, "in", stage.x);
		operand(&stage, "out", stage.out);
		rig->op.progress = &stop.progress;
		status = rig_op(rig);
		ck_assert(!status || status == NPUMEM_CANCELLED);
		int read = rig_read(rig, stage.out, bytes);
		ck_assert(!read || (status && read == NPUMEM_FAILED_PRECONDITION));
		n_torn += read != 0;
		for (int i = 0; i < ELEMENTS && !read; i++)
			ck_assert_int_eq(bytes[i], status ? 55 : 3);
		rig_close(rig);
	}
	ck_assert_int_gt(n_torn, 0);
}

/* Each operand in a layout, mode and start NPU of its own: the same answer. */
TEST(any_layout)
{
	uint8_t a[64], b[64], sum[64];
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct stage stage;
		uint64_t random = seed;
		struct tensor **tensors[] = {&stage.x, &stage.y, &stage.out};
		memset(&stage, 0, sizeof(stage));
		rig_open(&stage.rig, oracle_between(&random, 1, 5), 32768);
		int64_t n = oracle_between(&random, 1, 6), c = oracle_between(&random, 1, 10);
		for (unsigned i = 0; i < 3; i++) {
			struct device_request request = rig_request(NPUMEM_FX8, n, c, 1, 1);
			struct npumem_spec *spec = &request.spec;
			spec->layout = (int)oracle_between(&random, 1, 4);
			spec->mode = oracle_random(&random) % 2 ? NPUMEM_MODE_4N : NPUMEM_MODE_PLAIN;
			spec->start_npu = oracle_between(&random, 0, stage.rig.options.geometry.n_npus - 1);
			if (spec->layout == NPUMEM_MATRIX) {
				spec->rows = n;
				spec->cols = c;
				spec->w = oracle_between(&random, 1, c);
				spec->shape = (struct npumem_dims){0, 0, 0, 0};
			}
			if (spec->layout == NPUMEM_STRIDED)
				spec->stride = (struct npumem_dims){40, 3, 1, 1};
			*tensors[i] = rig_place(&stage.rig, &request);
		}
		for (int64_t i = 0; i < n * c; i++) {
			a[i] = (uint8_t)oracle_between(&random, 0, 60);
			b[i] = (uint8_t)oracle_between(&random, 0, 60);
		}
		ck_assert_int_eq(rig_write(&stage.rig, stage.x, a), 0);
		ck_assert_int_eq(rig_write(&stage.rig, stage.y, b), 0);
		add(&stage);
		ck_assert_int_eq(rig_op(&stage.rig), 0);
		ck_assert_int_eq(rig_read(&stage.rig, stage.out, sum), 0);
		for (int64_t i = 0; i < n * c; i++)
			ck_assert_int_eq(sum[i], a[i] + b[i]);
		rig_close(&stage.rig);
	}
}

/* Operands that are packed in one way, whole words or with dummies in the last one, and an output that is not:
 * each element has its own, and only elements are counted. */
TEST(packed_alike)
{
	enum { ELEMENTS_MAX = 9 * 5 * 12 };
	int8_t a[ELEMENTS_MAX], b[ELEMENTS_MAX], sum[ELEMENTS_MAX];
	for (uint64_t seed = 1; seed <= 54; seed++) {
		struct stage stage;
		uint64_t random = seed;
		struct tensor **tensors[] = {&stage.x, &stage.y, &stage.out};
		int64_t n = 1 + (int64_t)seed % 9, c = oracle_between(&random, 1, 5), saturated = 0;
		memset(&stage, 0, sizeof(stage));
		rig_open(&stage.rig, 3, 32768);
		for (unsigned i = 0; i < 3; i++) {
			struct device_request request = rig_request(NPUMEM_FX8, n, c, 3, 4);
			request.spec.layout = (int)oracle_between(&random, 1, 2);
			request.spec.mode = i == 2 && seed % 4 == 0 ? NPUMEM_MODE_PLAIN : NPUMEM_MODE_4N;
			request.spec.start_npu = oracle_between(&random, 0, 2);
			*tensors[i] = rig_place(&stage.rig, &request);
		}
		for (int64_t i = 0; i < n * c * 12; i++) {
			a[i] = (int8_t)oracle_between(&random, -128, 127);
			b[i] = (int8_t)oracle_between(&random, -128, 127);
		}
		ck_assert_int_eq(rig_write(&stage.rig, stage.x, a), 0);
		ck_assert_int_eq(rig_write(&stage.rig, stage.y, b), 0);
		add(&stage);
		ck_assert_int_eq(rig_op(&stage.rig), 0);
		int64_t counted = stage.rig.op.counts.saturated;
		ck_assert_int_eq(rig_read(&stage.rig, stage.out, sum), 0);
		for (int64_t i = 0; i < n * c * 12; i++) {
			int64_t x = a[i] + b[i];
			saturated += x < -128 || x > 127;
			ck_assert_int_eq(sum[i], x < -128 ? -128 : x > 127 ? 127 : x);
		}
		ck_assert_int_eq(counted, saturated);
		rig_close(&stage.rig);
	}
}
