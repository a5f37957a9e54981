/* help: the same as --help. */
#include "client/ctl/command.h"

static int help_run(struct ctl *ctl, const struct args *args)
{
	return command_help(ctl, args->words, args->n_words);
}

const struct command help_command = {.most = COMMAND_WORDS_ANY, .run = help_run};
