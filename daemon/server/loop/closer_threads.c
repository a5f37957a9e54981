/* Queues are linked lists by descriptor, so that nothing has to be allocated for a close.
 * Invariant: a queue is in `ready` exactly while it has something and no thread closes out of it; so a user keeps
 * at most one thread for each kind. The lock is not held while something is closed. */
#include "daemon/server/loop/closer_threads.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include "daemon/server/process/holes.h"
#include "daemon/server/process/log.h"
#include "daemon/server/process/mappings.h"

enum {
	STACK_BYTES = 256 << 10, /* of a thread: sanitizers want more than the least */
	SLOW_MS = 20,		 /* for which all threads are busy before another one is made */
	LOST_MS = 1000,		 /* without processor time: the close does not return */
	END_MS = 200,		 /* that threads have to end */
	END_TICK_MS = 5,	 /* how long a linger may take then */
	PIECE_BYTES = 256 << 10, /* unmapped at once: the loop's mmap may wait as long */
	NS_PER_MS = 1000000,
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec time;

	if (clock_gettime(clock, &time))
		return 0;
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* ---- on the threads ---- */

/* Without SA_RESTART, so that the sleep in a close ends. */
static int waking_signal(void)
{
	return SIGRTMIN + 1;
}

static void on_signal(int number)
{
	(void)number;
}

/* False: the kernel did not take all of them. */
static bool send_fds(int socket, const int *fds, unsigned n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(CLOSER_MESSAGE_FDS * sizeof(int))];
	} control = {.bytes = {0}};
	char byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = CMSG_SPACE(n * sizeof(int))};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(header), fds, n * sizeof(int));
	return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

/* One signal ends all lingers of one system call. So many descriptors are put into the queue of one socket, and
 * that is closed. */
static void close_fds(const int *fds, unsigned n)
{
	int ends[2];
	bool is_together = n > 1 && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);

	if (is_together)
		send_fds(ends[0], fds, n);
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
	if (is_together) {
		close(ends[0]);
		close(ends[1]);
	}
}

static uint64_t map(struct closer_mapping *mapping)
{
	mapping->base = mappings_add(mapping->fd, mapping->bytes, mapping->writable, &mapping->price);
	mapping->status = mapping->base ? holes_forbid(mapping->base, mapping->bytes) : -errno;
	if (mapping->status && mapping->base)
		mappings_remove(mapping->base, mapping->bytes);
	mapping->done_bytes = mapping->bytes;
	return 0; /* what it costs is paid */
}

/* Unmaps it, or a part of it that stopped others. Returns the price. */
static uint64_t unmap(struct closer_mapping *mapping)
{
	uint64_t price_ns = 0;

	while (mapping->done_bytes < mapping->bytes && !price_ns) {
		uint64_t left = mapping->bytes - mapping->done_bytes, n = left < PIECE_BYTES ? left : PIECE_BYTES;

		price_ns = mappings_remove(mapping->base + mapping->done_bytes, n);
		mapping->done_bytes += n;
	}
	return price_ns;
}

/* The lock is not held in a system call: at its end the kernel may give the processor to another thread, or to the
 * loop, which would wait for the lock. */
static void unlock(struct closer_threads *threads)
{
	unsigned n = threads->n_unposted;

	threads->n_unposted = 0;
	uv_mutex_unlock(&threads->lock);
	while (n--)
		uv_sem_post(&threads->work);
}

/* A thread takes from the queue, if there is something in it. The lock is held. */
static void add_ready(struct closer_threads *threads, struct closer_queue *queue)
{
	if (queue->is_ready || queue->is_running || queue->is_paused || (queue->first_fd < 0 && !queue->mappings))
		return;
	queue->is_ready = true;
	queue->next_ready = NULL;
	*threads->ready_end = queue;
	threads->ready_end = &queue->next_ready;
	threads->n_unposted++;
}

static struct closer_queue *take_ready(struct closer_threads *threads)
{
	struct closer_queue *queue = threads->ready;

	threads->ready = queue->next_ready;
	if (!threads->ready)
		threads->ready_end = &threads->ready;
	queue->is_ready = false;
	return queue;
}

static unsigned take_fds(struct closer_threads *threads, struct closer_queue *queue, int fds[CLOSER_MESSAGE_FDS])
{
	unsigned n = 0;

	while (n < CLOSER_MESSAGE_FDS && queue->first_fd >= 0) {
		fds[n++] = queue->first_fd;
		queue->first_fd = threads->next_fd[queue->first_fd];
	}
	return n;
}

/* Closes some of the queue that is next. */
static void close_some(struct closer_thread *thread)
{
	struct closer_threads *threads = thread->threads;
	uint64_t since_ns = now_ns(CLOCK_MONOTONIC), since_cpu_ns = now_ns(thread->clock), price_ns = 0;
	int fds[CLOSER_MESSAGE_FDS];
	struct closer_mapping *mapping;
	struct closer_queue *queue;
	bool is_newly_done;
	unsigned n;

	uv_mutex_lock(&threads->lock);
	if (!threads->ready || threads->is_closing) {
		uv_mutex_unlock(&threads->lock);
		return;
	}
	queue = take_ready(threads);
	n = take_fds(threads, queue, fds);
	mapping = n ? NULL : queue->mappings;
	if (mapping)
		queue->mappings = mapping->next;
	queue->is_running = true;
	thread->queue = queue;
	thread->since_ns = since_ns;
	thread->since_cpu_ns = since_cpu_ns;
	unlock(threads);
	close_fds(fds, n);
	if (mapping)
		price_ns = queue->kind == CLOSER_MAPS ? map(mapping) : unmap(mapping);
	uv_mutex_lock(&threads->lock);
	thread->queue = NULL;
	queue->is_running = false;
	queue->n_closed += n;
	queue->price_ns += price_ns;
	queue->is_paused |= price_ns > 0;
	if (mapping && mapping->done_bytes < mapping->bytes)
		LL_PREPEND(queue->mappings, mapping);
	else if (mapping)
		LL_PREPEND(queue->done_mappings, mapping);
	if (!threads->is_closing)
		add_ready(threads, queue);
	is_newly_done = !threads->is_closing && !queue->is_done;
	if (is_newly_done) {
		queue->is_done = true;
		LL_PREPEND2(threads->done, queue, next_done);
	}
	unlock(threads);
	if (is_newly_done)
		uv_async_send(threads->closed);
}

static void run_thread(void *arg)
{
	struct closer_thread *thread = arg;
	struct closer_threads *threads = thread->threads;

	pthread_getcpuclockid(pthread_self(), &thread->clock);
	while (!atomic_load(&threads->is_closing)) {
		uv_sem_wait(&threads->work);
		close_some(thread);
	}
	uv_mutex_lock(&threads->lock);
	thread->has_ended = true;
	uv_mutex_unlock(&threads->lock);
	uv_cond_signal(&threads->ended);
}

/* ---- on the loop's thread ---- */

int closer_threads_init(struct closer_threads *threads, const struct heap *heap, unsigned n_fds,
			uv_async_t *closed)
{
	int status = uv_mutex_init(&threads->lock);

	if (!status)
		status = uv_sem_init(&threads->work, 0);
	if (!status)
		status = uv_cond_init(&threads->ended);
	if (status)
		return status;
	threads->closed = closed;
	threads->ready_end = &threads->ready;
	threads->next_fd = heap_alloc(heap, n_fds * sizeof(*threads->next_fd));
	return threads->next_fd ? 0 : -ENOMEM;
}

void closer_threads_deinit(struct closer_threads *threads, const struct heap *heap)
{
	heap_free(heap, threads->next_fd);
	uv_cond_destroy(&threads->ended);
	uv_sem_destroy(&threads->work);
	uv_mutex_destroy(&threads->lock);
}

int closer_threads_start(struct closer_threads *threads)
{
	struct sigaction action = {.sa_handler = on_signal};
	const uv_thread_options_t options = {.flags = UV_THREAD_HAS_STACK_SIZE, .stack_size = STACK_BYTES};
	struct closer_thread *thread = &threads->all[threads->n];
	int status;

	sigemptyset(&action.sa_mask);
	sigaction(waking_signal(), &action, NULL);
	thread->threads = threads;
	status = uv_thread_create_ex(&thread->id, &options, run_thread, thread);
	if (!status)
		threads->n++;
	return status;
}

void closer_threads_add_fd(struct closer_threads *threads, struct closer_queue *queue, int fd)
{
	uv_mutex_lock(&threads->lock);
	threads->next_fd[fd] = -1;
	if (queue->first_fd < 0)
		queue->first_fd = fd;
	else
		threads->next_fd[queue->last_fd] = fd;
	queue->last_fd = fd;
	add_ready(threads, queue);
	unlock(threads);
}

void closer_threads_add_mapping(struct closer_threads *threads, struct closer_queue *queue,
				struct closer_mapping *mapping)
{
	uv_mutex_lock(&threads->lock);
	LL_APPEND(queue->mappings, mapping);
	add_ready(threads, queue);
	unlock(threads);
}

void closer_threads_pause(struct closer_threads *threads, struct closer_queue *queue)
{
	uv_mutex_lock(&threads->lock);
	queue->is_paused = true;
	uv_mutex_unlock(&threads->lock);
}

void closer_threads_resume(struct closer_threads *threads, struct closer_queue *queue)
{
	uv_mutex_lock(&threads->lock);
	queue->is_paused = false;
	add_ready(threads, queue);
	unlock(threads);
}

struct closer_queue *closer_threads_take_done(struct closer_threads *threads, struct closer_done *done)
{
	struct closer_queue *queue;

	if (uv_mutex_trylock(&threads->lock))
		return NULL;
	queue = threads->done;
	if (queue) {
		threads->done = queue->next_done;
		queue->is_done = false;
		*done = (struct closer_done){queue->n_closed, queue->done_mappings, queue->price_ns};
		queue->n_closed = 0;
		queue->done_mappings = NULL;
		queue->price_ns = 0;
	}
	uv_mutex_unlock(&threads->lock);
	return queue;
}

/* Processor time of the close is no sleep. */
static bool is_lost(const struct closer_thread *thread, uint64_t passed_ns)
{
	uint64_t ran_ns = now_ns(thread->clock) - thread->since_cpu_ns;

	return thread->queue->kind == CLOSER_RECEIVED && passed_ns > ran_ns &&
	       passed_ns - ran_ns > (uint64_t)LOST_MS * NS_PER_MS;
}

static void note_lost(struct closer_queue *queue)
{
	if (queue->is_stuck || !queue->limits)
		return;
	queue->is_stuck = true;
	log_line(LOG_LEVEL_WARNING,
		 "uid %" PRIu32 ": the close of a file descriptor that it has passed does not return; it keeps a "
		 "thread, and the uid passes no others",
		 queue->limits->uid);
}

/* Returns whether its close takes long. The signal ends lingers; a thread that has just left the close ignores it.
 */
static bool wake_thread(const struct closer_thread *thread, uint64_t now)
{
	uint64_t passed_ns = thread->queue && now > thread->since_ns ? now - thread->since_ns : 0;

	if (!thread->queue)
		return false;
	pthread_kill(thread->id, waking_signal());
	if (is_lost(thread, passed_ns))
		note_lost(thread->queue);
	return passed_ns > (uint64_t)SLOW_MS * NS_PER_MS;
}

void closer_threads_tick(struct closer_threads *threads)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	unsigned n_slow = 0;

	uv_mutex_lock(&threads->lock);
	for (unsigned i = 0; i < threads->n; i++)
		n_slow += wake_thread(&threads->all[i], now);
	/* If no other thread can be made, the existing ones go on. */
	if (threads->ready && n_slow == threads->n && n_slow < CLOSER_THREADS_MAX)
		closer_threads_start(threads);
	uv_mutex_unlock(&threads->lock);
}

/* The lock is held. */
static bool wait_for_all(struct closer_threads *threads)
{
	uint64_t end = uv_hrtime() + (uint64_t)END_MS * NS_PER_MS;

	for (unsigned i = 0; i < threads->n; i++) {
		while (!threads->all[i].has_ended) {
			if (uv_hrtime() >= end)
				return false;
			wake_thread(&threads->all[i], 0);
			uv_cond_timedwait(&threads->ended, &threads->lock, (uint64_t)END_TICK_MS * NS_PER_MS);
		}
	}
	return true;
}

bool closer_threads_end(struct closer_threads *threads)
{
	bool have_ended;

	uv_mutex_lock(&threads->lock);
	threads->is_closing = true;
	for (unsigned i = 0; i < threads->n; i++)
		uv_sem_post(&threads->work);
	have_ended = wait_for_all(threads);
	uv_mutex_unlock(&threads->lock);
	for (unsigned i = 0; have_ended && i < threads->n; i++)
		uv_thread_join(&threads->all[i].id);
	return have_ended;
}
