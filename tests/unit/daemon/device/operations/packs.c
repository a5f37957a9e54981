/* Packs of weights are kept between runs, and never used after a write. That one was used shows where the bytes of
 * the weights are changed behind the device's back. */
#include "daemon/device/internal.h"
#include "tests/unit/daemon/device/rig.h"

enum { CHANNELS = 4, SIDE = 8 };

static struct {
	struct tensor *in, *weights, *out;
} stage;

static void stage_open(uint64_t pack_bytes);
FIXTURE_OBJECT(struct rig, rig, stage_open(1 << 20), rig_close(&rig))

static struct tensor *fx8(int64_t n, int64_t c, int64_t h, int64_t w)
{
	struct device_request request = rig_request(NPUMEM_FX8, n, c, h, w);
	request.spec.frac_bits = 0;
	return rig_place(&rig, &request);
}

static void stage_open(uint64_t pack_bytes)
{
	rig_open_with(&rig, 4, 8192, (struct device_options){.allow_unchecked = true, .pack_bytes = pack_bytes});
	stage.in = fx8(1, CHANNELS, SIDE, SIDE);
	stage.weights = fx8(CHANNELS, CHANNELS, 1, 1);
	stage.out = fx8(1, CHANNELS, SIDE, SIDE);
	ck_assert_int_eq(rig_fill(&rig, stage.in, 2), 0);
	ck_assert_int_eq(rig_fill(&rig, stage.weights, 3), 0);
}

static void stage_again(uint64_t pack_bytes)
{
	rig_close(&rig);
	stage_open(pack_bytes);
}

/* Without the rig's look at what memory an operation leaves. */
static int run(int kernel, struct tensor *const *tensors, const char *const *roles, unsigned n)
{
	rig.op = (struct op){.kind = OP_RUN, .kernel = kernel, .operands = rig.operands, .n_operands = n};
	for (unsigned i = 0; i < n; i++) {
		snprintf(rig.operands[i].role, sizeof(rig.operands[i].role), "%s", roles[i]);
		rig.operands[i].tensor = tensors[i];
	}
	npumem_error_clear(&rig.error);
	int status = op_check(rig.device, &rig.op, &rig.context);
	status = status ? status : op_run(rig.device, &rig.op, &rig.context);
	op_deinit(rig.device, &rig.op);
	return status;
}

/* What all outputs are: 2 * weight * CHANNELS. */
static int convolved(struct tensor *weights)
{
	static const char *const roles[] = {"in", "weights", "out"};
	struct tensor *const tensors[] = {stage.in, weights, stage.out};
	ck_assert_msg(run(NPUMEM_KERNEL_CONV2D, tensors, roles, 3) == 0, "%s", rig.error.message);
	const int8_t *out = (const int8_t *)local_at(&rig.device->local, 0, tensor_place(stage.out).offset);
	return out[0];
}

static uint64_t kept(void)
{
	return rig.device->packs.bytes;
}

/* Of all weights, without an operation. */
static void tamper(const struct tensor *weights, int8_t value)
{
	const struct npumem_place *place = TENSOR_PLACE(weights);
	for (int64_t npu = 0; npu < 4; npu++)
		memset(local_at(&rig.device->local, npu, place->offset), value, (size_t)place->bytes_per_npu);
}

TEST(kept_until_written)
{
	ck_assert_int_eq(convolved(stage.weights), 24);
	uint64_t bytes = kept();
	ck_assert_uint_gt(bytes, 0);
	tamper(stage.weights, 5);
	ck_assert_int_eq(convolved(stage.weights), 24); /* by the pack */
	ck_assert_uint_eq(kept(), bytes);
	ck_assert_int_eq(rig_fill(&rig, stage.in, 4), 0); /* not of the weights */
	ck_assert_int_eq(convolved(stage.weights), 48);
	ck_assert_int_eq(rig_fill(&rig, stage.in, 2), 0);
	ck_assert_int_eq(rig_fill(&rig, stage.weights, 4), 0);
	ck_assert_int_eq(convolved(stage.weights), 32);
}

/* As by an earlier operation of a chain. */
TEST(written_since_the_check)
{
	ck_assert_int_eq(convolved(stage.weights), 24);
	struct op_operand operands[3];
	struct op op = rig.op;
	memcpy(operands, rig.operands, sizeof(operands));
	op.operands = operands;
	ck_assert_int_eq(op_check(rig.device, &op, &rig.context), 0);
	ck_assert_int_eq(rig_fill(&rig, stage.weights, 4), 0);
	ck_assert_int_eq(op_run(rig.device, &op, &rig.context), 0);
	op_deinit(rig.device, &op);
	ck_assert_int_eq(*(const int8_t *)local_at(&rig.device->local, 0, tensor_place(stage.out).offset), 32);
}

/* Copies, kernels, and through a view. */
TEST(every_write)
{
	static const char *const roles[] = {"in1", "in2", "out"};
	struct tensor *other = fx8(CHANNELS, CHANNELS, 1, 1), *view;
	ck_assert_int_eq(rig_fill(&rig, other, 5), 0);
	ck_assert_int_eq(convolved(stage.weights), 24);
	ck_assert_int_eq(rig_copy(&rig, stage.weights, other), 0);
	ck_assert_int_eq(convolved(stage.weights), 40);
	struct tensor *const tensors[] = {other, other, stage.weights};
	ck_assert_int_eq(run(NPUMEM_KERNEL_ELTWISE_ADD, tensors, roles, 3), 0);
	ck_assert_int_eq(convolved(stage.weights), 80);
	const struct device_slice slice = {{0, 0, 0, 0}, {CHANNELS, 1, 1, 1}};
	ck_assert_int_eq(device_view_slice(rig.device, stage.weights, &slice, &view, &rig.context), 0);
	ck_assert_int_eq(rig_fill(&rig, view, 1), 0); /* of output channel 0, which is looked at */
	ck_assert_int_eq(convolved(stage.weights), 8);
}

/* By a run that packs it: a table that is the output, too. */
TEST(written_by_its_own_run)
{
	static const char *const roles[] = {"in", "table", "out"};
	struct tensor *in = fx8(1, 1, 1, 256), *table = fx8(1, 1, 1, 256), *out = fx8(1, 1, 1, 256);
	const int8_t *place = (const int8_t *)local_at(&rig.device->local, 0, tensor_place(table).offset),
		     *results = (const int8_t *)local_at(&rig.device->local, 0, tensor_place(out).offset);
	ck_assert_int_eq(rig_fill(&rig, in, 5), 0);
	ck_assert_int_eq(rig_fill(&rig, table, 3), 0);
	local_at(&rig.device->local, 0, tensor_place(table).offset)[128 + 5] = 7;
	struct tensor *const itself[] = {in, table, table}, *const other[] = {in, table, out};
	ck_assert_int_eq(run(NPUMEM_KERNEL_LUT, itself, roles, 3), 0);
	ck_assert_int_eq(place[0], 7);
	local_at(&rig.device->local, 0, tensor_place(in).offset)[0] = 4;
	local_at(&rig.device->local, 0, tensor_place(table).offset)[128 + 4] = 7;
	ck_assert_int_eq(run(NPUMEM_KERNEL_LUT, other, roles, 3), 0);
	ck_assert_int_eq(results[0], 7);
}

/* Another tensor where one was: its handle is another. */
TEST(after_a_free)
{
	ck_assert_int_eq(convolved(stage.weights), 24);
	int64_t offset = tensor_place(stage.weights).offset;
	rig_release(&rig, stage.weights);
	struct tensor *again = fx8(CHANNELS, CHANNELS, 1, 1);
	ck_assert_int_eq(tensor_place(again).offset, offset);
	ck_assert_int_eq(rig_fill(&rig, again, 1), 0);
	ck_assert_int_eq(convolved(again), 8);
}

/* A cell's pack is of two tensors; a write to either ends it, and so does its free. */
TEST(of_two_tensors)
{
	static const char *const roles[] = {"in", "prev_out", "weights_in", "weights_out", "out"};
	struct tensor *tensors[5];
	for (unsigned i = 0; i < 5; i++) {
		struct device_request request =
			rig_request(NPUMEM_FX16, i / 2 == 1 ? 3 : 1, 4, 1, i / 2 == 1 ? 4 : 1);
		request.spec.frac_bits = 8;
		tensors[i] = rig_place(&rig, &request);
		ck_assert_int_eq(rig_fill(&rig, tensors[i], i < 2 ? 64 : 32), 0);
	}
	int16_t *out = (int16_t *)local_at(&rig.device->local, 0, tensor_place(tensors[4]).offset);
	ck_assert_int_eq(run(NPUMEM_KERNEL_GRU_CELL, tensors, roles, 5), 0);
	int16_t first = *out;
	for (unsigned i = 2; i < 4; i++) {
		uint64_t bytes = kept();
		tamper(tensors[i], 1);
		ck_assert_int_eq(run(NPUMEM_KERNEL_GRU_CELL, tensors, roles, 5), 0);
		ck_assert_msg(*out == first && kept() == bytes, "weights %u were read again", i);
		ck_assert_int_eq(rig_fill(&rig, tensors[i], 320), 0);
		ck_assert_int_eq(run(NPUMEM_KERNEL_GRU_CELL, tensors, roles, 5), 0);
		ck_assert_msg(*out != first && kept() > bytes, "weights %u were not read", i);
		first = *out;
	}
	rig_release(&rig, tensors[3]);
	ck_assert_uint_eq(kept(), 0);
}

/* Of another shape of the input, another pack. */
TEST(other_calls)
{
	ck_assert_int_eq(convolved(stage.weights), 24);
	uint64_t bytes = kept();
	stage.in = fx8(1, CHANNELS, SIDE, 2 * SIDE);
	stage.out = fx8(1, CHANNELS, SIDE, 2 * SIDE);
	ck_assert_int_eq(rig_fill(&rig, stage.in, 3), 0);
	ck_assert_int_eq(convolved(stage.weights), 36);
	ck_assert_uint_eq(kept(), 2 * bytes);
}

TEST(within_the_budget)
{
	struct tensor *weights[6];
	convolved(stage.weights);
	uint64_t bytes = kept(), budgets[] = {0, bytes - 1, bytes, 3 * bytes + 1};
	for (unsigned b = 0; b < 4; b++) {
		stage_again(budgets[b]);
		for (unsigned i = 0; i < 6; i++) {
			weights[i] = fx8(CHANNELS, CHANNELS, 1, 1);
			ck_assert_int_eq(rig_fill(&rig, weights[i], (int64_t)i), 0);
		}
		for (unsigned i = 0; i < 60; i++) {
			unsigned which = i * i % 6;
			ck_assert_int_eq(convolved(weights[which]), 8 * (int)which);
			ck_assert_uint_le(kept(), budgets[b]);
		}
		/* The one that was used last is there. */
		convolved(weights[1]);
		tamper(weights[1], 7);
		ck_assert_int_eq(convolved(weights[1]), budgets[b] >= bytes ? 8 : 56);
	}
}

/* Runs with weights of their own on an account. */
static void fill_account(struct packs_account *account, struct tensor **weights, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		weights[i] = fx8(CHANNELS, CHANNELS, 1, 1);
		weights[i]->account = account;
		ck_assert_int_eq(rig_fill(&rig, weights[i], 3), 0);
		ck_assert_int_eq(convolved(weights[i]), 24);
	}
}

/* Nobody loses what is within an equal share, and who has more makes room for others. */
TEST(accounts)
{
	enum { ROOM = 6, MANY = 8 };
	static struct packs_account alice = {0}, bob = {0}, carol = {0};
	struct tensor *weights[MANY];
	fill_account(&alice, weights, 1);
	uint64_t bytes = alice.bytes;
	ck_assert_uint_eq(bytes, kept());
	stage_again(ROOM * bytes);
	alice = (struct packs_account){0};
	fill_account(&bob, weights, 2);
	fill_account(&alice, weights, MANY);
	ck_assert_uint_eq(bob.bytes, 2 * bytes);
	ck_assert_uint_eq(alice.bytes, (ROOM - 2) * bytes);
	fill_account(&carol, weights, MANY / 2);
	ck_assert_uint_eq(bob.bytes, 2 * bytes);
	ck_assert_uint_eq(alice.bytes + carol.bytes, (ROOM - 2) * bytes);
	ck_assert_uint_ge(alice.bytes, 2 * bytes);
	ck_assert_uint_ge(carol.bytes, 2 * bytes);
	ck_assert_uint_eq(kept(), ROOM * bytes);
}

/* Its own packs and those of its views go with it. */
TEST(gone_with_the_tensor)
{
	static struct packs_account alice = {0};
	struct tensor *view;
	const struct device_slice slice = {{0, 0, 0, 0}, {CHANNELS, CHANNELS, 1, 1}};
	stage.weights->account = &alice;
	ck_assert_int_eq(convolved(stage.weights), 24);
	uint64_t bytes = alice.bytes;
	ck_assert_uint_gt(bytes, 0);
	ck_assert_int_eq(rig_fill(&rig, stage.weights, 4), 0);
	ck_assert_int_eq(convolved(stage.weights), 32);
	ck_assert_uint_eq(alice.bytes, 2 * bytes);
	ck_assert_int_eq(device_view_slice(rig.device, stage.weights, &slice, &view, &rig.context), 0);
	ck_assert_int_eq(convolved(view), 32);
	rig_release(&rig, stage.weights);
	ck_assert_uint_eq(alice.bytes, 0);
	ck_assert_uint_eq(kept(), 0);
	ck_assert_ptr_null(alice.packs);
	ck_assert_uint_eq(rig.device->packs.n_accounts, 0);
}

/* A run that fails for want of memory leaves nothing behind, and the next one is right. */
TEST(scarce_memory)
{
	static const char *const roles[] = {"in", "weights", "out"};
	int status = NPUMEM_RESOURCE_EXHAUSTED;
	for (int64_t fails = 0; status == NPUMEM_RESOURCE_EXHAUSTED; fails++) {
		stage_again(1 << 20);
		struct tensor *const tensors[] = {stage.in, stage.weights, stage.out};
		scarce_arm(&rig.scarce, fails);
		status = run(NPUMEM_KERNEL_CONV2D, tensors, roles, 3);
		scarce_arm(&rig.scarce, -1);
		ck_assert_int_eq(convolved(stage.weights), 24);
		ck_assert_int_lt(fails, 100);
	}
	ck_assert_int_eq(status, 0);
}
