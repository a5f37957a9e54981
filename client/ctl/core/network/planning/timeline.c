/* A box for each tensor, from the operation that it is allocated for to the one that it is freed after; what comes
 * after its last use is hatched, and data, padding and empty blocks have the heights of their shares. A name that
 * does not fit into its box is in a list to the right, with its operations and offset. */
#include "client/ctl/core/network/planning/planning.h"

#include <inttypes.h>
#include <string.h>

#include "client/ctl/core/pictures/svg.h"

enum {
	TIMELINE_WIDTH = 900,
	TIMELINE_HEIGHT = 420,
	TIMELINE_COLUMN_MAX = 120,
	TIMELINE_LINES = 8, /* of the scale of offsets */
	TIMELINE_LETTER = 6,
	TIMELINE_WIDE_LETTER = 7,  /* enough for any name */
	TIMELINE_TEXT = 14,	   /* height that a name needs */
	TIMELINE_LISTED_NAME = 44, /* bytes of a name to the right */
	TIMELINE_LISTED_REST = 30, /* characters behind it */
	TIMELINE_LISTED_COLUMNS = 5,
	TIMELINE_SHARES = 6, /* height from which on shares can be distinguished */
	TIMELINE_LABEL = 44, /* width that the number of an operation needs */
};

struct timeline {
	struct svg svg;
	const struct network *network;
	const struct lives *lives;
	unsigned n; /* operations of the file */
	double column;
	int64_t bytes; /* of the whole height */
	unsigned n_listed, listed_lines;
	double listed_width;
};

/* The left edge of an operation of the file, counted from 1 on. */
static double x_of(const struct timeline *timeline, unsigned place)
{
	return SVG_LEFT + (place - 1) * timeline->column;
}

static double y_of(const struct timeline *timeline, int64_t offset)
{
	return SVG_TOP + TIMELINE_HEIGHT * (double)offset / (double)timeline->bytes;
}

static unsigned place_of(const struct timeline *timeline, size_t i)
{
	return i < timeline->network->n_operations ? timeline->network->operations[i].place : timeline->n;
}

static void begin(struct timeline *timeline, FILE *out, const struct npumem_geometry *geometry)
{
	char text[160], peak[SVG_BYTES_TEXT], all[SVG_BYTES_TEXT];
	const char *name = timeline->network->name;
	svg_begin(&timeline->svg, out, name ? name : "network");
	snprintf(text, sizeof(text), "peak %s of %s per NPU, on %" PRId64 " NPUs",
		 svg_bytes(timeline->lives->peak, peak), svg_bytes(geometry->npu_bytes, all), geometry->n_npus);
	svg_subtitle(&timeline->svg, 0, text);
	svg_subtitle(&timeline->svg, 1,
		     "operations go right; offsets in each NPU go down, to scale; each box is divided as its "
		     "bytes are");
}

static void scale(struct timeline *timeline)
{
	struct svg *svg = &timeline->svg;
	double right = x_of(timeline, timeline->n + 1);
	char text[32];
	unsigned each = 1;
	int64_t step = 1;
	while (step * TIMELINE_LINES < timeline->bytes)
		step *= 2;
	for (int64_t offset = 0; offset <= timeline->bytes; offset += step) {
		double y = y_of(timeline, offset);
		svg_line(svg, SVG_LEFT, y, right, y);
		svg_offset(svg, y + 4, offset);
	}
	/* 1, 2, 5, 10, … */
	for (unsigned i = 0; each * timeline->column < TIMELINE_LABEL; i++)
		each = i % 3 == 1 ? each / 2 * 5 : each * 2;
	for (unsigned place = 1; place <= timeline->n; place += each) {
		snprintf(text, sizeof(text), "%u", place);
		svg_text(svg, x_of(timeline, place) + timeline->column / 2, SVG_TOP + TIMELINE_HEIGHT + 16, "m s",
			 text);
	}
	svg_text(svg, SVG_LEFT - 8, SVG_TOP + TIMELINE_HEIGHT + 16, "r", "operation");
}

/* The list has room for all names: as many columns as are wide enough for the longest, and then more lines. */
static void list_begin(struct timeline *timeline)
{
	const struct lives *lives = timeline->lives;
	size_t longest = 0;
	timeline->listed_lines = TIMELINE_HEIGHT / TIMELINE_TEXT;
	if (lives->n / TIMELINE_LISTED_COLUMNS + 1 > timeline->listed_lines)
		timeline->listed_lines = (unsigned)(lives->n / TIMELINE_LISTED_COLUMNS + 1);
	for (size_t i = 0; i < lives->n; i++) {
		size_t length = strlen(timeline->network->tensors[lives->list[i].tensor].name);
		longest = length > longest ? length : longest;
	}
	longest = longest < TIMELINE_LISTED_NAME ? longest : TIMELINE_LISTED_NAME;
	timeline->listed_width = (double)(longest + TIMELINE_LISTED_REST) * TIMELINE_LETTER;
}

/* A long name without its middle: how it ends says what it is. Between characters, not within one. */
static void shorten(const char *name, char text[TIMELINE_LISTED_NAME + 8])
{
	size_t length = strlen(name), first = TIMELINE_LISTED_NAME / 2, last = length - TIMELINE_LISTED_NAME / 2;
	if (length <= TIMELINE_LISTED_NAME) {
		snprintf(text, TIMELINE_LISTED_NAME + 8, "%s", name);
		return;
	}
	while (first && (name[first] & 0xc0) == 0x80)
		first--;
	while ((name[last] & 0xc0) == 0x80)
		last++;
	snprintf(text, TIMELINE_LISTED_NAME + 8, "%.*s…%s", (int)first, name, name + last);
}

/* A name with no room in its box, in one of some columns to the right of all. */
static void list_name(struct timeline *timeline, const struct lives_tensor *one, unsigned from, unsigned to)
{
	const char *name = timeline->network->tensors[one->tensor].name;
	unsigned i = timeline->n_listed++, column = i / timeline->listed_lines;
	double x = x_of(timeline, timeline->n + 1) + 16 + column * timeline->listed_width;
	double y = SVG_TOP + i % timeline->listed_lines * TIMELINE_TEXT;
	char text[TIMELINE_LISTED_NAME + 96], cut[TIMELINE_LISTED_NAME + 8];
	shorten(name, cut);
	svg_rect(&timeline->svg, x, y + 1, 10, 10, NPUMEM_BYTE_DATA, svg_colour(name), "the colour of %s", name);
	snprintf(text, sizeof(text), "%s: %u to %u, at %" PRId64, cut, from, to, one->offset);
	svg_text(&timeline->svg, x + 14, y + 10, "s", text);
}

/* Up to its last use, by what its bytes are. */
static void shares(struct timeline *timeline, const struct lives_tensor *one, const char *told, double x, double y,
		   double width, double height)
{
	const struct npumem_blocks *blocks = &one->place.blocks;
	int colour = svg_colour(timeline->network->tensors[one->tensor].name);
	const struct {
		unsigned kind;
		int64_t bytes;
		int colour;
	} parts[] = {
		{NPUMEM_BYTE_DATA, blocks->data, colour},
		{NPUMEM_BYTE_DUMMY, blocks->dummy, SVG_PLAIN},
		{NPUMEM_BYTE_PADDING, blocks->padding, SVG_PLAIN},
		{NPUMEM_BYTE_EMPTY, blocks->empty, SVG_PLAIN},
	};
	double all = (double)(blocks->data + blocks->dummy + blocks->padding + blocks->empty);
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		double part = height * (double)parts[i].bytes / all;
		if (parts[i].bytes)
			svg_rect(&timeline->svg, x, y, width, part, parts[i].kind, parts[i].colour,
				 "%s; %.3g %% %s", told, 100 * (double)parts[i].bytes / all,
				 svg_kind_name(parts[i].kind));
		y += part;
	}
}

/* On the tensor's colour, as its data may be too few to show it. */
static void name_in_box(struct timeline *timeline, const char *name, double x, double y)
{
	svg_rect(&timeline->svg, x, y, (double)strlen(name) * TIMELINE_WIDE_LETTER + 8, TIMELINE_TEXT,
		 NPUMEM_BYTE_DATA, svg_colour(name), "the name of %s", name);
	svg_text(&timeline->svg, x + 4, y + TIMELINE_TEXT - 3, "", name);
}

static void box(struct timeline *timeline, const struct lives_tensor *one)
{
	struct svg *svg = &timeline->svg;
	const char *name = timeline->network->tensors[one->tensor].name;
	unsigned from = place_of(timeline, one->from), last = place_of(timeline, one->last),
		 to = place_of(timeline, one->to);
	double x = x_of(timeline, from), used = x_of(timeline, last + 1), end = x_of(timeline, to + 1),
	       y = y_of(timeline, one->offset);
	double height = y_of(timeline, one->offset + one->place.bytes_per_npu) - y;
	char told[NETWORK_TEXT_BYTES + 160];
	snprintf(told, sizeof(told),
		 "%s: %" PRId64 " bytes per NPU at offset %" PRId64 ", operations %u to %u, last used by %u", name,
		 one->place.bytes_per_npu, one->offset, from, to, last);
	if (height >= TIMELINE_SHARES)
		shares(timeline, one, told, x, y, used - x, height);
	else
		svg_rect(svg, x, y, used - x, height, NPUMEM_BYTE_DATA, svg_colour(name), "%s", told);
	if (end > used)
		svg_rect(svg, used, y, end - used, height, SVG_USED, svg_colour(name), "%s", told);
	if (height >= TIMELINE_TEXT && (double)strlen(name) * TIMELINE_WIDE_LETTER + 8 < end - x)
		name_in_box(timeline, name, x, y);
	else
		list_name(timeline, one, from, to);
}

/* What each operation of the file is, where the columns have room for that; a group is what its first is. */
static void operations(struct timeline *timeline)
{
	const struct network *network = timeline->network;
	int letters = (int)(timeline->column / TIMELINE_LETTER) - 1;
	unsigned told = 0;
	for (size_t i = 0; i < network->n_operations && letters * TIMELINE_LETTER >= TIMELINE_LABEL; i++) {
		const struct network_operation *operation = &network->operations[i];
		char what[NETWORK_TEXT_BYTES], cut[NETWORK_TEXT_BYTES + 4];
		if (operation->is_implied || operation->place == told)
			continue;
		told = operation->place;
		network_what(network, operation, what);
		const char *label = operation->name ? operation->name : what;
		bool fits = (int)strlen(label) <= letters;
		/* Cut between characters, not within one. */
		size_t n = fits ? strlen(label) : (size_t)letters - 1;
		while (n && !fits && (label[n] & 0xc0) == 0x80)
			n--;
		snprintf(cut, sizeof(cut), "%.*s%s", (int)n, label, fits ? "" : "…");
		svg_text(&timeline->svg, x_of(timeline, told) + timeline->column / 2,
			 SVG_TOP + TIMELINE_HEIGHT + 32, "m s", cut);
	}
}

/* Where most is taken at once. */
static void peak(struct timeline *timeline)
{
	double x = x_of(timeline, place_of(timeline, timeline->lives->peak_at)) + timeline->column / 2;
	svg_line(&timeline->svg, x, SVG_TOP - 6, x, SVG_TOP + TIMELINE_HEIGHT);
	svg_text(&timeline->svg, x, SVG_TOP - 10, "m", "peak");
}

/* Where an NPU ends, in a picture that goes so far. */
static void capacity(struct timeline *timeline, const struct npumem_geometry *geometry)
{
	char text[SVG_BYTES_TEXT + 16], bytes[SVG_BYTES_TEXT];
	double right = x_of(timeline, timeline->n + 1), y = y_of(timeline, geometry->npu_bytes);
	if (timeline->bytes < geometry->npu_bytes)
		return;
	snprintf(text, sizeof(text), "capacity %s", svg_bytes(geometry->npu_bytes, bytes));
	svg_rect(&timeline->svg, SVG_LEFT, y - 1, right - SVG_LEFT, 2, NPUMEM_BYTE_DATA, svg_colour("capacity"),
		 "%s", text);
	svg_text(&timeline->svg, right + 4, y + 4, "", text);
}

void timeline_draw(FILE *out, const struct network *network, const struct lives *lives,
		   const struct npumem_geometry *geometry)
{
	struct timeline timeline = {.network = network,
				    .lives = lives,
				    .n = (unsigned)json_array_size(network->document.operations),
				    .bytes = lives->reach};
	/* To the end of an NPU, where that is not far: small networks are not to vanish. */
	if (!lives->reach || lives->reach > geometry->npu_bytes / 2)
		timeline.bytes = geometry->npu_bytes;
	timeline.column = timeline.n ? (double)TIMELINE_WIDTH / timeline.n : TIMELINE_WIDTH;
	if (timeline.column > TIMELINE_COLUMN_MAX)
		timeline.column = TIMELINE_COLUMN_MAX;
	begin(&timeline, out, geometry);
	scale(&timeline);
	operations(&timeline);
	list_begin(&timeline);
	for (size_t i = 0; i < lives->n; i++)
		if (lives->list[i].offset != NPUMEM_ANY)
			box(&timeline, &lives->list[i]);
	capacity(&timeline, geometry);
	if (lives->n)
		peak(&timeline);
	svg_end(&timeline.svg);
}
