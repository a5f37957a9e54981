/* What a refusal promises is done, and must come true; what it does not promise is tried too, and must fail. */
#include "daemon/device/placement/explain.h"

#include "daemon/device/internal.h"
#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/rig.h"

FIXTURE_OBJECT(struct rig, rig, rig_open(&rig, 4, 1024), rig_close(&rig))

/* Whether a request would be placed; nothing is left behind. */
static bool fits(const struct device_request *request)
{
	struct tensor *tensor;
	struct npumem_error error = {.status = 0};
	struct error_context quiet = {.error = &error};
	if (device_alloc(rig.device, request, 1, &tensor, &quiet))
		return false;
	device_release(rig.device, tensor, NULL, NULL);
	return true;
}

static int64_t *n_of(struct device_request *request)
{
	return request->spec.layout == NPUMEM_MATRIX ? &request->spec.rows : &request->spec.shape.n;
}

static void try_n(const struct device_request *request)
{
	struct device_request other = *request;
	int64_t n = rig_field(&rig, "largest_n");
	ck_assert_int_ge(n, 0);
	ck_assert_int_lt(n, *n_of(&other));
	*n_of(&other) = n;
	if (n && !fits(&other))
		ck_abort_msg("N %ld should fit: %s", (long)n, rig.error.message);
	*n_of(&other) = n + 1;
	if (fits(&other))
		ck_abort_msg("N %ld fits, too: %s", (long)n + 1, rig.error.message);
}

static void try_w(const struct device_request *request)
{
	struct device_request other = *request;
	other.spec.w = rig_field(&rig, "better_w");
	if (other.spec.w > 0) {
		ck_assert(fits(&other));
		return;
	}
	for (other.spec.w = 1; other.spec.w <= other.spec.cols; other.spec.w += 1 + other.spec.w / 3)
		ck_assert(!fits(&other));
}

static void start_at(struct device_request *request, int64_t npu)
{
	int64_t npu_bytes = rig.options.geometry.npu_bytes;
	if (request->spec.address != NPUMEM_ANY)
		request->spec.address = npu * npu_bytes + request->spec.address % npu_bytes;
	request->spec.start_npu = npu;
}

static void try_start_npu(const struct device_request *request)
{
	struct device_request other = *request;
	int64_t npu = rig_field(&rig, "better_start_npu");
	if (npu >= 0) {
		start_at(&other, npu);
		ck_assert(fits(&other));
		return;
	}
	for (npu = 0; npu < rig.options.geometry.n_npus; npu++) {
		start_at(&other, npu);
		ck_assert(!fits(&other));
	}
}

/* By now the error is that of `request`, refused. Compaction comes last: it changes the device. */
static void try_all(const struct device_request *request)
{
	struct device_request other = *request;
	struct device_counts counts;
	device_stat(rig.device, &counts);
	ck_assert_int_eq(rig_field(&rig, "largest_free_bytes"), counts.largest_free);
	ck_assert_int_eq(rig_field(&rig, "free_bytes"), (int64_t)arena_free_bytes(rig.device->arena));
	try_n(request);
	if (request->spec.layout == NPUMEM_MATRIX)
		try_w(request);
	try_start_npu(request);
	other.reuse = NPUMEM_IF_SAFE;
	ck_assert_int_eq(rig_field(&rig, "fits_if_safe"), fits(&other));
	ck_assert_int_eq(device_compact(rig.device, false, NULL, NULL), 0);
	if (rig_field(&rig, "fits_after_compact") != fits(request))
		ck_abort_msg("after compact: %d, %s", fits(request), rig.error.message);
}

static struct device_request random_request(uint64_t *random, int64_t n_npus)
{
	int64_t c = oracle_between(random, 1, 2 * n_npus);
	struct device_request request = rig_request(NPUMEM_INT8, oracle_between(random, 1, 9), c,
						    oracle_between(random, 1, 3), oracle_between(random, 1, 30));
	struct npumem_spec *spec = &request.spec;
	static const int layouts[] = {NPUMEM_ALIGNED, NPUMEM_COMPACT, NPUMEM_STRIDED, NPUMEM_MATRIX,
				      NPUMEM_MATRIX};
	spec->layout = layouts[oracle_between(random, 0, 4)];
	spec->mode = oracle_random(random) % 3 ? NPUMEM_MODE_PLAIN : NPUMEM_MODE_4N;
	spec->start_npu = oracle_between(random, 0, n_npus - 1);
	if (spec->layout == NPUMEM_STRIDED) {
		spec->stride = (struct npumem_dims){0, 0, 31, 1};
		spec->stride.c = 3 * 31 + oracle_between(random, 0, 5);
		spec->stride.n = 3 * spec->stride.c + oracle_between(random, 0, 5);
	}
	if (spec->layout == NPUMEM_MATRIX) {
		spec->rows = 1 + spec->shape.n / 3;
		spec->cols = c * 90;
		spec->w = oracle_random(random) % 4 * spec->cols / 3;
		spec->shape = (struct npumem_dims){0, 0, 0, 0};
	}
	request.dma_only = oracle_random(random) % 4 != 0;
	request.pinned = oracle_random(random) % 4 == 0;
	return request;
}

/* Places what fits, and frees some of it, so that there are gaps. */
static void crowd(uint64_t *random)
{
	struct tensor *tensors[24];
	struct tensor *tensor;
	unsigned n = 0;
	for (int i = 0; i < 40 && n < 24; i++) {
		struct device_request request = random_request(random, rig.options.geometry.n_npus);
		request.spec.shape.n = request.spec.layout == NPUMEM_MATRIX ? 0 : 1;
		request.spec.rows = request.spec.layout == NPUMEM_MATRIX ? 1 : 0;
		request.reuse = (int)oracle_between(random, 1, 3);
		if (!rig_try(&rig, &request, &tensor))
			tensors[n++] = tensor;
	}
	for (unsigned i = 0; i < n; i++)
		if (oracle_random(random) % 3 == 0)
			rig_release(&rig, tensors[i]);
}

static unsigned promises[5];

static void one_refusal(uint64_t seed)
{
	struct tensor *tensor;
	struct npumem_place place;
	uint64_t random = seed;
	int64_t n_npus = oracle_between(&random, 1, 5);
	rig_reopen(&rig, n_npus, 2048);
	crowd(&random);
	struct device_request request = random_request(&random, n_npus);
	if (npumem_place_resolve(&rig.options.geometry, &request.spec, &place, NULL) == 0) {
		if (oracle_random(&random) % 2)
			request.spec.address =
				request.spec.start_npu * 2048 + oracle_between(&random, 0, 15) * 128;
		if (rig_try(&rig, &request, &tensor) == NPUMEM_RESOURCE_EXHAUSTED) {
			static const char *const keys[] = {"largest_n", "better_w", "better_start_npu",
							   "fits_if_safe", "fits_after_compact"};
			for (unsigned i = 0; i < 5; i++)
				promises[i] +=
					rig_field(&rig, keys[i]) > 0 || (i == 2 && rig_field(&rig, keys[i]) == 0);
			try_all(&request);
		}
	}
}

TEST(promises_come_true)
{
	memset(promises, 0, sizeof(promises));
	for (uint64_t seed = 0; seed < 350; seed++)
		one_refusal(seed * 77 + 9);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_msg(promises[i] >= 2, "promise %u: %u", i, promises[i]);
}

TEST(in_words)
{
	rig_block(&rig, 128, 128)->owner = "first";
	rig_block(&rig, 512, 256)->owner = "second";
	struct device_request request = rig_request(NPUMEM_INT8, 4, 4, 1, 128);
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED,
		    "no room for 512 bytes on each NPU: 640 free in all, the largest free extent is 256");
	ck_assert_int_eq(rig_field(&rig, "asked_bytes_per_npu"), 512);
	ck_assert_int_eq(rig_field(&rig, "largest_n"), 2);
	request.spec.address = 384;
	rig_refuses(
		&rig, &request, NPUMEM_RESOURCE_EXHAUSTED,
		"no room for 512 bytes on each NPU at this address: 640 free in all, the largest free extent is "
		"256; in the way: second, offsets 512 to 767");
	ck_assert_str_eq(rig_text(&rig, "in_the_way"), "second");
	ck_assert_int_eq(rig_field(&rig, "offset"), 512);
	ck_assert_int_eq(rig_field(&rig, "bytes"), 256);
	ck_assert_int_eq(rig_field(&rig, "largest_n"), 1);
	/* Another start NPU saves a block row. */
	request = rig_request(NPUMEM_INT8, 1, 4, 1, 256);
	request.spec.start_npu = 1;
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "; another start NPU would fit");
	ck_assert_int_eq(rig_field(&rig, "better_start_npu"), 0);
	request = rig_matrix(NPUMEM_INT8, 1, 512, 512);
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "; another width would fit");
	ck_assert_int_eq(rig_field(&rig, "better_w"), 128);
}

TEST(the_largest_extent_is_not_aligned)
{
	rig_reopen(&rig, 1, 512);
	rig_block(&rig, 0, 4);
	rig_block(&rig, 260, 252);
	struct device_request request = rig_request(NPUMEM_INT8, 2, 1, 1, 128);
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED,
		    "256 free in all, the largest free extent is 256 (132 at a multiple of 128)");
	ck_assert_int_eq(rig_field(&rig, "largest_free_bytes"), 256);
	ck_assert_int_eq(rig_field(&rig, "largest_n"), 1);
}

TEST(compact_is_promised)
{
	rig_reopen(&rig, 2, 512);
	struct device_request request = rig_request(NPUMEM_INT8, 1, 2, 1, 128);
	struct tensor *first = rig_place(&rig, &request);
	request.spec.shape.n = 2;
	rig_place(&rig, &request);
	rig_release(&rig, first);
	/* All that is free, in two pieces. */
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "; compact would make room");
	ck_assert_int_eq(rig_field(&rig, "fits_after_compact"), 1);
	request.spec.shape.n = 3;
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "the largest free extent is 128");
	ck_assert_int_eq(rig_field(&rig, "fits_after_compact"), 0);
}

TEST(if_safe_is_promised)
{
	rig_reopen(&rig, 4, 128);
	struct device_request request = rig_request(NPUMEM_INT8, 1, 3, 1, 128);
	request.dma_only = true;
	rig_place(&rig, &request);
	request = rig_request(NPUMEM_INT8, 1, 1, 1, 128);
	request.spec.start_npu = 3;
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "no room for 128 bytes");
	ck_assert_int_eq(rig_field(&rig, "fits_if_safe"), 0);
	request.dma_only = true;
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "; reuse if-safe would find room");
	ck_assert_int_eq(rig_field(&rig, "fits_if_safe"), 1);
	request.spec.address = 3 * 128;
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "; reuse if-safe would find room");
}

/* One more tensor than a refusal looks at. */
TEST(too_many_to_look_at)
{
	struct tensor *tensor, *last = NULL;
	rig_reopen(&rig, 2, EXPLAIN_TENSORS_MAX * 8);
	struct device_request request = rig_request(NPUMEM_INT8, 1, 1, 1, 8);
	request.spec.layout = NPUMEM_COMPACT;
	request.dma_only = true;
	for (int i = 0; i < EXPLAIN_TENSORS_MAX; i++)
		last = rig_place(&rig, &request);
	request.spec.start_npu = 1;
	rig_fails(&rig, rig_try(&rig, &request, &tensor), NPUMEM_RESOURCE_EXHAUSTED,
		  "; reuse if-safe would find room");
	ck_assert_int_eq(rig_field(&rig, "fits_if_safe"), 1);
	ck_assert_int_eq(rig_field(&rig, "fits_after_compact"), 0);
	/* Two where there was one. */
	rig_release(&rig, last);
	request.spec.start_npu = 0;
	request.spec.shape.w = 4;
	rig_place(&rig, &request);
	rig_place(&rig, &request);
	request.spec.start_npu = 1;
	for (int fixed = 0; fixed < 2; fixed++) {
		request.spec.address = fixed ? EXPLAIN_TENSORS_MAX * 8 : NPUMEM_ANY;
		ck_assert_int_eq(rig_try(&rig, &request, &tensor), NPUMEM_RESOURCE_EXHAUSTED);
		ck_assert_ptr_null(strstr(rig.error.message, "would"));
		ck_assert_int_eq(rig_field(&rig, "fits_if_safe"), -1);
		ck_assert_int_eq(rig_field(&rig, "fits_after_compact"), -1);
		ck_assert_int_eq(rig_field(&rig, "largest_n"), 0);
	}
}
