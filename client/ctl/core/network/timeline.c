/* A box for each tensor, from the operation that it is allocated for to the one that it is freed after; what comes
 * after its last use is paler. Bounded: labels only where they fit. */
#include "client/ctl/core/network/timeline.h"

#include <inttypes.h>
#include <string.h>

enum {
	TIMELINE_LEFT = 92,
	TIMELINE_TOP = 78,
	TIMELINE_WIDTH = 900,
	TIMELINE_HEIGHT = 420,
	TIMELINE_COLUMN_MAX = 120,
	TIMELINE_LINES = 8, /* of the scale of offsets */
	TIMELINE_LETTER = 6,
	TIMELINE_TEXT = 14,  /* height that a name needs */
	TIMELINE_LABEL = 44, /* width that the number of an operation needs */
	TIMELINE_BORDER = 4, /* width of a column that leaves something between its borders */
};

struct timeline {
	FILE *out;
	const struct network *network;
	const struct lives *lives;
	unsigned n; /* operations of the file */
	double column;
	int64_t bytes; /* of the whole height */
};

static void text(FILE *out, const char *from)
{
	for (; *from; from++) {
		if (*from == '&')
			fputs("&amp;", out);
		else if (*from == '<')
			fputs("&lt;", out);
		else
			putc(*from, out);
	}
}

static unsigned hue(const char *name)
{
	uint32_t hash = 2166136261U; /* FNV-1a */
	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619U;
	return (hash ^ hash >> 16) % 360;
}

/* The left edge of an operation of the file, counted from 1 on. */
static double x_of(const struct timeline *timeline, unsigned place)
{
	return TIMELINE_LEFT + (place - 1) * timeline->column;
}

static double y_of(const struct timeline *timeline, int64_t offset)
{
	return TIMELINE_TOP + TIMELINE_HEIGHT * (double)offset / (double)timeline->bytes;
}

static unsigned place_of(const struct timeline *timeline, size_t i)
{
	return i < timeline->network->n_operations ? timeline->network->operations[i].place : timeline->n;
}

static void begin(const struct timeline *timeline, const struct npumem_geometry *geometry)
{
	FILE *out = timeline->out;
	double width = TIMELINE_LEFT + timeline->n * timeline->column + 24;
	width = width < 560 ? 560 : width;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %d\" width=\"%.0f\" height=\"%d\" "
		"font-family=\"sans-serif\" font-size=\"11\">\n<style>\n"
		":root{--paper:#fff;--ink:#222;--dim:#666;--line:#ddd;--light:72%%}\n"
		"@media(prefers-color-scheme:dark){:root{--paper:#16191d;--ink:#e6e6e6;--dim:#9aa0a6;--line:#"
		"33383e;"
		"--light:34%%}}\n"
		"text{fill:var(--ink)}.d{fill:var(--dim)}.l{stroke:var(--line)}.e{text-anchor:end}"
		".m{text-anchor:middle}.b{stroke:var(--ink);stroke-width:.5}.late{fill-opacity:.35}"
		"%s.p{stroke:var(--ink);stroke-dasharray:4 3}.t{font-size:15px;font-weight:bold}\n</style>\n"
		"<rect width=\"100%%\" height=\"100%%\" style=\"fill:var(--paper)\"/>\n",
		width, TIMELINE_TOP + TIMELINE_HEIGHT + 56, width, TIMELINE_TOP + TIMELINE_HEIGHT + 56,
		timeline->column < TIMELINE_BORDER ? ".b{stroke:none}" : "");
	fputs("<text x=\"16\" y=\"24\" class=\"t\">", out);
	text(out, timeline->network->name ? timeline->network->name : "network");
	fprintf(out,
		"</text>\n<text x=\"16\" y=\"42\" class=\"d\">peak %" PRId64 " of %" PRId64
		" bytes per NPU; a tensor is paler after its last use</text>\n",
		timeline->lives->peak, geometry->npu_bytes);
}

static void scale(const struct timeline *timeline)
{
	FILE *out = timeline->out;
	double right = x_of(timeline, timeline->n + 1);
	unsigned each = 1;
	for (int i = 0; i <= TIMELINE_LINES; i++) {
		int64_t offset = timeline->bytes * i / TIMELINE_LINES;
		double y = y_of(timeline, offset);
		fprintf(out,
			"<path d=\"M%d %.1fH%.1f\" class=\"l\"/><text x=\"%d\" y=\"%.1f\" class=\"d e\">%" PRId64
			"</text>\n",
			TIMELINE_LEFT, y, right, TIMELINE_LEFT - 8, y + 4, offset);
	}
	/* 1, 2, 5, 10, … */
	for (unsigned i = 0; each * timeline->column < TIMELINE_LABEL; i++)
		each = i % 3 == 1 ? each / 2 * 5 : each * 2;
	for (unsigned place = 1; place <= timeline->n; place += each)
		fprintf(out, "<text x=\"%.1f\" y=\"%d\" class=\"d m\">%u</text>\n",
			x_of(timeline, place) + timeline->column / 2, TIMELINE_TOP + TIMELINE_HEIGHT + 16, place);
	fprintf(out, "<text x=\"%d\" y=\"%d\" class=\"d e\">operation</text>\n", TIMELINE_LEFT - 8,
		TIMELINE_TOP + TIMELINE_HEIGHT + 16);
}

static void box(const struct timeline *timeline, const struct lives_tensor *one)
{
	FILE *out = timeline->out;
	const char *name = timeline->network->tensors[one->tensor].name;
	unsigned from = place_of(timeline, one->from), last = place_of(timeline, one->last),
		 to = place_of(timeline, one->to);
	double x = x_of(timeline, from), used = x_of(timeline, last + 1) - x, y = y_of(timeline, one->offset);
	double height = y_of(timeline, one->offset + one->place.bytes_per_npu) - y,
	       width = x_of(timeline, to + 1) - x;
	fprintf(out, "<g style=\"fill:hsl(%u,60%%,var(--light))\"><title>", hue(name));
	text(out, name);
	fprintf(out,
		": %" PRId64 " bytes per NPU at offset %" PRId64 ", operations %u to %u, last used by %u</title>"
		"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"b\"/>",
		one->place.bytes_per_npu, one->offset, from, to, last, x, y, used, height);
	if (width > used)
		fprintf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"b late\"/>",
			x + used, y, width - used, height);
	if (height >= TIMELINE_TEXT && (double)strlen(name) * TIMELINE_LETTER + 8 < width) {
		fprintf(out, "<text x=\"%.2f\" y=\"%.2f\">", x + 4, y + height / 2 + 4);
		text(out, name);
		fputs("</text>", out);
	}
	fputs("</g>\n", out);
}

/* What each operation of the file is, where the columns have room for that; a group is what its first is. */
static void operations(const struct timeline *timeline)
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
		fprintf(timeline->out, "<text x=\"%.1f\" y=\"%d\" class=\"d m\">",
			x_of(timeline, told) + timeline->column / 2, TIMELINE_TOP + TIMELINE_HEIGHT + 32);
		bool fits = (int)strlen(label) <= letters;
		/* Cut between characters, not within one. */
		size_t n = fits ? strlen(label) : (size_t)letters - 1;
		while (n && !fits && (label[n] & 0xc0) == 0x80)
			n--;
		snprintf(cut, sizeof(cut), "%.*s%s", (int)n, label, fits ? "" : "…");
		text(timeline->out, cut);
		fputs("</text>\n", timeline->out);
	}
}

/* Where most is taken at once. */
static void peak(const struct timeline *timeline)
{
	double x = x_of(timeline, place_of(timeline, timeline->lives->peak_at)) + timeline->column / 2;
	fprintf(timeline->out,
		"<path d=\"M%.1f %dV%d\" class=\"p\"/><text x=\"%.1f\" y=\"%d\" class=\"m\">peak</text>\n", x,
		TIMELINE_TOP - 6, TIMELINE_TOP + TIMELINE_HEIGHT, x, TIMELINE_TOP - 10);
}

void timeline_draw(FILE *out, const struct network *network, const struct lives *lives,
		   const struct npumem_geometry *geometry)
{
	struct timeline timeline = {.out = out,
				    .network = network,
				    .lives = lives,
				    .n = (unsigned)json_array_size(network->document.operations),
				    .bytes = lives->reach ? lives->reach : geometry->npu_bytes};
	timeline.column = timeline.n ? (double)TIMELINE_WIDTH / timeline.n : TIMELINE_WIDTH;
	if (timeline.column > TIMELINE_COLUMN_MAX)
		timeline.column = TIMELINE_COLUMN_MAX;
	begin(&timeline, geometry);
	scale(&timeline);
	operations(&timeline);
	for (size_t i = 0; i < lives->n; i++)
		if (lives->list[i].offset != NPUMEM_ANY)
			box(&timeline, &lives->list[i]);
	if (lives->n)
		peak(&timeline);
	fputs("</svg>\n", out);
}
