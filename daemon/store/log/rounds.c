/* Writes the buffers out (log.h), and owns the log behind the journal's notes. Invariants: the log is a sequence
 * of whole units; the mappings of the files (`home`) and `notes` have no change of a round that is not synced. */
#include "daemon/store/log/log.h"

#include <sys/mman.h>
#include <time.h>

#include "daemon/store/files/calls.h"

enum { NS_PER_S = 1000000000 };

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static int sync_files(struct store *store)
{
	int status = 0;

	for (enum format_file file = FORMAT_MEMORY; !status && file < FORMAT_FILES; file++) {
		if (store->log.is_dirty[file])
			status = calls_sync_data(store->hooks, store->fds[file]);
		store->log.is_dirty[file] = store->log.is_dirty[file] && status;
	}
	if (status || !store->log.is_dirty[FORMAT_JOURNAL])
		return status;
	mapping_copy(store->hooks, store->maps[FORMAT_JOURNAL].at + FORMAT_PAGE_BYTES, store->log.notes,
		     store->log.notes_end);
	status = calls_sync_data(store->hooks, store->fds[FORMAT_JOURNAL]);
	store->log.is_dirty[FORMAT_JOURNAL] = status;
	return status;
}

int log_empty(struct store *store)
{
	static const struct format_log none;
	int status = sync_files(store);

	if (!status)
		status = calls_write(store->hooks, store->fds[FORMAT_JOURNAL], &none, sizeof(none),
				     FORMAT_RECORDS_OFF);
	return status ? status : calls_sync(store->hooks, store->fds[FORMAT_JOURNAL]);
}

/* No page counts as changed, though some changes are not in their places yet: their pages may count twice. */
static void begin_pages_anew(struct store *store)
{
	struct log *log = &store->log;

	pthread_mutex_lock(&log->lock);
	memset(log->changed, 0, log_changed_words(store) * sizeof(*log->changed));
	pthread_mutex_unlock(&log->lock);
	log->apart = 0;
}

/* Room behind the last piece; or at the beginning, after the files were synced and the log was emptied. Without
 * that the disk could take the end of the new piece first, and the first old round would stand without the
 * next. */
static int find_room(struct store *store, uint64_t bytes)
{
	struct log *log = &store->log;

	if (log->tail + bytes <= log->bytes && log->apart <= LOG_APART)
		return 0;
	int status = log_empty(store);
	if (status)
		return status;
	log->tail = 0;
	begin_pages_anew(store);
	return log_reserve(store, bytes);
}

static int write_piece(struct store *store, struct format_log *head, uint64_t bytes)
{
	struct log *log = &store->log;
	int status = find_room(store, bytes);

	if (status)
		return status;
	*head = (struct format_log){.magic = FORMAT_LOG_MAGIC, .seq = log->seq, .bytes = bytes};
	head->sum = log_sum(head);
	status =
		calls_write(store->hooks, store->fds[FORMAT_JOURNAL], head, bytes, FORMAT_RECORDS_OFF + log->tail);
	if (!status)
		status = calls_sync_data(store->hooks, store->fds[FORMAT_JOURNAL]);
	log->seq++;
	log->tail += bytes;
	return status;
}

/* The change's place in the file's mapping, which grows only now if the table has grown. */
static uint8_t *home_of(struct store *store, const struct format_change *change, int *status)
{
	struct mapping *home = &store->home[change->file];
	uint64_t end = change->off + change->bytes, notes = end - FORMAT_PAGE_BYTES;

	if (change->file == FORMAT_JOURNAL) {
		*status = 0;
		store->log.notes_end = notes > store->log.notes_end ? notes : store->log.notes_end;
		return store->log.notes + notes - change->bytes;
	}
	*status = end <= home->bytes
			  ? 0
			  : mapping_grow(home, (end + FORMAT_PAGE_BYTES - 1) & ~(uint64_t)(FORMAT_PAGE_BYTES - 1));
	return home->at + change->off;
}

static int write_home(struct store *store, const struct format_log *head)
{
	const uint8_t *piece = (const uint8_t *)head;
	int status = 0;

	for (uint64_t at = sizeof(*head); !status && at < head->bytes;) {
		const struct format_change *change = (const struct format_change *)(const void *)(piece + at);
		uint8_t *to = home_of(store, change, &status);
		if (!status)
			mapping_copy(store->hooks, to, change->data, change->bytes);
		store->log.is_dirty[change->file] = true;
		at += log_change_bytes(change->bytes);
	}
	return status;
}

/* The disk begins to take changes in their places, so that the sync when the log begins anew is short. */
static void write_ahead(struct store *store, const struct log_buffer *buffer)
{
	struct log *log = &store->log;

	log->apart += buffer->apart;
	log->home_bytes += buffer->used + buffer->apart;
	if (log->home_bytes < LOG_AHEAD)
		return;
	log->home_bytes = 0;
	calls_start_writing(store->hooks, store->fds[FORMAT_MEMORY]);
}

/* Empties the buffer for new changes. */
static void empty_buffer(struct log_buffer *buffer)
{
	if (buffer->used > LOG_KEEPS_PAGES)
		(void)madvise(buffer->at + LOG_KEEPS_PAGES, LOG_BUFFER - LOG_KEEPS_PAGES, MADV_DONTNEED);
	buffer->used = sizeof(struct format_log);
	buffer->piece = buffer->apart = 0;
}

static struct log_buffer *take_buffer(struct log *log, uint64_t *end)
{
	struct log_buffer *buffer = &log->buffers[log->filling];

	*end = log->appended;
	if (buffer->used == sizeof(struct format_log))
		return NULL;
	log->filling ^= 1;
	log->round++;
	log->n_answered = log->n_waiting;
	log->n_waiting = 0;
	shares_next(&log->buffers[log->filling].shares);
	pthread_cond_broadcast(&log->has_room);
	return buffer;
}

static int fail(struct store *store, int status)
{
	pthread_mutex_lock(&store->log.lock);
	store->failed = store->failed ? store->failed : status;
	pthread_cond_broadcast(&store->log.has_room);
	pthread_mutex_unlock(&store->log.lock);
	return store->failed;
}

/* Each piece is stored in its place before the next one is written, which may make the log begin anew. */
static int write_pieces(struct store *store, const struct log_buffer *buffer, struct format_log **last)
{
	int status = 0;

	for (uint64_t at = 0; !status && at < buffer->used;) {
		struct format_log *head = (struct format_log *)(void *)(buffer->at + at);
		uint64_t bytes = at < buffer->piece ? head->bytes : buffer->used - at;
		status = at ? write_home(store, *last) : 0;
		if (!status)
			status = write_piece(store, head, bytes);
		*last = head;
		at += bytes;
	}
	return status;
}

int store_write_out(struct store *store, void (*synced)(void *ctx), void *ctx)
{
	struct log *log = &store->log;
	uint64_t end;

	pthread_mutex_lock(&log->lock);
	struct log_buffer *buffer = store->failed ? NULL : take_buffer(log, &end);
	bool was_short = buffer && log->is_short;
	log->is_short &= !buffer;
	pthread_mutex_unlock(&log->lock);
	if (!buffer)
		return store->failed;
	/* Threads that wait for a share find an empty buffer now, and may find a full one when the round is over.
	 */
	if (was_short && synced)
		synced(ctx);
	uint64_t began_ns = now_ns();
	struct format_log *last = NULL;
	int status = write_pieces(store, buffer, &last);
	log->sync_ns = now_ns() - began_ns;
	if (!status) {
		atomic_store_explicit(&log->synced, end, memory_order_release);
		if (synced)
			synced(ctx);
		status = write_home(store, last);
		write_ahead(store, buffer);
	}
	empty_buffer(buffer);
	return status ? fail(store, status) : 0;
}

int store_failed(const struct store *store)
{
	return store->failed;
}

/* ---- a thread for rounds ---- */

void store_attach(struct store *store)
{
	store->log.owner = pthread_self();
	store->log.is_stopping = false;
	store->log.is_attached = true;
}

static bool is_wanted(const struct store *store)
{
	return store->log.wanted > store->log.synced;
}

static bool is_due(const struct store *store)
{
	const struct log *log = &store->log;

	return log->buffers[log->filling].used >= LOG_ROUND || log->is_stopping || store->failed;
}

/* Waits for the clients that the last round has answered, besides those that wait already. After a short round it
 * does not: a thread takes some 50 us to wake. */
static void gather(struct store *store)
{
	enum { SHORT_NS = 500000 };
	struct log *log = &store->log;
	uint64_t until_ns = now_ns() + log->sync_ns / 4;
	struct timespec until = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};

	if (log->sync_ns < SHORT_NS)
		return;
	while (log->n_waiting < log->n_expected && !is_due(store))
		if (pthread_cond_timedwait(&log->has_some, &log->lock, &until))
			break;
}

bool store_wait(struct store *store)
{
	struct log *log = &store->log;

	pthread_mutex_lock(&log->lock);
	log->n_expected = log->n_answered + log->n_waiting;
	while (!is_wanted(store) && !is_due(store))
		pthread_cond_wait(&log->has_some, &log->lock);
	gather(store);
	bool is_over = log->is_stopping || store->failed;
	pthread_mutex_unlock(&log->lock);
	return !is_over;
}

void store_want(struct store *store, const void *user, uint64_t *round)
{
	struct log *log = &store->log;

	pthread_mutex_lock(&log->lock);
	bool was_wanted = is_wanted(store);
	/* The user waits for the whole round, even if it changes nothing itself. */
	shares_add(&log->buffers[log->filling].shares, user, 0);
	log->wanted = log->appended;
	log->n_waiting += *round != log->round;
	*round = log->round;
	bool has_all = log->n_waiting >= log->n_expected;
	pthread_mutex_unlock(&log->lock);
	/* The woken thread takes the lock first: it must not find it held. */
	if (!was_wanted || has_all)
		pthread_cond_signal(&log->has_some);
}

void store_stop_waiting(struct store *store)
{
	struct log *log = &store->log;

	pthread_mutex_lock(&log->lock);
	log->is_stopping = true;
	pthread_cond_broadcast(&log->has_some);
	pthread_mutex_unlock(&log->lock);
}

void store_detach(struct store *store)
{
	store->log.is_attached = false;
}

int store_flush(struct store *store)
{
	int status = store->failed;

	while (!status && log_is_on(&store->log) && store_synced(store) < store_position(store))
		status = store_write_out(store, NULL, NULL);
	return status;
}
