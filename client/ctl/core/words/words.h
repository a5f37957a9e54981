/* What the user types. */
#ifndef CTL_CORE_WORDS_WORDS_H
#define CTL_CORE_WORDS_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include <npumem/layout.h>
#include <npumem/types.h>

/* words.c. A line's words, as a shell splits them. */

/* Splits the first command of `line`, which it changes, at blanks. '...' and "..." hold blanks and ;, \ holds the
 * letter after it (not within '...'). # at a word's beginning ends the line. ; ends the command: *rest is the text
 * after it, else NULL. *n words, at most `most`, that point into the line. 0 or INVALID: a quote that does not
 * end, too many words; *rest is NULL then. */
int words_split(char *line, char **words, unsigned most, unsigned *n, char **rest, struct npumem_error *error);

/* args.c. The words of a command line, sorted into options and arguments by the tables of the commands. */

struct option {
	const char *name;  /* "--shape" */
	const char *value; /* what it takes, as help shows it; NULL: nothing */
	const char *help;
	bool optional; /* the value may be missing: "--spawn" */
};

/* A table of options ends with a row without a name. */
enum { ARGS_OPTIONS_MAX = 32, ARGS_TABLES_MAX = 3 };

struct args {
	const struct option *tables[ARGS_TABLES_MAX]; /* searched in order; filled in front to back */
	struct {
		const struct option *option;
		const char *value; /* "" where an optional one is missing */
	} given[ARGS_OPTIONS_MAX];
	unsigned n_given;
	const char **words; /* what is no option */
	unsigned n_words;
};

/* Reads argv[from..argc) into `args`, whose tables and words (room for argc) are set. Options may stand anywhere.
 * Stops after the first word where `one` is set, and returns where it stopped; else argc. -1: `error` says what is
 * wrong. `foreign` tells an option's value from the next option where the value may be missing: true for "--x"
 * that no command has. */
int args_parse(struct args *args, int argc, char *const *argv, int from, bool one,
	       bool (*foreign)(const char *word), struct npumem_error *error);

/* The value of an option; NULL where it was not given. The last one counts. */
const char *args_value(const struct args *args, const char *name);
bool args_has(const struct args *args, const char *name);

/* The row of "--name" or "--name=…" in a table, or NULL. */
const struct option *args_find(const struct option *table, const char *word);

/* numbers.c. Numbers on the command line, read strictly: the whole text must be the number. */

/* A decimal or 0x integer. False where `text` is none, or one past 64 bits. */
bool numbers_integer(const char *text, int64_t *value);
/* The same, not negative. INVALID names `what`. */
int numbers_count(const char *what, const char *text, int64_t *value, struct npumem_error *error);
/* Bytes: a count, or as npumem_bytes_parse has it. */
int numbers_bytes(const char *what, const char *text, int64_t *value, struct npumem_error *error);
bool numbers_real(const char *text, double *value);
/* "1,2,3,4". */
int numbers_dims(const char *what, const char *text, struct npumem_dims *dims, struct npumem_error *error);
/* "0,3,63": at most `most` of them, each not negative. */
int numbers_list(const char *what, const char *text, int64_t *values, unsigned most, unsigned *n,
		 struct npumem_error *error);

/* Lists of words with a space between two, as in kernels.def. Its marks: '>' before the name of an
 * output, '?' behind an optional name, '*' behind a numbered family ("in*": in0, in1, …). */

struct lists_word {
	char text[64]; /* without its marks */
	bool output, optional, family;
};

/* Takes the first word of *list, moved past it. False at the end. */
bool lists_next(const char **list, struct lists_word *word);
/* Finds `text`; a family also by one of its names, and with `bare` by its own. *word may be changed where it
 * fails. */
bool lists_find(const char *list, const char *text, bool bare, struct lists_word *word);
bool lists_has(const char *list, const char *text);
/* The words without their marks, `gap` between two and `number` behind a family's. Returns `text`. */
const char *lists_text(const char *list, const char *gap, const char *number, char *text, size_t bytes);

/* kinds.c. What kind of file the user has named where a command refuses it. */

/* If `error` is about the file `path`, and that is of another kind than the command takes, its message becomes:
 * what the file is not, what it is, and the commands that take it. */
void kinds_explain(const char *command, const char *path, struct npumem_error *error);

/* spec.c. The options that say what a tensor is to be, shared by plan and alloc. */

/* Rows for the tables of options. */
#define SPEC_OPTIONS                                                                                              \
	{"--shape", "N,C,H,W", "extents", false},                                                                 \
		{"--dtype", "T", "int8, uint8, int16, uint16, int32, uint32, fp32, fx8, fx16", false},            \
		{"--frac-bits", "F", "fractional bits of fx8 and fx16, 0..127", false},                           \
		{"--layout", "L", "aligned (the default), compact, matrix, strided", false},                      \
		{"--mode", "M", "storage mode: plain (the default), 4n, 2n, 2ic", false},                         \
		{"--stride", "N,C,H,W", "strides of the strided layout, in elements or packed elements", false},  \
		{"--start-npu", "Q", "the NPU of channel 0 (0)", false},                                          \
		{"--rows", "R", "rows of a matrix", false}, {"--cols", "M", "columns of a matrix", false},        \
		{"--w", "W", "columns of a matrix per channel; left out: those with the least storage", false},   \
	{                                                                                                         \
		"--address", "A", "NPU * bytes per NPU + offset; left out: the first place with room", false      \
	}

/* The value of an option that is a name, by its parser; left as it is where the option is not given. 0, or
 * INVALID, which says whether one is called nearly so. */
int spec_name(const struct args *args, const char *option, const char *what, int (*parse)(const char *),
	      const char *(*name)(int), int *value, struct npumem_error *error);
/* INVALID, with the nearest of the names that there are, or all. Values count from 1; names end where there is
 * none. */
int spec_no_such_name(const char *what, const char *text, const char *(*name)(int), struct npumem_error *error);
/* As spec_name, of a count. */
int spec_count(const struct args *args, const char *option, int64_t *value, struct npumem_error *error);
/* --frac-bits is "auto". */
bool spec_is_auto(const struct args *args);
/* All that is given, without asking for a shape. 0 or INVALID. */
int spec_read(const struct args *args, struct npumem_spec *spec, struct npumem_error *error);
/* 0 or INVALID (an option that is wrong whatever the device: usage). */
int spec_parse(const struct args *args, struct npumem_spec *spec, struct npumem_error *error);

/* suggest.c. "Did you mean": the known word nearest to one that is not known. */

enum { SUGGEST_WORD_BYTES = 64, SUGGEST_TEXT_BYTES = SUGGEST_WORD_BYTES + 32 };

struct suggest {
	const char *word; /* what was written */
	char best[SUGGEST_WORD_BYTES];
	unsigned distance; /* of best; more than a slip of the pen counts as none */
};

void suggest_init(struct suggest *suggest, const char *word);
/* Offers one known word; the first of those that are as near stays. */
void suggest_offer(struct suggest *suggest, const char *known);
/* Offers each of a space separated list; the marks of kernels.def ('>', '?', '*') are left out. */
void suggest_offer_list(struct suggest *suggest, const char *list);
/* "; did you mean \"x\"?", or "" where no known word is near. Returns `text`, SUGGEST_TEXT_BYTES long. */
const char *suggest_text(const struct suggest *suggest, char *text);

#endif
