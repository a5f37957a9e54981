/* The linker lets the server ask the first for a thread (--wrap=uv_thread_create_ex), which asks libuv while it
 * may. */
#include "tests/support/threads.h"

#include <limits.h>
#include <stdatomic.h>

#include <uv.h>

int __wrap_uv_thread_create_ex(uv_thread_t *thread, const uv_thread_options_t *options, uv_thread_cb entry,
			       void *arg);
int __real_uv_thread_create_ex(uv_thread_t *thread, const uv_thread_options_t *options, uv_thread_cb entry,
			       void *arg);

static atomic_int left = INT_MAX;

int __wrap_uv_thread_create_ex(uv_thread_t *thread, const uv_thread_options_t *options, uv_thread_cb entry,
			       void *arg)
{
	int status = atomic_load(&left) ? __real_uv_thread_create_ex(thread, options, entry, arg) : UV_EAGAIN;

	if (!status)
		atomic_fetch_sub(&left, 1);
	return status;
}

void threads_fail_after(int n)
{
	atomic_store(&left, n);
}

void threads_fail_never(void)
{
	threads_fail_after(INT_MAX);
}
