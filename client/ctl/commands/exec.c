/* exec: a command with a daemon of its own, which lives as long as the command does. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/ctl/command.h"
#include "client/ctl/core/memory.h"

#define EXEC_SOCKET "/npumem.sock"

enum { EXEC_NOT_FOUND = 127, EXEC_NOT_RUN = 126, EXEC_SIGNAL = 128 };

static volatile sig_atomic_t exec_child;

static void exec_pass_on(int number)
{
	if (exec_child)
		kill((pid_t)exec_child, number);
}

static const struct {
	int number;
	void (*handler)(int number);
} exec_signals[] = {
	/* From the keyboard: these go to the command, too, which says what becomes of them. */
	{SIGINT, SIG_IGN},
	{SIGQUIT, SIG_IGN},
	{SIGTERM, exec_pass_on},
	{SIGHUP, exec_pass_on},
};

enum { EXEC_SIGNALS = sizeof(exec_signals) / sizeof(exec_signals[0]) };

static void signals_take(struct sigaction old[EXEC_SIGNALS])
{
	for (unsigned i = 0; i < EXEC_SIGNALS; i++) {
		struct sigaction action = {.sa_handler = exec_signals[i].handler};
		sigaction(exec_signals[i].number, &action, &old[i]);
	}
}

static int command_wait(struct ctl *ctl, pid_t pid)
{
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return ctl_fail(ctl, "cannot wait for the command: %s", strerror(errno));
	ctl->quiet = true;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXEC_SIGNAL + WTERMSIG(status);
}

static int command_start(struct ctl *ctl, const char *socket, const char **words, unsigned n)
{
	char **argv = memory_new(n + 1, sizeof(*argv));
	struct sigaction old[EXEC_SIGNALS];
	for (unsigned i = 0; i < n; i++)
		argv[i] = (char *)(uintptr_t)words[i];
	/* Until it is known whom they are for. */
	sigset_t passed_on, before;
	sigemptyset(&passed_on);
	sigaddset(&passed_on, SIGTERM);
	sigaddset(&passed_on, SIGHUP);
	sigprocmask(SIG_BLOCK, &passed_on, &before);
	signals_take(old);
	pid_t pid = fork();
	if (!pid) {
		for (unsigned i = 0; i < EXEC_SIGNALS; i++)
			sigaction(exec_signals[i].number, &old[i], NULL);
		sigprocmask(SIG_SETMASK, &before, NULL);
		if (!setenv("NPUMEM_SOCKET", socket, 1))
			execvp(argv[0], argv);
		fprintf(stderr, "npumemctl: cannot run %s: %s\n", argv[0], strerror(errno));
		_exit(errno == ENOENT ? EXEC_NOT_FOUND : EXEC_NOT_RUN);
	}
	exec_child = pid > 0 ? pid : 0;
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid < 0 ? ctl_fail(ctl, "cannot start a process: %s", strerror(errno)) : command_wait(ctl, pid);
}

static int exec_run(struct ctl *ctl, const struct args *args)
{
	static const char prefix[] = "spawn:";
	char directory[CTL_DIRECTORY_BYTES], socket[CTL_DIRECTORY_BYTES + sizeof(EXEC_SOCKET)];
	const char *options = NULL;
	int pid, code;
	if (ctl->address && strncmp(ctl->address, prefix, sizeof(prefix) - 1))
		return ctl_usage(ctl, "exec has a daemon of its own: --spawn='OPTIONS', not --socket");
	if (ctl->address)
		options = ctl->address + sizeof(prefix) - 1;
	/* Only programs of this user, and of root, find the daemon. */
	if (!ctl_make_directory(directory))
		return ctl_fail(ctl, "cannot make %s: %s", directory, strerror(errno));
	snprintf(socket, sizeof(socket), "%s%s", directory, EXEC_SOCKET);
	code = CTL_FAILED;
	if (!npumem_spawn(socket, options, NULL, &pid, &ctl->error)) {
		code = command_start(ctl, socket, args->words, args->n_words);
		npumem_spawn_end(socket, pid);
	}
	rmdir(directory);
	return code;
}

const struct command exec_command = {
	.least = 1,
	.most = COMMAND_WORDS_ANY,
	.runs_another = true,
	.run = exec_run,
	.notes = "The command and its children find the daemon by $NPUMEM_SOCKET. npumemctl exits with the "
		 "command's exit\n"
		 "code; with 128 plus the signal's number if a signal ended the command, with 127 if there is no "
		 "such\n"
		 "command. Options of npumemctl stand before exec:\n"
		 "  npumemctl --spawn='--npus 4' exec sh -c '\n"
		 "    npumemctl alloc x --shape 1,8,4,4 --dtype int8 && npumemctl fill x 1 && npumemctl read x "
		 "x.npy'",
};
