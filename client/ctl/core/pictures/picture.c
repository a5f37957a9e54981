/* Pictures in text. A column is an NPU, or a few neighbours where there are more than 64. Block rows repeat for
 * every n, and neighbours that look the same are drawn once, so that a picture's size depends on the layout, not
 * on the number of elements. Draws from npumem_place_paint alone. */
#include "client/ctl/core/pictures/picture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/core/pictures/svg.h"

enum {
	PICTURE_CELLS = 64, /* in 80 columns */
	PICTURE_CELLS_LEAST = 8,
	PICTURE_CELLS_MAX = 256,
	PICTURE_BESIDE = 16, /* columns that are no cells */
	PICTURE_CELL_WIDTH_MAX = 8,
	PICTURE_LOOK_BYTES = 4096, /* at each end of a range */
	PICTURE_LEFT = 14,	   /* columns left of the cells */
	PICTURE_PLACE_COLOUR = 15, /* cyan */
};

unsigned picture_kinds(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu,
		       int64_t from, int64_t to)
{
	uint8_t kinds[2 * PICTURE_LOOK_BYTES];
	size_t looked = sizeof(kinds);
	unsigned all = 0;
	if (to > place->bytes_per_npu)
		to = place->bytes_per_npu;
	if (to <= from)
		return 0;
	if (to - from < (int64_t)looked)
		looked = (size_t)(to - from);
	memset(kinds, 0, looked);
	if (to - from <= 2 * PICTURE_LOOK_BYTES) {
		npumem_place_paint(geometry, place, npu, from, to, kinds);
	} else {
		npumem_place_paint(geometry, place, npu, from, from + PICTURE_LOOK_BYTES, kinds);
		npumem_place_paint(geometry, place, npu, to - PICTURE_LOOK_BYTES, to, kinds + PICTURE_LOOK_BYTES);
	}
	for (size_t i = 0; i < looked; i++)
		all |= kinds[i];
	return all;
}

bool picture_holds(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu)
{
	int64_t c = (npu - place->start_npu + geometry->n_npus) % geometry->n_npus;
	return c < place->shape.c;
}

/* How NPUs become columns. */
struct columns {
	int64_t n, npus_each;
	int width; /* characters */
	bool colours;
};

static int64_t cells_of(const struct picture_look *look)
{
	int64_t cells = look->width ? (int64_t)look->width - PICTURE_BESIDE : PICTURE_CELLS;
	return cells < PICTURE_CELLS_LEAST ? PICTURE_CELLS_LEAST
	       : cells > PICTURE_CELLS_MAX ? PICTURE_CELLS_MAX
					   : cells;
}

static struct columns columns_of(const struct npumem_geometry *geometry, const struct picture_look *look)
{
	int64_t cells = cells_of(look);
	struct columns columns = {.npus_each = (geometry->n_npus + cells - 1) / cells, .colours = look->colours};
	columns.n = (geometry->n_npus + columns.npus_each - 1) / columns.npus_each;
	columns.width = (int)(cells / columns.n);
	if (columns.width > PICTURE_CELL_WIDTH_MAX)
		columns.width = PICTURE_CELL_WIDTH_MAX;
	return columns;
}

/* The numbers of the NPUs above the cells. */
static void picture_ruler(FILE *out, const struct columns *columns)
{
	int step = columns->width >= 5 ? 1 : 8 / columns->width;
	fprintf(out, "%*s", PICTURE_LEFT, "offset   NPU ");
	for (int64_t i = 0; i < columns->n; i += step) {
		bool last = i + step >= columns->n;
		if (columns->width * (columns->n - i) < snprintf(NULL, 0, "%" PRId64, i * columns->npus_each))
			break;
		fprintf(out, "%-*" PRId64, last ? 0 : step * columns->width, i * columns->npus_each);
	}
	fputc('\n', out);
}

/* In colours, data has the tensor's, dummies are yellow, and what holds nothing is faint. */
static void cell_colour(FILE *out, char cell, int colour)
{
	static const char by_hue[] = {1, 3, 2, 6, 4, 5};
	if (cell == '.' || cell == '-' || cell == ' ')
		fputs("\033[2m", out);
	else if (cell == 'd' || cell == '%')
		fputs("\033[33m", out);
	else
		fprintf(out, "\033[%dm", (colour % 2 ? 30 : 90) + by_hue[colour / 2 % 15 * 6 / 15]);
}

static void picture_cells(FILE *out, const struct columns *columns, const char *cells, int colour)
{
	int gap = columns->width > 1;
	for (int64_t i = 0; i < columns->n; i++) {
		bool run = i && cells[i] == cells[i - 1];
		if (columns->colours && !run)
			cell_colour(out, cells[i], colour);
		for (int k = 0; k < columns->width - gap; k++)
			fputc(cells[i], out);
		if (columns->colours && cells[i + 1] != cells[i])
			fputs("\033[0m", out);
		if (gap && i + 1 < columns->n)
			fputc(' ', out);
	}
	fputc('\n', out);
}

/* On an NPU that holds none of the tensor, what lies between others' elements is no padding to a reader. */
static unsigned npu_kinds(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu,
			  int64_t from, int64_t to)
{
	unsigned kinds = picture_kinds(geometry, place, npu, from, to);
	return kinds && !picture_holds(geometry, place, npu) ? NPUMEM_BYTE_EMPTY : kinds;
}

/* The kinds of bytes [from, to) of the footprint, one letter a column. */
static void place_cells(const struct npumem_geometry *geometry, const struct npumem_place *place,
			const struct columns *columns, int64_t from, int64_t to, char data, char *cells)
{
	for (int64_t i = 0; i < columns->n; i++) {
		unsigned kinds = 0;
		for (int64_t npu = i * columns->npus_each;
		     npu < (i + 1) * columns->npus_each && npu < geometry->n_npus; npu++)
			kinds |= npu_kinds(geometry, place, npu, from, to);
		/* Gaps between the elements that other NPUs have here are padding among empty bytes. */
		cells[i] = kinds & NPUMEM_BYTE_DATA	 ? data
			   : kinds & NPUMEM_BYTE_DUMMY	 ? 'd'
			   : kinds & NPUMEM_BYTE_EMPTY	 ? '.'
			   : kinds & NPUMEM_BYTE_PADDING ? '-'
							 : ' ';
		if (data == '#' && (kinds & NPUMEM_BYTE_DATA) && (kinds & NPUMEM_BYTE_DUMMY))
			cells[i] = '%';
		else if (data == '#' && (kinds & NPUMEM_BYTE_DATA) && (kinds & NPUMEM_BYTE_PADDING))
			cells[i] = '+';
	}
	cells[columns->n] = 0;
}

/* ---- one tensor ---- */

/* A part of a block row: the words of a feature, or what is left of the block after them. */
struct band {
	const char *what;
	int64_t from, to; /* from the block row's start */
};

/* One block row's bands in one n; `first` and `last` are the rows that look like it. */
static void rows_print(FILE *out, const struct columns *columns, int64_t first, int64_t last, int64_t at,
		       const struct band *bands, char (*cells)[PICTURE_CELLS_MAX + 1])
{
	if (first == last)
		fprintf(out, "block row %" PRId64 "\n", first);
	else
		fprintf(out, "block rows %" PRId64 " to %" PRId64 ", all alike\n", first, last);
	for (unsigned i = 0; i < 2; i++) {
		if (bands[i].to <= bands[i].from)
			continue;
		fprintf(out, "  %10" PRId64 "  ", at + bands[i].from);
		picture_cells(out, columns, cells[i], PICTURE_PLACE_COLOUR);
	}
}

static void place_rows(FILE *out, const struct npumem_geometry *geometry, const struct npumem_place *p,
		       const struct columns *columns, int64_t n)
{
	char cells[2][PICTURE_CELLS_MAX + 1], next[2][PICTURE_CELLS_MAX + 1];
	const struct npumem_dims *s = &p->stride;
	int64_t used = ((p->shape.h - 1) * s->h + (p->shape.w - 1) * s->w + 1) * p->word_bytes;
	int64_t block = p->channels_per_npu > 1 ? s->c * p->word_bytes : 0, base = n * s->n * p->word_bytes;
	/* One block row has no C stride that means anything: its block ends where the next n, or the tensor, does.
	 */
	if (!block)
		block = p->words_n > 1 ? s->n * p->word_bytes : p->bytes_per_npu;
	const struct band bands[2] = {{"data", 0, used}, {"padding", used, block}};
	int64_t first = 0;
	for (int64_t row = 0; row < p->channels_per_npu; row++) {
		/* Only the first and the last two rows can differ from those between them. */
		bool between = row > 1 && row < p->channels_per_npu - 2;
		for (unsigned i = 0; i < 2 && !between; i++)
			place_cells(geometry, p, columns, base + row * block + bands[i].from,
				    base + row * block + bands[i].to, '#', next[i]);
		if (row && (between || (!strcmp(next[0], cells[0]) && !strcmp(next[1], cells[1]))))
			continue;
		if (row)
			rows_print(out, columns, first, row - 1, base + first * block, bands, cells);
		memcpy(cells, next, sizeof(cells));
		first = row;
	}
	rows_print(out, columns, first, p->channels_per_npu - 1, base + first * block, bands, cells);
}

void picture_place(FILE *out, const struct npumem_geometry *geometry, const struct npumem_place *p,
		   const struct picture_look *look)
{
	struct columns columns = columns_of(geometry, look);
	int64_t used = ((p->shape.h - 1) * p->stride.h + (p->shape.w - 1) * p->stride.w + 1) * p->word_bytes;
	fprintf(out, "# data   %% data and dummies   + data and padding   - padding   . empty block\n");
	if (columns.npus_each > 1)
		fprintf(out, "a column is %" PRId64 " NPUs\n", columns.npus_each);
	fprintf(out, "a feature takes %" PRId64 " byte%s of its block", used, used == 1 ? "" : "s");
	if (p->words_n > 1)
		fprintf(out, "; the same again every %" PRId64 " bytes, for %" PRId64 "%s n",
			p->stride.n * p->word_bytes, p->words_n, p->lanes > 1 ? " packed" : "");
	fputc('\n', out);
	picture_ruler(out, &columns);
	/* Every n looks alike but the last of a storage mode, which may hold dummies. */
	place_rows(out, geometry, p, &columns, 0);
	if (p->words_n > 1 && p->blocks.dummy) {
		fprintf(out, "and the last n\n");
		place_rows(out, geometry, p, &columns, p->words_n - 1);
	}
}

/* ---- the device ---- */

static int by_offset(const void *a, const void *b)
{
	const struct npumem_place *x = &(*(const struct npumem_tensor *const *)a)->place;
	const struct npumem_place *y = &(*(const struct npumem_tensor *const *)b)->place;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	/* The larger one first: it lends, the other borrows. */
	return x->bytes_per_npu > y->bytes_per_npu ? -1 : x->bytes_per_npu < y->bytes_per_npu;
}

const struct npumem_tensor **picture_sort(const struct npumem_tensor *const *tensors, unsigned n,
					  unsigned *n_sorted)
{
	const struct npumem_tensor **sorted = memory_new(n, sizeof(*sorted));
	*n_sorted = 0;
	for (unsigned i = 0; i < n; i++)
		if (!tensors[i]->base && tensors[i]->place.dtype && tensors[i]->place.offset != NPUMEM_ANY)
			sorted[(*n_sorted)++] = tensors[i];
	qsort(sorted, *n_sorted, sizeof(*sorted), by_offset);
	return sorted;
}

static char letter_of(unsigned i)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcefghijklmnopqrstuvwxyz";
	return letters[i % (sizeof(letters) - 1)];
}

/* The block rows of one tensor of the device, neighbours that look the same as one. */
static void device_tensor(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *tensor,
			  const struct columns *columns, char letter)
{
	const struct npumem_place *p = &tensor->place;
	char cells[PICTURE_CELLS_MAX + 1], last[PICTURE_CELLS_MAX + 1] = "";
	int64_t block = p->stride.c * p->word_bytes, rows = p->channels_per_npu, alike = 0;
	if (rows == 1)
		block = p->bytes_per_npu;
	for (int64_t row = 0; row < rows; row++) {
		if (row <= 1 || row >= rows - 2)
			place_cells(geometry, p, columns, row * block, (row + 1) * block, letter, cells);
		if (!strcmp(cells, last)) {
			alike++;
			continue;
		}
		if (alike)
			fprintf(out, "%*s(%" PRId64 " more such rows)\n", PICTURE_LEFT, "", alike);
		alike = 0;
		fprintf(out, "  %10" PRId64 "  ", p->offset + row * block);
		picture_cells(out, columns, cells, svg_colour(present_called(tensor)));
		memcpy(last, cells, sizeof(last));
	}
	if (alike)
		fprintf(out, "%*s(%" PRId64 " more such rows)\n", PICTURE_LEFT, "", alike);
}

static void device_legend(FILE *out, const struct npumem_tensor *tensor, char letter, uint32_t uid)
{
	char name[PRESENT_TEXT_BYTES], dtype[PRESENT_TEXT_BYTES], shape[PRESENT_TEXT_BYTES];
	const struct npumem_place *p = &tensor->place;
	fprintf(out, "%c  %s: %s %s, %s, offsets %" PRId64 " to %" PRId64, letter, present_name(tensor, uid, name),
		present_dtype(p, dtype), present_shape(p, shape), npumem_layout_name(p->layout), p->offset,
		p->offset + p->bytes_per_npu - 1);
	if (p->words_n > 1)
		fprintf(out, ", the first of %" PRId64 " n is drawn", p->words_n);
	fprintf(out, "%s%s%s%s%s\n", tensor->sealed ? ", sealed" : "", tensor->dma_only ? ", for DMA only" : "",
		tensor->lends || tensor->borrows ? ", shares empty blocks" : "",
		strcmp(tensor->state, "ok") ? ", " : "", strcmp(tensor->state, "ok") ? tensor->state : "");
}

const char *picture_gap(bool hidden)
{
	return hidden ? "free, or another uid's" : "free";
}

void picture_device(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *const *tensors,
		    unsigned n, uint32_t uid, bool hidden, const struct picture_look *look)
{
	struct columns columns = columns_of(geometry, look);
	unsigned n_sorted;
	const struct npumem_tensor **sorted = picture_sort(tensors, n, &n_sorted);
	fprintf(out, "%" PRId64 " NPUs of %" PRId64 " bytes", geometry->n_npus, geometry->npu_bytes);
	if (columns.npus_each > 1)
		fprintf(out, "; a column is %" PRId64 " NPUs", columns.npus_each);
	fprintf(out, "; a letter is data, . an empty block\n");
	picture_ruler(out, &columns);
	int64_t end = 0;
	for (unsigned i = 0; i < n_sorted; i++) {
		const struct npumem_place *p = &sorted[i]->place;
		if (p->offset > end)
			fprintf(out, "  %10" PRId64 "  %" PRId64 " bytes %s\n", end, p->offset - end,
				picture_gap(hidden));
		device_tensor(out, geometry, sorted[i], &columns, letter_of(i));
		if (p->offset + p->bytes_per_npu > end)
			end = p->offset + p->bytes_per_npu;
	}
	if (end < geometry->npu_bytes)
		fprintf(out, "  %10" PRId64 "  %" PRId64 " bytes %s\n", end, geometry->npu_bytes - end,
			picture_gap(hidden));
	for (unsigned i = 0; i < n_sorted; i++)
		device_legend(out, sorted[i], letter_of(i), uid);
}

/* ---- features: every n looks like the first but for its number, so that few of them are enough ---- */

enum { FEATURES_LINES = 64, FEATURES_LEFT = 4, FEATURES_WIDTH = 80 };

static int digits(int64_t value)
{
	return snprintf(NULL, 0, "%" PRId64, value);
}

static void features_row(FILE *out, const struct npumem_geometry *geometry, const struct npumem_place *p,
			 int64_t n, int64_t row, int64_t n_npus, int cell)
{
	char text[64];
	fprintf(out, "%*s", FEATURES_LEFT, "");
	for (int64_t npu = 0; npu < n_npus; npu++) {
		int64_t c = row * geometry->n_npus + npu - p->start_npu;
		snprintf(text, sizeof(text), "%" PRId64 ",%" PRId64, n, c);
		fprintf(out, "%-*s", npu + 1 < n_npus ? cell : 0, c < 0 || c >= p->shape.c ? "." : text);
	}
	fputc('\n', out);
}

void picture_features(FILE *out, const struct npumem_geometry *geometry, const struct npumem_place *p,
		      unsigned width)
{
	int cell = digits(p->shape.n - 1) + digits(p->shape.c - 1) + 3;
	int64_t room = ((int64_t)(width ? width : FEATURES_WIDTH) - FEATURES_LEFT) / cell;
	int64_t n_npus = geometry->n_npus < room ? geometry->n_npus : room < 1 ? 1 : room, lines = 0;
	fprintf(out, "n,c: a feature   . : an empty block\n");
	if (n_npus < geometry->n_npus)
		fprintf(out, "NPU 0 to %" PRId64 " of %" PRId64 "\n", n_npus - 1, geometry->n_npus);
	fputs("NPU ", out);
	for (int64_t npu = 0; npu < n_npus; npu++)
		fprintf(out, "%-*" PRId64, npu + 1 < n_npus ? cell : 0, npu);
	fputc('\n', out);
	for (int64_t n = 0; n < p->shape.n; n++)
		for (int64_t row = 0; row < p->channels_per_npu; row++) {
			if (lines++ >= FEATURES_LINES) {
				fprintf(out, "and so on, to n %" PRId64 "\n", p->shape.n - 1);
				return;
			}
			features_row(out, geometry, p, n, row, n_npus, cell);
		}
}

/* ---- Text broken into lines that a terminal has room for. ---- */

enum { FIT_INDENT = 4, FIT_LEAST = 16 };

/* How many of the n bytes go on a line of `room` columns; a byte is counted as a column, which none exceeds. */
static size_t fit_part(const char *line, size_t n, size_t room)
{
	size_t part = room;
	if (n <= room)
		return n;
	while (part && line[part] != ' ')
		part--;
	if (part)
		return part;
	for (part = room; part > 1 && (line[part] & 0xc0) == 0x80;)
		part--;
	return part;
}

static void fit_line(FILE *out, const char *line, size_t n, size_t width)
{
	size_t indent = 0;
	while (n) {
		size_t part = fit_part(line, n, width - indent);
		fprintf(out, "%*s%.*s\n", (int)indent, "", (int)part, line);
		line += part;
		n -= part;
		for (; n && *line == ' '; n--)
			line++;
		indent = FIT_INDENT;
	}
}

void picture_fit(FILE *out, const char *text, unsigned width)
{
	width = width && width < FIT_LEAST ? FIT_LEAST : width;
	while (*text) {
		size_t n = strcspn(text, "\n");
		if (!width || n <= width || memchr(text, '\033', n))
			fprintf(out, "%.*s\n", (int)n, text);
		else
			fit_line(out, text, n, width);
		text += n + (text[n] == '\n');
	}
}
