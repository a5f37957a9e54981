/* What the user sees: JSON, tables, terminals, tensors and counters. */
#ifndef CTL_CORE_OUTPUT_OUTPUT_H
#define CTL_CORE_OUTPUT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>
#include <npumem/client.h>

/* jsons.c. JSON values under way. Where a part is NULL, as its text is no UTF-8, the whole becomes NULL, and stays
 * so: only the end of it is to be asked. Each takes over the value that is added. */

void jsons_append(json_t **array, json_t *value);
void jsons_put(json_t **object, const char *key, json_t *value);
/* All members of `more`. */
void jsons_merge(json_t **object, json_t *more);

/* null for NULL and "", for NPUMEM_ANY, for an infinity and NaN. */
json_t *jsons_text(const char *text);
json_t *jsons_integer(int64_t value);
json_t *jsons_real(double value);

/* A member of an object that is there: "" or 0 where it has none of this type. */
const char *jsons_string(const json_t *object, const char *key);
json_int_t jsons_number(const json_t *object, const char *key);

/* table.c. Columns that line up, for people. */

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

/* terminal.c. How wide what people read may be, whether in colours, and what no text may hold. */

/* Columns of a terminal; 0 where fd is none, or does not say. */
unsigned terminal_columns(int fd);
/* Whether fd is a terminal with colours that may be used: $NO_COLOR and $TERM are asked. */
bool terminal_colours(int fd);

/* Bytes of what a terminal takes for a command, a line's end or another direction, at `text`, which is UTF-8; 0
 * where there is none. */
size_t terminal_control_bytes(const char *text);
/* Prints a text of a file, with a question mark in the place of each of these. */
void terminal_put(FILE *out, const char *text);

/* present.c. Places and tensors as JSON and as text, the same wherever they are shown. */

enum { PRESENT_TEXT_BYTES = 128 };

/* A new object with the fields of plan and alloc. What does not apply is null. */
json_t *present_place(const struct npumem_place *place);
/* Adds the members of a tensor in the output of ls: name, uid, shape, dtype and others. */
void present_tensor(json_t **object, const struct npumem_tensor *tensor);
/* Both. */
json_t *present_whole(const struct npumem_tensor *tensor);
/* A new array of them. */
json_t *present_tensors(const struct npumem_tensor *const *list, unsigned n);
/* What an operation did. */
json_t *present_done(const struct npumem_done *done);

/* "[1,2,3,4]"; a matrix is "2 x 40, w 8". Returns `text`, PRESENT_TEXT_BYTES long. */
const char *present_shape(const struct npumem_place *place, char *text);
/* "fx8 Q.7" where there are frac_bits. */
const char *present_dtype(const struct npumem_place *place, char *text);
/* Its name, else its label. */
static inline const char *present_called(const struct npumem_tensor *tensor)
{
	return tensor->name[0] ? tensor->name : tensor->label;
}

/* "user:x" for another's, "(label)" for one with a label alone, "-" for one with neither. */
const char *present_name(const struct npumem_tensor *tensor, uint32_t uid, char *text);
/* The s of a plural: "%zu element%s". */
static inline const char *present_s(uint64_t n)
{
	return n == 1 ? "" : "s";
}
/* Bytes over all NPUs. */
int64_t present_bytes(const struct npumem_place *place);

/* A line "  label    value" of a description; printf style. */
void present_line(FILE *out, const char *label, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A line of text. On a terminal both are broken at blanks into lines of its width. */
void present_text(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The lines of a place: where it lies, strides, sizes, blocks. */
void present_lines(FILE *out, const struct npumem_place *place, const struct npumem_geometry *geometry);

/* What the daemon and its device are, for programs. */

/* A new object. */
json_t *facts_object(const struct npumem_info *info);
/* The part that has this geometry; NULL: none has. */
const char *facts_chip(const struct npumem_geometry *geometry);
/* A name, or "unknown" for NULL. */
const char *facts_name(const char *name);

/* metrics.c. The daemon's counters for programs: as JSON, and in Prometheus' text exposition format. */

/* A new object with everything. */
json_t *metrics_json(const struct npumem_details *details);

/* Version 0.0.4 of the format: HELP and TYPE once per metric, its samples together. */
void metrics_prometheus(FILE *out, const struct npumem_details *details);

/* 1 - largest free extent / free bytes, both of one NPU; 0 where nothing is free. */
double metrics_fragmentation(const struct npumem_details *details);

/* Answers of one kind in all, and the refused ones among them. */
uint64_t metrics_answers(const struct npumem_call_stat *call);
uint64_t metrics_refusals(const struct npumem_call_stat *call);
/* A time in us that this part (0.5: the median) of the answers did not reach: the bound of its bucket; a HUGE_VAL
 * where that is the last one. */
double metrics_quantile(const struct npumem_call_stat *call, double part);

#endif
