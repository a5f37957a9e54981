/* Input of lines. With libedit (NPUMEM_EDITLINE) lines are edited, remembered in ~/.npumemctl_history, and
 * completed: commands, then kernels, options and tensors. Owns the history; ctl is the caller's. Invariant: while
 * it waits for a line an interrupt does not end the program. */
#define _GNU_SOURCE /* ppoll */
#include "client/ctl/prompt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/command.h"

bool prompt_is_terminal(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* ---- interrupts ---- */

/* A handler has no context of its own. */
static struct ctl *prompt_ctl;
static volatile sig_atomic_t prompt_interrupted, prompt_waited; /* for a second and more since */
static struct sigaction prompt_term;				/* as it was at first */
static sigset_t prompt_mask;

/* Once more after a second, until it is seen: it may have come just before a call began to wait. Where nothing
 * sees it, as the daemon does not answer, the next interrupt ends the program. */
static void prompt_on_interrupt(int number)
{
	static const char again[] = "\nnpumemctl: no answer yet; another interrupt ends npumemctl\n";
	if (number == SIGALRM && !prompt_waited)
		(void)!write(STDERR_FILENO, again, sizeof(again) - 1);
	if (number == SIGALRM)
		prompt_waited = 1;
	if (number == SIGINT && prompt_waited) {
		signal(SIGINT, SIG_DFL);
		raise(SIGINT);
	}
	prompt_interrupted = 1;
	if (prompt_ctl->npumem)
		npumem_interrupt(prompt_ctl->npumem, true);
	alarm(1);
}

static void prompt_begin_signals(struct ctl *ctl)
{
	prompt_ctl = ctl;
	sigaction(SIGTERM, NULL, &prompt_term);
	sigprocmask(SIG_BLOCK, NULL, &prompt_mask);
	prompt_arm();
}

void prompt_arm(void)
{
	/* Without SA_RESTART: what waits looks around. */
	struct sigaction action = {.sa_handler = prompt_on_interrupt};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGTERM, &prompt_term, NULL);
	sigprocmask(SIG_SETMASK, &prompt_mask, NULL);
	alarm(0);
	prompt_interrupted = prompt_waited = 0;
	if (prompt_ctl->npumem)
		npumem_interrupt(prompt_ctl->npumem, false);
}

/* ---- lines ---- */

static char *plain_line(void)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n = getline(&line, &room, stdin);
	if (n < 0 && prompt_interrupted) {
		clearerr(stdin);
		putchar('\n');
		free(line);
		return strdup("");
	}
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

/* A byte that is typed; an interrupt ends the line, which is then forgotten. It comes only while this waits. */
static int typed_byte(FILE *in)
{
	struct pollfd pollfd = {.fd = fileno(in), .events = POLLIN};
	unsigned char byte;
	while (!prompt_interrupted) {
		if (ppoll(&pollfd, 1, NULL, &prompt_mask) < 0 && errno != EINTR)
			return EOF;
		if (pollfd.revents && read(pollfd.fd, &byte, 1) == 1)
			return byte;
		if (pollfd.revents)
			return EOF;
	}
	fputs("^C", stdout);
	return '\n';
}

static char *typed_line(void)
{
	sigset_t blocked = prompt_mask;
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGALRM);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	char *line = readline("npumem> ");
	sigprocmask(SIG_SETMASK, &prompt_mask, NULL);
	if (line && prompt_interrupted)
		*line = 0;
	return line;
}

void prompt_begin(struct ctl *ctl)
{
	char path[PROMPT_PATH_BYTES];
	prompt_begin_signals(ctl);
	rl_catch_signals = 0;
	rl_getc_function = typed_byte;
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
	prompt_arm();
	char *line = typed_line();
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
	prompt_begin_signals(ctl);
}

char *prompt_line(void)
{
	if (prompt_is_terminal()) {
		prompt_arm();
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
