/* A byte map of a tensor, drawn from the seed's text alone: channel after channel goes to the next NPU, and after
 * the last NPU to the first one of the next block row. Shares no formula with the code under test, and no
 * division. */
#ifndef TESTS_FORMULAS_MAP_H
#define TESTS_FORMULAS_MAP_H

#include <check.h>
#include <stdlib.h>

#include <npumem/layout.h>

struct map {
	int64_t n_npus, bytes; /* per NPU */
	int64_t rows;	       /* block rows that were used */
	int32_t *cell;	       /* [npu][byte]: 1 + flat index of the element, -1 a dummy, 0 nothing */
	bool *stored;	       /* [npu][row] */
	bool collided;
};

/* What the map is drawn from, as the figures give it. */
struct map_tensor {
	int64_t start_npu;
	struct npumem_dims shape; /* elements */
	int64_t last_w;		  /* of the last channel */
	int64_t lanes, element_bytes;
	struct npumem_dims stride; /* words */
	int64_t bytes;		   /* per NPU */
};

static inline int32_t *map_cell(const struct map *map, int64_t npu, int64_t byte)
{
	/* Not ck_assert: it reports to the runner each time, and this is called for every byte. */
	if (byte < 0 || byte >= map->bytes)
		ck_abort_msg("byte %ld is outside the tensor", (long)byte);
	return &map->cell[npu * map->bytes + byte];
}

static inline void map_element(struct map *map, const struct map_tensor *tensor, int64_t npu, int64_t byte,
			       int32_t what)
{
	for (int64_t i = 0; i < tensor->element_bytes; i++) {
		int32_t *cell = map_cell(map, npu, byte + i);
		map->collided = map->collided || *cell != 0;
		*cell = what;
	}
}

/* One channel: its words in order, each filled lane by lane from the batch. */
static inline void map_channel(struct map *map, const struct map_tensor *tensor, int64_t npu, int64_t row,
			       int64_t c)
{
	const struct npumem_dims *shape = &tensor->shape, *stride = &tensor->stride;
	const int64_t width = c == shape->c - 1 ? tensor->last_w : shape->w;
	int64_t word_n = 0, lane = 0;
	for (int64_t n = 0; n < shape->n || lane != 0; n++) {
		for (int64_t h = 0; h < shape->h; h++) {
			for (int64_t w = 0; w < width; w++) {
				int64_t word =
					word_n * stride->n + row * stride->c + h * stride->h + w * stride->w;
				int64_t byte = (word * tensor->lanes + lane) * tensor->element_bytes;
				int64_t flat = ((n * shape->c + c) * shape->h + h) * shape->w + w;
				map_element(map, tensor, npu, byte, n < shape->n ? (int32_t)(1 + flat) : -1);
			}
		}
		lane++;
		if (lane == tensor->lanes) {
			lane = 0;
			word_n++;
		}
	}
}

static inline struct map map_draw(const struct npumem_geometry *geometry, const struct map_tensor *tensor)
{
	struct map map = {.n_npus = geometry->n_npus, .bytes = tensor->bytes};
	map.cell = calloc((size_t)(map.n_npus * map.bytes), sizeof(*map.cell));
	map.stored = calloc((size_t)(map.n_npus * (tensor->shape.c + 2)), sizeof(*map.stored));
	ck_assert(map.cell && map.stored);
	int64_t npu = tensor->start_npu, row = 0;
	for (int64_t c = 0; c < tensor->shape.c; c++) {
		map_channel(&map, tensor, npu, row, c);
		map.stored[row * map.n_npus + npu] = true;
		map.rows = row + 1;
		npu++;
		if (npu == map.n_npus) {
			npu = 0;
			row++;
		}
	}
	return map;
}

static inline void map_free(struct map *map)
{
	free(map->cell);
	free(map->stored);
}

/* The tensor that a resolved place claims to be, with its own strides. */
static inline struct map_tensor map_tensor_of(const struct npumem_place *place)
{
	return (struct map_tensor){
		.start_npu = place->start_npu,
		.shape = place->shape,
		.last_w = place->last_w,
		.lanes = place->lanes,
		.element_bytes = npumem_dtype_bytes(place->dtype),
		.stride = place->stride,
		.bytes = place->bytes_per_npu,
	};
}

/* Every element is where npumem_place_locate says. */
static inline void map_check_locate(const struct map *map, const struct npumem_geometry *geometry,
				    const struct npumem_place *place)
{
	const struct npumem_dims *shape = &place->shape;
	const int64_t bytes = npumem_dtype_bytes(place->dtype);
	int64_t elements = 0;
	for (int64_t n = 0; n < shape->n; n++) {
		for (int64_t c = 0; c < shape->c; c++) {
			int64_t width = c == shape->c - 1 ? place->last_w : shape->w;
			for (int64_t h = 0; h < shape->h; h++) {
				for (int64_t w = 0; w < width; w++, elements++) {
					int64_t npu, offset;
					npumem_place_locate(geometry, place, n, c, h, w, &npu, &offset);
					if (npu < 0 || npu >= map->n_npus)
						ck_abort_msg("there is no NPU %ld", (long)npu);
					int64_t flat = ((n * shape->c + c) * shape->h + h) * shape->w + w;
					for (int64_t i = 0; i < bytes; i++) {
						if (*map_cell(map, npu, offset + i) != 1 + flat)
							ck_abort_msg("element %ld is not at %ld", (long)flat,
								     (long)offset);
					}
				}
			}
		}
	}
	ck_assert_int_eq(elements, npumem_place_elements(place));
}

/* The kind of a byte by DESIGN's words: `blocks` tells the layouts made of blocks from the strided one. */
static inline uint8_t map_kind(const struct map *map, const struct map_tensor *tensor, bool blocks, int64_t npu,
			       int64_t byte)
{
	int32_t cell = *map_cell(map, npu, byte);
	if (cell != 0)
		return cell > 0 ? NPUMEM_BYTE_DATA : NPUMEM_BYTE_DUMMY;
	if (!blocks) {
		for (int64_t other = 0; other < map->n_npus; other++) {
			if (*map_cell(map, other, byte) != 0)
				return NPUMEM_BYTE_EMPTY;
		}
		return NPUMEM_BYTE_PADDING;
	}
	int64_t block_bytes = tensor->stride.c * tensor->lanes * tensor->element_bytes;
	int64_t row = byte / block_bytes % map->rows;
	int64_t batches = (tensor->shape.n + tensor->lanes - 1) / tensor->lanes;
	if (byte >= batches * map->rows * block_bytes)
		return NPUMEM_BYTE_PADDING; /* what rounds the size up to 4 */
	return map->stored[row * map->n_npus + npu] ? NPUMEM_BYTE_PADDING : NPUMEM_BYTE_EMPTY;
}

/* npumem_place_paint and the counted blocks agree with the map, byte for byte. */
static inline void map_check_kinds(const struct map *map, const struct npumem_geometry *geometry,
				   const struct npumem_place *place, bool blocks)
{
	struct map_tensor tensor = map_tensor_of(place);
	struct npumem_blocks counted = {0};
	uint8_t *kinds = calloc((size_t)map->bytes, 1);
	ck_assert(kinds);
	for (int64_t npu = 0; npu < map->n_npus; npu++) {
		memset(kinds, 0, (size_t)map->bytes);
		npumem_place_paint(geometry, place, npu, 0, map->bytes, kinds);
		for (int64_t byte = 0; byte < map->bytes; byte++) {
			uint8_t kind = map_kind(map, &tensor, blocks, npu, byte);
			if (kinds[byte] != kind)
				ck_abort_msg("NPU %ld byte %ld is painted %d, not %d", (long)npu, (long)byte,
					     kinds[byte], kind);
			counted.data += kind == NPUMEM_BYTE_DATA;
			counted.dummy += kind == NPUMEM_BYTE_DUMMY;
			counted.padding += kind == NPUMEM_BYTE_PADDING;
			counted.empty += kind == NPUMEM_BYTE_EMPTY;
		}
	}
	free(kinds);
	ck_assert_int_eq(counted.data, place->blocks.data);
	ck_assert_int_eq(counted.dummy, place->blocks.dummy);
	ck_assert_int_eq(counted.padding, place->blocks.padding);
	ck_assert_int_eq(counted.empty, place->blocks.empty);
}

/* All of the above for a place whose strides the test has compared with the seed's. */
static inline void map_check(const struct npumem_geometry *geometry, const struct npumem_place *place, bool blocks)
{
	struct map_tensor tensor = map_tensor_of(place);
	struct map map = map_draw(geometry, &tensor);
	ck_assert(!map.collided);
	ck_assert_int_eq(map.rows, place->channels_per_npu);
	map_check_locate(&map, geometry, place);
	map_check_kinds(&map, geometry, place, blocks);
	map_free(&map);
}

#endif
