/* The search for a place over others, against the check of every single offset, and what it takes. */
#include "daemon/device/reuse/reuse_search.h"

#include <errno.h>

#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/rig.h"

FIXTURE_OBJECT(struct rig, rig, rig_open(&rig, 4, 1024), rig_close(&rig))

/* 0 where nothing is against a tensor at this place. */
struct verdict {
	const struct rig *rig;
	const struct npumem_place *place;
	const struct reuse_wish *wish;
	int status;
};

static bool ask(void *ctx, struct tensor *other)
{
	struct verdict *verdict = ctx;
	struct error_context quiet = {.error = NULL};
	struct reuse_check check;
	int64_t steps = INT64_MAX;
	if (tensor_place(other).offset >= place_end(verdict->place) ||
	    verdict->place->offset >= place_end(TENSOR_PLACE(other)))
		return true;
	reuse_check_begin(&check, verdict->rig->device, verdict->place, verdict->wish, other);
	verdict->status = reuse_check_step(&check, &steps, &quiet);
	return !verdict->status;
}

static int verdict_of(const struct npumem_place *place, const struct reuse_wish *wish)
{
	struct verdict verdict = {&rig, place, wish, 0};
	overlap_each(rig.device, place->offset, place->bytes_per_npu, NULL, ask, &verdict);
	return verdict.status;
}

/* In pieces of `each` steps; the offset, or -1. */
static int64_t search_for(const struct npumem_place *place, const struct reuse_wish *wish, int64_t each)
{
	struct reuse_search search;
	int64_t offset = -1, steps;
	enum reuse_search_answer answer;
	ck_assert_int_eq(reuse_search_begin(&search, rig.device, place, wish, &rig.context), 0);
	do {
		steps = each;
		answer = reuse_search_step(&search, &steps, &offset);
	} while (answer == REUSE_SEARCH_PAUSE);
	reuse_search_end(&search);
	return answer == REUSE_SEARCH_FOUND ? offset : -1;
}

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
static int64_t lowest(const struct npumem_place *place, const struct reuse_wish *wish)
{
	const struct npumem_geometry *geometry = &rig.options.geometry;
	for (int64_t at = 0; at + place->bytes_per_npu <= geometry->npu_bytes; at += place->align_bytes) {
		struct npumem_place there = *place;
		npumem_place_at(geometry, &there, there.start_npu * geometry->npu_bytes + at, NULL);
		if (verdict_of(&there, wish) == 0)
			return at;
	}
	return -1;
}

/* A state in which no kernel writes anything. */
static void stop_all_writers(void)
{
	for (struct tensor *t = device_next(rig.device, NULL); t; t = device_next(rig.device, t))
		t->dma_only = true;
}

static void search_once(uint64_t *random, bool any_writer, unsigned *n_found)
{
	struct device_request request = random_request(random, rig.options.geometry.n_npus);
	struct npumem_place place;
	int64_t offset = -1;
	if (npumem_place_resolve(&rig.options.geometry, &request.spec, &place, NULL))
		return;
	struct reuse_wish wish = {.reuse = oracle_random(random) % 3 ? NPUMEM_IF_SAFE : NPUMEM_UNCHECKED,
				  .dma_only = request.dma_only,
				  .any_writer = any_writer};
	offset = search_for(&place, &wish, oracle_between(random, 1, 40));
	/* Where it may be written, only free space is safe, and the arena is asked for that. */
	if (wish.reuse == NPUMEM_IF_SAFE && !wish.dma_only && !any_writer) {
		ck_assert_int_eq(offset, -1);
		return;
	}
	if (any_writer) {
		stop_all_writers();
		wish = (struct reuse_wish){.reuse = wish.reuse, .dma_only = true};
	}
	int64_t expected = lowest(&place, &wish);
	if (offset != expected)
		ck_abort_msg("layout %d, W %ld of %ld, reuse %d: found %ld, lowest %ld", place.layout,
			     (long)place.w, (long)place.cols, wish.reuse, (long)offset, (long)expected);
	*n_found += expected >= 0;
}

TEST(the_search_finds_the_lowest)
{
	unsigned n_found = 0;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct tensor *tensor;
		uint64_t random = seed;
		rig_reopen(&rig, oracle_between(&random, 1, 5), 1024);
		/* Units of 128 bytes, of 64, and of one. */
		rig.options.geometry.eu_bytes = INT64_C(128) >> oracle_between(&random, 0, 2);
		rig.device->options.geometry = rig.options.geometry;
		for (int i = 0; i < 30; i++) {
			struct device_request request = random_request(&random, rig.options.geometry.n_npus);
			rig_try(&rig, &request, &tensor);
		}
		for (int i = 0; i < 6; i++)
			search_once(&random, i == 5, &n_found);
	}
	ck_assert_uint_ge(n_found, 50);
}

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
static void fill_up(uint64_t *random, uint8_t flags[BLOCKS])
{
	int64_t crowded = oracle_between(random, 0, 3) << 10;
	for (int64_t at = 0, n; at < BLOCKS; at += n) {
		n = oracle_between(random, 1, BLOCKS - at < 400 ? BLOCKS - at : 400);
		/* In the crowded part both NPUs are taken. */
		int64_t c = at < crowded || oracle_random(random) % 4 == 0 ? 2 : 1;
		struct device_request request = rig_request(NPUMEM_INT8, 1, c, 1, n * BLOCK);
		request.dma_only = oracle_random(random) % 8 != 0;
		ck_assert_int_eq(tensor_place(rig_place(&rig, &request)).offset, at * BLOCK);
		memset(flags + at,
		       (c == 2 ? 1 << NPUMEM_UNCHECKED : 0) |
			       (c == 2 || !request.dma_only ? 1 << NPUMEM_IF_SAFE : 0),
		       (size_t)n);
	}
}

/* Offsets are searched in windows that grow: here are several of them, and places in each, over their ends, and
 * nowhere. */
TEST(over_several_windows)
{
	unsigned n_found[4] = {0};
	for (uint64_t seed = 1; seed <= 12; seed++) {
		uint64_t random = seed;
		uint8_t flags[BLOCKS];
		rig_reopen(&rig, 2, BLOCKS * BLOCK);
		fill_up(&random, flags);
		for (int i = 0; i < 8; i++) {
			int64_t n = oracle_between(&random, 1, 80 << i / 2);
			struct device_request request = rig_request(NPUMEM_INT8, 1, 1, 1, n * BLOCK);
			struct npumem_place place;
			struct reuse_wish wish = {.reuse = NPUMEM_IF_SAFE + i % 2, .dma_only = true};
			request.spec.start_npu = 1;
			ck_assert_int_eq(npumem_place_resolve(&rig.options.geometry, &request.spec, &place, NULL),
					 0);
			int64_t offset = search_for(&place, &wish, 100);
			ck_assert_int_eq(offset, first_run(flags, 1 << wish.reuse, n));
			n_found[offset < 0 ? 3 : offset >> 17]++;
		}
	}
	for (unsigned i = 0; i < 4; i++)
		ck_assert_msg(n_found[i] >= 2, "%u: %u", i, n_found[i]);
}

/* Large tensors of two or three block rows, some of which begin on NPU 0 in the second: what is in the way of a
 * row may lie behind the window. */
TEST(large_rows)
{
	unsigned n_found = 0;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct tensor *tensor;
		uint64_t random = seed;
		rig_reopen(&rig, 2, 8192);
		for (int i = 0; i < 12; i++) {
			struct device_request request =
				rig_request(NPUMEM_INT8, 1, 1, 1, oracle_between(&random, 1, 300) * 4);
			request.spec.layout = NPUMEM_COMPACT;
			request.spec.start_npu = oracle_between(&random, 0, 1);
			request.dma_only = true;
			request.reuse = NPUMEM_IF_SAFE;
			request.spec.address =
				request.spec.start_npu * 8192 + oracle_between(&random, 0, 1700) * 4;
			rig_try(&rig, &request, &tensor);
		}
		struct device_request request = rig_request(NPUMEM_INT8, 1, oracle_between(&random, 1, 4), 1,
							    oracle_between(&random, 1, 1300));
		struct npumem_place place;
		struct reuse_wish wish = {.reuse = NPUMEM_UNCHECKED};
		request.spec.layout = (int)oracle_between(&random, NPUMEM_ALIGNED, NPUMEM_COMPACT);
		request.spec.start_npu = 1;
		ck_assert_int_eq(npumem_place_resolve(&rig.options.geometry, &request.spec, &place, NULL), 0);
		int64_t expected = lowest(&place, &wish);
		ck_assert_int_eq(search_for(&place, &wish, 7), expected);
		n_found += expected > 1024;
	}
	ck_assert_uint_ge(n_found, 5);
}

/* All of the window is taken on the NPU of the second row, which lies behind it, where a gap is too small. */
TEST(a_row_behind_the_window)
{
	struct npumem_place place;
	const struct reuse_wish wish = {.reuse = NPUMEM_UNCHECKED};
	rig_reopen(&rig, 2, 8192);
	struct device_request request = rig_request(NPUMEM_INT8, 1, 1, 1, 1100);
	request.spec.layout = NPUMEM_COMPACT;
	request.spec.address = 0;
	rig_place(&rig, &request);
	request.spec.address = 1200;
	request.spec.shape.w = 8192 - 1200;
	rig_place(&rig, &request);
	request = rig_request(NPUMEM_INT8, 1, 2, 1, 1024);
	request.spec.layout = NPUMEM_COMPACT;
	request.spec.start_npu = 1;
	ck_assert_int_eq(npumem_place_resolve(&rig.options.geometry, &request.spec, &place, NULL), 0);
	ck_assert_int_eq(search_for(&place, &wish, 1000), -1);
	ck_assert_int_eq(lowest(&place, &wish), -1);
}

/* The last channel of this matrix has 4 columns where the others have 16: what is taken beside them must not keep
 * it from the empty blocks, and what is taken of them must. */
TEST(a_narrow_last_channel)
{
	for (int64_t from = 3; from <= 4; from++) {
		rig_reopen(&rig, 4, 256);
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
		ck_assert_int_eq(tensor_place(rig_place(&rig, &request)).offset, from == 4 ? 0 : 128);
	}
}

/* Nothing is free but empty blocks on NPU 3, and each of many tensors is searched a place for. */
TEST(many_in_one_request)
{
	enum { MANY = 200 };
	struct device_request requests[MANY];
	struct tensor *tensors[MANY];
	rig_reopen(&rig, 4, 16384);
	struct device_request host = rig_request(NPUMEM_FX8, 1, 3, 1, 16384);
	host.dma_only = true;
	rig_place(&rig, &host);
	for (unsigned i = 0; i < MANY; i++) {
		requests[i] = rig_request(NPUMEM_FX8, 1, 1, 1, 16);
		requests[i].spec.layout = NPUMEM_COMPACT;
		requests[i].spec.start_npu = 3;
		requests[i].reuse = NPUMEM_IF_SAFE;
		requests[i].dma_only = true;
	}
	ck_assert_int_eq(device_alloc(rig.device, requests, MANY, tensors, &rig.context), 0);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_int_eq(tensor_place(tensors[i]).offset, 16 * i);
}

/* The bits of a search are bounded, whatever the NPUs have. */
TEST(too_large_to_be_searched_for)
{
	struct reuse_search search;
	struct npumem_place place;
	const struct reuse_wish wish = {.reuse = NPUMEM_UNCHECKED};
	rig_reopen(&rig, 1, 16 << 20);
	struct device_request request = rig_request(NPUMEM_INT8, 1, 1, 1, REUSE_SEARCH_UNITS_MAX + 1);
	request.spec.layout = NPUMEM_COMPACT;
	request.reuse = NPUMEM_UNCHECKED;
	ck_assert_int_eq(npumem_place_resolve(&rig.options.geometry, &request.spec, &place, NULL), 0);
	npumem_error_clear(&rig.error);
	ck_assert_int_eq(reuse_search_begin(&search, rig.device, &place, &wish, &rig.context),
			 NPUMEM_RESOURCE_EXHAUSTED);
	reuse_search_end(&search);
	rig_said(&rig, NPUMEM_RESOURCE_EXHAUSTED, "4194304 is the most in its layout");
	rig_block(&rig, 4, (16 << 20) - 4);
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "no search for a place");
	request.spec.layout = NPUMEM_ALIGNED;
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "no room for 4194432 bytes");
}
