/* A command line: reads it, runs its command, says in one line why it failed.
 * The commands are rows of commands.def; nothing here knows what they do. */
#define _GNU_SOURCE /* asprintf */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/command.h"
#include "client/ctl/core/kernels/kernels.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/core/words/words.h"

static const struct row {
	const char *name, *synopsis, *summary;
	const struct command *command;
} rows[] = {
#define COMMAND(name, synopsis, summary) {#name, synopsis, summary, &name##_command},
#include "client/ctl/commands.def"
#undef COMMAND
};

/* Help as commands.def has it; a group's title has no summary. */
static const struct {
	const char *name, *summary;
} help_rows[] = {
#define GROUP(title) {title, NULL},
#define COMMAND(name, synopsis, summary) {#name, summary},
#include "client/ctl/commands.def"
#undef COMMAND
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]), HELP_INDENT = 24 };

static const struct option global_options[] = {
	{"--socket", "PATH", "the daemon's socket, instead of $NPUMEM_SOCKET and the default paths", false},
	{"--spawn", "OPTIONS", "starts a private daemon with these options of npumemd: --spawn='--npus 4'", true},
	{"--reconnect", "SECONDS", "retries for this time to reach a daemon", false},
	{"--all-devices", NULL, "ls, stat and top: asks all devices of a list at once", false},
	{"--devices", "FILE",
	 "the list, instead of $NPUMEM_DEVICES; a line has a name and an address; slurm: lists the devices of "
	 "Slurm's jobs",
	 false},
	{"--json", NULL, "prints one JSON object", false},
	{"--quiet", NULL, "prints errors only, and what --json or a file name - asks for", false},
	{"--help", NULL, "this help, or that of a command: npumemctl plan --help", false},
	{"--version", NULL, "the version", false},
	{NULL, NULL, NULL, false},
};

static const struct row *row_find(const char *name)
{
	for (unsigned i = 0; i < N_ROWS; i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

/* What other programs call a command of ours. */
static const char *own_name(const char *name)
{
	static const char *const names[][2] = {{"cp", "copy"},	    {"create", "alloc"}, {"delete", "free"},
					       {"list", "ls"},	    {"mv", "rename"},	 {"new", "alloc"},
					       {"rm", "free"},	    {"set", "fill"},	 {"status", "stat"},
					       {"stop", "shutdown"}};
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i][0], name))
			return names[i][1];
	return name;
}

static int no_such_command(struct ctl *ctl, const char *name)
{
	char nearest[SUGGEST_TEXT_BYTES];
	struct suggest suggest;
	suggest_init(&suggest, own_name(name));
	for (unsigned i = 0; i < N_ROWS; i++)
		suggest_offer(&suggest, rows[i].name);
	return ctl_usage(ctl, "there is no command \"%.60s\"%s", name, suggest_text(&suggest, nearest));
}

/* An option that is npumemctl's nowhere is the private daemon's. */
static bool is_foreign(const char *word)
{
	if (strchr(word, ' '))
		return true;
	for (unsigned i = 0; i < N_ROWS; i++)
		if (rows[i].command->options && args_find(rows[i].command->options, word))
			return false;
	return !args_find(global_options, word);
}

static void help_options(const char *title, const struct option *options)
{
	if (options && options->name)
		printf("\n%s\n", title);
	for (; options && options->name; options++) {
		char left[64];
		snprintf(left, sizeof(left),
			 options->optional ? "%s[=%s]"
			 : options->value  ? "%s %s"
					   : "%s",
			 options->name, options->value ? options->value : "");
		unsigned n = (unsigned)printf("  %-20s  ", left);
		describe_wrap(stdout, options->help, n > HELP_INDENT ? HELP_INDENT : n, HELP_INDENT,
			      terminal_columns(STDOUT_FILENO));
	}
}

static void help_commands(void)
{
	for (unsigned i = 0; i < sizeof(help_rows) / sizeof(help_rows[0]); i++) {
		if (!help_rows[i].summary)
			printf("\n%s:\n", help_rows[i].name);
		else
			describe_wrap(stdout, help_rows[i].summary,
				      (unsigned)printf("  %-8s  ", help_rows[i].name), 12,
				      terminal_columns(STDOUT_FILENO));
	}
}

static int help(const struct row *row)
{
	if (!row) {
		printf("npumemctl [OPTIONS] COMMAND ...: tensors in the local memory of an NPU array\n"
		       "npumemctl [OPTIONS]: reads commands, at a terminal from a prompt (exit ends it), else "
		       "from "
		       "stdin\n");
		help_commands();
		help_options("options:", global_options);
		printf("\nExit status: 0; 1 if the command was refused or failed; 2 if the command line is wrong; "
		       "of "
		       "conform,\ncheck and replay 3 if there was no daemon, or the connection was lost.\n");
		return CTL_OK;
	}
	printf("npumemctl %s%s%s: %s\n", row->name, *row->synopsis ? " " : "", row->synopsis, row->summary);
	help_options("options:", row->command->options);
	if (row->command->notes)
		printf("\n%s\n", row->command->notes);
	return CTL_OK;
}

int command_help(struct ctl *ctl, const char **words, unsigned n_words)
{
	const struct args after = {.words = words + 1, .n_words = n_words - 1};
	const struct row *row = n_words ? row_find(words[0]) : NULL;
	if (n_words && !row)
		return no_such_command(ctl, words[0]);
	return row && row->command->help && after.n_words ? row->command->help(ctl, &after) : help(row);
}

/* Reads the options that are npumemctl's own. */
static int globals_apply(struct ctl *ctl, const struct args *args)
{
	const char *spawn = args_value(args, "--spawn"), *reconnect = args_value(args, "--reconnect");
	ctl->hushed = args_has(args, "--quiet");
	ctl->address = args_value(args, "--socket");
	ctl->all_devices = args_has(args, "--all-devices");
	ctl->devices = args_value(args, "--devices");
	if (ctl->address && spawn)
		return ctl_usage(ctl, "--socket and --spawn exclude each other");
	if (ctl->all_devices && (ctl->address || spawn || reconnect))
		return ctl_usage(ctl, "--all-devices asks the devices of its list: --socket, --spawn and "
				      "--reconnect have no meaning with it");
	if (ctl->devices && !ctl->all_devices)
		return ctl_usage(ctl, "--devices has no meaning without --all-devices");
	if (reconnect &&
	    (!numbers_real(reconnect, &ctl->reconnect) || !(ctl->reconnect >= 0 && ctl->reconnect <= 1e6)))
		return ctl_usage(ctl, "--reconnect \"%.40s\" is not a number of seconds from 0 to 1000000",
				 reconnect);
	if (!spawn)
		return CTL_OK;
	if (asprintf(&ctl->spawned, "spawn:%s", spawn) < 0)
		memory_none();
	ctl->address = ctl->spawned;
	return CTL_OK;
}

/* In a line of a batch they would come too late, and stdin is the batch. */
static int globals_refuse(struct ctl *ctl, const struct row *row, const struct args *args)
{
	static const char *const own[] = {"--socket", "--spawn",       "--reconnect",
					  "--quiet",  "--all-devices", "--devices"};
	for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (args_has(args, own[i]))
			return ctl_usage(ctl, "%s stands before the lines, after npumemctl itself", own[i]);
	for (unsigned i = 0; i < args->n_words && !row->command->pipes; i++)
		if (!strcmp(args->words[i], "-"))
			return ctl_usage(ctl, "stdin is what the commands come from");
	return CTL_OK;
}

static bool is_piped(const struct row *row, const struct args *args)
{
	for (unsigned i = 0; i < args->n_words && row->command->pipes; i++)
		if (!strcmp(args->words[i], "-"))
			return true;
	return false;
}

static int command_asked(struct ctl *ctl, const struct row *row, const struct args *args)
{
	if (!ctl->all_devices)
		return row->command->run(ctl, args);
	return row->command->all
		       ? row->command->all(ctl, args)
		       : ctl_usage(ctl, "%s asks one device: --all-devices is of ls, stat and top", row->name);
}

/* Runs it with stdout elsewhere, where --quiet has that. */
static int command_hushed(struct ctl *ctl, const struct row *row, const struct args *args)
{
	if (!ctl->hushed || ctl->json || is_piped(row, args))
		return command_asked(ctl, row, args);
	fflush(stdout);
	int stdout_fd = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int code = stdout_fd < 0 || nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0
			   ? ctl_fail(ctl, "cannot be quiet: %s", strerror(errno))
			   : command_asked(ctl, row, args);
	fflush(stdout);
	if (stdout_fd >= 0)
		dup2(stdout_fd, STDOUT_FILENO);
	close(stdout_fd);
	close(nowhere);
	return code;
}

static int command_run(struct ctl *ctl, const struct row *row, const struct args *args)
{
	if (args_has(args, "--version")) {
		printf("npumemctl %s\n", NPUMEM_VERSION);
		return CTL_OK;
	}
	if (args_has(args, "--help"))
		return row && row->command->help && args->n_words ? row->command->help(ctl, args) : help(row);
	if (row && args->n_words < row->command->least)
		return ctl_usage(ctl, "%s needs: %s", row->name, row->synopsis);
	if (row && args->n_words > row->command->most)
		return ctl_usage(ctl, "%s takes no word \"%.60s\" there", row->name,
				 args->words[row->command->most]);
	if (!row && ctl->batch)
		return ctl_usage(ctl, "no command");
	int code = ctl->batch ? globals_refuse(ctl, row, args) : globals_apply(ctl, args);
	ctl->json |= args_has(args, "--json");
	if (!code && row)
		code = command_hushed(ctl, row, args);
	for (unsigned i = 0; code == CTL_FAILED && i < args->n_words; i++)
		kinds_explain(row->name, args->words[i], &ctl->error);
	if (code == CTL_FAILED && row && row->command->sweeps && ctl->error.status == NPUMEM_UNAVAILABLE)
		return CTL_LOST;
	if (code || row)
		return code;
	if (ctl->all_devices)
		return ctl_usage(ctl, "--all-devices needs a command: ls, stat or top");
	ctl->batch = true;
	return CTL_OK;
}

/* Finds the command, then reads what belongs to it. */
static int parse_and_run(struct ctl *ctl, int argc, char **argv, struct args *args, const struct row **row)
{
	args->tables[0] = global_options;
	int at = args_parse(args, argc, argv, 1, true, is_foreign, &ctl->error);
	if (at < 0)
		return CTL_USAGE;
	if (args->n_words) {
		*row = row_find(args->words[0]);
		if (!*row)
			return no_such_command(ctl, args->words[0]);
		args->n_words = 0;
		args->tables[1] = (*row)->command->options;
		bool runs = (*row)->command->runs_another;
		at = args_parse(args, argc, argv, at, runs, is_foreign, &ctl->error);
		if (at < 0)
			return CTL_USAGE;
		while (at < argc)
			args->words[args->n_words++] = argv[at++];
	}
	return command_run(ctl, *row, args);
}

static void complain(const struct ctl *ctl, int code, const struct row *row, const struct args *args)
{
	char usage[128] = "";
	bool kernel = row && row->command->help && args->n_words && npumem_kernel_by_name(args->words[0]);
	if (code == CTL_USAGE)
		snprintf(usage, sizeof(usage), " (see npumemctl %s%s%s%s--help)", row ? row->name : "",
			 row ? " " : "", kernel ? args->words[0] : "", kernel ? " " : "");
	ctl_complain(ctl, usage);
}

/* What --json asks for holds also where a word before it is wrong. */
static bool words_ask_json(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--json"))
			return true;
	return false;
}

int command_line(struct ctl *ctl, int argc, char **argv)
{
	struct args args = {.n_given = 0};
	const struct row *row = NULL;
	args.words = memory_new((size_t)argc, sizeof(*args.words));
	int code = parse_and_run(ctl, argc, argv, &args, &row);
	ctl->json |= args_has(&args, "--json") || (code == CTL_USAGE && words_ask_json(argc, argv));
	if (fflush(stdout) && !code)
		code = ctl_fail(ctl, "cannot write the result: %s", strerror(errno));
	if (code && !ctl->quiet)
		complain(ctl, code, row, &args);
	memory_end();
	return code;
}
