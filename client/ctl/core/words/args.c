/* The words of a command line. Options are long; "--name value" and "--name=value" are the same; "--" ends them;
 * a negative number is a word. Knows no command. */
#include "client/ctl/core/words/words.h"

#include <stdio.h>
#include <string.h>

const struct option *args_find(const struct option *table, const char *word)
{
	size_t length = strcspn(word, "=");
	for (const struct option *row = table; row && row->name; row++)
		if (strlen(row->name) == length && !strncmp(row->name, word, length))
			return row;
	return NULL;
}

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] && !strchr("0123456789.", word[1]);
}

static const struct option *option_of(const struct args *args, const char *word)
{
	for (unsigned i = 0; i < ARGS_TABLES_MAX; i++) {
		const struct option *option = args_find(args->tables[i], word);
		if (option)
			return option;
	}
	return NULL;
}

static int no_such_option(const struct args *args, const char *word, bool foreign, struct npumem_error *error)
{
	char name[SUGGEST_WORD_BYTES], nearest[SUGGEST_TEXT_BYTES];
	int length = (int)strcspn(word, "=");
	struct suggest suggest;
	snprintf(name, sizeof(name), "%.*s", length, word);
	suggest_init(&suggest, name);
	for (unsigned i = 0; i < ARGS_TABLES_MAX; i++)
		for (const struct option *row = args->tables[i]; row && row->name; row++)
			suggest_offer(&suggest, row->name);
	return npumem_error_set(error, NPUMEM_INVALID, "there is no option %s%s%s", name, foreign ? "" : " here",
				suggest_text(&suggest, nearest));
}

/* One option at argv[at]: the index after it, or -1. */
static int option_parse(struct args *args, int argc, char *const *argv, int at, bool (*foreign)(const char *),
			struct npumem_error *error)
{
	const char *word = !strcmp(argv[at], "-h") ? "--help" : argv[at], *value = strchr(word, '=');
	const struct option *option = option_of(args, word);
	if (!option && args->n_given && args->given[args->n_given - 1].option->optional &&
	    !*args->given[args->n_given - 1].value) {
		const char *before = args->given[args->n_given - 1].option->name;
		npumem_error_set(error, NPUMEM_INVALID,
				 "%.60s is not an option here; for %s, write %s='%.60s ...'", word, before, before,
				 word);
		return -1;
	}
	if (!option) {
		no_such_option(args, word, foreign(word), error);
		return -1;
	}
	at++;
	if (value && !option->value) {
		npumem_error_set(error, NPUMEM_INVALID, "%s takes no value", option->name);
		return -1;
	}
	if (value) {
		value++;
	} else if (option->optional) {
		bool next = at < argc && is_option(argv[at]) && strcmp(argv[at], "--") && foreign(argv[at]);
		value = next ? argv[at++] : "";
	} else if (option->value) {
		if (at == argc) {
			npumem_error_set(error, NPUMEM_INVALID, "%s needs a value: %s", option->name,
					 option->value);
			return -1;
		}
		value = argv[at++];
	}
	if (args->n_given == ARGS_OPTIONS_MAX) {
		npumem_error_set(error, NPUMEM_INVALID, "more than %d options", ARGS_OPTIONS_MAX);
		return -1;
	}
	args->given[args->n_given].option = option;
	args->given[args->n_given++].value = value;
	return at;
}

int args_parse(struct args *args, int argc, char *const *argv, int from, bool one, bool (*foreign)(const char *),
	       struct npumem_error *error)
{
	bool options = true;
	for (int i = from; i < argc;) {
		if (options && !strcmp(argv[i], "--")) {
			options = false;
			i++;
		} else if (options && is_option(argv[i])) {
			i = option_parse(args, argc, argv, i, foreign, error);
			if (i < 0)
				return -1;
		} else {
			args->words[args->n_words++] = argv[i++];
			if (one)
				return i;
		}
	}
	return argc;
}

const char *args_value(const struct args *args, const char *name)
{
	for (unsigned i = args->n_given; i-- > 0;)
		if (!strcmp(args->given[i].option->name, name))
			return args->given[i].value ? args->given[i].value : "";
	return NULL;
}

bool args_has(const struct args *args, const char *name)
{
	return args_value(args, name) != NULL;
}
