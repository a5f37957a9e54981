/* The daemon sends its start message through a pipe to the process that was started, which prints it. If the pipe
 * ends without a message, the daemon did not start; the reason is on stderr. */
#include "daemon/server/process/background.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_BYTES = 512 };

static int ready_fd = -1;

static _Noreturn void wait_for_it(int fd)
{
	char line[LINE_BYTES];
	size_t length = 0;
	ssize_t n;

	while (length < sizeof(line)) {
		n = read(fd, line + length, sizeof(line) - length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		length += (size_t)n;
	}
	if (length && (fwrite(line, 1, length, stdout) != length || fflush(stdout)))
		exit(1);
	exit(length ? 0 : 1);
}

int background_begin(void)
{
	int ends[2], status;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0) {
		status = -errno;
		close(ends[0]);
		close(ends[1]);
		return status;
	}
	if (pid) {
		close(ends[1]);
		wait_for_it(ends[0]);
	}
	close(ends[0]);
	ready_fd = ends[1];
	setsid();
	return 0;
}

/* A shell that substitutes a command waits for the end of its output, and so does ssh. */
static void let_go(int fd, int null)
{
	struct stat file;

	if (fd == STDERR_FILENO && !fstat(fd, &file) && S_ISREG(file.st_mode))
		return;
	dup2(null, fd);
}

void background_ready(const char *what, const char *path)
{
	int null;

	if (ready_fd < 0)
		return;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
		let_go(fd, null);
	if (null > STDERR_FILENO)
		close(null);
	dprintf(ready_fd, "npumemd: %s, process %ld; npumemctl --socket %s shutdown ends it\n", what,
		(long)getpid(), path);
	close(ready_fd);
	ready_fd = -1;
}
