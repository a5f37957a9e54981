/* The safety rule when a kernel runs: what may not start, and what the hardware would destroy of what may. */
#include "daemon/device/operations/lockstep.h"

#include "tests/unit/daemon/device/rig.h"

/* Four NPUs. `in` is written. `out` has 100 bytes of data on NPUs 0 to 2, its block on NPU 3 is empty; `guest` has
 * data in that block, bytes 20 to 79. */
static struct {
	struct tensor *in, *out, *guest;
} stage;

static struct device_request guest_request(int64_t npu, int64_t offset, int64_t bytes)
{
	struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, bytes);
	request.spec.layout = NPUMEM_STRIDED;
	request.spec.stride = (struct npumem_dims){1, 1, 1, 1};
	request.spec.address = npu * 1024 + offset;
	request.reuse = NPUMEM_UNCHECKED;
	return request;
}

static void stage_open(struct rig *to)
{
	rig_open(to, 4, 1024);
	struct device_request request = rig_request(NPUMEM_FX8, 1, 3, 1, 100);
	request.spec.address = 0;
	stage.out = rig_place(to, &request);
	stage.out->owner = "out";
	request.spec.address = 512;
	stage.in = rig_place(to, &request);
	ck_assert_int_eq(rig_fill(to, stage.in, 7), 0);
	request = guest_request(3, 20, 60);
	stage.guest = rig_place(to, &request);
	stage.guest->owner = "guest";
	ck_assert_int_eq(rig_fill(to, stage.guest, 9), 0);
}

FIXTURE_OBJECT(struct rig, rig, stage_open(&rig), rig_close(&rig))

/* Bytes [from, to) of one NPU are `inside`, and those around them up to 128 are not poison. */
static void poisoned(int64_t npu, int from, int to)
{
	uint8_t lane[128];
	device_peek(rig.device, npu, 0, sizeof(lane), lane);
	for (int i = 0; i < (int)sizeof(lane); i++)
		if ((lane[i] == 0xdb) != (i >= from && i < to))
			ck_abort_msg("NPU %ld, byte %d is %02x", (long)npu, i, lane[i]);
}

TEST(destroys_what_lies_in_the_footprint)
{
	ck_assert_int_eq(rig_relu(&rig, stage.in, stage.out), 0);
	ck_assert_uint_eq(rig.op.n_destroyed, 1);
	const struct op_destroyed *destroyed = &rig.op.destroyed[0];
	ck_assert_ptr_eq(destroyed->tensor, stage.guest);
	ck_assert_int_eq(destroyed->npu, 3);
	ck_assert_int_eq(destroyed->offset, 20);
	ck_assert_int_eq(destroyed->bytes, 60);
	ck_assert_int_eq(destroyed->total_bytes, 60);
	for (int npu = 0; npu < 3; npu++)
		poisoned(npu, 0, 0);
	poisoned(3, 20, 80);
	struct device_state state;
	device_state(rig.device, stage.guest, &state);
	ck_assert_int_eq(state.damaged_bytes, 60);
	ck_assert_int_eq(state.unwritten_bytes, 0);
	device_state(rig.device, stage.out, &state);
	ck_assert_int_eq(state.damaged_bytes, 0);
	rig_sound(&rig);
}

/* Of a packed tensor whose last word is not full: its dummies are poisoned too, but nobody lost anything by that.
 */
TEST(dummies_are_no_loss)
{
	rig_reopen(&rig, 4, 1024);
	struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, 40);
	request.spec.address = 0;
	struct tensor *out = rig_place(&rig, &request);
	request.spec.address = 512;
	struct tensor *in = rig_place(&rig, &request);
	request = rig_request(NPUMEM_FX8, 3, 1, 1, 4);
	request.spec.mode = NPUMEM_MODE_4N;
	request.spec.layout = NPUMEM_COMPACT;
	request.spec.address = 3 * 1024 + 20;
	request.reuse = NPUMEM_UNCHECKED;
	struct tensor *packed = rig_place(&rig, &request);
	struct device_counts counts;
	device_stat(rig.device, &counts);
	/* On NPU 3, and 16 bytes of `out` where the packed one has none on NPU 0. */
	ck_assert_int_eq(counts.lent, 3 * 4 + 16);
	ck_assert_int_eq(rig_fill(&rig, packed, 1), 0);
	ck_assert_int_eq(rig_fill(&rig, in, 1), 0);
	ck_assert_int_eq(rig_relu(&rig, in, out), 0);
	ck_assert_uint_eq(rig.op.n_destroyed, 1);
	ck_assert_ptr_eq(rig.op.destroyed[0].tensor, packed);
	ck_assert_int_eq(rig.op.destroyed[0].offset, 20);
	ck_assert_int_eq(rig.op.destroyed[0].bytes, 3);
	ck_assert_int_eq(rig.op.destroyed[0].total_bytes, 3 * 4);
	uint8_t byte;
	device_peek(rig.device, 3, 23, 1, &byte);
	ck_assert_uint_eq(byte, LOCAL_POISON);
}

/* The other way round: the guest's own footprint covers the host's data on NPUs 0 to 2. */
TEST(a_guest_destroys_its_host)
{
	ck_assert_int_eq(rig_relu(&rig, stage.in, stage.out), 0);
	struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, 60);
	struct tensor *in = rig_place(&rig, &request);
	ck_assert_int_eq(rig_fill(&rig, in, 5), 0);
	ck_assert_int_eq(rig_relu(&rig, in, stage.guest), 0);
	ck_assert_uint_eq(rig.op.n_destroyed, 1);
	ck_assert_ptr_eq(rig.op.destroyed[0].tensor, stage.out);
	ck_assert_int_eq(rig.op.destroyed[0].npu, 0);
	ck_assert_int_eq(rig.op.destroyed[0].bytes, 60);
	ck_assert_int_eq(rig.op.destroyed[0].total_bytes, 180);
	for (int npu = 0; npu < 3; npu++)
		poisoned(npu, 20, 80);
	poisoned(3, 0, 0);
}

TEST(a_damaged_tensor_until_it_is_rewritten)
{
	struct device_state state;
	uint8_t bytes[60];
	ck_assert_int_eq(rig_relu(&rig, stage.in, stage.out), 0);
	/* Read with a warning, */
	ck_assert_int_eq(rig_read(&rig, stage.guest, bytes), 0);
	ck_assert_ptr_nonnull(strstr(rig.op.warning, "guest is damaged: 60 bytes were destroyed by a kernel"));
	for (int i = 0; i < 60; i++)
		ck_assert_int_eq(bytes[i], 0xdb);
	/* no input of a kernel, */
	struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, 60);
	struct tensor *other = rig_place(&rig, &request);
	rig_fails(&rig, rig_relu(&rig, stage.guest, other), NPUMEM_DATA_LOST,
		  "guest (role in) is damaged: 60 bytes were destroyed by a kernel");
	ck_assert_int_eq(rig_field(&rig, "damaged_bytes"), 60);
	ck_assert_str_eq(rig_text(&rig, "tensor"), "guest");
	/* its copy with a warning, too, */
	ck_assert_int_eq(rig_copy(&rig, other, stage.guest), 0);
	ck_assert_ptr_nonnull(strstr(rig.op.warning, "guest is damaged"));
	/* and each byte is well as soon as it is written. */
	ck_assert_int_eq(rig_write_some(&rig, stage.guest, 10, 20, bytes), 0);
	device_state(rig.device, stage.guest, &state);
	ck_assert_int_eq(state.damaged_bytes, 40);
	ck_assert_int_eq(rig_relu(&rig, stage.guest, other), NPUMEM_DATA_LOST);
	struct device_slice slice = {{0, 0, 0, 10}, {1, 1, 1, 30}};
	struct tensor *healthy;
	ck_assert_int_eq(device_view_slice(rig.device, stage.guest, &slice, &healthy, &rig.context), 0);
	request.spec.shape.w = 20;
	ck_assert_int_eq(rig_relu(&rig, healthy, rig_place(&rig, &request)), 0);
	ck_assert_int_eq(rig_fill(&rig, stage.guest, 1), 0);
	device_state(rig.device, stage.guest, &state);
	ck_assert_int_eq(state.damaged_bytes, 0);
	ck_assert_int_eq(rig_relu(&rig, stage.guest, other), 0);
	ck_assert_str_eq(rig.op.warning, "");
	rig_sound(&rig);
}

/* Damage goes with its tensor. */
TEST(freed_damage_is_gone)
{
	ck_assert_int_eq(rig_relu(&rig, stage.in, stage.out), 0);
	rig_release(&rig, stage.guest);
	rig_sound(&rig);
	poisoned(3, 0, 0);
	struct device_request request = guest_request(3, 20, 60);
	struct tensor *guest = rig_place(&rig, &request);
	struct device_state state;
	device_state(rig.device, guest, &state);
	ck_assert_int_eq(state.damaged_bytes, 0);
	ck_assert_int_eq(state.unwritten_bytes, 60);
}

/* Each victim once, with all its bytes, however many there are; those beyond the list are counted in the warning.
 */
TEST(many_victims)
{
	for (int64_t i = 0; i < 18; i++) {
		struct device_request request = guest_request(3, i < 10 ? i * 2 : 80 + (i - 10) * 2, 2);
		struct tensor *victim = rig_place(&rig, &request);
		ck_assert_int_eq(rig_fill(&rig, victim, 1), 0);
	}
	ck_assert_int_eq(rig_relu(&rig, stage.in, stage.out), 0);
	ck_assert_uint_eq(rig.op.n_destroyed, OP_DESTROYED_MAX);
	ck_assert_ptr_nonnull(strstr(rig.op.warning, "3 more tensors were destroyed"));
	for (unsigned i = 0; i < OP_DESTROYED_MAX; i++)
		for (unsigned k = i + 1; k < OP_DESTROYED_MAX; k++)
			ck_assert_ptr_ne(rig.op.destroyed[i].tensor, rig.op.destroyed[k].tensor);
	poisoned(3, 0, 96);
	rig_sound(&rig);
}

/* Without host memory for the list of victims nothing runs. */
TEST(victims_need_memory)
{
	/* The work, the victims, the arrays. */
	scarce_arm(&rig.scarce, 1);
	ck_assert_int_eq(rig_relu(&rig, stage.in, stage.out), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert(scarce_fired(&rig.scarce));
	poisoned(3, 0, 0);
	ck_assert(!stage.out->touched);
	scarce_arm(&rig.scarce, 3);
	ck_assert_int_eq(rig_relu(&rig, stage.in, stage.out), 0);
	ck_assert(!scarce_fired(&rig.scarce));
	poisoned(3, 20, 80);
}

/* DMA touches data and nothing else. */
TEST(dma_destroys_nothing)
{
	ck_assert_int_eq(rig_fill(&rig, stage.out, 3), 0);
	ck_assert_int_eq(rig_copy(&rig, stage.out, stage.in), 0);
	ck_assert_uint_eq(rig.op.n_destroyed, 0);
	uint8_t bytes[60];
	ck_assert_int_eq(rig_read(&rig, stage.guest, bytes), 0);
	for (int i = 0; i < 60; i++)
		ck_assert_int_eq(bytes[i], 9);
}

/* A view drives only its own block rows, and never counts its base as another tensor. */
TEST(a_view_as_output)
{
	struct tensor *view;
	struct device_slice slice = {{0, 1, 0, 40}, {1, 2, 1, 50}};
	ck_assert_int_eq(device_view_slice(rig.device, stage.out, &slice, &view, &rig.context), 0);
	struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, 10);
	struct tensor *in = rig_place(&rig, &request);
	ck_assert_int_eq(rig_fill(&rig, in, 5), 0);
	ck_assert_int_eq(rig_fill(&rig, stage.out, 4), 0);
	ck_assert_int_eq(rig_relu(&rig, in, view), 0);
	ck_assert_uint_eq(rig.op.n_destroyed, 1);
	ck_assert_ptr_eq(rig.op.destroyed[0].tensor, stage.guest);
	ck_assert_int_eq(rig.op.destroyed[0].total_bytes, 10);
	poisoned(3, 40, 50);
	for (int npu = 0; npu < 3; npu++)
		poisoned(npu, 0, 0);
}

/* The state that the check at allocation never lets come about, made by hand: the check at the kernel's start does
 * not rely on it. */
TEST(the_second_check)
{
	stage.guest->reuse = NPUMEM_IF_SAFE;
	rig_fails(&rig, rig_relu(&rig, stage.in, stage.out), NPUMEM_FAILED_PRECONDITION,
		  "a kernel that writes out may destroy data of guest on NPU 3, bytes 20 to 79");
	rig_blames(&rig, stage.guest, 3, 20, 60);
	/* Nothing ran. */
	struct device_state state;
	device_state(rig.device, stage.out, &state);
	ck_assert_int_eq(state.unwritten_bytes, 300);
	device_state(rig.device, stage.guest, &state);
	ck_assert_int_eq(state.damaged_bytes, 0);
	stage.guest->reuse = NPUMEM_NEVER;
	ck_assert_int_eq(rig_relu(&rig, stage.in, stage.out), NPUMEM_FAILED_PRECONDITION);
	/* In the other direction the guest is the output. */
	struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, 60);
	struct tensor *in = rig_place(&rig, &request);
	ck_assert_int_eq(rig_fill(&rig, in, 5), 0);
	ck_assert_int_eq(rig_relu(&rig, in, stage.guest), NPUMEM_FAILED_PRECONDITION);
	rig_blames(&rig, stage.out, 0, 20, 60);
	stage.out->reuse = NPUMEM_UNCHECKED;
	ck_assert_int_eq(rig_relu(&rig, in, stage.guest), 0);
}

TEST(no_output_of_a_kernel)
{
	stage.out->dma_only = true;
	rig_fails(&rig, rig_relu(&rig, stage.in, stage.out), NPUMEM_FAILED_PRECONDITION,
		  "out (role out) is dma_only: no kernel may write it");
	struct device_slice slice = {.to = tensor_place(stage.out).shape};
	struct tensor *view;
	ck_assert_int_eq(device_view_slice(rig.device, stage.out, &slice, &view, &rig.context), 0);
	rig_fails(&rig, rig_relu(&rig, stage.in, view), NPUMEM_FAILED_PRECONDITION, "is dma_only");
	stage.out->dma_only = false;
	ck_assert_int_eq(rig_fill(&rig, stage.out, 1), 0);
	ck_assert_int_eq(rig_seal(&rig, stage.out), 0);
	rig_fails(&rig, rig_relu(&rig, stage.in, stage.out), NPUMEM_FAILED_PRECONDITION, "out is sealed");
	ck_assert_int_eq(rig_relu(&rig, stage.in, view), NPUMEM_FAILED_PRECONDITION);
	/* As an input it is fine. */
	struct device_request request = rig_request(NPUMEM_FX8, 1, 3, 1, 100);
	ck_assert_int_eq(rig_relu(&rig, stage.out, rig_place(&rig, &request)), 0);
}
