/* Starting and burying a private daemon. The child's stderr goes to a sealed piece of memory of fixed size (writes
 * past it fail, harmlessly), so that a refusal to start can be quoted instead of being printed beside the caller's
 * own message; $NPUMEM_SPAWN_LOG names a file to have it in full. */
#define _GNU_SOURCE /* memfd_create, seals, pipe2, secure_getenv */
#include "client/lib/addresses/address.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <npumem/client.h>

enum {
	SPAWN_LOG_BYTES = 64 << 10,
	SPAWN_ARGUMENTS_MAX = 128,
	SPAWN_CHILD_FD = 3,
	SPAWN_FD_LEAST = 10, /* ours stay clear of those that the child's are moved to */
	SPAWN_PATIENCE_MS = 5000,
	SPAWN_KILL_MS = 100,
};

extern char **environ;

static int fd_above(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, SPAWN_FD_LEAST), err = errno;
	close(fd);
	errno = err;
	return moved;
}

static int log_open(void)
{
	const char *path = secure_getenv("NPUMEM_SPAWN_LOG");
	int fd;
	if (path && *path)
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	else
		fd = memfd_create("npumemd-stderr", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	if (!path && (ftruncate(fd, SPAWN_LOG_BYTES) || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK))) {
		close(fd);
		return -1;
	}
	return fd_above(fd);
}

/* Splits `options` in place. */
static int arguments_split(char *options, char **argv, int n, struct npumem_error *error)
{
	char *rest;
	for (char *word = strtok_r(options, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest)) {
		if (n >= SPAWN_ARGUMENTS_MAX)
			return npumem_error_set(error, NPUMEM_INVALID, "more than %d options for a private daemon",
						SPAWN_ARGUMENTS_MAX);
		argv[n++] = word;
	}
	argv[n] = NULL;
	return 0;
}

static int child_start(const char *path, char *const *argv, int fd, int log, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, restored;
	sigemptyset(&none);
	sigemptyset(&restored);
	sigaddset(&restored, SIGPIPE);
	sigaddset(&restored, SIGCHLD);
	int err = posix_spawn_file_actions_init(&actions);
	if (err)
		return err;
	err = posix_spawnattr_init(&attributes);
	if (err) {
		posix_spawn_file_actions_destroy(&actions);
		return err;
	}
	/* In a process group of its own: a ^C is for the client, and the daemon goes when the client does. */
	posix_spawnattr_setflags(&attributes,
				 POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &restored);
	posix_spawnattr_setpgroup(&attributes, 0);
	err = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, 0, 1);
	if (!err && log >= 0)
		err = posix_spawn_file_actions_adddup2(&actions, log, 2);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, fd, SPAWN_CHILD_FD);
	if (!err)
		err = posix_spawnp(pid, path, &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return err;
}

static int start(char *options, int fd, struct spawned *spawned, struct npumem_error *error)
{
	char *argv[SPAWN_ARGUMENTS_MAX + 1];
	struct npumem_program program;
	argv[0] = (char *)(uintptr_t)npumem_program(&program);
	argv[1] = (char[]){"--fd"};
	argv[2] = (char[]){"3"};
	int status = arguments_split(options, argv, 3, error);
	if (status)
		return status;
	spawned->log = log_open();
	int err = child_start(program.path, argv, fd, spawned->log, &spawned->pid);
	if (!err)
		return 0;
	if (spawned->log >= 0)
		close(spawned->log);
	return npumem_error_set(
		error, NPUMEM_UNAVAILABLE,
		"cannot start a private daemon: %.200s: %s (it is looked for in $NPUMEMD, with the "
		"library and in $PATH)",
		program.path, strerror(err));
}

int spawn_start(const struct memory *memory, const char *options, int fd, struct spawned *spawned,
		struct npumem_error *error)
{
	size_t bytes = strlen(options) + 1;
	char *copy = memory_alloc(memory, bytes);
	int status;
	fd = fd_above(fd);
	if (fd < 0)
		status = npumem_error_set(error, NPUMEM_UNAVAILABLE, "cannot make a socket: %s", strerror(errno));
	else if (!copy)
		status = npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory in this process");
	else
		status = start(memcpy(copy, options, bytes), fd, spawned, error);
	if (fd >= 0)
		close(fd);
	memory_free(memory, copy);
	return status;
}

/* In the child. Only what a child of a process with threads may call; `report` is told an errno. */
static _Noreturn void filter_become(char *const *argv, int fd, int log, int report)
{
	const struct sigaction ignored = {.sa_handler = SIG_IGN}, restored = {.sa_handler = SIG_DFL};
	sigset_t none;
	sigemptyset(&none);
	/* A ^C at the terminal is for the client; while ssh asks there it has a handler of its own. */
	sigaction(SIGINT, &ignored, NULL);
	sigaction(SIGPIPE, &restored, NULL);
	sigaction(SIGCHLD, &restored, NULL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(fd, 0) == 0 && dup2(fd, 1) == 1 && (log < 0 || dup2(log, 2) == 2))
		execvp(argv[0], argv);
	int err = errno;
	_exit(write(report, &err, sizeof(err)) == sizeof(err) ? 127 : 126);
}

/* Nothing that the caller handles happens in the child before it is another program. */
static pid_t filter_fork(char *const *argv, int fd, int log, int report)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid_t pid = fork();
	if (!pid)
		filter_become(argv, fd, log, report);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return pid;
}

static int filter_start(char *const *argv, int fd, struct spawned *spawned)
{
	int ends[2], err = 0;
	ssize_t n;
	if (pipe2(ends, O_CLOEXEC))
		return errno;
	int report = fd_above(ends[1]);
	spawned->pid = report < 0 ? -1 : filter_fork(argv, fd, spawned->log, report);
	if (spawned->pid < 0)
		err = errno;
	if (report >= 0)
		close(report);
	do
		n = err ? 0 : read(ends[0], &err, sizeof(err));
	while (n < 0 && errno == EINTR);
	close(ends[0]);
	if (err && spawned->pid > 0)
		spawn_reap(spawned->pid);
	return err;
}

int spawn_filter(char *const *argv, int fd, struct spawned *spawned)
{
	fd = fd_above(fd);
	if (fd < 0)
		return errno;
	spawned->log = log_open();
	int err = filter_start(argv, fd, spawned);
	if (err && spawned->log >= 0)
		close(spawned->log);
	close(fd);
	return err;
}

off_t spawn_said(int log)
{
	off_t size = log < 0 ? 0 : lseek(log, 0, SEEK_CUR);
	return size < 0 ? 0 : size;
}

void spawn_last_words(int log, off_t from, char *line, size_t bytes)
{
	char text[1024], *last = text, *end;
	off_t size = spawn_said(log);
	line[0] = 0;
	if (size <= from)
		return;
	if (size - from > (off_t)sizeof(text) - 1)
		from = size - (off_t)sizeof(text) + 1;
	ssize_t n = pread(log, text, sizeof(text) - 1, from);
	if (n <= 0)
		return;
	for (end = text + n; end > text && (end[-1] == '\n' || end[-1] == 0); end--)
		;
	*end = 0;
	for (char *p = text; p < end; p++)
		if (*p == '\n')
			last = p + 1;
	size_t length = (size_t)(end - last) < bytes - 1 ? (size_t)(end - last) : bytes - 1;
	memcpy(line, last, length);
	line[length] = 0;
}

static bool reaped(pid_t pid)
{
	pid_t got;
	do
		got = waitpid(pid, NULL, WNOHANG);
	while (got < 0 && errno == EINTR);
	return got != 0; /* an error: it is not ours to wait for any more */
}

int spawn_failed(const struct spawned *spawned, const struct npumem_error *why, struct npumem_error *error)
{
	int status = why->status == NPUMEM_DEADLINE_EXCEEDED ? why->status : NPUMEM_UNAVAILABLE;
	char last[256];
	if (status == NPUMEM_DEADLINE_EXCEEDED)
		kill(spawned->pid, SIGKILL);
	/* Once it is gone it has said all it had to say. */
	spawn_reap(spawned->pid);
	spawn_last_words(spawned->log, 0, last, sizeof(last));
	if (spawned->log >= 0)
		close(spawned->log);
	return npumem_error_set(error, status, "the private daemon did not start: %s",
				last[0] ? last : why->message);
}

void spawn_bury(const struct spawned *spawned)
{
	spawn_reap(spawned->pid);
	if (spawned->log >= 0)
		close(spawned->log);
}

static void reap_within(pid_t pid, int term_ms, int kill_ms)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	for (int waited = 0; !reaped(pid); waited++) {
		if (waited == term_ms)
			kill(pid, SIGTERM);
		if (waited == kill_ms)
			kill(pid, SIGKILL);
		nanosleep(&pause, NULL);
	}
}

void spawn_reap(pid_t pid)
{
	reap_within(pid, SPAWN_PATIENCE_MS, 2 * SPAWN_PATIENCE_MS);
}

void spawn_kill(pid_t pid)
{
	reap_within(pid, 0, SPAWN_KILL_MS);
}
