/* A command: a row in commands.def and a file in commands/. */
#ifndef CTL_COMMAND_H
#define CTL_COMMAND_H

#include "client/ctl/core/words/words.h"
#include "client/ctl/ctl.h"

struct command {
	const struct option *options; /* its own; NULL: none */
	unsigned least, most;	      /* words after its name */
	bool pipes;		      /* a - among its words asks for data on stdout */
	bool sweeps;		      /* without a daemon it has not failed, but not run: CTL_LOST */
	bool runs_another;	      /* its first word is a program's, and all that follows that one's */
	const char *notes;	      /* lines for its help, or NULL */
	/* Help about the words that are given; NULL: there is none. As run. */
	int (*help)(struct ctl *ctl, const struct args *args);
	/* CTL_OK, CTL_FAILED or CTL_USAGE, with ctl->error set. */
	int (*run)(struct ctl *ctl, const struct args *args);
	/* The same with --all-devices; NULL: it takes none. */
	int (*all)(struct ctl *ctl, const struct args *args);
};

/* Runs argv[1..argc), and says why where that fails. Without a command it leaves ctl->batch set: commands are to
 * be read. CTL_OK, CTL_FAILED, CTL_USAGE, CTL_LOST, or what a program that it ran ended with. */
int command_line(struct ctl *ctl, int argc, char **argv);
/* Help about the command that words[0] names, with what follows; about all where there are none. CTL_OK or
 * CTL_USAGE. */
int command_help(struct ctl *ctl, const char **words, unsigned n_words);

enum { COMMAND_WORDS_ANY = 1 << 20 };

#define COMMAND(name, synopsis, summary) extern const struct command name##_command;
#include "client/ctl/commands.def"
#undef COMMAND

#endif
