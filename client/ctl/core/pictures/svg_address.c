/* Addresses as SVG. The blocks of 4 bytes of small NPUs are drawn, large ones are to scale. */
#include "client/ctl/core/pictures/svg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	ADDRESS_HEIGHT = 384,
	ADDRESS_LINE = 16,
	ADDRESS_BLOCKS_MAX = 512,
	ADDRESS_BLOCK_BYTES = 4,
	ADDRESS_NAME = 12
};

struct addresses {
	const struct npumem_geometry *geometry;
	const int64_t *list;
	unsigned n;
	struct svg_columns columns;
	bool blocks;
};

static void address_name(unsigned i, char *name)
{
	snprintf(name, 8, i < 26 ? "%c" : "%c%c", i < 26 ? 'A' + (int)i : 'A' + (int)(i / 26 - 1),
		 'A' + (int)(i % 26));
}

/* An NPU as its blocks, 16 a line. */
static void address_blocks(struct svg *svg, const struct addresses *a, int64_t npu)
{
	int64_t n = a->geometry->npu_bytes / ADDRESS_BLOCK_BYTES;
	double width = a->columns.width / ADDRESS_LINE;
	for (int64_t block = 0; block < n; block++) {
		int64_t offset = block * ADDRESS_BLOCK_BYTES;
		svg_rect(svg, svg_columns_x(&a->columns, npu) + (double)(block % ADDRESS_LINE) * width,
			 SVG_TOP + (double)(block / ADDRESS_LINE) * SVG_LINE, width, SVG_LINE, SVG_BLOCK,
			 SVG_PLAIN, "NPU %" PRId64 ", offsets %" PRId64 " to %" PRId64 ", address %" PRId64, npu,
			 offset, offset + ADDRESS_BLOCK_BYTES - 1, npu * a->geometry->npu_bytes + offset);
	}
}

/* Whether an address before it is so near that their names would lie over each other. */
static bool address_is_crowded(const struct addresses *a, unsigned i)
{
	int64_t bytes = a->geometry->npu_bytes, near = bytes * ADDRESS_NAME / ADDRESS_HEIGHT;
	for (unsigned j = 0; j < i && !a->blocks; j++)
		if (a->list[j] / bytes == a->list[i] / bytes && llabs(a->list[j] - a->list[i]) < near)
			return true;
	return false;
}

static void address_mark(struct svg *svg, const struct addresses *a, unsigned i)
{
	int64_t address = a->list[i], bytes = a->geometry->npu_bytes, npu = address / bytes,
		offset = address % bytes;
	int64_t column = 0, block = offset / ADDRESS_BLOCK_BYTES;
	char name[8], text[96];
	address_name(i, name);
	while (column + 1 < a->columns.n && a->columns.first[column + 1] <= npu)
		column++;
	double x = svg_columns_x(&a->columns, column), width = a->columns.width / ADDRESS_LINE;
	double y = SVG_TOP + (double)ADDRESS_HEIGHT * (double)offset / (double)bytes;
	if (a->blocks) {
		x += width * (double)(block % ADDRESS_LINE);
		y = SVG_TOP + (double)(block / ADDRESS_LINE) * SVG_LINE;
	}
	svg_rect(svg, x, y, a->blocks ? width : a->columns.width, a->blocks ? SVG_LINE : 3, SVG_ADDRESS,
		 svg_colour(name),
		 "%s: address %" PRId64 " = %" PRId64 " * %" PRId64 " + %" PRId64 "; NPU %" PRId64
		 ", offset %" PRId64,
		 name, address, npu, bytes, offset, npu, offset);
	if (!address_is_crowded(a, i))
		svg_text(svg, a->blocks ? x + width / 2 : x + a->columns.width / 2, y + 13, "c", name);
	snprintf(text, sizeof(text), "%s = %" PRId64 ": NPU %" PRId64 ", offset %" PRId64, name, address, npu,
		 offset);
	svg_text(svg, svg_columns_right(&a->columns) + 18, SVG_TOP + 13 + (double)(SVG_LINE * i), "", text);
}

/* A column for each NPU, or where they are many, for those that have an address and the runs between them. */
static void address_columns(struct addresses *a)
{
	struct npumem_tensor at[SVG_ADDRESSES_MAX] = {{0}};
	const struct npumem_tensor *list[SVG_ADDRESSES_MAX];
	for (unsigned i = 0; i < a->n; i++) {
		at[i].place.start_npu = a->list[i] / a->geometry->npu_bytes;
		at[i].place.shape.c = 1;
		list[i] = &at[i];
	}
	svg_columns_of(&a->columns, a->geometry, list, a->n);
	a->blocks = a->columns.n <= 8 && a->columns.n == a->geometry->n_npus &&
		    a->geometry->npu_bytes <= ADDRESS_BLOCKS_MAX * ADDRESS_BLOCK_BYTES;
	if (a->blocks)
		a->columns.width = ADDRESS_LINE * 14;
}

void svg_address_draw(FILE *out, const struct npumem_geometry *geometry, const int64_t *addresses, unsigned n)
{
	struct addresses a = {.geometry = geometry, .list = addresses, .n = n};
	char text[128], bytes[SVG_BYTES_TEXT];
	struct svg svg;
	snprintf(text, sizeof(text), "%u address%s on %" PRId64 " NPUs of %s", n, n == 1 ? "" : "es",
		 geometry->n_npus, svg_bytes(geometry->npu_bytes, bytes));
	svg_begin(&svg, out, text);
	address_columns(&a);
	snprintf(text, sizeof(text), "address = NPU * %" PRId64 " + offset", geometry->npu_bytes);
	svg_subtitle(&svg, 0, text);
	svg_subtitle(&svg, 1, a.blocks ? "a box is a block of 4 bytes" : "offsets go down, to scale");
	svg_columns_numbers(&svg, &a.columns);
	for (int64_t i = 0; i < a.columns.n; i++)
		if (a.blocks)
			address_blocks(&svg, &a, i);
		else
			svg_rect(&svg, svg_columns_x(&a.columns, i), SVG_TOP, a.columns.width, ADDRESS_HEIGHT,
				 SVG_FREE, SVG_PLAIN, "%s", svg_columns_name(&a.columns, i, bytes));
	int64_t lines = a.blocks ? geometry->npu_bytes / ADDRESS_BLOCK_BYTES / ADDRESS_LINE : 8;
	for (int64_t i = 0; i < lines; i++)
		svg_offset(&svg, SVG_TOP + 13 + (double)i * (a.blocks ? SVG_LINE : ADDRESS_HEIGHT / 8.0),
			   a.blocks ? i * ADDRESS_LINE * ADDRESS_BLOCK_BYTES : geometry->npu_bytes * i / 8);
	for (unsigned i = 0; i < n; i++)
		address_mark(&svg, &a, i);
	svg_end(&svg);
}
