/* A box for each tensor, from the operation that it is allocated for to the one that it is freed after; what comes
 * after its last use is hatched. Bounded: labels only where they fit. */
#include "client/ctl/core/network/timeline.h"

#include <inttypes.h>
#include <string.h>

#include "client/ctl/core/pictures/svg.h"

enum {
	TIMELINE_WIDTH = 900,
	TIMELINE_HEIGHT = 420,
	TIMELINE_COLUMN_MAX = 120,
	TIMELINE_LINES = 8, /* of the scale of offsets */
	TIMELINE_LETTER = 6,
	TIMELINE_TEXT = 14,  /* height that a name needs */
	TIMELINE_LABEL = 44, /* width that the number of an operation needs */
};

struct timeline {
	struct svg svg;
	const struct network *network;
	const struct lives *lives;
	unsigned n; /* operations of the file */
	double column;
	int64_t bytes; /* of the whole height */
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

static int begin(struct timeline *timeline, FILE *out, const struct npumem_geometry *geometry,
		 struct npumem_error *error)
{
	char text[160], peak[SVG_BYTES_TEXT], all[SVG_BYTES_TEXT];
	const char *name = timeline->network->name;
	int status = svg_begin(&timeline->svg, out, name ? name : "network", error);
	if (status)
		return status;
	snprintf(text, sizeof(text), "peak %s of %s per NPU, on %" PRId64 " NPUs",
		 svg_bytes(timeline->lives->peak, peak), svg_bytes(geometry->npu_bytes, all), geometry->n_npus);
	svg_subtitle(&timeline->svg, 0, text);
	svg_subtitle(&timeline->svg, 1, "operations go right; offsets in each NPU go down, to scale");
	return 0;
}

static void scale(struct timeline *timeline)
{
	struct svg *svg = &timeline->svg;
	double right = x_of(timeline, timeline->n + 1);
	char text[32];
	unsigned each = 1;
	for (int i = 0; i <= TIMELINE_LINES; i++) {
		int64_t offset = timeline->bytes * i / TIMELINE_LINES;
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

static void box(struct timeline *timeline, const struct lives_tensor *one)
{
	struct svg *svg = &timeline->svg;
	const char *name = timeline->network->tensors[one->tensor].name;
	unsigned from = place_of(timeline, one->from), last = place_of(timeline, one->last),
		 to = place_of(timeline, one->to);
	double x = x_of(timeline, from), used = x_of(timeline, last + 1) - x, y = y_of(timeline, one->offset);
	double height = y_of(timeline, one->offset + one->place.bytes_per_npu) - y,
	       width = x_of(timeline, to + 1) - x;
	static const unsigned kinds[] = {NPUMEM_BYTE_DATA, SVG_USED};
	for (unsigned i = 0; i < (width > used ? 2 : 1); i++)
		svg_rect(svg, x + (i ? used : 0), y, i ? width - used : used, height, kinds[i], svg_colour(name),
			 "%s: %" PRId64 " bytes per NPU at offset %" PRId64
			 ", operations %u to %u, last used by %u",
			 name, one->place.bytes_per_npu, one->offset, from, to, last);
	if (height >= TIMELINE_TEXT && (double)strlen(name) * TIMELINE_LETTER + 8 < width)
		svg_text(svg, x + 4, y + height / 2 + 4, "", name);
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

int timeline_draw(FILE *out, const struct network *network, const struct lives *lives,
		  const struct npumem_geometry *geometry, struct npumem_error *error)
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
	int status = begin(&timeline, out, geometry, error);
	if (status)
		return status;
	scale(&timeline);
	operations(&timeline);
	for (size_t i = 0; i < lives->n; i++)
		if (lives->list[i].offset != NPUMEM_ANY)
			box(&timeline, &lives->list[i]);
	capacity(&timeline, geometry);
	if (lives->n)
		peak(&timeline);
	return svg_end(&timeline.svg, error);
}
