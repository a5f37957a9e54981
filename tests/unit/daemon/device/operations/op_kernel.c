/* Kernels through the device: roles and parameters against the row, operands in every layout, and nothing written
 * by a run that was refused. The kernels' own arithmetic is tested beside them. */
#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/rig.h"

static struct {
	struct tensor *x, *y, *out;
	struct op_operand operands[NPUMEM_OPERANDS_MAX + 1];
	struct npumem_param params[3];
} stage;

static void stage_open(struct rig *to)
{
	memset(&stage, 0, sizeof(stage));
	rig_open(to, 4, 4096);
	struct device_request request = rig_request(NPUMEM_FX8, 2, 3, 2, 2);
	struct tensor **tensors[] = {&stage.x, &stage.y, &stage.out};
	for (unsigned i = 0; i < 3; i++)
		*tensors[i] = rig_place(to, &request);
	ck_assert_int_eq(rig_fill(to, stage.x, 3), 0);
	ck_assert_int_eq(rig_fill(to, stage.y, 4), 0);
}

FIXTURE_OBJECT(struct rig, rig, stage_open(&rig), rig_close(&rig))

/* Runs rig.op, which must be refused so. */
static void refused(int status, const char *part)
{
	ck_assert_int_eq(rig_op(&rig), status);
	rig_said(&rig, status, part);
	ck_assert_ptr_null(rig.op.work);
	rig_sound(&rig);
}

static void call(int kernel)
{
	rig.op = (struct op){.kind = OP_RUN, .kernel = kernel, .operands = stage.operands, .params = stage.params};
	memset(stage.operands, 0, sizeof(stage.operands));
}

static void operand(const char *role, struct tensor *tensor)
{
	struct op_operand *to = &stage.operands[rig.op.n_operands++];
	memcpy(to->role, role, strlen(role) + 1);
	to->tensor = tensor;
}

static void add(void)
{
	call(NPUMEM_KERNEL_ELTWISE_ADD);
	operand("in1", stage.x);
	operand("in2", stage.y);
	operand("out", stage.out);
}

TEST(roles)
{
	call(9999);
	refused(NPUMEM_INVALID, "kernel number 9999 is not known");
	call(0);
	refused(NPUMEM_INVALID, "kernel number 0 is not known");
	call(NPUMEM_KERNEL_ELTWISE_ADD);
	refused(NPUMEM_INVALID, "kernel eltwise_add: role in1 is missing (its roles: in1, in2, out)");
	add();
	rig.op.n_operands = 2;
	refused(NPUMEM_INVALID, "kernel eltwise_add: role out is missing");
	add();
	operand("in2", stage.x);
	refused(NPUMEM_INVALID, "kernel eltwise_add: role in2 is given twice");
	static const char *const unknown[] = {"in", "in3", "in10", "out1", "Out", ""};
	for (unsigned i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		char part[96];
		add();
		operand(unknown[i], stage.x);
		snprintf(part, sizeof(part), "kernel eltwise_add has no role %s (its roles: in1, in2, out)",
			 unknown[i]);
		refused(NPUMEM_INVALID, part);
	}
	call(NPUMEM_KERNEL_ELTWISE_ADD);
	for (unsigned i = 0; i < NPUMEM_OPERANDS_MAX + 1; i++)
		operand("in1", stage.x);
	refused(NPUMEM_INVALID, "41 operands are more than the 40 of one call");
	/* In any order. */
	call(NPUMEM_KERNEL_ELTWISE_ADD);
	operand("out", stage.out);
	operand("in2", stage.y);
	operand("in1", stage.x);
	ck_assert_int_eq(rig_op(&rig), 0);
}

TEST(families)
{
	uint8_t bytes[48];
	struct device_request request = rig_request(NPUMEM_FX8, 2, 3, 2, 4);
	struct tensor *wide = rig_place(&rig, &request);
	stage.params[0] = (struct npumem_param){.number = NPUMEM_PARAM_AXIS, .n_values = 1, .values = {5}};
	/* In the order of their numbers, not in that of the call. */
	call(NPUMEM_KERNEL_CONCAT);
	rig.op.n_params = 1;
	operand("in1", stage.y);
	operand("out", wide);
	operand("in0", stage.x);
	ck_assert_int_eq(rig_op(&rig), 0);
	ck_assert_int_eq(rig_read(&rig, wide, bytes), 0);
	for (int i = 0; i < 48; i++)
		ck_assert_int_eq(bytes[i], i % 4 < 2 ? 3 : 4);
	call(NPUMEM_KERNEL_CONCAT);
	operand("in0", stage.x);
	operand("in2", stage.y);
	operand("out", wide);
	refused(NPUMEM_INVALID, "kernel concat: role in1 is missing before in2");
	call(NPUMEM_KERNEL_CONCAT);
	operand("out", wide);
	refused(NPUMEM_INVALID, "kernel concat: role in0 is missing");
	static const char *const unknown[] = {"in", "in01", "in40", "in-1", "in1x"};
	for (unsigned i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		call(NPUMEM_KERNEL_CONCAT);
		operand(unknown[i], stage.x);
		refused(NPUMEM_INVALID, "kernel concat has no role in");
	}
}

static void param(int number, unsigned n_values, int64_t value)
{
	struct npumem_param *to = &stage.params[rig.op.n_params++];
	*to = (struct npumem_param){
		.number = number, .n_values = n_values, .values = {value, value, value, value}};
}

static void relu(void)
{
	call(NPUMEM_KERNEL_RELU);
	operand("in", stage.x);
	operand("out", stage.out);
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
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char names[64], *rest;
		strcpy(names, cases[i].roles);
		call(cases[i].kernel);
		for (char *role = strtok_r(names, " ", &rest); role; role = strtok_r(NULL, " ", &rest))
			operand(role, strstr(role, "out") == role ? stage.out : stage.x);
		refused(NPUMEM_INVALID, cases[i].said);
	}
}

TEST(parameters)
{
	enum { ADD, RELU, SUM };
	static const struct {
		int kernel;
		struct npumem_param params[2];
		const char *said; /* NULL: it runs */
	} cases[] = {
		{RELU, {{39, 1, {1}}}, "parameter number 39 is not known"},
		{RELU, {{-1, 1, {1}}}, "parameter number -1 is not known"},
		{RELU,
		 {{NPUMEM_PARAM_STRIDE, 2, {1, 1}}},
		 "kernel relu takes no parameter stride (it takes: relu rounding)"},
		{ADD,
		 {{NPUMEM_PARAM_RELU, 1, {1}}},
		 "kernel eltwise_add takes no parameter relu (it takes: rounding)"},
		{RELU,
		 {{NPUMEM_PARAM_RELU, 1, {2}}, {NPUMEM_PARAM_RELU, 1, {2}}},
		 "kernel relu: parameter relu is given twice"},
		{RELU, {{NPUMEM_PARAM_RELU, 2, {2, 2}}}, "kernel relu: parameter relu has 2 values, not 1 to 1"},
		{RELU, {{NPUMEM_PARAM_RELU, 0, {2}}}, "kernel relu: parameter relu has 0 values, not 1 to 1"},
		{RELU, {{NPUMEM_PARAM_RELU, 1, {0}}}, "kernel relu: parameter relu is 0, not one of 1 to 4"},
		{RELU, {{NPUMEM_PARAM_RELU, 1, {5}}}, "kernel relu: parameter relu is 5, not one of 1 to 4"},
		{RELU, {{NPUMEM_PARAM_RELU, 1, {-1}}}, "kernel relu: parameter relu is -1, not one of 1 to 4"},
		{RELU,
		 {{NPUMEM_PARAM_RELU, 1, {INT64_MAX}}},
		 "kernel relu: parameter relu is 9223372036854775807, not one of 1 to 4"},
		{RELU,
		 {{NPUMEM_PARAM_ROUNDING, 1, {4}}},
		 "parameter rounding is 4, not one of 1 to 3 (convergent up nearest)"},
		{SUM,
		 {{NPUMEM_PARAM_AXES, 2, {1, 5}}},
		 "kernel reduce_sum: parameter axes is 5, not one of 1 to 4 (n c h w)"},
		{RELU, {{NPUMEM_PARAM_RELU, 1, {2}}, {NPUMEM_PARAM_ROUNDING, 1, {2}}}, NULL},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (cases[i].kernel == ADD)
			add();
		else
			relu();
		if (cases[i].kernel == SUM)
			rig.op.kernel = NPUMEM_KERNEL_REDUCE_SUM;
		memcpy(stage.params, cases[i].params, sizeof(cases[i].params));
		rig.op.n_params = cases[i].params[1].number ? 2 : 1;
		if (cases[i].said)
			refused(NPUMEM_INVALID, cases[i].said);
		else
			ck_assert_int_eq(rig_op(&rig), 0);
	}
}

/* 5 / 2 and 3 / 2 by each mode, and by the device's default where none is given. */
TEST(rounding)
{
	static const int8_t rounded[][2] = {{2, 2}, {3, 2}, {3, 2}};
	for (int mode = NPUMEM_CONVERGENT; mode <= NPUMEM_NEAREST; mode++) {
		for (int by_default = 0; by_default < 2; by_default++) {
			uint8_t bytes[2];
			rig_reopen_with(
				&rig, 1, 1024,
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
		}
	}
}

TEST(what_the_kernel_refuses)
{
	uint8_t bytes[24];
	float reals[24];
	struct device_request request = rig_request(NPUMEM_FX8, 2, 3, 2, 1);
	call(NPUMEM_KERNEL_RELU);
	operand("in", stage.x);
	operand("out", rig_place(&rig, &request));
	refused(NPUMEM_INVALID, "relu: out has W 1, but in has 2");
	/* What only the data tells, before any of it is written. */
	request = rig_request(NPUMEM_FP32, 2, 3, 2, 2);
	struct tensor *nan = rig_place(&rig, &request);
	for (int i = 0; i < 24; i++)
		reals[i] = (float)i;
	reals[17] = __builtin_nanf("");
	ck_assert_int_eq(rig_write(&rig, nan, reals), 0);
	ck_assert_int_eq(rig_fill(&rig, stage.out, 55), 0);
	call(NPUMEM_KERNEL_CONVERT_TENSOR);
	operand("in", nan);
	operand("out", stage.out);
	refused(NPUMEM_INVALID, "convert_tensor: in");
	ck_assert_int_eq(rig_read(&rig, stage.out, bytes), 0);
	for (int i = 0; i < 24; i++)
		ck_assert_int_eq(bytes[i], 55);
}

TEST(in_place)
{
	uint8_t bytes[24];
	stage.out = stage.x;
	add();
	ck_assert_int_eq(rig_op(&rig), 0);
	ck_assert_int_eq(rig_read(&rig, stage.x, bytes), 0);
	for (int i = 0; i < 24; i++)
		ck_assert_int_eq(bytes[i], 7);
	/* The same tensor twice as an input. */
	stage.y = stage.x;
	add();
	ck_assert_int_eq(rig_op(&rig), 0);
	/* Elements that move must not be overwritten while they are needed. */
	call(NPUMEM_KERNEL_MAXPOOL);
	operand("in", stage.x);
	operand("out", stage.x);
	param(NPUMEM_PARAM_KERNEL, 2, 1);
	refused(NPUMEM_INVALID, "kernel maxpool cannot work in place: out and in are one tensor");
}

/* Host memory beside the op's own. */
static uint64_t run_bytes(uint64_t own_bytes)
{
	npumem_error_clear(&rig.error);
	ck_assert_int_eq(op_check(rig.device, &rig.op, &rig.context), 0);
	uint64_t bytes = op_scratch_bytes(&rig.op);
	op_deinit(rig.device, &rig.op);
	ck_assert_int_eq(rig_op(&rig), 0); /* takes just as much */
	return bytes - own_bytes;
}

static void add_pair(struct tensor *one, struct tensor *other)
{
	stage.x = one;
	stage.y = other;
	add();
}

/* What has several roles is gathered once. */
TEST(gathered_once)
{
	int8_t bytes[24];
	relu();
	/* 24 elements of each, in lines of 64 bytes, and a line to begin with. */
	uint64_t own = run_bytes(0) - 3 * 64;
	add();
	ck_assert_uint_eq(run_bytes(own), 4 * 64);
	add_pair(stage.x, stage.x);
	ck_assert_uint_eq(run_bytes(own), 3 * 64);
	ck_assert_int_eq(rig_read(&rig, stage.out, bytes), 0);
	for (int i = 0; i < 24; i++)
		ck_assert_int_eq(bytes[i], 6);
	/* Another view of the same elements is no other tensor; a view of others is. */
	struct tensor *view, *host = stage.x, *halves[2];
	ck_assert_int_eq(device_view_reshape(rig.device, host, &TENSOR_PLACE(host)->shape, &view, &rig.context),
			 0);
	add_pair(host, view);
	ck_assert_uint_eq(run_bytes(own), 3 * 64);
	struct device_request request = rig_request(NPUMEM_FX8, 1, 3, 2, 2);
	stage.out = rig_place(&rig, &request);
	for (int i = 0; i < 2; i++) {
		struct device_slice slice = {.from = {.n = i}, .to = tensor_place(host).shape};
		slice.to.n = i + 1;
		ck_assert_int_eq(device_view_slice(rig.device, host, &slice, &halves[i], &rig.context), 0);
		ck_assert_int_eq(rig_fill(&rig, halves[i], 5 + i), 0);
	}
	add_pair(halves[0], halves[1]);
	ck_assert_uint_eq(run_bytes(own), 4 * 64);
	ck_assert_int_eq(rig_read(&rig, stage.out, bytes), 0);
	for (int i = 0; i < 12; i++)
		ck_assert_int_eq(bytes[i], 11);
	/* A family. */
	call(NPUMEM_KERNEL_CONCAT);
	for (int i = 0; i < 3; i++) {
		char role[] = {'i', 'n', (char)('0' + i), '\0'};
		operand(role, host);
	}
	request = rig_request(NPUMEM_FX8, 2, 9, 2, 2);
	operand("out", rig_place(&rig, &request));
	rig.op.n_params = 1;
	stage.params[0] = (struct npumem_param){.number = NPUMEM_PARAM_AXIS, .n_values = 1, .values = {3}};
	ck_assert_uint_eq(run_bytes(own), 64 + 64 + 128);
}

/* A run that is cancelled before it begins writes nothing. */
TEST(cancelled)
{
	uint8_t bytes[24];
	struct kernel_progress progress = {.cancelled = false};
	ck_assert_int_eq(rig_fill(&rig, stage.out, 55), 0);
	add();
	rig.op.progress = &progress;
	ck_assert_int_eq(rig_op(&rig), 0);
	ck_assert_int_eq(progress.done, 24 * KERNEL_PARTS);
	ck_assert_int_eq(progress.total, progress.done);
	ck_assert_int_eq(rig_fill(&rig, stage.out, 55), 0);
	progress.cancelled = true;
	add();
	rig.op.progress = &progress;
	rig_fails(&rig, rig_op(&rig), NPUMEM_CANCELLED, "nothing was written");
	ck_assert_int_eq(rig_read(&rig, stage.out, bytes), 0);
	for (int i = 0; i < 24; i++)
		ck_assert_int_eq(bytes[i], 55);
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
		struct stop stop = {.progress = {.piece = 16, .looked = stop_at}, .at = at};
		struct device_request request = rig_request(NPUMEM_FX8, 1, 3, 16, 16);
		rig_close(&rig);
		stage_open(&rig);
		stage.x = rig_place(&rig, &request);
		stage.out = rig_place(&rig, &request);
		ck_assert_int_eq(rig_fill(&rig, stage.x, 3), 0);
		ck_assert_int_eq(rig_fill(&rig, stage.out, 55), 0);
		call(NPUMEM_KERNEL_RELU);
		operand("in", stage.x);
		operand("out", stage.out);
		rig.op.progress = &stop.progress;
		status = rig_op(&rig);
		ck_assert(!status || status == NPUMEM_CANCELLED);
		int read = rig_read(&rig, stage.out, bytes);
		ck_assert(!read || (status && read == NPUMEM_FAILED_PRECONDITION));
		n_torn += read != 0;
		for (int i = 0; i < ELEMENTS && !read; i++)
			ck_assert_int_eq(bytes[i], status ? 55 : 3);
	}
	ck_assert_int_gt(n_torn, 0);
}

/* Each operand in a layout, mode and start NPU of its own: the same answer. */
TEST(any_layout)
{
	uint8_t a[64], b[64], sum[64];
	for (uint64_t seed = 1; seed <= 60; seed++) {
		uint64_t random = seed;
		struct tensor **tensors[] = {&stage.x, &stage.y, &stage.out};
		rig_reopen(&rig, oracle_between(&random, 1, 5), 32768);
		int64_t n = oracle_between(&random, 1, 6), c = oracle_between(&random, 1, 10);
		for (unsigned i = 0; i < 3; i++) {
			struct device_request request = rig_request(NPUMEM_FX8, n, c, 1, 1);
			struct npumem_spec *spec = &request.spec;
			spec->layout = (int)oracle_between(&random, 1, 4);
			spec->mode = oracle_random(&random) % 2 ? NPUMEM_MODE_4N : NPUMEM_MODE_PLAIN;
			spec->start_npu = oracle_between(&random, 0, rig.options.geometry.n_npus - 1);
			if (spec->layout == NPUMEM_MATRIX) {
				spec->rows = n;
				spec->cols = c;
				spec->w = oracle_between(&random, 1, c);
				spec->shape = (struct npumem_dims){0, 0, 0, 0};
			}
			if (spec->layout == NPUMEM_STRIDED)
				spec->stride = (struct npumem_dims){40, 3, 1, 1};
			*tensors[i] = rig_place(&rig, &request);
		}
		for (int64_t i = 0; i < n * c; i++) {
			a[i] = (uint8_t)oracle_between(&random, 0, 60);
			b[i] = (uint8_t)oracle_between(&random, 0, 60);
		}
		ck_assert_int_eq(rig_write(&rig, stage.x, a), 0);
		ck_assert_int_eq(rig_write(&rig, stage.y, b), 0);
		add();
		ck_assert_int_eq(rig_op(&rig), 0);
		ck_assert_int_eq(rig_read(&rig, stage.out, sum), 0);
		for (int64_t i = 0; i < n * c; i++)
			ck_assert_int_eq(sum[i], a[i] + b[i]);
	}
}

/* Operands that are packed in one way, whole words or with dummies in the last one, and an output that is not:
 * each element has its own, and only elements are counted. */
TEST(packed_alike)
{
	enum { ELEMENTS_MAX = 9 * 5 * 12 };
	int8_t a[ELEMENTS_MAX], b[ELEMENTS_MAX], sum[ELEMENTS_MAX];
	for (uint64_t seed = 1; seed <= 54; seed++) {
		uint64_t random = seed;
		struct tensor **tensors[] = {&stage.x, &stage.y, &stage.out};
		int64_t n = 1 + (int64_t)seed % 9, c = oracle_between(&random, 1, 5), saturated = 0;
		rig_reopen(&rig, 3, 32768);
		for (unsigned i = 0; i < 3; i++) {
			struct device_request request = rig_request(NPUMEM_FX8, n, c, 3, 4);
			request.spec.layout = (int)oracle_between(&random, 1, 2);
			request.spec.mode = i == 2 && seed % 4 == 0 ? NPUMEM_MODE_PLAIN : NPUMEM_MODE_4N;
			request.spec.start_npu = oracle_between(&random, 0, 2);
			*tensors[i] = rig_place(&rig, &request);
		}
		for (int64_t i = 0; i < n * c * 12; i++) {
			a[i] = (int8_t)oracle_between(&random, -128, 127);
			b[i] = (int8_t)oracle_between(&random, -128, 127);
		}
		ck_assert_int_eq(rig_write(&rig, stage.x, a), 0);
		ck_assert_int_eq(rig_write(&rig, stage.y, b), 0);
		add();
		ck_assert_int_eq(rig_op(&rig), 0);
		int64_t counted = rig.op.counts.saturated;
		ck_assert_int_eq(rig_read(&rig, stage.out, sum), 0);
		for (int64_t i = 0; i < n * c * 12; i++) {
			int64_t x = a[i] + b[i];
			saturated += x < -128 || x > 127;
			ck_assert_int_eq(sum[i], x < -128 ? -128 : x > 127 ? 127 : x);
		}
		ck_assert_int_eq(counted, saturated);
	}
}
