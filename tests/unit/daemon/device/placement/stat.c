/* Who has a byte, and whether device_check would notice what it is there to notice. Counts are the model's. */
#include "daemon/device/internal.h"
#include "tests/support/bytemap.h"
#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/rig.h"

FIXTURE_OBJECT(struct rig, rig, rig_open(&rig, 4, 1024), rig_close(&rig))

TEST(owners_of_a_byte)
{
	struct device_owner owners[4];
	struct device_request request = rig_request(NPUMEM_FX8, 3, 3, 1, 10);
	request.spec.mode = NPUMEM_MODE_4N;
	request.spec.address = 128;
	struct tensor *host = rig_place(&rig, &request);
	/* Words of 3 elements and a dummy; 40 of 128 bytes; nothing on NPU 3. */
	static const struct {
		int64_t npu, offset;
		int kind;
	} bytes[] = {{0, 127, 0},
		     {0, 128, NPUMEM_BYTE_DATA},
		     {0, 131, NPUMEM_BYTE_DUMMY},
		     {2, 167, NPUMEM_BYTE_DUMMY},
		     {1, 168, NPUMEM_BYTE_PADDING},
		     {1, 255, NPUMEM_BYTE_PADDING},
		     {3, 128, NPUMEM_BYTE_EMPTY},
		     {3, 255, NPUMEM_BYTE_EMPTY},
		     {3, 256, 0}};
	for (unsigned i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		unsigned n = device_at(rig.device, bytes[i].npu, bytes[i].offset, owners, 4);
		ck_assert_uint_eq(n, bytes[i].kind != 0);
		if (n) {
			ck_assert_ptr_eq(owners[0].tensor, host);
			ck_assert_int_eq((int)owners[0].kind, bytes[i].kind);
		}
	}
	/* With guests a byte has several, whose footprints are 4 bytes each; no more are told than there is room
	 * for. */
	for (int64_t offset = 0; offset < 3; offset++) {
		request = rig_request(NPUMEM_FX8, 1, 1, 1, 1);
		request.spec.layout = NPUMEM_STRIDED;
		request.spec.stride = (struct npumem_dims){1, 1, 1, 1};
		request.spec.address = 3 * 1024 + 128 + offset;
		request.reuse = NPUMEM_UNCHECKED;
		struct tensor *guest = rig_place(&rig, &request);
		ck_assert_uint_eq(device_at(rig.device, 3, 128 + offset, owners, 4), 2 + (unsigned)offset);
		ck_assert_ptr_eq(owners[1 + offset].tensor, guest);
		ck_assert_int_eq((int)owners[1 + offset].kind, NPUMEM_BYTE_DATA);
	}
	ck_assert_uint_eq(device_at(rig.device, 3, 128, owners, 1), 1);
	ck_assert_uint_eq(device_at(rig.device, 0, 129, owners, 4), 3);
}

/* Matrices, whose last channel is narrower than the others, over each other on more NPUs than the model's traces
 * have. */
TEST(counts_of_matrices)
{
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct bytemap map;
		struct tensor *tensor;
		uint64_t random = seed;
		int64_t npus[9];
		rig_reopen(&rig, 9, 1024);
		bytemap_init(&map, &rig.options.geometry);
		for (int i = 0; i < 6; i++) {
			int64_t cols = oracle_between(&random, 1, 100);
			struct device_request request = rig_matrix(NPUMEM_FX8, oracle_between(&random, 1, 3), cols,
								   oracle_between(&random, 1, cols));
			request.spec.start_npu = oracle_between(&random, 0, 8);
			request.spec.address = request.spec.start_npu * 1024 + oracle_between(&random, 0, 2) * 128;
			request.reuse = NPUMEM_UNCHECKED;
			if (!rig_try(&rig, &request, &tensor))
				bytemap_add(&map, bytemap_draw(&map, TENSOR_PLACE(tensor)));
		}
		struct bytemap_counts is = bytemap_counts(&map);
		struct device_counts says;
		device_stat(rig.device, &says);
		ck_assert_int_eq(says.data, is.kind[BYTEMAP_DATA]);
		ck_assert_int_eq(says.padding, is.kind[BYTEMAP_PADDING]);
		ck_assert_int_eq(says.empty, is.kind[BYTEMAP_EMPTY]);
		ck_assert_int_eq(says.free, is.free);
		ck_assert_int_eq(says.lent, is.lent);
		device_npus(rig.device, npus);
		for (int64_t npu = 0; npu < 9; npu++) {
			for (int64_t i = 0; i < 1024; i++)
				npus[npu] -= map.count[npu * 1024 + i][BYTEMAP_DATA] > 0;
			ck_assert_int_eq(npus[npu], 0);
		}
		while (map.tensors)
			bytemap_remove(&map, map.tensors);
		bytemap_deinit(&map);
	}
}

static void notices(const char *part)
{
	const char *wrong = device_check(rig.device);
	ck_assert_msg(wrong && strstr(wrong, part), "\"%s\" is not \"%s\"", wrong ? wrong : "nothing", part);
}

TEST(the_check_can_fail)
{
	rig_reopen(&rig, 2, 1024);
	struct tensor *a = rig_block(&rig, 0, 128), *b = rig_block(&rig, 128, 128);
	struct local *local = &rig.device->local;
	local_mark(local, 1, 700, 1);
	notices("outside all data is marked as written");
	local_forget(local, 1, 700, 1);
	rig_sound(&rig);
	local->n_damaged++;
	notices("count of damaged bytes");
	local->n_damaged--;
	rig.device->totals.blocks.padding++;
	notices("running sums");
	rig.device->totals.blocks.padding--;
	rig.device->n_views++;
	notices("running sums");
	rig.device->n_views--;
	b->packed.offset -= 4;
	notices("is data of two tensors");
	b->packed.offset += 4 + 128;
	notices("are free in the arena");
	b->packed.offset += 1024;
	notices("past the end");
	b->packed.offset -= 1024 + 128;
	arena_release(rig.device->arena, 0, 128);
	notices("are free in the arena");
	ck_assert_int_eq(arena_reserve(rig.device->arena, 0, 128, a), 0);
	rig.device->n_tensors++;
	notices("running sums");
	rig.device->n_tensors--;
	struct device_slice slice = {.to = tensor_place(a).shape};
	struct tensor *view;
	ck_assert_int_eq(device_view_slice(rig.device, a, &slice, &view, &rig.context), 0);
	view->packed.offset++;
	notices("a view leaves its base");
	view->packed.offset--;
	view->base = b;
	notices("a view leaves its base");
	view->base = a;
	/* A guest over a host, which goes. */
	struct device_request request = rig_request(NPUMEM_INT8, 1, 1, 1, 4);
	request.spec.address = 512;
	struct tensor *host = rig_place(&rig, &request);
	request.spec.start_npu = 1;
	request.spec.address += 1024;
	request.reuse = NPUMEM_UNCHECKED;
	struct tensor *guest = rig_place(&rig, &request);
	rig_sound(&rig);
	struct tensor_visit *visit = guest->visit, stray;
	guest->visit = NULL;
	notices("neither is a guest");
	guest->visit = visit;
	visit->quanta.to++;
	notices("interval's reach");
	visit->quanta.to--;
	rig_release(&rig, host);
	guest->visit = &stray;
	notices("a guest shares no quanta");
	guest->visit = NULL;
}

/* All lie over all and share nothing. */
TEST(lending_among_many)
{
	enum { MANY = 200 };
	struct device_state state;
	struct tensor *middle = NULL;
	rig_reopen(&rig, 2, 16384);
	struct device_request request = rig_request(NPUMEM_INT8, 1, 1, 1, 2);
	request.spec.layout = NPUMEM_STRIDED;
	request.reuse = NPUMEM_UNCHECKED;
	for (unsigned i = 0; i < MANY; i++) {
		request.spec.address = i;
		request.spec.stride = (struct npumem_dims){1, 1, 1, 16384 - 8 - 2 * i};
		struct tensor *tensor = rig_place(&rig, &request);
		middle = i == MANY / 2 ? tensor : middle;
	}
	device_state(rig.device, middle, &state);
	ck_assert(!state.lends && !state.borrows);
	/* One has the bytes of the other NPU where the last one has empty ones. */
	request.spec.start_npu = 1;
	request.spec.address += 16384;
	device_state(rig.device, rig_place(&rig, &request), &state);
	ck_assert(state.lends && state.borrows);
}
