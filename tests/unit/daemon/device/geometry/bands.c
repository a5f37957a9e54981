/* Stretches and sets of NPUs against what they stand for: the painter and meet_class, asked byte by byte. */
#include "daemon/device/geometry/bands.h"

#include "daemon/device/geometry/classes.h"
#include "tests/unit/daemon/device/places.h"

struct told {
	uint8_t kinds[4096];
	int64_t next;
};

static void note(void *ctx, int64_t from, int64_t to, unsigned kind)
{
	struct told *told = ctx;
	ck_assert_int_eq(from, told->next);
	ck_assert_int_lt(from, to);
	memset(told->kinds + from, (int)kind, (size_t)(to - from));
	told->next = to;
}

static void as_painted(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu,
		       int64_t from, int64_t to)
{
	for (int dummies = 0; dummies < 2; dummies++) {
		struct told told = {.next = from};
		uint8_t kinds[4096] = {0};
		npumem_place_paint(geometry, place, npu, from, to, kinds);
		bands_each(geometry, place, npu, from, to, dummies, note, &told);
		ck_assert_int_eq(told.next, to);
		for (int64_t i = from; i < to; i++) {
			int expected = kinds[i - from];
			if (!dummies && expected == NPUMEM_BYTE_DUMMY)
				expected = NPUMEM_BYTE_DATA;
			if (told.kinds[i] != expected)
				ck_abort_msg("layout %d, NPU %ld, byte %ld of [%ld, %ld): %d, not %d",
					     place->layout, (long)npu, (long)i, (long)from, (long)to,
					     told.kinds[i], expected);
		}
	}
}

START_TEST(as_the_painter)
{
	uint64_t random = 5;
	for (int i = 0; i < 3000; i++) {
		struct npumem_geometry geometry = {oracle_between(&random, 1, 9), 4096, 8, 128};
		struct npumem_place place;
		if (!places_random(&random, &geometry, &place))
			continue;
		int64_t npu = oracle_between(&random, 0, geometry.n_npus - 1);
		int64_t from = oracle_between(&random, 0, place.bytes_per_npu - 1);
		as_painted(&geometry, &place, npu, 0, place.bytes_per_npu);
		as_painted(&geometry, &place, npu, from, oracle_between(&random, from + 1, place.bytes_per_npu));
	}
}
END_TEST

/* Few elements far apart, where most of it is told without painting; steps in any order of size. */
START_TEST(sparse)
{
	struct npumem_geometry geometry = {3, 4096, 8, 128};
	uint64_t random = 6;
	for (int i = 0; i < 400; i++) {
		struct npumem_spec spec;
		struct npumem_place place;
		npumem_spec_init(&spec);
		spec.dtype = i % 3 ? NPUMEM_INT8 : NPUMEM_INT16;
		spec.layout = NPUMEM_STRIDED;
		spec.shape = (struct npumem_dims){oracle_between(&random, 1, 3), oracle_between(&random, 1, 7),
						  oracle_between(&random, 1, 3), oracle_between(&random, 1, 3)};
		spec.stride =
			(struct npumem_dims){oracle_between(&random, 1, 700), oracle_between(&random, 1, 700),
					     oracle_between(&random, 1, 700), oracle_between(&random, 1, 7)};
		if (npumem_place_resolve(&geometry, &spec, &place, NULL))
			continue;
		for (int64_t at = 0; at < place.bytes_per_npu; at += 60)
			as_painted(&geometry, &place, i % 3, at,
				   at + 60 < place.bytes_per_npu ? at + 60 : place.bytes_per_npu);
	}
}
END_TEST

START_TEST(sets_of_npus)
{
	static const int64_t n_npus[] = {1, 5, 63, 64, 65, 130, 1024};
	uint64_t random = 7;
	for (int i = 0; i < 300; i++) {
		struct npumem_geometry geometry = {n_npus[i % 7], 1 << 20, 8, 128};
		struct npumem_place place;
		struct classes classes;
		uint64_t with_data[CLASSES_WORDS_MAX];
		int64_t n[MEET_CLASSES] = {0}, first[MEET_CLASSES] = {-1, -1, -1, -1, -1};
		if (!places_random(&random, &geometry, &place))
			continue;
		classes_of(&geometry, &place, &classes);
		classes_with_data(&geometry, &place, with_data);
		for (int64_t npu = 0; npu < geometry.n_npus; npu++) {
			unsigned is = meet_class(&geometry, &place, npu);
			for (unsigned class = 0; class < MEET_CLASSES; class ++)
				ck_assert_int_eq(classes.npus[class][npu / 64] >> npu % 64 & 1, class == is);
			ck_assert_int_eq(with_data[npu / 64] >> npu % 64 & 1,
					 meet_has_data(&geometry, &place, npu));
			first[is] = n[is]++ ? first[is] : npu;
		}
		for (unsigned class = 0; class < MEET_CLASSES; class ++)
			ck_assert_int_eq(n[class], classes_count(&classes, class));
		ck_assert_mem_eq(first, classes.first, sizeof(first));
	}
}
END_TEST

Suite *suite_bands(void)
{
	Suite *suite = suite_create("device/bands");
	TCase *tcase = tcase_create("bands");
	tcase_add_test(tcase, as_the_painter);
	tcase_add_test(tcase, sparse);
	tcase_add_test(tcase, sets_of_npus);
	suite_add_tcase(suite, tcase);
	return suite;
}
