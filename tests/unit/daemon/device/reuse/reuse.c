/* The safety rule when a tensor is placed: every reason to refuse with the bytes it is about, and the search for
 * empty blocks against the verdict on every single offset. */
#include "daemon/device/reuse/reuse.h"

#include "daemon/device/internal.h"
#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/rig.h"

/* Four NPUs; `host` has 100 bytes of data on NPUs 0 to 2, padding behind them, and an empty block on NPU 3. */
static struct tensor *open_with_host(struct rig *rig, bool dma_only)
{
	rig_open(rig, 4, 1024);
	struct device_request request = rig_request(NPUMEM_FX8, 1, 3, 1, 100);
	request.dma_only = dma_only;
	request.spec.address = 0;
	struct tensor *host = rig_place(rig, &request);
	host->owner = "host";
	return host;
}

/* A strided row of `bytes` at an address. */
static struct device_request row_at(int64_t npu, int64_t offset, int64_t bytes, int reuse, bool dma_only)
{
	struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, bytes);
	request.spec.layout = NPUMEM_STRIDED;
	request.spec.stride = (struct npumem_dims){1, 1, 1, 1};
	request.spec.address = npu * 1024 + offset;
	request.reuse = reuse;
	request.dma_only = dma_only;
	return request;
}

START_TEST(data_over_data)
{
	struct rig rig;
	for (int reuse = NPUMEM_IF_SAFE; reuse <= NPUMEM_UNCHECKED; reuse++) {
		struct tensor *host = open_with_host(&rig, true);
		struct device_request request = row_at(2, 60, 64, reuse, true);
		rig_refuses(&rig, &request, NPUMEM_FAILED_PRECONDITION,
			    "the new tensor's data would lie on data of host on NPU 2, bytes 60 to 99; data over "
			    "data is always refused");
		rig_blames(&rig, host, 2, 60, 40);
		rig_close(&rig);
	}
}
END_TEST

/* Dummies count as data. */
START_TEST(data_over_dummies)
{
	struct rig rig;
	rig_open(&rig, 4, 1024);
	struct device_request request = rig_request(NPUMEM_FX8, 3, 2, 1, 8);
	request.spec.mode = NPUMEM_MODE_4N;
	request.spec.address = 0;
	struct tensor *host = rig_place(&rig, &request);
	request = row_at(1, 7, 1, NPUMEM_UNCHECKED, true);
	rig_refuses(&rig, &request, NPUMEM_FAILED_PRECONDITION, "on data of #1 on NPU 1, bytes 7 to 7");
	rig_blames(&rig, host, 1, 7, 1);
	rig_close(&rig);
}
END_TEST

START_TEST(data_in_padding)
{
	struct rig rig;
	struct tensor *host = open_with_host(&rig, true);
	struct device_request request = row_at(1, 104, 40, NPUMEM_IF_SAFE, true);
	rig_refuses(&rig, &request, NPUMEM_FAILED_PRECONDITION,
		    "the new tensor's data would lie in padding of host on NPU 1, bytes 104 to 127; only empty "
		    "blocks");
	rig_blames(&rig, host, 1, 104, 24);
	request.reuse = NPUMEM_UNCHECKED;
	ck_assert(rig_place(&rig, &request)->guest);
	rig_close(&rig);
}
END_TEST

START_TEST(somebody_may_write)
{
	struct rig rig;
	struct tensor *host = open_with_host(&rig, false);
	struct device_request request = row_at(3, 20, 60, NPUMEM_IF_SAFE, true);
	rig_refuses(
		&rig, &request, NPUMEM_FAILED_PRECONDITION,
		"a kernel may write host, whose footprint meets the new tensor's on NPU 3, bytes 20 to 79; seal "
		"it, or allocate it dma_only");
	rig_blames(&rig, host, 3, 20, 60);
	request.dma_only = false;
	rig_refuses(&rig, &request, NPUMEM_FAILED_PRECONDITION,
		    "seal it, or allocate it dma_only; and allocate the new one dma_only");
	/* Sealed is as good as dma_only. */
	ck_assert_int_eq(rig_fill(&rig, host, 1), 0);
	ck_assert_int_eq(device_seal(rig.device, host, &rig.context), 0);
	rig_refuses(
		&rig, &request, NPUMEM_FAILED_PRECONDITION,
		"a kernel may write the new tensor, whose footprint meets that of host on NPU 3, bytes 20 to 79; "
		"allocate the new one dma_only");
	rig_blames(&rig, host, 3, 20, 60);
	request.dma_only = true;
	struct tensor *guest = rig_place(&rig, &request);
	rig_sound(&rig);
	/* The guest's block row is empty on the other NPUs, where the host has data: each holds some of the other.
	 */
	struct device_state state;
	device_state(rig.device, host, &state);
	ck_assert(state.lends && state.borrows);
	device_state(rig.device, guest, &state);
	ck_assert(state.lends && state.borrows);
	struct device_counts counts;
	device_stat(rig.device, &counts);
	ck_assert_int_eq(counts.lent, 4 * 60);
	rig_close(&rig);
}
END_TEST

/* Each search looks at all offsets, and the daemon's clients wait for it. */
START_TEST(one_request_searches_so_long)
{
	enum { MANY = 60 };
	struct rig rig;
	struct device_request requests[MANY];
	struct tensor *tensors[MANY];
	rig_open(&rig, 4, 16384);
	/* Nothing is free but empty blocks on NPU 3. */
	struct device_request host = rig_request(NPUMEM_FX8, 1, 3, 1, 16384);
	host.dma_only = true;
	rig_place(&rig, &host);
	for (unsigned i = 0; i < MANY; i++) {
		requests[i] = rig_request(NPUMEM_FX8, 1, 1, 1, 16);
		requests[i].spec.start_npu = 3;
		requests[i].reuse = NPUMEM_IF_SAFE;
		requests[i].dma_only = true;
	}
	npumem_error_clear(&rig.error);
	ck_assert_int_eq(device_alloc(rig.device, requests, MANY, tensors, &rig.context),
			 NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_ptr_nonnull(strstr(rig.error.message, "on the device about"));
	ck_assert_int_eq(npumem_error_find(&rig.error, "asked_bytes_per_npu", -1), -1);
	int64_t most = npumem_error_find(&rig.error, "tensor_index", -1);
	ck_assert_int_ge(most, 40);
	ck_assert_int_eq(rig.device->n_tensors, 1);
	rig_sound(&rig);
	ck_assert_int_eq(device_alloc(rig.device, requests, (unsigned)most, tensors, &rig.context), 0);
	ck_assert_int_eq(device_alloc(rig.device, requests, 1, tensors, &rig.context), 0);
	rig_close(&rig);
}
END_TEST

/* Whichever of the two has data in the other's footprint. */
START_TEST(whose_data_is_at_risk)
{
	struct rig rig;
	struct tensor *host = open_with_host(&rig, false);
	/* The new one's second block row lies on NPU 0, behind the host. */
	struct device_request request = rig_request(NPUMEM_FX8, 1, 2, 1, 100);
	request.spec.address = 3 * 1024;
	request.reuse = NPUMEM_IF_SAFE;
	request.dma_only = true;
	rig_refuses(&rig, &request, NPUMEM_FAILED_PRECONDITION,
		    "a kernel may write host, whose footprint meets the new tensor's on NPU 3, bytes 0 to 99");
	rig_blames(&rig, host, 3, 0, 100);
	/* The new one starts before another, whose data is in its empty blocks. */
	rig_close(&rig);
	rig_open(&rig, 4, 1024);
	request = rig_request(NPUMEM_FX8, 1, 1, 1, 100);
	request.spec.address = 128;
	host = rig_place(&rig, &request);
	host->owner = "host";
	request = row_at(1, 120, 1, NPUMEM_IF_SAFE, true);
	request.spec.shape.h = 2;
	request.spec.stride.h = 120;
	rig_refuses(&rig, &request, NPUMEM_FAILED_PRECONDITION,
		    "a kernel may write host, whose footprint meets the new tensor's on NPU 1, bytes 240 to 240");
	request.spec.stride.h = 160;
	rig_refuses(&rig, &request, NPUMEM_FAILED_PRECONDITION,
		    "a kernel may write host, whose footprint meets the new tensor's on NPU 0, bytes 128 to 227");
	rig_blames(&rig, host, 0, 128, 100);
	rig_close(&rig);
}
END_TEST

START_TEST(never_enters_no_footprint)
{
	struct rig rig;
	open_with_host(&rig, true);
	struct device_request request = row_at(3, 0, 64, NPUMEM_NEVER, true);
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "in the way: host, offsets 0 to 127");
	request.reuse = 0;
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "in the way: host");
	rig_close(&rig);
}
END_TEST

START_TEST(free_space_first)
{
	struct rig rig;
	open_with_host(&rig, true);
	struct device_request request = row_at(3, 0, 64, NPUMEM_IF_SAFE, true);
	request.spec.address = NPUMEM_ANY;
	request.spec.start_npu = 3;
	struct tensor *tensor = rig_place(&rig, &request);
	ck_assert_int_ge(tensor->place.offset, 128);
	ck_assert(!tensor->guest);
	rig_block(&rig, 256, 768);
	rig_release(&rig, tensor);
	tensor = rig_place(&rig, &request);
	ck_assert_int_ge(tensor->place.offset, 128);
	request.spec.shape.w = 128;
	tensor = rig_place(&rig, &request);
	ck_assert(tensor->guest);
	ck_assert_int_eq(tensor->place.offset, 0);
	rig_close(&rig);
}
END_TEST

/* A search that finds only places that a kernel could spoil says so, and what would help. */
START_TEST(only_writers_in_the_way)
{
	struct rig rig;
	struct tensor *host = open_with_host(&rig, false);
	rig_block(&rig, 128, 896);
	struct device_request request = row_at(3, 0, 64, NPUMEM_IF_SAFE, true);
	request.spec.address = NPUMEM_ANY;
	request.spec.start_npu = 3;
	rig_refuses(&rig, &request, NPUMEM_FAILED_PRECONDITION, "a kernel may write host");
	rig_blames(&rig, host, 3, 0, 64);
	request.spec.shape.w = 200;
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "no room for 200 bytes");
	rig_close(&rig);
}
END_TEST

/* ---- the search ---- */

static struct device_request random_request(uint64_t *random, int64_t n_npus)
{
	struct device_request request =
		rig_request(oracle_random(random) % 2 ? NPUMEM_INT8 : NPUMEM_INT16, oracle_between(random, 1, 3),
			    oracle_between(random, 1, 2 * n_npus + 1), oracle_between(random, 1, 3),
			    oracle_between(random, 1, 5));
	struct npumem_spec *spec = &request.spec;
	spec->layout = (int)oracle_between(random, 1, 4);
	spec->start_npu = oracle_between(random, 0, n_npus - 1);
	if (spec->dtype == NPUMEM_INT8 && oracle_random(random) % 2)
		spec->mode = NPUMEM_MODE_4N;
	if (spec->layout == NPUMEM_STRIDED) {
		spec->stride = (struct npumem_dims){0, 0, 11, 2};
		spec->stride.c = 3 * 11 + oracle_between(random, 0, 9);
		spec->stride.n = 5 * spec->stride.c;
	}
	if (spec->layout == NPUMEM_MATRIX) {
		spec->rows = spec->shape.n;
		spec->cols = oracle_between(random, 1, 4 * n_npus);
		spec->w = oracle_between(random, 1, spec->cols);
		spec->shape = (struct npumem_dims){0, 0, 0, 0};
	}
	request.reuse = (int)oracle_between(random, 1, 3);
	request.dma_only = oracle_random(random) % 4 != 0;
	return request;
}

/* The lowest offset with a good verdict, or -1. */
static int64_t lowest(const struct rig *rig, const struct npumem_place *place, const struct reuse_wish *wish)
{
	const struct npumem_geometry *geometry = &rig->options.geometry;
	struct error_context quiet = {.error = NULL};
	for (int64_t at = 0; at + place->bytes_per_npu <= geometry->npu_bytes; at += place->align_bytes) {
		struct npumem_place there = *place;
		npumem_place_at(geometry, &there, there.start_npu * geometry->npu_bytes + at, NULL);
		if (reuse_verdict(rig->device, &there, wish, &quiet) == 0)
			return at;
	}
	return -1;
}

/* A state in which no kernel writes anything. */
static void stop_all_writers(struct rig *rig)
{
	for (struct tensor *t = device_next(rig->device, NULL); t; t = device_next(rig->device, t))
		t->dma_only = true;
}

static void search_once(struct rig *rig, uint64_t *random, bool any_writer, unsigned *n_found)
{
	struct device_request request = random_request(random, rig->options.geometry.n_npus);
	struct npumem_place place;
	int64_t offset = -1;
	if (npumem_place_resolve(&rig->options.geometry, &request.spec, &place, NULL))
		return;
	struct reuse_wish wish = {.reuse = oracle_random(random) % 3 ? NPUMEM_IF_SAFE : NPUMEM_UNCHECKED,
				  .dma_only = request.dma_only,
				  .any_writer = any_writer};
	int status = reuse_search(rig->device, &place, &wish, &offset);
	/* Where it may be written, only free space is safe, and the arena is asked for that. */
	if (wish.reuse == NPUMEM_IF_SAFE && !wish.dma_only && !any_writer) {
		ck_assert_int_eq(status, NPUMEM_RESOURCE_EXHAUSTED);
		return;
	}
	if (any_writer) {
		stop_all_writers(rig);
		wish = (struct reuse_wish){.reuse = wish.reuse, .dma_only = true};
	}
	int64_t expected = lowest(rig, &place, &wish);
	if ((status ? -1 : offset) != expected)
		ck_abort_msg("layout %d, W %ld of %ld, reuse %d: found %ld (%d), lowest %ld", place.layout,
			     (long)place.w, (long)place.cols, wish.reuse, (long)offset, status, (long)expected);
	*n_found += expected >= 0;
}

START_TEST(the_search_finds_the_lowest)
{
	unsigned n_found = 0;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct rig rig;
		struct tensor *tensor;
		uint64_t random = seed;
		rig_open(&rig, oracle_between(&random, 1, 5), 1024);
		for (int i = 0; i < 30; i++) {
			struct device_request request = random_request(&random, rig.options.geometry.n_npus);
			rig_try(&rig, &request, &tensor);
		}
		for (int i = 0; i < 6; i++)
			search_once(&rig, &random, i == 5, &n_found);
		rig_close(&rig);
	}
	ck_assert_uint_ge(n_found, 50);
}
END_TEST

enum { BLOCK = 128, BLOCKS = 3 << 10 };

/* The first of so many blocks in a row without this flag, in bytes; -1: there are none. */
static int64_t first_run(const uint8_t *flags, uint8_t flag, int64_t n)
{
	for (int64_t i = 0, run = 0; i < BLOCKS; i++) {
		run = flags[i] & flag ? 0 : run + 1;
		if (run == n)
			return (i + 1 - n) * BLOCK;
	}
	return -1;
}

/* Fills two NPUs; tells of each block by its reuse whether something keeps a tensor on NPU 1 alone from it. */
static void fill_up(struct rig *rig, uint64_t *random, uint8_t flags[BLOCKS])
{
	int64_t crowded = oracle_between(random, 0, 3) << 10;
	for (int64_t at = 0, n; at < BLOCKS; at += n) {
		n = oracle_between(random, 1, BLOCKS - at < 400 ? BLOCKS - at : 400);
		/* In the crowded part both NPUs are taken. */
		int64_t c = at < crowded || oracle_random(random) % 4 == 0 ? 2 : 1;
		struct device_request request = rig_request(NPUMEM_INT8, 1, c, 1, n * BLOCK);
		request.dma_only = oracle_random(random) % 8 != 0;
		ck_assert_int_eq(rig_place(rig, &request)->place.offset, at * BLOCK);
		memset(flags + at,
		       (c == 2 ? 1 << NPUMEM_UNCHECKED : 0) |
			       (c == 2 || !request.dma_only ? 1 << NPUMEM_IF_SAFE : 0),
		       (size_t)n);
	}
}

/* Offsets are searched in windows of 128 KiB or of the tensor's size: here are three of them, and places in each,
 * over their ends, and nowhere. */
START_TEST(over_several_windows)
{
	unsigned n_found[4] = {0};
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct rig rig;
		uint64_t random = seed;
		uint8_t flags[BLOCKS];
		rig_open(&rig, 2, BLOCKS * BLOCK);
		fill_up(&rig, &random, flags);
		for (int i = 0; i < 8; i++) {
			int64_t n = oracle_between(&random, 1, 80 << i / 2), offset = -1;
			struct device_request request = rig_request(NPUMEM_INT8, 1, 1, 1, n * BLOCK);
			struct npumem_place place;
			struct reuse_wish wish = {.reuse = NPUMEM_IF_SAFE + i % 2, .dma_only = true};
			request.spec.start_npu = 1;
			ck_assert_int_eq(npumem_place_resolve(&rig.options.geometry, &request.spec, &place, NULL),
					 0);
			int status = reuse_search(rig.device, &place, &wish, &offset);
			ck_assert_int_eq(status ? -1 : offset, first_run(flags, 1 << wish.reuse, n));
			n_found[status ? 3 : offset >> 17]++;
		}
		device_free(rig.device);
		free(rig.memory);
	}
	for (unsigned i = 0; i < 4; i++)
		ck_assert_msg(n_found[i] >= 2, "%u: %u", i, n_found[i]);
}
END_TEST

/* The last channel of this matrix has 4 columns where the others have 16: what is taken beside them must not keep
 * it from the empty blocks, and what is taken of them must. */
START_TEST(a_narrow_last_channel)
{
	for (int64_t from = 3; from <= 4; from++) {
		struct rig rig;
		rig_open(&rig, 4, 256);
		/* Bytes `from` to 15 of NPU 2, and then all of NPU 3. */
		struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, 16 - from);
		request.spec.layout = NPUMEM_STRIDED;
		request.spec.stride = (struct npumem_dims){1, 1, 1, 1};
		request.spec.address = 2 * 256 + from;
		request.reuse = NPUMEM_UNCHECKED;
		request.dma_only = true;
		rig_place(&rig, &request);
		request = rig_request(NPUMEM_FX8, 1, 1, 1, 236);
		request.spec.layout = NPUMEM_COMPACT;
		request.spec.address = 3 * 256 + 20;
		request.dma_only = true;
		rig_place(&rig, &request);
		request = rig_matrix(NPUMEM_FX8, 1, 36, 16);
		request.dma_only = true;
		request.reuse = NPUMEM_IF_SAFE;
		ck_assert_int_eq(rig_place(&rig, &request)->place.offset, from == 4 ? 0 : 128);
		rig_close(&rig);
	}
}
END_TEST

Suite *suite_reuse(void)
{
	Suite *suite = suite_create("device/reuse");
	TCase *tcase = tcase_create("verdict");
	tcase_add_test(tcase, data_over_data);
	tcase_add_test(tcase, data_over_dummies);
	tcase_add_test(tcase, data_in_padding);
	tcase_add_test(tcase, somebody_may_write);
	tcase_add_test(tcase, one_request_searches_so_long);
	tcase_add_test(tcase, whose_data_is_at_risk);
	tcase_add_test(tcase, never_enters_no_footprint);
	tcase_add_test(tcase, free_space_first);
	tcase_add_test(tcase, only_writers_in_the_way);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("search");
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, the_search_finds_the_lowest);
	tcase_add_test(tcase, over_several_windows);
	tcase_add_test(tcase, a_narrow_last_channel);
	suite_add_tcase(suite, tcase);
	return suite;
}
