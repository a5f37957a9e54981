/* Preloaded into a daemon: counts what it asks the heap for, in the file that $BENCH_COUNT names, 8 bytes that
 * another process maps and reads while this one runs. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t align, size_t bytes);

static _Atomic uint64_t unmapped;
static _Atomic uint64_t *calls = &unmapped;

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("BENCH_COUNT");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	void *memory = mmap(NULL, sizeof(*calls), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (memory != MAP_FAILED)
		calls = memory;
}

__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
	atomic_fetch_add_explicit(calls, 1, memory_order_relaxed);
	return __libc_malloc(bytes);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t bytes)
{
	atomic_fetch_add_explicit(calls, 1, memory_order_relaxed);
	return __libc_calloc(n, bytes);
}

__attribute__((visibility("default"))) void *realloc(void *memory, size_t bytes)
{
	atomic_fetch_add_explicit(calls, 1, memory_order_relaxed);
	return __libc_realloc(memory, bytes);
}

__attribute__((visibility("default"))) void *aligned_alloc(size_t align, size_t bytes)
{
	atomic_fetch_add_explicit(calls, 1, memory_order_relaxed);
	return __libc_memalign(align, bytes);
}

__attribute__((visibility("default"))) int posix_memalign(void **memory, size_t align, size_t bytes)
{
	atomic_fetch_add_explicit(calls, 1, memory_order_relaxed);
	*memory = __libc_memalign(align, bytes);
	return *memory ? 0 : ENOMEM;
}
