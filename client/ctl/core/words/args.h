/* The words of a command line, sorted into options and arguments by the tables of the commands. */
#ifndef CTL_CORE_ARGS_H
#define CTL_CORE_ARGS_H

#include <npumem/types.h>

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

#endif
