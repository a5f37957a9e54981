/* Input of lines. With libedit (NPUMEM_EDITLINE) lines are edited, remembered in ~/.npumemctl_history, and
 * completed: commands, then kernels, options and tensors. Owns the history; ctl is the caller's. */
#include "client/ctl/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/command.h"

bool prompt_is_terminal(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

static char *plain_line(void)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n = getline(&line, &room, stdin);
	if (n < 0) {
		free(line);
		return NULL;
	}
	if (n && line[n - 1] == '\n')
		line[n - 1] = 0;
	return line;
}

#ifdef NPUMEM_EDITLINE
#include <editline/readline.h>

enum { PROMPT_PATH_BYTES = 4096, PROMPT_HISTORY = 1000 };

static const struct row {
	const char *name;
	const struct command *command;
} rows[] = {
#define COMMAND(name, synopsis, summary) {#name, &name##_command},
#include "client/ctl/commands.def"
#undef COMMAND
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

/* What the line that is completed may go on with; read by the generator below, which has no context of its own. */
static struct ctl *prompt_ctl;
static const struct row *prompt_row;
static bool prompt_names, prompt_kernels;

static const char *history_path(char *path)
{
	const char *home = getenv("HOME");
	if (!home || snprintf(path, PROMPT_PATH_BYTES, "%s/.npumemctl_history", home) >= PROMPT_PATH_BYTES)
		return NULL;
	return path;
}

/* The tensors' names, where a daemon answers; a completion says nothing where none does. */
static const struct npumem_tensors *tensors_of(struct ctl *ctl)
{
	const struct npumem_tensors *tensors = NULL;
	if (ctl_connect(ctl) || npumem_list(ctl->npumem, &tensors, NULL))
		tensors = NULL;
	npumem_error_clear(&ctl->error);
	return tensors;
}

/* The i-th word that may stand there; NULL after the last. */
static const char *candidate(unsigned i)
{
	static const struct npumem_tensors *tensors;
	unsigned n = 0;
	if (prompt_names)
		return i < N_ROWS ? rows[i].name : NULL;
	if (prompt_kernels)
		return i < npumem_n_kernel_rows ? npumem_kernel_rows[i].name : NULL;
	for (const struct option *o = prompt_row ? prompt_row->command->options : NULL; o && o->name; o++, n++)
		if (n == i)
			return o->name;
	if (i == n)
		tensors = tensors_of(prompt_ctl);
	return tensors && i - n < tensors->n ? tensors->list[i - n]->name : NULL;
}

static char *generate(const char *text, int state)
{
	static unsigned at;
	const char *word;
	if (!state)
		at = 0;
	while ((word = candidate(at))) {
		at++;
		if (*word && !strncmp(word, text, strlen(text)))
			return strdup(word);
	}
	return NULL;
}

static char **complete(const char *text, int start, int end)
{
	char first[32] = "";
	(void)end;
	prompt_names = sscanf(rl_line_buffer, " %31s", first) != 1 || strspn(rl_line_buffer, " ") == (size_t)start;
	prompt_row = NULL;
	for (unsigned i = 0; i < N_ROWS; i++)
		if (!strcmp(rows[i].name, first))
			prompt_row = &rows[i];
	prompt_names |= !strcmp(first, "help");
	size_t before = strspn(rl_line_buffer, " ") + strlen(first);
	bool second = strspn(rl_line_buffer + before, " ") + before == (size_t)start;
	prompt_kernels = second && (!strcmp(first, "run") || !strcmp(first, "kernels"));
	rl_attempted_completion_over = strcmp(first, "write") && strcmp(first, "read") && strcmp(first, "load") &&
				       strcmp(first, "diff") && strcmp(first, "conform");
	return rl_completion_matches(text, generate);
}

void prompt_begin(struct ctl *ctl)
{
	char path[PROMPT_PATH_BYTES];
	prompt_ctl = ctl;
	rl_readline_name = (char *)"npumemctl";
	rl_initialize();
	rl_attempted_completion_function = complete;
	stifle_history(PROMPT_HISTORY);
	if (history_path(path))
		read_history(path);
}

char *prompt_line(void)
{
	if (!prompt_is_terminal())
		return plain_line();
	char *line = readline("npumem> ");
	if (line && *line)
		add_history(line);
	return line;
}

void prompt_end(void)
{
	char path[PROMPT_PATH_BYTES];
	if (history_path(path))
		write_history(path);
	putchar('\n');
}
#else
void prompt_begin(struct ctl *ctl)
{
	(void)ctl;
}

char *prompt_line(void)
{
	if (prompt_is_terminal()) {
		fputs("npumem> ", stdout);
		fflush(stdout);
	}
	return plain_line();
}

void prompt_end(void)
{
	putchar('\n');
}
#endif
