/* A library to be loaded before the daemon's others (LD_PRELOAD): one call of a kind fails, or moves one byte
 * only.
 *
 * NPUMEM_INJECT="CALL FAULT I" or "CALL FAULT I on": the I-th CALL (from 1 on), or all from it on; FAULT is an
 * errno by name, or `short`. NPUMEM_INJECT_COUNT=FILE: how many calls of each kind there were goes there at the
 * end. Of memory only what the program itself asks for counts: libuv aborts without it in some places
 * (maybe_resize). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define CALLS(CALL)                                                                                               \
	CALL(accept4)                                                                                             \
	CALL(bind)                                                                                                \
	CALL(dup2)                                                                                                \
	CALL(epoll_create1)                                                                                       \
	CALL(epoll_ctl)                                                                                           \
	CALL(epoll_wait)                                                                                          \
	CALL(eventfd)                                                                                             \
	CALL(fallocate)                                                                                           \
	CALL(fdatasync)                                                                                           \
	CALL(flock)                                                                                               \
	CALL(fsync)                                                                                               \
	CALL(fstat)                                                                                               \
	CALL(ftruncate)                                                                                           \
	CALL(getrandom)                                                                                           \
	CALL(listen)                                                                                              \
	CALL(malloc)                                                                                              \
	CALL(mkdir)                                                                                               \
	CALL(mmap)                                                                                                \
	CALL(mremap)                                                                                              \
	CALL(open)                                                                                                \
	CALL(openat)                                                                                              \
	CALL(pipe2)                                                                                               \
	CALL(poll)                                                                                                \
	CALL(pread)                                                                                               \
	CALL(pthread_create)                                                                                      \
	CALL(pwrite)                                                                                              \
	CALL(read)                                                                                                \
	CALL(recvmsg)                                                                                             \
	CALL(send)                                                                                                \
	CALL(socket)                                                                                              \
	CALL(statx)                                                                                               \
	CALL(write)

enum call {
#define CALL(name) CALL_##name,
	CALLS(CALL)
#undef CALL
		N_CALLS,
};

static const char *const names[] = {
#define CALL(name) #name,
	CALLS(CALL)
#undef CALL
};

enum { SHORT = -1 };

static const struct {
	const char *name;
	int number;
} faults[] = {{"short", SHORT},
	      {"EAGAIN", EAGAIN},
	      {"EINTR", EINTR},
	      {"EMFILE", EMFILE},
	      {"ENFILE", ENFILE},
	      {"ENOSPC", ENOSPC},
	      {"ENOMEM", ENOMEM},
	      {"ECONNRESET", ECONNRESET},
	      {"EPIPE", EPIPE},
	      {"EIO", EIO},
	      {"ECONNABORTED", ECONNABORTED},
	      {"EPERM", EPERM},
	      {"ENOBUFS", ENOBUFS},
	      {"EINVAL", EINVAL},
	      {"EACCES", EACCES}};

static _Atomic unsigned counts[N_CALLS];
static enum call chosen = N_CALLS;
static int fault;
static unsigned at;
static bool goes_on;

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("NPUMEM_INJECT");
	char call[32], what[32], on[8] = "";

	if (!text || sscanf(text, "%31s %31s %u %7s", call, what, &at, on) < 3)
		return;
	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (strcmp(faults[i].name, what) == 0)
			fault = faults[i].number;
	for (unsigned i = 0; i < N_CALLS; i++)
		if (strcmp(names[i], call) == 0)
			chosen = (enum call)i;
	goes_on = on[0];
	if (!fault || chosen == N_CALLS)
		abort();
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("NPUMEM_INJECT_COUNT");
	FILE *file = path ? fopen(path, "w") : NULL;

	for (unsigned i = 0; file && i < N_CALLS; i++)
		fprintf(file, "%s %u\n", names[i], atomic_load(&counts[i]));
	if (file)
		fclose(file);
}

void *__libc_malloc(size_t bytes);

/* Whether it is the program that asks, not a library. */
static bool is_own(const void *caller)
{
	static __thread bool is_asking;
	Dl_info info;

	if (is_asking)
		return false;
	is_asking = true;
	bool own = dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "npumemd");
	is_asking = false;
	return own;
}

/* What libuv may do as well as the program; at its other calls it aborts where they fail. */
static bool is_of_any(enum call call)
{
	return call == CALL_epoll_create1 || call == CALL_epoll_wait || call == CALL_eventfd ||
	       call == CALL_pipe2 || call == CALL_pthread_create;
}

/* 0, SHORT, or the errno that is set. */
static int strike(enum call call, const void *caller)
{
	unsigned n;

	if (!is_of_any(call) && !is_own(caller))
		return 0;
	n = atomic_fetch_add(&counts[call], 1) + 1;
	if (call != chosen || (goes_on ? n < at : n != at))
		return 0;
	if (fault != SHORT)
		errno = fault;
	return fault;
}

#define REAL(name)                                                                                                \
	static __typeof__(&name) real;                                                                            \
	if (!real)                                                                                                \
	real = (__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name)

/* Calls that only fail. */
#define FAILS(result, failed, name, parameters, arguments)                                                        \
	result name parameters                                                                                    \
	{                                                                                                         \
		REAL(name);                                                                                       \
		return strike(CALL_##name, __builtin_return_address(0)) ? failed : real arguments;                \
	}

FAILS(int, -1, accept4, (int fd, struct sockaddr *address, socklen_t *length, int flags),
      (fd, address, length, flags))
FAILS(int, -1, bind, (int fd, const struct sockaddr *address, socklen_t length), (fd, address, length))
FAILS(int, -1, dup2, (int from, int to), (from, to))
FAILS(int, -1, epoll_create1, (int flags), (flags))
FAILS(int, -1, epoll_ctl, (int epoll, int operation, int fd, struct epoll_event *event),
      (epoll, operation, fd, event))
FAILS(int, -1, epoll_wait, (int epoll, struct epoll_event *events, int n, int timeout),
      (epoll, events, n, timeout))
FAILS(int, -1, eventfd, (unsigned value, int flags), (value, flags))
FAILS(int, -1, fallocate, (int fd, int mode, off_t offset, off_t bytes), (fd, mode, offset, bytes))
FAILS(int, -1, fdatasync, (int fd), (fd))
FAILS(int, -1, flock, (int fd, int operation), (fd, operation))
FAILS(int, -1, fsync, (int fd), (fd))
FAILS(int, -1, fstat, (int fd, struct stat *to), (fd, to))
FAILS(int, -1, ftruncate, (int fd, off_t bytes), (fd, bytes))
FAILS(ssize_t, -1, getrandom, (void *to, size_t bytes, unsigned flags), (to, bytes, flags))
FAILS(int, -1, listen, (int fd, int n), (fd, n))
FAILS(int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
FAILS(void *, MAP_FAILED, mmap, (void *near, size_t bytes, int protection, int flags, int fd, off_t offset),
      (near, bytes, protection, flags, fd, offset))
FAILS(int, -1, pipe2, (int fds[2], int flags), (fds, flags))
FAILS(int, -1, poll, (struct pollfd * fds, nfds_t n, int timeout), (fds, n, timeout))
FAILS(int, errno, pthread_create,
      (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg),
      (thread, attributes, run, arg))
FAILS(int, -1, statx, (int fd, const char *path, int flags, unsigned mask, struct statx *to),
      (fd, path, flags, mask, to))
FAILS(int, -1, socket, (int domain, int type, int protocol), (domain, type, protocol))

/* Calls that may move less. */
#define MOVES(name, parameters, arguments, bytes)                                                                 \
	ssize_t name parameters                                                                                   \
	{                                                                                                         \
		int struck = strike(CALL_##name, __builtin_return_address(0));                                    \
		REAL(name);                                                                                       \
		if (struck == SHORT && bytes > 1)                                                                 \
			bytes = 1;                                                                                \
		return struck && struck != SHORT ? -1 : real arguments;                                           \
	}

MOVES(pread, (int fd, void *to, size_t bytes, off_t offset), (fd, to, bytes, offset), bytes)
MOVES(pwrite, (int fd, const void *from, size_t bytes, off_t offset), (fd, from, bytes, offset), bytes)
MOVES(read, (int fd, void *to, size_t bytes), (fd, to, bytes), bytes)
MOVES(send, (int fd, const void *from, size_t bytes, int flags), (fd, from, bytes, flags), bytes)
MOVES(write, (int fd, const void *from, size_t bytes), (fd, from, bytes), bytes)

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	int struck = strike(CALL_recvmsg, __builtin_return_address(0));
	struct iovec one = message->msg_iov[0], *all = message->msg_iov;
	ssize_t n;
	REAL(recvmsg);

	if (struck && struck != SHORT)
		return -1;
	if (struck == SHORT) {
		one.iov_len = 1;
		message->msg_iov = &one;
	}
	n = real(fd, message, flags);
	message->msg_iov = all;
	return n;
}

int open(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode = 0;
	REAL(open);

	va_start(arguments, flags);
	if (flags & (O_CREAT | __O_TMPFILE))
		mode = va_arg(arguments, mode_t);
	va_end(arguments);
	return strike(CALL_open, __builtin_return_address(0)) ? -1 : real(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode = 0;
	REAL(openat);

	va_start(arguments, flags);
	if (flags & (O_CREAT | __O_TMPFILE))
		mode = va_arg(arguments, mode_t);
	va_end(arguments);
	return strike(CALL_openat, __builtin_return_address(0)) ? -1 : real(folder, path, flags, mode);
}

/* Only ever without an address to move to. */
void *mremap(void *old, size_t bytes, size_t to, int flags, ...)
{
	REAL(mremap);

	return strike(CALL_mremap, __builtin_return_address(0)) ? MAP_FAILED : real(old, bytes, to, flags);
}

/* ---- memory ---- */

void *malloc(size_t bytes)
{
	return strike(CALL_malloc, __builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}
