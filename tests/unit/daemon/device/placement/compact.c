/* Compaction: who moves where, and that nobody notices. The model's traces compact, too; here are the cases by
 * hand. */
#include "daemon/device/internal.h"
#include <limits.h>

#include "tests/unit/daemon/device/rig.h"

FIXTURE_OBJECT(struct rig, rig, rig_open(&rig, 2, 1024), rig_close(&rig))

struct moves {
	struct device_move list[8];
	unsigned n;
};

static void note(void *ctx, const struct device_move *move)
{
	struct moves *moves = ctx;
	moves->list[moves->n++] = *move;
}

static struct moves compact(bool dry_run)
{
	struct moves moves = {.n = 0};
	ck_assert_int_eq(device_compact(rig.device, dry_run, note, &moves), 0);
	rig_sound(&rig);
	return moves;
}

/* `bytes` of every NPU, which may be moved. */
static struct tensor *block(int64_t bytes, int layout)
{
	struct device_request request = rig_request(NPUMEM_FX8, 1, rig.options.geometry.n_npus, 1, bytes);
	request.spec.layout = layout;
	return rig_place(&rig, &request);
}

TEST(nobody_notices)
{
	uint8_t bytes[512], ramp[512];
	struct tensor *first = block(100, NPUMEM_COMPACT), *a = block(128, NPUMEM_ALIGNED), *view;
	struct tensor *second = block(4, NPUMEM_COMPACT), *b = block(256, NPUMEM_ALIGNED);
	for (int i = 0; i < 512; i++)
		ramp[i] = (uint8_t)(i * 7);
	ck_assert_int_eq(rig_write(&rig, a, ramp), 0);
	ck_assert_int_eq(rig_write_some(&rig, b, 0, 300, ramp), 0);
	ck_assert_int_eq(rig_seal(&rig, a), 0);
	struct device_slice slice = {{0, 1, 0, 100}, {1, 2, 1, 120}};
	ck_assert_int_eq(device_view_slice(rig.device, a, &slice, &view, &rig.context), 0);
	uint64_t handle = a->handle;
	int64_t a_from = tensor_place(a).offset, b_from = tensor_place(b).offset;
	rig_release(&rig, first);
	rig_release(&rig, second);
	struct moves dry = compact(true);
	ck_assert_int_eq(tensor_place(a).offset, a_from);
	struct moves wet = compact(false);
	ck_assert_uint_eq(wet.n, 2);
	ck_assert_int_eq(memcmp(&dry, &wet, sizeof(wet)), 0);
	ck_assert_ptr_eq(wet.list[0].tensor, a);
	ck_assert_int_eq(wet.list[0].from_offset, a_from);
	ck_assert_int_eq(wet.list[0].to_offset, 0);
	ck_assert_int_eq(wet.list[0].bytes_per_npu, 128);
	ck_assert_ptr_eq(wet.list[1].tensor, b);
	ck_assert_int_eq(wet.list[1].from_offset, b_from);
	ck_assert_int_eq(wet.list[1].to_offset, 128);
	ck_assert_ptr_eq(device_find(rig.device, handle), a);
	ck_assert_int_eq(tensor_place(a).address, 0);
	ck_assert(a->sealed);
	ck_assert_int_eq(rig_read(&rig, a, bytes), 0);
	ck_assert_int_eq(memcmp(bytes, ramp, 256), 0);
	ck_assert_int_eq(tensor_place(view).offset, 100);
	ck_assert_int_eq(rig_read(&rig, view, bytes), 0);
	ck_assert_int_eq(memcmp(bytes, ramp + 128 + 100, 20), 0);
	/* What was never written is still not, and what it left is zero and never written. */
	struct device_state state;
	device_state(rig.device, b, &state);
	ck_assert_int_eq(state.unwritten_bytes, 512 - 300);
	ck_assert_int_eq(rig_read_some(&rig, b, 0, 300, bytes), 0);
	ck_assert_int_eq(memcmp(bytes, ramp, 300), 0);
	device_peek(rig.device, 0, 384, 512, bytes);
	for (int i = 0; i < 512; i++)
		ck_assert_int_eq(bytes[i], 0);
	ck_assert_uint_eq(compact(false).n, 0);
}

/* Around one that is pinned, and to its own alignment. */
TEST(pinned_ones_stay)
{
	struct tensor *gap = block(8, NPUMEM_COMPACT), *small = block(4, NPUMEM_COMPACT);
	struct tensor *pinned = rig_block(&rig, 200, 40);
	struct tensor *after = block(300, NPUMEM_ALIGNED);
	ck_assert_int_ge(tensor_place(after).offset, 240);
	rig_release(&rig, gap);
	struct tensor *hole = rig_block(&rig, 240, 4);
	rig_release(&rig, hole);
	struct moves moves = compact(false);
	ck_assert_uint_ge(moves.n, 1);
	ck_assert_int_eq(tensor_place(small).offset, 0);
	ck_assert_int_eq(tensor_place(pinned).offset, 200);
	ck_assert_int_eq(tensor_place(after).offset, 256);
	/* There is room before the pinned one for a small one, but nobody overtakes. */
	struct tensor *last = block(4, NPUMEM_COMPACT);
	ck_assert_int_eq(tensor_place(last).offset, 240);
	ck_assert_uint_eq(compact(false).n, 0);
}

static unsigned step(struct device_compaction *compaction)
{
	struct device_move moves[8];
	unsigned n;
	ck_assert_int_eq(device_compact_step(rig.device, compaction, false, moves, 8, &n), 0);
	ck_assert(device_compact_views(rig.device, compaction, moves, n, UINT_MAX));
	device_compact_bytes(rig.device);
	rig_sound(&rig);
	return n;
}

/* So that a step's time does not grow with the number of views. */
TEST(views_follow_some_at_a_time)
{
	struct device_compaction compaction = {.next = 0};
	struct device_move moves[8];
	struct tensor *bases[3], *views[2][5];
	unsigned n, n_turns = 1;
	struct tensor *hole = rig_block(&rig, 0, 64);
	for (int i = 0; i < 3; i++)
		bases[i] = block(64, NPUMEM_COMPACT);
	for (int i = 0; i < 10; i++) {
		struct device_slice slice = {.to = tensor_place(bases[2 * (i % 2)]).shape};
		const struct error_context quiet = {.error = NULL};
		slice.from.w = i;
		ck_assert_int_eq(
			device_view_slice(rig.device, bases[2 * (i % 2)], &slice, &views[i % 2][i / 2], &quiet),
			0);
	}
	rig_release(&rig, hole);
	ck_assert_int_eq(device_compact_step(rig.device, &compaction, false, moves, 8, &n), 0);
	ck_assert_uint_eq(n, 3);
	while (!device_compact_views(rig.device, &compaction, moves, n, 3))
		n_turns++;
	ck_assert_uint_eq(n_turns, 4);
	device_compact_bytes(rig.device);
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(tensor_place(views[i % 2][i / 2]).offset, 128 * (i % 2) + i);
	rig_sound(&rig);
}

/* A step has as many bytes as it may, and a tensor that is larger than any may be stays. */
TEST(bounds_in_bytes)
{
	struct device_compaction compaction = {.step_bytes = 2 * 200, .most_bytes = 2 * 256};
	struct tensor *gap = block(16, NPUMEM_COMPACT), *one = block(100, NPUMEM_COMPACT);
	struct tensor *two = block(100, NPUMEM_COMPACT), *large = block(260, NPUMEM_COMPACT);
	struct tensor *three = block(256, NPUMEM_COMPACT);
	rig_release(&rig, gap);
	ck_assert_uint_eq(step(&compaction), 2);
	ck_assert(!compaction.done);
	ck_assert_int_eq(tensor_place(one).offset, 0);
	ck_assert_int_eq(tensor_place(two).offset, 100);
	ck_assert_uint_eq(step(&compaction), 0);
	ck_assert(compaction.done);
	ck_assert_int_eq(tensor_place(large).offset, 216);
	ck_assert_int_eq(tensor_place(three).offset, 476);
	ck_assert_uint_eq(compact(false).n, 2);
}

/* Between two steps one has come where the next would have gone, and one below has gone. */
TEST(others_come_and_go_between_steps)
{
	struct device_compaction compaction = {.step_bytes = 1};
	struct tensor *gap = block(100, NPUMEM_COMPACT), *one = block(100, NPUMEM_COMPACT);
	struct tensor *two = block(100, NPUMEM_COMPACT), *three = block(100, NPUMEM_COMPACT);
	rig_release(&rig, gap);
	ck_assert_uint_eq(step(&compaction), 1);
	ck_assert_int_eq(tensor_place(one).offset, 0);
	struct tensor *comes = rig_block(&rig, 100, 40);
	device_compact_resume(&compaction);
	ck_assert_uint_eq(step(&compaction), 1);
	ck_assert_int_eq(tensor_place(comes).offset, 100);
	ck_assert_int_eq(tensor_place(two).offset, 140);
	rig_release(&rig, one);
	rig_release(&rig, two);
	device_compact_resume(&compaction);
	while (!compaction.done) {
		step(&compaction);
		device_compact_resume(&compaction);
	}
	ck_assert_int_eq(tensor_place(three).offset, 240);
}

/* A tensor whose bytes another has stays, as that other one does; alone again, both move. */
TEST(lent_ones_stay)
{
	struct tensor *gap = block(128, NPUMEM_COMPACT);
	struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, 128);
	request.dma_only = true;
	struct tensor *host = rig_place(&rig, &request);
	ck_assert_int_eq(tensor_place(host).offset, 128);
	struct tensor *rest = rig_block(&rig, 256, 768);
	rig_release(&rig, gap);
	rig_block(&rig, 64, 4);
	request.spec.start_npu = 1;
	request.reuse = NPUMEM_IF_SAFE;
	struct tensor *guest = rig_place(&rig, &request);
	ck_assert(tensor_is_guest(guest) && !guest->pinned);
	ck_assert_int_eq(rig_fill(&rig, guest, 6), 0);
	ck_assert_int_eq(rig_fill(&rig, host, 5), 0);
	ck_assert_uint_eq(compact(false).n, 0);
	rig_release(&rig, rest);
	rig_release(&rig, host);
	ck_assert_uint_eq(compact(true).n, 0);
	for (struct tensor *t = device_next(rig.device, NULL), *next; t; t = next) {
		next = device_next(rig.device, t);
		if (t != guest)
			rig_release(&rig, t);
	}
	struct moves moves = compact(false);
	ck_assert_uint_eq(moves.n, 1);
	ck_assert_int_eq(tensor_place(guest).offset, 0);
	ck_assert(!tensor_is_guest(guest));
	uint8_t bytes[128];
	ck_assert_int_eq(rig_read(&rig, guest, bytes), 0);
	for (int i = 0; i < 128; i++)
		ck_assert_int_eq(bytes[i], 6);
}

/* Damage moves with its bytes, also where the new place overlaps the old one. */
TEST(damage_moves)
{
	rig_reopen(&rig, 4, 1024);
	struct tensor *gap = block(32, NPUMEM_COMPACT);
	struct device_request request = rig_request(NPUMEM_FX8, 1, 3, 1, 100);
	request.spec.layout = NPUMEM_COMPACT;
	struct tensor *host = rig_place(&rig, &request);
	request = rig_request(NPUMEM_FX8, 1, 1, 1, 52);
	request.spec.start_npu = 3;
	request.spec.layout = NPUMEM_COMPACT;
	request.spec.address = 3 * 1024 + tensor_place(host).offset + 40;
	request.reuse = NPUMEM_UNCHECKED;
	struct tensor *guest = rig_place(&rig, &request);
	ck_assert_int_eq(rig_fill(&rig, host, 1), 0);
	ck_assert_int_eq(rig_fill(&rig, guest, 2), 0);
	request = rig_request(NPUMEM_FX8, 1, 1, 1, 52);
	struct tensor *in = rig_place(&rig, &request);
	ck_assert_int_eq(rig_fill(&rig, in, 3), 0);
	ck_assert_int_eq(rig_relu(&rig, in, guest), 0);
	ck_assert_ptr_eq(rig.op.destroyed[0].tensor, host);
	rig_release(&rig, guest);
	rig_release(&rig, gap);
	ck_assert_uint_ge(compact(false).n, 1);
	ck_assert_int_eq(tensor_place(host).offset, 0);
	struct device_state state;
	device_state(rig.device, host, &state);
	ck_assert_int_eq(state.damaged_bytes, 156);
	uint8_t bytes[300];
	ck_assert_int_eq(rig_read(&rig, host, bytes), 0);
	for (int i = 0; i < 300; i++)
		ck_assert_int_eq(bytes[i], i % 100 >= 40 && i % 100 < 92 ? 0xdb : 1);
	ck_assert_int_eq(rig_fill(&rig, host, 9), 0);
	ck_assert_uint_eq(rig.device->local.n_damaged, 0);
}
