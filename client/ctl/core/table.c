/* Columns that line up: cells are collected, then printed as wide as the widest. The last column is not padded. */
#include "client/ctl/core/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void table_init(struct table *table, unsigned n_columns, const bool *right)
{
	*table = (struct table){.n_columns = n_columns, .right = right};
}

static bool table_grow(struct table *table)
{
	if (table->n_cells < table->room)
		return true;
	unsigned room = table->room ? 2 * table->room : 64;
	char **cells = realloc(table->cells, room * sizeof(*cells));
	if (!cells)
		return false;
	table->cells = cells;
	table->room = room;
	return true;
}

void table_cell(struct table *table, const char *format, ...)
{
	char text[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (!table->no_memory && table_grow(table)) {
		char *cell = strdup(text);
		if (cell) {
			table->cells[table->n_cells++] = cell;
			return;
		}
	}
	table->no_memory = true;
}

bool table_print(struct table *table, FILE *out)
{
	size_t width[TABLE_COLUMNS_MAX] = {0};
	bool complete = !table->no_memory;
	for (unsigned i = 0; i < table->n_cells; i++) {
		size_t length = strlen(table->cells[i]);
		if (length > width[i % table->n_columns])
			width[i % table->n_columns] = length;
	}
	for (unsigned i = 0; i < table->n_cells; i++) {
		unsigned column = i % table->n_columns;
		bool last = column == table->n_columns - 1;
		const char *gap = column && (!last || *table->cells[i]) ? "  " : "";
		if (complete && table->right[column])
			fprintf(out, "%s%*s", gap, (int)width[column], table->cells[i]);
		else if (complete)
			fprintf(out, "%s%-*s", gap, last ? 0 : (int)width[column], table->cells[i]);
		if (complete && last)
			fputc('\n', out);
		free(table->cells[i]);
	}
	free(table->cells);
	return complete;
}
