/* Owns the list of processes to end with the bench, however it ends. */
#include "tests/bench/support/peer.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PEERS_MAX = 32, START_SECONDS = 20, ANSWER_SECONDS = 30 };

static pid_t started[PEERS_MAX];

void peer_die(const char *what)
{
	fprintf(stderr, "%s: %s%s%s\n", program_invocation_short_name, what, errno ? ": " : "",
		errno ? strerror(errno) : "");
	exit(1);
}

uint64_t peer_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void end_all(void)
{
	for (unsigned i = 0; i < PEERS_MAX; i++)
		if (started[i] > 0)
			kill(started[i], SIGKILL);
}

static void remember(struct peer *peer, pid_t pid)
{
	static bool at_exit;
	unsigned i = 0;
	while (i < PEERS_MAX - 1 && started[i])
		i++;
	started[i] = pid;
	if (!at_exit)
		atexit(end_all);
	at_exit = true;
	peer->pid = pid;
	if (clock_getcpuclockid(pid, &peer->clock))
		peer_die("no processor clock of a peer");
}

static pid_t child(void)
{
	pid_t parent = getpid(), pid = fork();
	if (pid < 0)
		peer_die("no process");
	if (!pid) {
		memset(started, 0, sizeof(started)); /* its exit ends no other */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

static int try_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = ANSWER_SECONDS};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (fd < 0 || !connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	close(fd);
	return -1;
}

void peer_start(struct peer *peer, const char *const *arguments, const char *path, const char *preload,
		const char *count)
{
	*peer = (struct peer){0};
	if (access(arguments[0], X_OK))
		return;
	snprintf(peer->path, sizeof(peer->path), "%s", path);
	pid_t pid = child();
	if (!pid) {
		if (preload)
			setenv("LD_PRELOAD", preload, 1);
		if (count)
			setenv("BENCH_COUNT", count, 1);
		execv(arguments[0], (char *const *)(uintptr_t)arguments);
		_exit(127);
	}
	remember(peer, pid);
	for (uint64_t end = peer_now_ns() + START_SECONDS * UINT64_C(1000000000);;) {
		int fd = try_connect(path);
		if (fd >= 0) {
			close(fd);
			return;
		}
		if (waitpid(pid, NULL, WNOHANG) || peer_now_ns() > end)
			peer_die(arguments[0]);
		usleep(1000);
	}
}

int peer_fork(struct peer *peer, void (*function)(int, void *), void *context)
{
	int fds[2];
	*peer = (struct peer){0};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		peer_die("no pair of sockets");
	pid_t pid = child();
	if (!pid) {
		close(fds[0]);
		function(fds[1], context);
		_exit(0);
	}
	close(fds[1]);
	remember(peer, pid);
	return fds[0];
}

void peer_end(struct peer *peer)
{
	if (!peer->pid)
		return;
	kill(peer->pid, SIGKILL);
	waitpid(peer->pid, NULL, 0);
	for (unsigned i = 0; i < PEERS_MAX; i++)
		if (started[i] == peer->pid)
			started[i] = 0;
	if (peer->path[0])
		unlink(peer->path);
	*peer = (struct peer){0};
}

int peer_connect(const struct peer *peer)
{
	int fd = try_connect(peer->path);
	if (fd < 0)
		peer_die(peer->path);
	return fd;
}

void peer_pin(const struct peer *peer, enum peer_pin pin)
{
	cpu_set_t own, other;
	CPU_ZERO(&own);
	CPU_ZERO(&other);
	for (int cpu = 0, n = (int)sysconf(_SC_NPROCESSORS_ONLN); cpu < n; cpu++) {
		if (pin == PEER_FREE || cpu == 0)
			CPU_SET(cpu, &own);
		if (pin == PEER_FREE || cpu == (pin == PEER_SPLIT && n > 1))
			CPU_SET(cpu, &other);
	}
	sched_setaffinity(0, sizeof(own), &own);
	if (!peer)
		return;
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)peer->pid);
	DIR *tasks = opendir(path);
	for (struct dirent *task; tasks && (task = readdir(tasks));)
		if (atoi(task->d_name))
			sched_setaffinity(atoi(task->d_name), sizeof(other), &other);
	if (tasks)
		closedir(tasks);
}

uint64_t peer_cpu_ns(const struct peer *peer)
{
	struct timespec t;
	if (clock_gettime(peer->clock, &t))
		peer_die("a peer has ended");
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
