/* Columns of NPUs. A tensor looks the same on two NPUs that hold the same block rows of it, but where the last
 * channel may be narrower; so its first and last channel are all that parts columns. */
#include "client/ctl/core/pictures/svg.h"

#include <inttypes.h>
#include <string.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/pictures/picture.h"

enum { COLUMNS_PLOT = 960, COLUMNS_MAX = 150, COLUMNS_LEAST = 2, COLUMNS_NAME = 104, COLUMNS_NUMBERS = 72 };
enum { BOX_WORD = 4 };

void svg_columns_of(struct svg_columns *columns, const struct npumem_geometry *geometry,
		    const struct npumem_tensor *const *tensors, unsigned n)
{
	bool cut[NPUMEM_NPUS_MAX + 2] = {true};
	int64_t npus = geometry->n_npus;
	for (unsigned i = 0; i < n; i++) {
		const struct npumem_place *p = &tensors[i]->place;
		int64_t last = (p->start_npu + p->shape.c - 1) % npus;
		cut[p->start_npu] = cut[last + 1] = true;
		cut[last] |= p->last_w != p->shape.w;
	}
	columns->n = 0;
	for (int64_t npu = 0; npu < npus; npu++)
		if (cut[npu] || npus <= SVG_COLUMNS_APART)
			columns->first[columns->n++] = npu;
	columns->first[columns->n] = npus;
	double pitch = (double)COLUMNS_PLOT / (double)columns->n;
	pitch = pitch > COLUMNS_MAX ? COLUMNS_MAX : pitch < COLUMNS_LEAST ? COLUMNS_LEAST : pitch;
	columns->gap = pitch >= 40 ? 12 : pitch >= 8 ? 1.5 : 0;
	columns->width = pitch - columns->gap;
}

double svg_columns_x(const struct svg_columns *columns, int64_t i)
{
	return SVG_LEFT + (double)i * (columns->width + columns->gap);
}

double svg_columns_right(const struct svg_columns *columns)
{
	return svg_columns_x(columns, columns->n - 1) + columns->width;
}

static const char *columns_range(const struct svg_columns *columns, int64_t from, int64_t to, char *text)
{
	int64_t first = columns->first[from], last = columns->first[to] - 1;
	if (first == last)
		snprintf(text, SVG_BYTES_TEXT, "NPU %" PRId64, first);
	else
		snprintf(text, SVG_BYTES_TEXT, "NPU %" PRId64 " to %" PRId64, first, last);
	return text;
}

const char *svg_columns_name(const struct svg_columns *columns, int64_t i, char *text)
{
	return columns_range(columns, i, i + 1, text);
}

void svg_columns_numbers(struct svg *svg, const struct svg_columns *columns)
{
	char text[SVG_BYTES_TEXT];
	double pitch = columns->width + columns->gap;
	bool apart = columns->n <= SVG_COLUMNS_APART && columns->first[columns->n] == columns->n;
	bool named = pitch >= COLUMNS_NAME || (apart && pitch >= 40), both = pitch >= COLUMNS_NUMBERS;
	int64_t step = named || both ? 1 : (int64_t)(32 / pitch) + 1;
	for (int64_t i = 0; i < columns->n; i += step) {
		const char *label = svg_columns_name(columns, i, text);
		if (!named)
			label += sizeof("NPU");
		if (!named && !both)
			snprintf(text, sizeof(text), "%" PRId64, columns->first[i]);
		svg_text(svg, svg_columns_x(columns, i) + columns->width / 2, SVG_TOP - 10, "m",
			 named || both ? label : text);
	}
	if (!named)
		svg_text(svg, SVG_LEFT - 14, SVG_TOP - 10, "r", both ? "NPU" : "from NPU");
}

static void box_fill(struct svg_box *box)
{
	const struct npumem_place *place = &box->tensor->place;
	int64_t bytes = place->bytes_per_npu;
	for (int64_t i = 0; i < box->columns->n; i++) {
		int64_t npu = box->columns->first[i];
		for (int step = 0; step < box->steps; step++) {
			int64_t from = bytes * step / box->steps, to = bytes * (step + 1) / box->steps;
			unsigned bits = picture_kinds(box->geometry, place, npu, from, to > from ? to : from + 1);
			unsigned kind = svg_strongest(bits);
			if (kind == NPUMEM_BYTE_DATA && (bits & NPUMEM_BYTE_DUMMY))
				kind = SVG_MIXED | NPUMEM_BYTE_DUMMY;
			else if (kind == NPUMEM_BYTE_DATA && (bits & NPUMEM_BYTE_PADDING))
				kind = SVG_MIXED | NPUMEM_BYTE_PADDING;
			else if (kind == NPUMEM_BYTE_DATA && (bits & NPUMEM_BYTE_EMPTY))
				kind = SVG_MIXED | NPUMEM_BYTE_EMPTY;
			/* Between the elements that others have there is nothing of this tensor. */
			if (kind == NPUMEM_BYTE_PADDING && !picture_holds(box->geometry, place, npu))
				kind = SVG_NOTHING;
			box->bits[i * box->steps + step] = (uint16_t)kind;
		}
	}
}

/* Steps [from, to) of columns [column, next). */
struct run {
	int64_t column, next;
	int from, to;
};

/* A run of one kind; of its width the part from `left` to `right`. */
static void box_run(struct svg *svg, const struct svg_box *box, const struct run *run, unsigned as, double left,
		    double right)
{
	const struct npumem_place *place = &box->tensor->place;
	int64_t base = place->offset == NPUMEM_ANY ? 0 : place->offset, bytes = place->bytes_per_npu;
	double x = svg_columns_x(box->columns, run->column);
	double width = svg_columns_x(box->columns, run->next - 1) + box->columns->width - x;
	char npus[SVG_BYTES_TEXT], share[SVG_BYTES_TEXT] = "";
	if (right - left < 1)
		snprintf(share, sizeof(share), ", %.3g %% of", 100 * (right - left));
	svg_rect(svg, x + width * left, box->y + box->height * run->from / box->steps, width * (right - left),
		 box->height * (run->to - run->from) / box->steps, as,
		 as == NPUMEM_BYTE_DATA || as == SVG_LENT ? box->colour : SVG_PLAIN,
		 "%s: %s%s, %s, offsets %s%" PRId64 " to %" PRId64, box->name, svg_kind_name(as), share,
		 columns_range(box->columns, run->column, run->next, npus), bytes % box->steps ? "about " : "",
		 base + bytes * run->from / box->steps, base + bytes * run->to / box->steps - 1);
}

/* The share of a place's block rows that have a channel on this NPU, which has one. */
static double columns_rows(const struct npumem_geometry *geometry, const struct npumem_place *p, int64_t npu)
{
	int64_t first = (npu - p->start_npu + geometry->n_npus) % geometry->n_npus;
	return (double)((p->shape.c - 1 - first) / geometry->n_npus + 1) / (double)p->channels_per_npu;
}

/* Data and a weaker kind that take turns, too small to be seen: side by side, each as wide as its share of them.
 */
static void box_mixed(struct svg *svg, const struct svg_box *box, const struct run *run, unsigned weaker)
{
	const struct npumem_place *p = &box->tensor->place;
	double data = (double)p->blocks.data / (double)(p->blocks.data + p->blocks.padding);
	if (weaker == NPUMEM_BYTE_DUMMY)
		data = (double)(p->shape.n % p->lanes) / (double)p->lanes;
	if (weaker == NPUMEM_BYTE_EMPTY)
		data = columns_rows(box->geometry, p, box->columns->first[run->column]);
	box_run(svg, box, run, NPUMEM_BYTE_DATA, 0, data);
	box_run(svg, box, run, weaker, data, 1);
}

/* Columns too narrow for a gap are drawn together where they look alike: of thousands of tensors that start
 * anywhere, no file would be small enough else. */
void svg_box_draw(struct svg *svg, const struct svg_box *box, unsigned kind, unsigned as)
{
	size_t column_bytes = (size_t)box->steps * sizeof(*box->bits);
	for (int64_t i = 0, next; i < box->columns->n; i = next) {
		const uint16_t *bits = box->bits + i * box->steps;
		next = i + 1;
		while (box->columns->gap <= 0 && next < box->columns->n &&
		       !memcmp(bits, box->bits + next * box->steps, column_bytes))
			next++;
		for (int from = 0, to; from < box->steps; from = to) {
			to = from + 1;
			while (to < box->steps && bits[to] == bits[from])
				to++;
			const struct run run = {i, next, from, to};
			if (bits[from] == kind)
				box_run(svg, box, &run, as, 0, 1);
			else if (kind == NPUMEM_BYTE_DATA && (bits[from] & SVG_MIXED))
				box_mixed(svg, box, &run, bits[from] & ~(unsigned)SVG_MIXED);
		}
	}
}

void svg_box_new(struct svg_box *box)
{
	int64_t bytes = box->tensor->place.bytes_per_npu;
	/* Words, where they are few; else what can be seen. */
	box->steps = (int)box->height;
	if (bytes / BOX_WORD <= SVG_STEPS)
		box->steps = (int)(bytes / BOX_WORD);
	box->steps = box->steps < 1 ? 1 : box->steps > SVG_STEPS ? SVG_STEPS : box->steps;
	box->bits = memory_new((size_t)box->columns->n * (size_t)box->steps, sizeof(*box->bits));
	box_fill(box);
}
