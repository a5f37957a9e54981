/* Windows of counts: as a map of bytes says, whatever was counted before, in between or not at all. */
#include "daemon/device/reuse/overlap_count.h"

#include "tests/support/bytemap.h"
#include "tests/unit/daemon/device/places.h"

FIXTURE_OBJECT(struct rig, rig, rig_open(&rig, 4, 1024), rig_close(&rig))

static void compare(const struct bytemap *map)
{
	struct bytemap_counts is = bytemap_counts(map);
	struct device_counts known, says;
	device_stat_uncounted(rig.device, &known);
	device_stat(rig.device, &says);
	ck_assert(known.uncounted && !says.uncounted);
	ck_assert_int_eq(known.data, is.kind[BYTEMAP_DATA]);
	ck_assert_int_eq(known.dummy, is.kind[BYTEMAP_DUMMY]);
	ck_assert_int_le(known.free, is.free);
	ck_assert_int_eq(known.padding + known.lent, 0);
	ck_assert_int_eq(known.data + known.dummy + known.empty + known.free, known.total);
	ck_assert_int_eq(says.data, is.kind[BYTEMAP_DATA]);
	ck_assert_int_eq(says.dummy, is.kind[BYTEMAP_DUMMY]);
	ck_assert_int_eq(says.padding, is.kind[BYTEMAP_PADDING]);
	ck_assert_int_eq(says.empty, is.kind[BYTEMAP_EMPTY]);
	ck_assert_int_eq(says.free, is.free);
	ck_assert_int_eq(says.lent, is.lent);
}

struct pair {
	struct tensor *tensor;
	struct bytemap_tensor *drawn;
};

/* Also on more NPUs than a word has bits, and tensors over several windows and in a last one that is short. */
TEST(as_the_map_of_bytes, .to = 3)
{
	static const struct npumem_geometry sizes[] = {{3, 2944, 8, 128}, {70, 1536, 8, 128}, {5, 4096, 8, 128}};
	const struct npumem_geometry *size = &sizes[_i];
	struct bytemap map;
	struct pair pairs[32];
	unsigned n = 0, n_partly = 0, n_lent = 0;
	uint64_t random = 11 + (uint64_t)_i;
	rig_reopen(&rig, size->n_npus, size->npu_bytes);
	bytemap_init(&map, &rig.options.geometry);
	for (int step = 0; step < 400; step++) {
		struct device_request request = places_request(&random, size->n_npus);
		int64_t start = request.spec.start_npu;
		request.reuse = NPUMEM_UNCHECKED;
		request.spec.address =
			start * size->npu_bytes + oracle_between(&random, 0, size->npu_bytes / 128) * 128;
		if (n < 32 && oracle_random(&random) % 8 && !rig_try(&rig, &request, &pairs[n].tensor)) {
			pairs[n].drawn = bytemap_draw(&map, TENSOR_PLACE(pairs[n].tensor));
			bytemap_add(&map, pairs[n++].drawn);
		} else if (n) {
			unsigned k = oracle_random(&random) % n;
			bytemap_remove(&map, pairs[k].drawn);
			rig_release(&rig, pairs[k].tensor);
			pairs[k] = pairs[--n];
		}
		if (oracle_random(&random) % 2)
			n_partly += !overlap_count(rig.device, (unsigned)oracle_between(&random, 1, 8));
		if (step % 8)
			continue;
		compare(&map);
		n_lent += overlap_sum(rig.device).lent > 0;
	}
	ck_assert_uint_ge(n_partly, 10);
	ck_assert_uint_ge(n_lent, 1);
	compare(&map);
	while (map.tensors)
		bytemap_remove(&map, map.tensors);
	bytemap_deinit(&map);
}

static struct tensor *half(int64_t start_npu, int64_t bytes, int64_t offset, int reuse)
{
	struct device_request request = rig_request(NPUMEM_INT8, 1, 2, 1, bytes);
	request.spec.layout = NPUMEM_COMPACT;
	request.spec.start_npu = start_npu;
	request.spec.address = start_npu * rig.options.geometry.npu_bytes + offset;
	request.reuse = reuse;
	request.dma_only = true;
	return rig_place(&rig, &request);
}

/* A large NPU has spans of several windows: here of 8, and a last one of 3. */
TEST(spans_of_several_windows)
{
	enum { NPU_BYTES = (64 << 20) + 640, HOST = 5120, GUEST = 3072 };
	static const int64_t offsets[] = {128, 3 * 2048 - 128, NPU_BYTES - HOST};
	for (unsigned i = 0; i < 3; i++) {
		struct device_counts says;
		int64_t changed = 0;
		rig_reopen(&rig, 4, NPU_BYTES);
		half(0, HOST, offsets[i], NPUMEM_NEVER);
		for (unsigned most = 1; most < 4; most++) {
			struct tensor *guest = half(2, GUEST, offsets[i] + HOST - GUEST, NPUMEM_IF_SAFE);
			while (!overlap_count(rig.device, most))
				changed++;
			ck_assert_int_eq(overlap_sum(rig.device).lent, 4 * GUEST);
			device_stat(rig.device, &says);
			ck_assert_int_eq(says.data, 2 * (HOST + GUEST));
			ck_assert_int_eq(says.free, says.total - 4 * HOST);
			rig_release(&rig, guest);
			device_stat(rig.device, &says);
			ck_assert_int_eq(says.lent, 0);
		}
		ck_assert_int_ge(changed, GUEST / OVERLAP_WINDOW_BYTES);
	}
}

/* A window of so many tensors: each twice, and the end of the first round. */
#define LOOKS(n_tensors) (2 * (n_tensors) + 1)

/* How many calls until all is counted. */
static unsigned n_turns(void)
{
	unsigned n = 1;
	while (!overlap_count(rig.device, 1))
		n++;
	return n;
}

/* Only the windows where tensors meet are counted, and only after a change there. */
TEST(only_what_changes)
{
	rig_reopen(&rig, 4, 16 * OVERLAP_WINDOW_BYTES);
	half(0, 12 * OVERLAP_WINDOW_BYTES, 0, NPUMEM_NEVER);
	ck_assert(overlap_count(rig.device, 0));
	ck_assert_ptr_null(rig.device->windows);
	/* Windows 10 to 13; the last two are its own. */
	struct tensor *first = half(2, 4 * OVERLAP_WINDOW_BYTES, 10 * OVERLAP_WINDOW_BYTES, NPUMEM_IF_SAFE);
	ck_assert(!overlap_count(rig.device, 0));
	ck_assert_uint_eq(n_turns(), 2 * LOOKS(2) + 1);
	ck_assert_uint_eq(n_turns(), 1);
	struct tensor *second = half(2, OVERLAP_WINDOW_BYTES, 4 * OVERLAP_WINDOW_BYTES + 4, NPUMEM_IF_SAFE);
	ck_assert_uint_eq(n_turns(), 2 * LOOKS(2) + 1);
	ck_assert_int_eq(overlap_sum(rig.device).lent, 4 * 3 * OVERLAP_WINDOW_BYTES);
	/* A neighbour in free space changes nothing. */
	struct tensor *apart = half(0, OVERLAP_WINDOW_BYTES, 14 * OVERLAP_WINDOW_BYTES, NPUMEM_NEVER);
	ck_assert_uint_eq(n_turns(), 1);
	rig_release(&rig, apart);
	ck_assert_uint_eq(n_turns(), 1);
	rig_release(&rig, first);
	ck_assert_uint_eq(n_turns(), 2 * LOOKS(1) + 1);
	ck_assert_int_eq(overlap_sum(rig.device).lent, 4 * OVERLAP_WINDOW_BYTES);
	rig_release(&rig, second);
	ck_assert_ptr_null(rig.device->windows);
	ck_assert_int_eq(overlap_sum(rig.device).lent, 0);
}

/* A change between two steps has its windows counted again. */
TEST(changes_in_between)
{
	rig_reopen(&rig, 4, 16 * OVERLAP_WINDOW_BYTES);
	struct tensor *host = half(0, 16 * OVERLAP_WINDOW_BYTES, 0, NPUMEM_NEVER);
	half(2, 8 * OVERLAP_WINDOW_BYTES, 0, NPUMEM_IF_SAFE);
	/* Six windows, and a part of the next one. */
	for (int i = 0; i < 6 * LOOKS(2) + 2; i++)
		ck_assert(!overlap_count(rig.device, 1));
	struct tensor *late = half(2, 4 * OVERLAP_WINDOW_BYTES, 9 * OVERLAP_WINDOW_BYTES, NPUMEM_IF_SAFE);
	ck_assert_uint_eq(n_turns(), (2 + 4) * LOOKS(2) + 1);
	ck_assert_int_eq(overlap_sum(rig.device).lent, 4 * 12 * OVERLAP_WINDOW_BYTES);
	rig_release(&rig, late);
	ck_assert(!overlap_count(rig.device, 1));
	/* The guest that is left shares nothing. */
	rig_release(&rig, host);
	ck_assert_ptr_null(rig.device->windows);
	ck_assert_uint_eq(n_turns(), 1);
	ck_assert_int_eq(overlap_sum(rig.device).lent, 0);
}

/* A window that is counted in part knows nothing of a tensor that comes, even where that one shares nothing. */
TEST(changes_in_a_window, .to = 2 * LOOKS(2))
{
	enum { BYTES = OVERLAP_WINDOW_BYTES / 2 };
	struct tensor *tensors[3];
	struct bytemap map;
	rig_reopen(&rig, 4, 16 * OVERLAP_WINDOW_BYTES);
	tensors[0] = half(0, BYTES, 0, NPUMEM_NEVER);
	tensors[1] = half(2, BYTES, 0, NPUMEM_IF_SAFE);
	ck_assert(!overlap_count(rig.device, 1 + (unsigned)_i % LOOKS(2)));
	tensors[2] = half(1, BYTES, BYTES, NPUMEM_NEVER);
	if (_i >= LOOKS(2)) {
		ck_assert(!overlap_count(rig.device, 1 + (unsigned)_i % LOOKS(2)));
		rig_release(&rig, tensors[2]);
		tensors[2] = half(2, BYTES, BYTES, NPUMEM_NEVER);
	}
	bytemap_init(&map, &rig.options.geometry);
	for (unsigned i = 0; i < 3; i++)
		bytemap_add(&map, bytemap_draw(&map, TENSOR_PLACE(tensors[i])));
	compare(&map);
	while (map.tensors)
		bytemap_remove(&map, map.tensors);
	bytemap_deinit(&map);
}
