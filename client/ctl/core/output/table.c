/* Columns that line up: cells are collected, then printed as wide as the widest. No line ends in blanks. */
#include "client/ctl/core/output/output.h"

#include <stdarg.h>
#include <string.h>

#include "client/ctl/core/memory.h"

enum { TABLE_GAP = 2, TABLE_CUT_LEAST = 8 };

void table_cell(struct table *table, const char *format, ...)
{
	char text[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	char **cell = memory_grow(&table->cells, table->n_cells++, sizeof(*cell));
	*cell = memory_text("%s", text);
}

void table_init(struct table *table, const char *titles)
{
	*table = (struct table){.spare = ""};
	for (bool is_last = false; !is_last; titles++) {
		bool right = *titles == '>';
		titles += right;
		table->right[table->n_columns++] = right;
		table_cell(table, "%.*s", (int)strcspn(titles, "|"), titles);
		titles += strcspn(titles, "|");
		is_last = !*titles;
	}
}

static void table_measure(const struct table *table, size_t width[TABLE_COLUMNS_MAX])
{
	for (unsigned i = 0; i < table->n_cells; i++) {
		size_t length = strlen(table->cells[i]);
		if (length > width[i % table->n_columns])
			width[i % table->n_columns] = length;
	}
}

static size_t table_total(const struct table *table, const size_t width[TABLE_COLUMNS_MAX],
			  const bool hidden[TABLE_COLUMNS_MAX])
{
	size_t total = 0;
	for (unsigned c = 0; c < table->n_columns; c++)
		if (!hidden[c])
			total += width[c] + (total ? TABLE_GAP : 0);
	return total;
}

/* What is left out, so that lines fit. */
static void table_fit(const struct table *table, size_t width[TABLE_COLUMNS_MAX], bool hidden[TABLE_COLUMNS_MAX])
{
	size_t total = table_total(table, width, hidden);
	for (const char *spare = table->spare; *spare && table->within && total > table->within; spare++) {
		hidden[*spare - '0'] = true;
		total = table_total(table, width, hidden);
	}
	if (!table->within || total <= table->within)
		return;
	size_t over = total - table->within, *cut = &width[table->cut];
	*cut = *cut > over + TABLE_CUT_LEAST ? *cut - over : *cut < TABLE_CUT_LEAST ? *cut : TABLE_CUT_LEAST;
}

static void table_line(const struct table *table, char *const *cells, const size_t width[TABLE_COLUMNS_MAX],
		       const bool hidden[TABLE_COLUMNS_MAX], FILE *out)
{
	size_t blanks = 0; /* owed: a line does not end in them */
	bool first = true;
	for (unsigned c = 0; c < table->n_columns; c++) {
		if (hidden[c])
			continue;
		size_t length = strlen(cells[c]), shown = length < width[c] ? length : width[c];
		blanks += (first ? 0 : TABLE_GAP) + (table->right[c] ? width[c] - shown : 0);
		first = false;
		if (shown) {
			fprintf(out, "%*s%.*s", (int)blanks, "", (int)shown, cells[c]);
			blanks = 0;
		}
		blanks += table->right[c] ? 0 : width[c] - shown;
	}
	fputc('\n', out);
}

void table_print(const struct table *table, FILE *out)
{
	size_t width[TABLE_COLUMNS_MAX] = {0};
	bool hidden[TABLE_COLUMNS_MAX] = {false};
	table_measure(table, width);
	table_fit(table, width, hidden);
	for (unsigned i = 0; i + table->n_columns <= table->n_cells; i += table->n_columns)
		table_line(table, table->cells + i, width, hidden, out);
	for (unsigned i = 0; i < table->n_cells; i++)
		memory_free(table->cells[i]);
	memory_free(table->cells);
}
