/* Invariant: a closer_user is freed by the loop alone, when it has no connection and all its descriptors and
 * mappings are closed. Closes that sleep are in closer_threads.c. */
#include "daemon/server/loop/closer.h"

#include <inttypes.h>
#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utlist.h>

#include "daemon/server/process/log.h"
#include "daemon/service/order/stops.h"

enum {
	OWN_FDS = 64, /* the daemon's own */
	TICK_MS = 5,  /* how long a linger may take */
};

/* ---- users ---- */

static void init_user(struct closer *closer, struct closer_user *user, struct limits_user *limits)
{
	*user = (struct closer_user){.closer = closer, .limits = limits};
	for (int kind = 0; kind < CLOSER_KINDS; kind++)
		user->queues[kind] = (struct closer_queue){.user = user,
							   .limits = limits,
							   .kind = (enum closer_kind)kind,
							   .first_fd = -1,
							   .last_fd = -1};
}

struct closer_user *closer_take_user(struct closer *closer, uint32_t uid)
{
	struct limits_user *limits = limits_take(closer->limits, uid);
	struct closer_user *user = NULL;

	if (!limits)
		return &closer->nobody;
	DL_SEARCH_SCALAR(closer->users, user, limits, limits);
	if (user) {
		limits_drop(closer->limits, limits);
	} else {
		user = heap_alloc(closer->heap, sizeof(*user));
		if (!user) {
			limits_drop(closer->limits, limits);
			return &closer->nobody;
		}
		init_user(closer, user, limits);
		DL_PREPEND(closer->users, user);
	}
	user->n_refs++;
	return user;
}

static void charge(struct closer_user *user, enum limits_key key, uint64_t n)
{
	if (!user->limits)
		return;
	user->charged[key] += n;
	limits_charge(user->closer->limits, user->limits, key, n);
}

static void give_back(struct closer_user *user, enum limits_key key, uint64_t n)
{
	if (!user->limits)
		return;
	user->charged[key] -= n;
	limits_give_back(user->closer->limits, user->limits, key, n);
}

static void drop_limits(struct closer_user *user)
{
	for (int key = 0; key < LIMITS_N; key++)
		give_back(user, (enum limits_key)key, user->charged[key]);
	limits_drop(user->closer->limits, user->limits);
}

static void drop_refs(struct closer_user *user, unsigned n)
{
	struct closer *closer = user->closer;

	if (user == &closer->nobody)
		return;
	user->n_refs -= n;
	if (user->n_refs)
		return;
	DL_DELETE(closer->users, user);
	closer->n_paused -= user->is_paused;
	drop_limits(user);
	heap_free(closer->heap, user);
}

void closer_drop_user(struct closer_user *user)
{
	drop_refs(user, 1);
}

int closer_refuse(const struct closer_user *user, struct npumem_error *error)
{
	if (user->queues[CLOSER_RECEIVED].is_stuck)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"the close of a file descriptor that uid %" PRIu32
					" has passed does not return: until it does, this uid passes no others",
					user->limits->uid);
	return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
				"%" PRIu64 " file descriptors that uid %" PRIu32
				" has passed are being closed: until they are, this uid passes no others",
				user->charged[LIMITS_DESCRIPTORS], user->limits->uid);
}

/* ---- finished closes ---- */

static bool owes(const struct closer_user *user)
{
	struct stops_price price;

	if (!user->limits)
		return false;
	price = stops_price_of(user->closer->limits, user->limits, STOPS_MAPPINGS);
	return stops_owes(&price, uv_hrtime());
}

/* Pauses or resumes its unmaps: they wait while it pays for having stopped others. */
static void follow_debt(struct closer_user *user)
{
	struct closer *closer = user->closer;
	bool waits = owes(user);

	closer->n_paused += (unsigned)waits - user->is_paused;
	user->is_paused = waits;
	(waits ? closer_threads_pause : closer_threads_resume)(&closer->threads, &user->queues[CLOSER_MAPPINGS]);
}

static void note_returned(struct closer_queue *queue)
{
	if (!queue->is_stuck)
		return;
	queue->is_stuck = false;
	log_line(LOG_LEVEL_INFO, "uid %" PRIu32 ": the close of its file descriptor has returned",
		 queue->limits->uid);
}

static unsigned settle_maps(struct closer *closer, struct closer_mapping *mapped)
{
	struct closer_mapping *next;
	unsigned n = 0;

	for (; mapped; mapped = next, n++) {
		next = mapped->next;
		if (!--closer->n_maps)
			uv_unref((uv_handle_t *)&closer->closed);
		mapped->mapped(mapped->arg);
	}
	return n;
}

static unsigned settle_unmaps(struct closer_user *user, struct closer_mapping *unmapped)
{
	struct closer_mapping *next;
	unsigned n = 0;

	for (; unmapped; unmapped = next, n++) {
		next = unmapped->next;
		give_back(user, LIMITS_SEGMENTS, 1);
		give_back(user, LIMITS_SEGMENT_BYTES, unmapped->bytes);
		heap_free(user->closer->heap, unmapped);
	}
	return n;
}

static void settle_price(struct closer_user *user, uint64_t ns)
{
	struct stops_price price;

	if (!ns)
		return;
	if (user->limits) {
		price = stops_price_of(user->closer->limits, user->limits, STOPS_MAPPINGS);
		stops_pay(&price, uv_hrtime(), ns);
	}
	follow_debt(user);
}

/* Gives the charges back. */
static void settle(struct closer_queue *queue, const struct closer_done *done)
{
	struct closer_user *user = queue->user;
	struct closer *closer = user->closer;
	unsigned n = done->n_closed;

	if (queue->kind == CLOSER_RECEIVED && n)
		note_returned(queue);
	if (queue->kind == CLOSER_TURNED_AWAY)
		closer->n_turned_away -= n;
	closer->n_fds -= n;
	give_back(user, queue->kind == CLOSER_CONNECTIONS ? LIMITS_SESSIONS : LIMITS_DESCRIPTORS, n);
	settle_price(user, done->price_ns);
	n += queue->kind == CLOSER_MAPS ? settle_maps(closer, done->mappings)
					: settle_unmaps(user, done->mappings);
	closer->n_pending -= n;
	drop_refs(user, n);
}

static void settle_all(struct closer *closer)
{
	struct closer_queue *queue;
	struct closer_done done;

	while ((queue = closer_threads_take_done(&closer->threads, &done)))
		settle(queue, &done);
	if (!closer->n_pending)
		uv_timer_stop(&closer->tick);
}

static void on_closed(uv_async_t *async)
{
	settle_all(async->data);
}

static void on_tick(uv_timer_t *timer)
{
	struct closer *closer = timer->data;
	struct closer_user *user;

	closer_threads_tick(&closer->threads);
	/* What on_closed found locked. */
	settle_all(closer);
	if (!closer->n_paused)
		return;
	DL_FOREACH(closer->users, user)
	{
		if (user->is_paused)
			follow_debt(user);
	}
}

/* ---- hand-over ---- */

/* The timer runs only while something is being closed. */
static void begin_pending(struct closer_user *user)
{
	struct closer *closer = user->closer;

	user->n_refs += user != &closer->nobody;
	if (!closer->n_pending++)
		uv_timer_start(&closer->tick, on_tick, TICK_MS, TICK_MS);
}

static void add_fd(struct closer_user *user, enum closer_kind kind, int fd)
{
	begin_pending(user);
	closer_threads_add_fd(&user->closer->threads, &user->queues[kind], fd);
}

void closer_add_received(struct closer_user *user, int fd)
{
	charge(user, LIMITS_DESCRIPTORS, 1);
	add_fd(user, CLOSER_RECEIVED, fd);
}

void closer_add_connection(struct closer_user *user, int fd)
{
	charge(user, LIMITS_SESSIONS, 1);
	add_fd(user, CLOSER_CONNECTIONS, fd);
}

void closer_add_turned_away(struct closer_user *user, int fd)
{
	charge(user, LIMITS_DESCRIPTORS, 1);
	user->closer->n_turned_away++;
	add_fd(user, CLOSER_TURNED_AWAY, fd);
}

void closer_add_mapping(struct closer_user *user, struct closer_mapping *mapping)
{
	mapping->done_bytes = 0;
	charge(user, LIMITS_SEGMENTS, 1);
	charge(user, LIMITS_SEGMENT_BYTES, mapping->bytes);
	begin_pending(user);
	if (owes(user))
		follow_debt(user);
	closer_threads_add_mapping(&user->closer->threads, &user->queues[CLOSER_MAPPINGS], mapping);
}

void closer_map(struct closer_user *user, struct closer_mapping *mapping)
{
	begin_pending(user);
	if (!user->closer->n_maps++)
		uv_ref((uv_handle_t *)&user->closer->closed);
	closer_threads_add_mapping(&user->closer->threads, &user->queues[CLOSER_MAPS], mapping);
}

void closer_close_mapped(struct closer_user *user, int fd)
{
	close(fd);
	user->closer->n_fds--;
}

/* ---- beginning and end ---- */

static int open_handles(struct closer *closer, uv_loop_t *loop)
{
	int status = uv_async_init(loop, &closer->closed, on_closed);

	if (status)
		return status;
	uv_timer_init(loop, &closer->tick); /* which cannot fail */
	closer->closed.data = closer->tick.data = closer;
	uv_unref((uv_handle_t *)&closer->closed);
	uv_unref((uv_handle_t *)&closer->tick);
	closer->is_open = true;
	return 0;
}

static unsigned most_fds(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > INT_MAX ? 0 : (unsigned)limit.rlim_cur;
}

int closer_open(struct closer *closer, uv_loop_t *loop, const struct heap *heap, struct limits_table *limits)
{
	unsigned n_fds = most_fds();
	int status;

	*closer = (struct closer){.heap = heap, .limits = limits};
	init_user(closer, &closer->nobody, NULL);
	closer->n_fds_max = n_fds > OWN_FDS ? n_fds - OWN_FDS : 0;
	status = closer_threads_init(&closer->threads, heap, n_fds, &closer->closed);
	if (status)
		return status;
	status = open_handles(closer, loop);
	if (!status)
		return closer_threads_start(&closer->threads);
	closer_threads_deinit(&closer->threads, heap);
	return status;
}

static void free_mappings(struct closer *closer, struct closer_mapping *mapping)
{
	struct closer_mapping *next;

	for (; mapping; mapping = next) {
		next = mapping->next;
		heap_free(closer->heap, mapping);
	}
}

/* The descriptors and mappings that are left end with the process. */
static void free_user(struct closer_user *user)
{
	struct closer *closer = user->closer;

	for (int kind = 0; kind < CLOSER_KINDS; kind++) {
		free_mappings(closer, user->queues[kind].mappings);
		free_mappings(closer, user->queues[kind].done_mappings);
	}
	if (user != &closer->nobody)
		heap_free(closer->heap, user);
}

void closer_close(struct closer *closer)
{
	struct closer_user *user, *next;
	bool has_ended;

	if (!closer->is_open)
		return;
	closer->is_open = false;
	uv_close((uv_handle_t *)&closer->closed, NULL);
	uv_close((uv_handle_t *)&closer->tick, NULL);
	has_ended = closer_threads_end(&closer->threads);
	DL_FOREACH(closer->users, user)
	drop_limits(user);
	if (!has_ended)
		return;
	DL_FOREACH_SAFE(closer->users, user, next)
	free_user(user);
	free_user(&closer->nobody);
	closer_threads_deinit(&closer->threads, closer->heap);
}
