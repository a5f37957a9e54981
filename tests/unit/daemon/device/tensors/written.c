/* Bytes never written: refused, warned of or allowed, and said where they are. */
#include "daemon/device/tensors/written.h"

#include "daemon/device/internal.h"
#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/rig.h"

/* `x` has 12 elements of 2 bytes, of which the policy's test writes the first `n`; `y` none. */
static struct {
	struct tensor *x, *y;
} stage;

FIXTURE_OBJECT(struct rig, rig, rig_open(&rig, 4, 4096), rig_close(&rig))

static bool written_all(const struct tensor *tensor)
{
	int64_t unwritten, damaged, lost;
	written_scan(rig.device, TENSOR_PLACE(tensor), &unwritten, &damaged, &lost);
	return !unwritten;
}

static void stage_open(int policy, int64_t n)
{
	static const uint16_t ones[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	rig_reopen_with(&rig, 2, 1024, (struct device_options){.uninitialized = policy});
	struct device_request request = rig_request(NPUMEM_FX16, 1, 3, 1, 4);
	stage.x = rig_place(&rig, &request);
	stage.y = rig_place(&rig, &request);
	stage.x->owner = "x";
	stage.y->owner = "y";
	if (n)
		ck_assert_int_eq(rig_write_some(&rig, stage.x, 0, n, ones), 0);
}

/* Five elements are written: channel 0 on NPU 0, and one of channel 1 on NPU 1. */
static const char hole[] = "x has bytes that were never written: 14 of 24, the first at offset 2 of NPU 1";

TEST(refused)
{
	uint16_t back[12];
	stage_open(0, 5);
	rig_fails(&rig, rig_read(&rig, stage.x, back), NPUMEM_FAILED_PRECONDITION, hole);
	ck_assert_str_eq(rig_text(&rig, "tensor"), "x");
	ck_assert_int_eq(rig_field(&rig, "npu"), 1);
	ck_assert_int_eq(rig_field(&rig, "offset"), 2);
	ck_assert_int_eq(rig_field(&rig, "unwritten_bytes"), 14);
	rig_fails(&rig, rig_copy(&rig, stage.y, stage.x), NPUMEM_FAILED_PRECONDITION, hole);
	rig_fails(&rig, rig_relu(&rig, stage.x, stage.y), NPUMEM_FAILED_PRECONDITION, hole);
	struct device_state state;
	device_state(rig.device, stage.y, &state);
	ck_assert_int_eq(state.unwritten_bytes, 24);
	/* What is written can be read. */
	ck_assert_int_eq(rig_read_some(&rig, stage.x, 1, 4, back), 0);
	ck_assert_int_eq(rig_read_some(&rig, stage.x, 1, 5, back), NPUMEM_FAILED_PRECONDITION);
	/* What is counted is what was asked for. */
	rig_said(&rig, NPUMEM_FAILED_PRECONDITION,
		 "x has bytes that were never written: 2 of 10, the first at offset 2 of NPU 1");
	ck_assert_int_eq(rig_field(&rig, "unwritten_bytes"), 2);
	rig_fails(&rig, rig_read_some(&rig, stage.x, 11, 1, back), NPUMEM_FAILED_PRECONDITION,
		  "the first at offset 134 of NPU 0");
	/* A view is as written as its own bytes are. */
	struct device_slice slice = {{0, 0, 0, 0}, {1, 2, 1, 1}};
	struct tensor *view;
	ck_assert_int_eq(device_view_slice(rig.device, stage.x, &slice, &view, &rig.context), 0);
	ck_assert_int_eq(rig_read(&rig, view, back), 0);
	slice.to.w = 2;
	ck_assert_int_eq(device_view_slice(rig.device, stage.x, &slice, &view, &rig.context), 0);
	ck_assert_int_eq(rig_read(&rig, view, back), NPUMEM_FAILED_PRECONDITION);
	device_state(rig.device, view, &state);
	ck_assert_int_eq(state.unwritten_bytes, 2);
}

TEST(warned_of)
{
	uint16_t back[12];
	stage_open(NPUMEM_WARN, 5);
	memset(back, 0xff, sizeof(back));
	ck_assert_int_eq(rig_read(&rig, stage.x, back), 0);
	ck_assert_str_eq(rig.op.warning, hole);
	for (int i = 0; i < 12; i++)
		ck_assert_int_eq(back[i], i < 5);
	ck_assert_int_eq(rig_read_some(&rig, stage.x, 0, 5, back), 0);
	ck_assert_str_eq(rig.op.warning, "");
	ck_assert_int_eq(rig_relu(&rig, stage.x, stage.y), 0);
	ck_assert_str_eq(rig.op.warning, hole);
	ck_assert_int_eq(rig_read(&rig, stage.y, back), 0);
	ck_assert_str_eq(rig.op.warning, "");
	ck_assert_int_eq(back[5], 0);
	ck_assert_int_eq(rig_copy(&rig, stage.y, stage.x), 0);
	ck_assert_str_eq(rig.op.warning, hole);
}

/* A read of part of a damaged tensor tells of the damage in that part. */
TEST(damage_is_counted_where_it_is_read)
{
	uint16_t back[12];
	stage_open(0, 12);
	local_poison(&rig.device->local, 1, tensor_place(stage.x).offset, 4);
	ck_assert_int_eq(rig_read_some(&rig, stage.x, 0, 4, back), 0);
	ck_assert_str_eq(rig.op.warning, "");
	ck_assert_int_eq(rig_read_some(&rig, stage.x, 5, 7, back), 0);
	ck_assert_str_eq(rig.op.warning, "x is damaged: 2 bytes were destroyed by a kernel and not written since");
}

/* A scan of a copy of the place, against its elements one by one; some are written and some of those damaged. */
static void scan_one(const struct device_request *request, uint64_t *random)
{
	rig_reopen(&rig, 4, 4096);
	struct tensor *tensor = rig_place(&rig, request);
	struct npumem_place place = tensor_place(tensor);
	struct local *local = &rig.device->local;
	int64_t bytes = place.word_bytes / place.lanes, unwritten = 0, damaged = 0, lost = 0, n, d, l;
	int64_t width = place.shape.w;
	tensor->touched = true;
	for (int64_t i = 0; i < place.shape.n * place.shape.c * place.shape.h * width; i++) {
		int64_t w = i % width, h = i / width % place.shape.h, npu, offset;
		int64_t c = i / width / place.shape.h % place.shape.c, fate = oracle_between(random, 0, 3);
		if (c == place.shape.c - 1 && w >= place.last_w)
			continue;
		npumem_place_locate(&rig.options.geometry, &place, i / width / place.shape.h / place.shape.c, c, h,
				    w, &npu, &offset);
		if (fate == 0)
			unwritten += bytes;
		else if (fate == 1)
			local_poison(local, npu, place.offset + offset, bytes);
		else
			local_mark(local, npu, place.offset + offset, bytes);
		if (fate == 3)
			local_lose_series(local, npu, place.offset + offset, bytes, 1, 0);
		unwritten += fate == 3 ? bytes : 0;
		damaged += fate == 1 || fate == 3 ? bytes : 0;
		lost += fate == 3 ? bytes : 0;
	}
	written_scan(rig.device, &place, &n, &d, &l);
	ck_assert_int_eq(n, unwritten);
	ck_assert_int_eq(d, damaged);
	ck_assert_int_eq(l, lost);
	ck_assert_int_gt(written_scan_cost(&place), 0);
	rig_release(&rig, tensor);
	written_scan(rig.device, &place, &n, &d, &l);
	ck_assert_int_eq(n, place.blocks.data);
	ck_assert_int_eq(d, 0);
	ck_assert_int_eq(l, 0);
}

TEST(scans_of_every_layout)
{
	uint64_t random = 5;
	struct device_request request = rig_request(NPUMEM_FX8, 3, 5, 4, 9);
	scan_one(&request, &random);
	request.spec.layout = NPUMEM_COMPACT;
	request.spec.start_npu = 2;
	scan_one(&request, &random);
	request.spec.mode = NPUMEM_MODE_4N;
	scan_one(&request, &random);
	request = rig_request(NPUMEM_INT16, 2, 6, 3, 5);
	request.spec.layout = NPUMEM_STRIDED;
	request.spec.stride = (struct npumem_dims){200, 64, 17, 3};
	scan_one(&request, &random);
	request = rig_matrix(NPUMEM_FX16, 5, 37, 8);
	scan_one(&request, &random);
}

TEST(allowed)
{
	uint16_t back[12];
	stage_open(NPUMEM_ALLOW, 5);
	ck_assert_int_eq(rig_relu(&rig, stage.x, stage.y), 0);
	ck_assert_str_eq(rig.op.warning, "");
	ck_assert_int_eq(rig_read(&rig, stage.y, back), 0);
	for (int i = 0; i < 12; i++)
		ck_assert_int_eq(back[i], i < 5);
}

/* However it was written: in pieces, through views, by copies and kernels. */
TEST(written_by_pieces)
{
	uint16_t back[12];
	stage_open(0, 4);
	struct device_slice slice = {{0, 1, 0, 0}, {1, 3, 1, 3}};
	struct tensor *view;
	ck_assert(!written_all(stage.x));
	ck_assert_int_eq(device_view_slice(rig.device, stage.x, &slice, &view, &rig.context), 0);
	ck_assert_int_eq(rig_fill(&rig, view, 2), 0);
	ck_assert(written_all(view));
	ck_assert_int_eq(rig_write_some(&rig, stage.x, 7, 1, "ab"), 0);
	rig_fails(&rig, rig_read(&rig, stage.x, back), NPUMEM_FAILED_PRECONDITION,
		  "2 of 24, the first at offset 134 of NPU 0");
	ck_assert_int_eq(rig_write_some(&rig, stage.x, 11, 1, "cd"), 0);
	ck_assert(written_all(stage.x));
	ck_assert_int_eq(rig_read(&rig, stage.x, back), 0);
	ck_assert_int_eq(rig_relu(&rig, stage.x, stage.y), 0);
	ck_assert_int_eq(rig_read(&rig, stage.y, back), 0);
	/* It stays so: after a compaction, and for views of what was found written. */
	rig_release(&rig, stage.x);
	ck_assert_int_eq(device_compact(rig.device, false, NULL, NULL), 0);
	ck_assert_int_eq(tensor_place(stage.y).offset, 0);
	ck_assert_int_eq(rig_read(&rig, stage.y, back), 0);
	ck_assert(written_all(stage.y));
}

/* Dummies are 0 after a write, whichever piece of it wrote the last batch; they are no elements, so they need not
 * be written. A kernel leaves them as they are. */
TEST(dummies_are_zero)
{
	uint8_t lane[8], ones[12];
	rig_reopen(&rig, 1, 1024);
	struct device_request request = rig_request(NPUMEM_FX8, 6, 1, 1, 2);
	request.spec.mode = NPUMEM_MODE_4N;
	struct tensor *x = rig_place(&rig, &request), *y = rig_place(&rig, &request);
	memset(ones, 1, sizeof(ones));
	struct device_state state;
	device_state(rig.device, x, &state);
	ck_assert_int_eq(state.unwritten_bytes, 12);
	/* Foreign bytes where the dummies are. Words are of 4 batches; those of the second have 2 elements. */
	int64_t second = tensor_place(x).stride.n * 4;
	uint8_t *dummies = local_at(&rig.device->local, 0, tensor_place(x).offset + second);
	dummies[2] = dummies[3] = dummies[6] = dummies[7] = 0x77;
	ck_assert_int_eq(rig_write_some(&rig, x, 0, 10, ones), 0);
	ck_assert_int_eq(dummies[2], 0x77);
	for (int64_t i = 10; i < 12; i++) {
		ck_assert_int_eq(rig_write_some(&rig, x, i, 1, ones), 0);
		ck_assert_int_eq(dummies[2], 0);
		ck_assert_int_eq(dummies[3], 0);
		ck_assert_int_eq(dummies[6], i == 11 ? 0 : 0x77);
	}
	dummies = local_at(&rig.device->local, 0, tensor_place(y).offset + second);
	memset(dummies, 0x66, 8);
	ck_assert_int_eq(rig_relu(&rig, x, y), 0);
	device_peek(rig.device, 0, tensor_place(y).offset + second, 8, lane);
	static const uint8_t kept[8] = {1, 1, 0x66, 0x66, 1, 1, 0x66, 0x66};
	ck_assert_int_eq(memcmp(lane, kept, 8), 0);
	ck_assert_int_eq(rig_copy(&rig, y, x), 0);
	device_peek(rig.device, 0, tensor_place(y).offset + second, 8, lane);
	static const uint8_t cleared[8] = {1, 1, 0, 0, 1, 1, 0, 0};
	ck_assert_int_eq(memcmp(lane, cleared, 8), 0);
	memset(dummies, 0x66, 8);
	ck_assert_int_eq(rig_fill(&rig, y, 1), 0);
	device_peek(rig.device, 0, tensor_place(y).offset + second, 8, lane);
	ck_assert_int_eq(memcmp(lane, cleared, 8), 0);
}
