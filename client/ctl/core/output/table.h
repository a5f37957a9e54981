/* Columns that line up, for people. */
#ifndef CTL_CORE_TABLE_H
#define CTL_CORE_TABLE_H

#include <stdbool.h>
#include <stdio.h>

enum { TABLE_COLUMNS_MAX = 12 };

struct table {
	unsigned n_columns, n_cells;
	bool right[TABLE_COLUMNS_MAX];
	/* Set after table_init, if lines have a limit. Where a line is longer, the columns of `spare` (digits) are
	 * left out, one after the other; if it is still longer, the cells of column `cut` are cut. */
	unsigned within; /* characters; 0: no limit */
	const char *spare;
	unsigned cut;
	char **cells;
};

/* The columns by their titles, which are its first row: "NAME|>BYTES"; those of numbers have a > and end at the
 * right. */
void table_init(struct table *table, const char *titles);
/* Adds a cell, row by row; printf style. */
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints it, and frees its cells. */
void table_print(const struct table *table, FILE *out);

#endif
