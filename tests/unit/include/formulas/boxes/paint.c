#include "tests/unit/include/formulas/map.h"
#include "tests/unit/include/formulas/specs.h"

static const int64_t n_npus[] = {1, 2, 3, 4, 5, 7, 8, 16, 64, 1024};

static void check_sum(const struct npumem_geometry *geometry, const struct npumem_place *place)
{
	const struct npumem_blocks *blocks = &place->blocks;
	ck_assert_int_eq(blocks->data + blocks->dummy + blocks->padding + blocks->empty,
			 geometry->n_npus * place->bytes_per_npu);
	ck_assert(blocks->data > 0 && blocks->dummy >= 0 && blocks->padding >= 0 && blocks->empty >= 0);
}

/* Random specs of every layout, mode, X and start NPU against the map: places, painted kinds, counts. */
TEST(random_specs, .to = sizeof(n_npus) / sizeof(n_npus[0]))
{
	struct npumem_geometry geometry = {.n_npus = n_npus[_i], .npu_bytes = 1 << 20, .n_banks = 1};
	uint64_t state = 77 + (uint64_t)_i;
	unsigned resolved[NPUMEM_STRIDED + 1] = {0};
	const unsigned rounds = geometry.n_npus >= 64 ? 24 : 400;
	for (unsigned round = 0; round < rounds; round++) {
		geometry.eu_bytes = INT64_C(4) << specs_draw(&state, 0, geometry.n_npus > 64 ? 3 : 5);
		struct npumem_spec spec = specs_any(&state, &geometry);
		struct npumem_place place;
		struct npumem_error error = {0};
		if (npumem_place_resolve(&geometry, &spec, &place, &error) == 0) {
			resolved[spec.layout]++;
			check_sum(&geometry, &place);
			map_check(&geometry, &place, spec.layout != NPUMEM_STRIDED);
		} else {
			ck_assert_msg(spec.layout == NPUMEM_STRIDED, "%s", error.message);
		}
	}
	for (int layout = NPUMEM_ALIGNED; layout <= NPUMEM_STRIDED; layout++)
		ck_assert_uint_gt(resolved[layout], 0);
}

/* Rows 0 and 1 of X channels from NPU 1 are never on one NPU, so they may share offsets; the empty bytes are then
 * those that the other row's offsets leave. */
TEST(rows_that_never_meet)
{
	const struct npumem_geometry geometry = {.n_npus = 4, .npu_bytes = 1 << 16, .n_banks = 1, .eu_bytes = 128};
	for (int64_t c = 1; c < 40; c++) {
		struct npumem_spec spec = specs_tensor(NPUMEM_UINT8, 2, 4, 3, 5);
		spec.layout = NPUMEM_STRIDED;
		spec.start_npu = 1;
		spec.stride = (struct npumem_dims){.n = 17, .c = c, .h = 5, .w = 1};
		struct npumem_place place = specs_resolve(&geometry, &spec);
		ck_assert_int_eq(place.channels_per_npu, 2);
		map_check(&geometry, &place, false);
		spec.shape.c = 5; /* NPU 1 now has both rows */
		if (npumem_place_resolve(&geometry, &spec, &place, NULL) == 0)
			map_check(&geometry, &place, false);
	}
}

/* Any window gives the same as the whole, and adds to what is there. */
TEST(windows)
{
	const struct npumem_geometry geometry = {.n_npus = 3, .npu_bytes = 1 << 20, .n_banks = 1, .eu_bytes = 64};
	uint64_t state = 5;
	static uint8_t whole[1 << 20], part[1 << 20];
	for (unsigned round = 0; round < 150; round++) {
		struct npumem_spec spec = specs_any(&state, &geometry);
		struct npumem_place place;
		if (npumem_place_resolve(&geometry, &spec, &place, NULL) != 0)
			continue;
		int64_t npu = specs_draw(&state, 0, 2);
		memset(whole, 0, (size_t)place.bytes_per_npu);
		npumem_place_paint(&geometry, &place, npu, 0, place.bytes_per_npu, whole);
		for (unsigned i = 0; i < 20; i++) {
			int64_t from = specs_draw(&state, 0, place.bytes_per_npu);
			int64_t to = specs_draw(&state, from, place.bytes_per_npu + 9);
			memset(part, 0x40, (size_t)(to - from + 1));
			npumem_place_paint(&geometry, &place, npu, from, to, part);
			for (int64_t byte = from; byte < to; byte++) {
				uint8_t kind = byte < place.bytes_per_npu ? whole[byte] : 0;
				if (part[byte - from] != (kind | 0x40))
					ck_abort_msg("byte %ld of %ld..%ld", (long)byte, (long)from, (long)to);
			}
			ck_assert_int_eq(part[to - from], 0x40);
		}
	}
}

/* A window of a tensor of a GiB costs what the window does. */
TEST(large_windows)
{
	const struct npumem_geometry geometry = {.n_npus = 1, .npu_bytes = 1 << 30, .n_banks = 1, .eu_bytes = 128};
	struct npumem_spec specs[4] = {
		specs_tensor(NPUMEM_UINT8, 1 << 10, 1 << 10, 32, 32),
		specs_tensor(NPUMEM_UINT8, 1 << 30, 1, 1, 1),
		specs_matrix(NPUMEM_UINT8, 1 << 20, 1 << 10, 0),
		specs_tensor(NPUMEM_UINT8, 1 << 10, 1 << 10, 1 << 8, 2),
	};
	specs[1].layout = NPUMEM_COMPACT;
	specs[3].layout = NPUMEM_STRIDED;
	specs[3].stride = (struct npumem_dims){1 << 20, 1 << 10, 4, 2};
	uint8_t kinds[8];
	for (unsigned i = 0; i < 4; i++) {
		struct npumem_place place = specs_resolve(&geometry, &specs[i]);
		for (int64_t at = 0; at < place.bytes_per_npu - 8; at += (1 << 17) + 4) {
			memset(kinds, 0, sizeof(kinds));
			npumem_place_paint(&geometry, &place, 0, at, at + 8, kinds);
			for (unsigned b = 0; b < 8; b++) {
				bool data = i < 3 || (at + b) % 4 % 2 == 0;
				if (kinds[b] != (data ? NPUMEM_BYTE_DATA : NPUMEM_BYTE_PADDING))
					ck_abort_msg("spec %u byte %ld is %d", i, (long)at + b, kinds[b]);
			}
		}
	}
}

/* The places of views: strides that belong to a larger tensor, a narrow last channel, an offset start NPU. */
TEST(views)
{
	const struct npumem_geometry geometry = {.n_npus = 4, .npu_bytes = 1 << 16, .n_banks = 1, .eu_bytes = 128};
	struct npumem_spec spec = specs_tensor(NPUMEM_INT16, 5, 11, 6, 7);
	spec.start_npu = 3;
	struct npumem_place base = specs_resolve(&geometry, &spec);
	struct npumem_place view = base; /* base[1:4, 2:9, 1:4, 3:6] */
	view.layout = NPUMEM_STRIDED;
	view.shape = (struct npumem_dims){3, 7, 3, 3};
	view.words_n = 3;
	view.last_w = 3;
	view.start_npu = (3 + 2) % 4;
	view.channels_per_npu = npumem_channels_per_npu(4, view.start_npu, 7);
	view.bytes_per_npu =
		(1 + 2 * view.stride.n + (view.channels_per_npu - 1) * view.stride.c + 2 * view.stride.h + 2) * 2;
	struct map_tensor tensor = map_tensor_of(&view);
	struct map map = map_draw(&geometry, &tensor);
	map_check_locate(&map, &geometry, &view);
	uint8_t *kinds = malloc((size_t)view.bytes_per_npu);
	for (int64_t npu = 0; npu < 4; npu++) {
		memset(kinds, 0, (size_t)view.bytes_per_npu);
		npumem_place_paint(&geometry, &view, npu, 0, view.bytes_per_npu, kinds);
		for (int64_t byte = 0; byte < view.bytes_per_npu; byte++)
			if (kinds[byte] != map_kind(&map, &tensor, false, npu, byte))
				ck_abort_msg("NPU %ld byte %ld", (long)npu, (long)byte);
	}
	map_free(&map);

	/* A matrix's columns with their tail, under strides of their own. */
	for (int64_t channels = 1; channels < 10; channels++) {
		view = base;
		view.layout = NPUMEM_STRIDED;
		view.shape = (struct npumem_dims){3, channels, 1, 7};
		view.words_n = 3;
		view.last_w = 4;
		view.start_npu = 1;
		view.channels_per_npu = npumem_channels_per_npu(4, 1, channels);
		view.stride = (struct npumem_dims){100, 30, 1, 2};
		view.bytes_per_npu = 800;
		tensor = map_tensor_of(&view);
		map = map_draw(&geometry, &tensor);
		map_check_locate(&map, &geometry, &view);
		kinds = realloc(kinds, (size_t)view.bytes_per_npu);
		for (int64_t npu = 0; npu < 4; npu++) {
			memset(kinds, 0, (size_t)view.bytes_per_npu);
			npumem_place_paint(&geometry, &view, npu, 0, view.bytes_per_npu, kinds);
			for (int64_t byte = 0; byte < view.bytes_per_npu; byte++)
				if (kinds[byte] != map_kind(&map, &tensor, false, npu, byte))
					ck_abort_msg("NPU %ld byte %ld", (long)npu, (long)byte);
		}
		map_free(&map);
	}
	free(kinds);
}
