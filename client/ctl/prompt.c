/* Input of lines. With libedit (NPUMEM_EDITLINE) lines are edited, remembered in ~/.npumemctl_history, and
 * completed: commands, then kernels with their roles and parameters, options and their values, tensors. Owns the
 * history; ctl is the caller's. Invariant: while it waits for a line an interrupt does not end the program. */
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
#include "client/ctl/core/kernels/kernels.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/words/words.h"

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
	/* Set before the message is written, as the user may interrupt as soon as it is on the screen. */
	if (number == SIGALRM && !prompt_waited) {
		prompt_waited = 1;
		(void)!write(STDERR_FILENO, again, sizeof(again) - 1);
	}
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

/* What may stand where the word is that is completed; read by the generator below, which has no context of its
 * own. */
static const char **prompt_words;
static unsigned prompt_n_words;

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

static void offer(const char *word)
{
	*(const char **)memory_grow(&prompt_words, prompt_n_words, sizeof(*prompt_words)) = word;
	prompt_n_words++;
}

/* The words of a list of kernels.def or params.def. */
static void offer_list(const char *list, const char *behind)
{
	struct lists_word word;
	while (lists_next(&list, &word))
		offer(memory_text("%s%s%s", word.text, word.family ? "0" : "", behind));
}

static void offer_tensors(void)
{
	const struct npumem_tensors *tensors = tensors_of(prompt_ctl);
	for (unsigned i = 0; tensors && i < tensors->n; i++)
		offer(tensors->list[i]->name);
}

static void offer_commands(void)
{
	for (unsigned i = 0; i < N_ROWS; i++)
		offer(rows[i].name);
}

static void offer_kernels(void)
{
	for (unsigned i = 0; i < npumem_n_kernel_rows; i++)
		offer(npumem_kernel_rows[i].name);
}

/* False: the option takes none of a few words. */
static bool offer_values(const char *option)
{
	static const struct {
		const char *option, *(*name)(int);
	} values[] = {{"--dtype", npumem_dtype_name},
		      {"--layout", npumem_layout_name},
		      {"--mode", npumem_mode_name},
		      {"--reuse", npumem_reuse_name},
		      {"--rounding", npumem_rounding_name}};
	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (!strcmp(values[i].option, option)) {
			for (int value = 1; values[i].name(value); value++)
				offer(values[i].name(value));
			return true;
		}
	return false;
}

/* Of a kernel's call: role= and parameter=, and what may stand behind it. */
static void offer_operands(const struct npumem_kernel_row *row, const char *key)
{
	const struct npumem_param_row *param = npumem_param_by_name(key);
	if (!*key) {
		offer_list(row->roles, "=");
		offer_list(row->parameters, "=");
		offer("rounding=");
	} else if (param && roles_has_param(row, key)) {
		offer_list(param->choices, "");
	} else if (roles_has(row, key)) {
		offer_tensors();
	}
}

static void offer_rest(const struct row *row)
{
	for (const struct option *o = row ? row->command->options : NULL; o && o->name; o++)
		offer(o->name);
	offer_tensors();
}

static char *generate(const char *text, int state)
{
	static unsigned at;
	at = state ? at : 0;
	while (at < prompt_n_words) {
		const char *word = prompt_words[at++];
		if (*word && !strncmp(word, text, strlen(text)))
			return strdup(word);
	}
	return NULL;
}

enum { WORD_BYTES = 64 };

/* The words of the command that is completed, up to where a word is typed: the first, the second, the one right
 * before; `key` is that of key=, if that is where it is. */
struct typed {
	unsigned n;
	char first[WORD_BYTES], second[WORD_BYTES], last[WORD_BYTES], key[WORD_BYTES];
};

static void split(const char *line, size_t end, struct typed *typed)
{
	char word[WORD_BYTES];
	*typed = (struct typed){.n = 0};
	for (size_t at = 0, n; at < end; at += n) {
		at += strspn(line + at, " ");
		n = strcspn(line + at, " ;");
		n = n < end - at ? n : end - at;
		if (at >= end)
			break;
		if (!n && line[at] == ';') {
			*typed = (struct typed){.n = 0};
			n = 1;
			continue;
		}
		snprintf(word, sizeof(word), "%.*s", (int)n, line + at);
		if (at + n == end && line[end - 1] == '=') {
			snprintf(typed->key, sizeof(typed->key), "%.*s", (int)n - 1, line + at);
			return;
		}
		memcpy(typed->last, word, sizeof(word));
		memcpy(typed->n ? typed->second : typed->first, word, typed->n < 2 ? sizeof(word) : 0);
		typed->n++;
	}
}

static char **complete(const char *text, int start, int end)
{
	struct typed typed;
	const struct row *row = NULL;
	(void)end;
	split(rl_line_buffer, (size_t)start, &typed);
	for (unsigned i = 0; i < N_ROWS; i++)
		if (!strcmp(rows[i].name, typed.first))
			row = &rows[i];
	bool is_run = !strcmp(typed.first, "run");
	const struct npumem_kernel_row *kernel =
		is_run && typed.n > 1 ? npumem_kernel_by_name(typed.second) : NULL;
	prompt_words = NULL;
	prompt_n_words = 0;
	if (!typed.n || !strcmp(typed.first, "help"))
		offer_commands();
	else if (typed.n == 1 && (is_run || !strcmp(typed.first, "kernels")))
		offer_kernels();
	else if (kernel)
		offer_operands(kernel, typed.key);
	else if (!offer_values(typed.last))
		offer_rest(row);
	rl_attempted_completion_over = strcmp(typed.first, "write") && strcmp(typed.first, "read") &&
				       strcmp(typed.first, "load") && strcmp(typed.first, "diff") &&
				       strcmp(typed.first, "conform");
	char **matches = rl_completion_matches(text, generate);
	size_t n = matches ? strlen(matches[0]) : 0;
	rl_completion_append_character = n && !matches[1] && matches[0][n - 1] == '=' ? 0 : ' ';
	return matches;
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
