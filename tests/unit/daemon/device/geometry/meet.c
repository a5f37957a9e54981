/* Places against a map of every byte: tensors of every layout and mode, and slices of slices of them. */
#include "daemon/device/geometry/meet.h"

#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/places.h"

enum { N_NPUS = 4, NPU_BYTES = 2048 };

struct map {
	bool taken[N_NPUS][NPU_BYTES];
};

static const struct npumem_geometry geometry = {N_NPUS, NPU_BYTES, 8, 64};

/* Words are whole, dummies and all. */
static void draw(const struct npumem_place *place, unsigned kinds, struct map *map)
{
	memset(map, 0, sizeof(*map));
	for (int64_t npu = 0; npu < N_NPUS && kinds == MEET_FOOTPRINT; npu++)
		memset(&map->taken[npu][place->offset], true, (size_t)place->bytes_per_npu);
	for (int64_t n = 0; n < place->shape.n; n += place->lanes)
		for (int64_t c = 0; c < place->shape.c; c++)
			for (int64_t h = 0; h < place->shape.h; h++)
				for (int64_t w = 0; w < (c == place->shape.c - 1 ? place->last_w : place->shape.w);
				     w++) {
					int64_t npu, at;
					npumem_place_locate(&geometry, place, n, c, h, w, &npu, &at);
					memset(&map->taken[npu][place->offset + at], true,
					       (size_t)place->word_bytes);
				}
}

/* A place somewhere low, so that two often meet, and mostly a slice of a slice of it. */
static struct npumem_place draw_place(struct rig *rig, uint64_t *random)
{
	struct tensor *tensor = NULL, *view;
	while (!tensor) {
		struct device_request request = places_request(random, N_NPUS);
		struct npumem_place place;
		if (request.spec.layout == NPUMEM_STRIDED && oracle_random(random) % 2)
			request.spec.stride =
				(struct npumem_dims){oracle_between(random, 1, 90), oracle_between(random, 1, 90),
						     oracle_between(random, 1, 40), oracle_between(random, 1, 40)};
		if (npumem_place_resolve(&geometry, &request.spec, &place, NULL))
			continue;
		request.spec.start_npu = place.start_npu;
		request.spec.address =
			place.start_npu * NPU_BYTES + oracle_between(random, 0, 2) * place.align_bytes;
		if (rig_try(rig, &request, &tensor))
			tensor = NULL;
	}
	for (int i = 0; i < 2; i++) {
		const struct npumem_dims *shape = &tensor->place.shape;
		struct device_slice slice;
		slice.from.n = oracle_between(random, 0, shape->n - 1) / tensor->place.lanes * tensor->place.lanes;
		slice.to.n = oracle_random(random) % 2 ? shape->n : slice.from.n + tensor->place.lanes;
		slice.from.c = oracle_between(random, 0, shape->c - 1);
		slice.to.c = oracle_between(random, slice.from.c + 1, shape->c);
		slice.from.h = oracle_between(random, 0, shape->h - 1);
		slice.to.h = oracle_between(random, slice.from.h + 1, shape->h);
		slice.from.w = oracle_random(random) % 2 ? 0 : oracle_between(random, 0, shape->w - 1);
		slice.to.w = slice.from.w ? oracle_between(random, slice.from.w + 1, shape->w) : shape->w;
		if (oracle_random(random) % 4 &&
		    device_view_slice(rig->device, tensor, &slice, &view, &rig->context) == 0)
			tensor = view;
	}
	struct npumem_place place = tensor->place;
	rig_release(rig, tensor_root(tensor));
	return place;
}

/* Each stride is longer than what the shorter ones reach. */
static bool nests(const struct npumem_place *place)
{
	const struct npumem_dims *s = &place->stride;
	int64_t strides[] = {s->n, s->c, s->h, s->w};
	int64_t counts[] = {place->words_n, place->channels_per_npu, place->shape.h, place->shape.w};
	for (int i = 0; i < 4; i++) {
		int64_t reach = 0;
		for (int k = 0; k < 4; k++)
			if (k != i && counts[k] > 1 &&
			    (strides[k] < strides[i] || (strides[k] == strides[i] && k < i)))
				reach += (counts[k] - 1) * strides[k];
		if (counts[i] > 1 && strides[i] <= reach)
			return false;
	}
	return true;
}

static bool is_shared(const struct map *a, const struct map *b, int64_t npu, int64_t at)
{
	return at < NPU_BYTES && a->taken[npu][at] && b->taken[npu][at];
}

static bool take(void *ctx, const struct meet_range *range)
{
	*(struct meet_range *)ctx = *range;
	return false;
}

struct tally {
	unsigned meet, exact, unknown;
};

static void compare(const struct npumem_place *a, unsigned a_kinds, const struct npumem_place *b, unsigned b_kinds,
		    struct tally *tally)
{
	static struct map a_map, b_map;
	struct meet_range range, painted;
	int64_t npu = 0, at = 0, end, steps = 1 << 20, few = 4;
	draw(a, a_kinds, &a_map);
	draw(b, b_kinds, &b_map);
	while (npu < N_NPUS && !is_shared(&a_map, &b_map, npu, at))
		if (++at == NPU_BYTES) {
			at = 0;
			npu++;
		}
	bool meet = npu < N_NPUS, hasty = meet_maybe(&geometry, a, a_kinds, b, b_kinds, &few);
	ck_assert_int_eq(meet_maybe(&geometry, a, a_kinds, b, b_kinds, &steps), meet);
	ck_assert(hasty || !meet);
	tally->unknown += hasty && !meet;
	ck_assert_int_eq(meet_first(&geometry, a, a_kinds, b, b_kinds, &range), meet);
	ck_assert_int_eq(!meet_each(&geometry, a, a_kinds, b, b_kinds, take, &painted), meet);
	if (!meet)
		return;
	tally->meet++;
	ck_assert_int_eq(range.npu, npu);
	ck_assert_int_gt(range.bytes, 0);
	for (int64_t i = 0; i < range.bytes; i++)
		ck_assert(is_shared(&a_map, &b_map, npu, range.offset + i));
	for (end = at; is_shared(&a_map, &b_map, npu, end); end++)
		;
	ck_assert_int_eq(painted.npu, npu);
	ck_assert_int_eq(painted.offset, at);
	ck_assert_int_eq(painted.bytes, end - at);
	if (!nests(a) || !nests(b))
		return;
	ck_assert_int_eq(range.offset, at);
	ck_assert_int_eq(range.bytes, end - at);
	tally->exact++;
}

START_TEST(agree_with_a_map)
{
	struct rig rig;
	struct tally tally = {.meet = 0};
	uint64_t random = 31;
	rig_open(&rig, N_NPUS, NPU_BYTES);
	device_free(rig.device);
	rig.options.geometry = geometry;
	ck_assert_int_eq(device_new(&rig.options, &rig.scarce.heap, rig.memory, &rig.device), 0);
	for (int i = 0; i < 3000; i++) {
		struct npumem_place a = draw_place(&rig, &random), b = draw_place(&rig, &random);
		compare(&a, MEET_DATA, &b, MEET_DATA, &tally);
		compare(&a, MEET_FOOTPRINT, &b, MEET_DATA, &tally);
		compare(&a, MEET_DATA, &b, MEET_FOOTPRINT, &tally);
		compare(&a, MEET_FOOTPRINT, &b, MEET_FOOTPRINT, &tally);
	}
	ck_assert_uint_gt(tally.meet, 1000);
	ck_assert_uint_gt(tally.exact, 1000);
	ck_assert_uint_lt(tally.unknown, 600);
	rig_close(&rig);
}
END_TEST

/* Two slices of one tensor, of every kind: their boxes tell. */
START_TEST(slices_of_one)
{
	struct rig rig;
	uint64_t random = 32;
	rig_open(&rig, N_NPUS, 4096);
	struct device_request request = rig_request(NPUMEM_INT8, 3, 6, 5, 7);
	request.spec.start_npu = 3;
	struct tensor *base = rig_place(&rig, &request);
	for (int i = 0; i < 3000; i++) {
		struct tensor *views[2];
		bool meet = true;
		struct device_slice s[2];
		for (int k = 0; k < 2; k++) {
			int64_t extents[] = {3, 6, 5, 7}, from[4], to[4];
			for (int d = 0; d < 4; d++) {
				from[d] = oracle_between(&random, 0, extents[d] - 1);
				to[d] = oracle_between(&random, from[d] + 1, extents[d]);
			}
			s[k] = (struct device_slice){{from[0], from[1], from[2], from[3]},
						     {to[0], to[1], to[2], to[3]}};
			ck_assert_int_eq(device_view_slice(rig.device, base, &s[k], &views[k], &rig.context), 0);
		}
		meet &= s[0].from.n < s[1].to.n && s[1].from.n < s[0].to.n;
		meet &= s[0].from.c < s[1].to.c && s[1].from.c < s[0].to.c;
		meet &= s[0].from.h < s[1].to.h && s[1].from.h < s[0].to.h;
		meet &= s[0].from.w < s[1].to.w && s[1].from.w < s[0].to.w;
		int64_t steps = 24;
		ck_assert_int_eq(meet_maybe(&rig.options.geometry, &views[0]->place, MEET_DATA, &views[1]->place,
					    MEET_DATA, &steps),
				 meet);
		rig_release(&rig, views[0]);
		rig_release(&rig, views[1]);
	}
	rig_close(&rig);
}
END_TEST

/* Against the look at every byte, for tensors that share no data. */
START_TEST(lending_as_painted)
{
	uint64_t random = 5;
	unsigned n_lend = 0, n_apart = 0;
	for (int i = 0; i < 12000; i++) {
		static const int64_t n_npus[] = {1, 2, 4, 7, 70};
		struct npumem_geometry some = {n_npus[i % 5], 1 << 14, 8, 128};
		struct npumem_place a, b;
		struct meet_range range;
		int64_t steps = 1000;
		if (!places_random(&random, &some, &a) || !places_random(&random, &some, &b))
			continue;
		a.offset = oracle_between(&random, 0, 40) * 8;
		b.offset = oracle_between(&random, 0, 40) * 8;
		if (meet_first(&some, &a, MEET_DATA, &b, MEET_DATA, &range))
			continue;
		bool expected = meet_first(&some, &a, NPUMEM_BYTE_EMPTY, &b, MEET_DATA, &range);
		if (meet_lends(&some, &a, &b, &steps) != expected)
			ck_abort_msg("%d: layouts %d and %d: not %d", i, a.layout, b.layout, expected);
		ck_assert_int_ge(steps, 0);
		n_lend += expected;
		n_apart += !expected && a.blocks.empty && a.offset < b.offset + b.bytes_per_npu &&
			   b.offset < a.offset + a.bytes_per_npu;
	}
	ck_assert_uint_ge(n_lend, 200);
	ck_assert_uint_ge(n_apart, 200);
}
END_TEST

Suite *suite_meet(void)
{
	Suite *suite = suite_create("device/meet");
	TCase *tcase = tcase_create("meet");
	tcase_add_test(tcase, agree_with_a_map);
	tcase_add_test(tcase, slices_of_one);
	tcase_add_test(tcase, lending_as_painted);
	suite_add_tcase(suite, tcase);
	return suite;
}
