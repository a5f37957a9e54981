/* npumemctl: one command, or without one those that are typed or come on stdin. Owns the connection, which stays
 * for all of a private daemon's lines: it ends with it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/command.h"
#include "client/ctl/core/words/words.h"
#include "client/ctl/prompt.h"

enum { MAIN_WORDS_MAX = 512 };

/* The connection, and what its calls handed out, for a line of its own. */
static void disconnect(struct ctl *ctl)
{
	struct npumem *npumem = ctl->npumem;
	/* An interrupt looks at it. */
	ctl->npumem = NULL;
	npumem_close(npumem);
}

static void clear_screen(void)
{
	/* The cursor to the first column of the first line; the screen; what scrolled off it. */
	fputs("\033[H\033[2J\033[3J", stdout);
	fflush(stdout);
}

/* The first command of a line. *rest: the text after its ;, or NULL. Counts it unless it is empty. *over: it asks for
 * the end. */
static int run_next(const struct ctl *shared, struct ctl *ctl, char *line, char **rest, unsigned *n_commands,
		       bool *over)
{
	static char *words[MAIN_WORDS_MAX + 1] = {(char *)"npumemctl"};
	unsigned n;
	ctl->json = shared->json;
	ctl->quiet = ctl->printed = false;
	npumem_error_clear(&ctl->error);
	if (words_split(line, words + 1, MAIN_WORDS_MAX - 1, &n, rest, &ctl->error)) {
		ctl_complain(ctl, "");
		*n_commands += 1;
		return CTL_USAGE;
	}
	words[n + 1] = NULL;
	*n_commands += n > 0;
	*over = n == 1 && (!strcmp(words[1], "exit") || !strcmp(words[1], "quit"));
	if (n == 1 && !strcmp(words[1], "clear") && prompt_is_terminal())
		clear_screen();
	else if (n && !*over)
		return command_line(ctl, (int)n + 1, words);
	return CTL_OK;
}

/* Typed lines go on after a failure; a batch ends with it. */
static int run_lines(struct ctl *ctl)
{
	const struct ctl shared = *ctl;
	bool typed = prompt_is_terminal(), over = false;
	unsigned number = 0, n_commands = 0;
	int code = CTL_OK;
	char *line;
	if (typed)
		prompt_begin(ctl);
	while (!over && (typed || !code) && (line = prompt_line())) {
		number++;
		for (char *at = line; at && !over && (typed || !code);) {
			if (typed)
				prompt_arm();
			code = run_next(&shared, ctl, at, &at, &n_commands, &over);
			if (!ctl->spawned || ctl->error.status == NPUMEM_UNAVAILABLE)
				disconnect(ctl);
		}
		free(line);
	}
	if (typed)
		prompt_end();
	if (typed || n_commands) {
		if (code && !typed)
			fprintf(stderr, "npumemctl: stopped at line %u\n", number);
		return typed ? CTL_OK : code;
	}
	if (!code)
		code = ctl_usage(ctl, "no command");
	ctl_complain(ctl, " (see npumemctl --help)");
	return code;
}

int main(int argc, char **argv)
{
	struct ctl ctl = {.json = false};
	int code = command_line(&ctl, argc, argv);
	if (!code && ctl.batch)
		code = run_lines(&ctl);
	disconnect(&ctl);
	free(ctl.spawned);
	return code;
}
