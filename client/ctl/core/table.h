/* Columns that line up, for people. */
#ifndef CTL_CORE_TABLE_H
#define CTL_CORE_TABLE_H

#include <stdbool.h>
#include <stdio.h>

enum { TABLE_COLUMNS_MAX = 12 };

struct table {
	unsigned n_columns, n_cells, room;
	const bool *right; /* per column: numbers */
	/* Set after table_init, where lines have a limit: columns of `spare` are left out, the first of them
	 * first, and then what is wider of column `cut`. */
	unsigned within; /* characters; 0: no limit */
	const unsigned char *spare;
	unsigned n_spare, cut;
	char **cells;
	bool no_memory;
};

void table_init(struct table *table, unsigned n_columns, const bool *right);
/* Adds a cell, row by row; printf style. Failing memory is remembered. */
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints and frees; `out` NULL: only frees. False where memory failed: nothing is printed then. */
bool table_print(struct table *table, FILE *out);

#endif
