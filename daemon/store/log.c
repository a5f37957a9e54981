/* Owns the buffers and the log behind the journal's notes. Invariants: what is in the buffers and in the log is a
 * sequence of whole units; the files' own mappings (`home`), and `notes`, have no change whose round has not been
 * synced. */
#include "daemon/store/log.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>
#include <time.h>
#include <zlib.h>

#include "daemon/store/calls.h"

enum { NS_PER_S = 1000000000 };

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t record_bytes(uint64_t bytes)
{
	return sizeof(struct format_change) + ((bytes + 7) & ~UINT64_C(7));
}

/* ---- changes, on any thread ---- */

/* The loop's thread does not wait for the disk. */
static bool may_wait(const struct log *log)
{
	return log->is_attached && !pthread_equal(pthread_self(), log->owner);
}

static void write_out_here(struct store *store)
{
	pthread_mutex_unlock(&store->log.lock);
	(void)store_write_out(store, NULL, NULL);
	pthread_mutex_lock(&store->log.lock);
}

/* The buffers are as large as no unit is (store_prepare), so that room comes. */
static void make_room(struct store *store, uint64_t bytes)
{
	struct log *log = &store->log;
	uint64_t most = log->is_attached ? LOG_BUFFER : LOG_BACKLOG;

	while (log->buffers[log->filling].used > sizeof(struct format_log) &&
	       log->buffers[log->filling].used + bytes > most && !store->failed) {
		if (log->is_attached)
			pthread_cond_wait(&log->has_room, &log->lock);
		else
			write_out_here(store);
	}
}

/* A piece is no longer than half of the log, so that a round of any length needs no room on the disk that the log
 * does not have. */
static void begin_piece(struct store *store, uint64_t bytes)
{
	struct log *log = &store->log;
	struct log_buffer *buffer = &log->buffers[log->filling];
	uint64_t used = buffer->used - buffer->piece;

	if (used <= sizeof(struct format_log) || used + bytes <= log->bytes / 2 ||
	    buffer->used + sizeof(struct format_log) > LOG_BUFFER)
		return;
	((struct format_log *)(void *)(buffer->at + buffer->piece))->bytes = used;
	buffer->piece = buffer->used;
	buffer->used += sizeof(struct format_log);
}

static const void *user_of(const struct log *log)
{
	if (!may_wait(log))
		return log->owners_user;
	return log->user ? log->user() : NULL;
}

/* The loop does not wait for a share here: it begins no request that changes tables for a user without one
 * (store_has_share). */
void log_unit_begin(struct store *store, uint64_t bytes)
{
	struct log *log = &store->log;

	pthread_mutex_lock(&log->lock);
	make_room(store, bytes + sizeof(struct format_log));
	begin_piece(store, bytes);
	log->unit = log->buffers[log->filling].used;
}

/* Notes of writes do not wait for a share: they are small, and the bytes that they are about do. */
static void wait_for_share(struct store *store, uint64_t bytes)
{
	struct log *log = &store->log;
	const void *user = user_of(log);

	while (may_wait(log) && !store->failed &&
	       !shares_have_room(&log->buffers[log->filling].shares, &log->buffers[!log->filling].shares, user,
				 bytes)) {
		log->wanted = log->appended;
		pthread_cond_signal(&log->has_some);
		pthread_cond_wait(&log->has_room, &log->lock);
	}
	shares_add(&log->buffers[log->filling].shares, user, bytes);
}

void log_unit_add(struct store *store, unsigned file, uint64_t off, const void *data, uint64_t bytes)
{
	struct log *log = &store->log;
	struct log_buffer *buffer = &log->buffers[log->filling];
	uint64_t all = record_bytes(bytes);

	if (store->failed || buffer->used + all > LOG_BUFFER) {
		store->failed = store->failed ? store->failed : -ENOSPC;
		return;
	}
	struct format_change *change = (struct format_change *)(void *)(buffer->at + buffer->used);
	*change = (struct format_change){file, (uint32_t)bytes, off};
	memcpy(change->data, data, bytes);
	memset(change->data + bytes, 0, all - sizeof(*change) - bytes);
	buffer->used += all;
	atomic_fetch_add_explicit(&log->appended, all, memory_order_release);
}

static void unlock(struct store *store)
{
	bool is_round = store->log.buffers[store->log.filling].used >= LOG_ROUND;

	pthread_mutex_unlock(&store->log.lock);
	if (is_round)
		pthread_cond_signal(&store->log.has_some);
}

void log_unit_end(struct store *store)
{
	struct log *log = &store->log;
	struct log_buffer *buffer = &log->buffers[log->filling];

	shares_add_cells(&buffer->shares, user_of(log), buffer->used - log->unit);
	unlock(store);
}

void log_add(struct store *store, unsigned file, uint64_t off, const void *data, uint64_t bytes)
{
	pthread_mutex_lock(&store->log.lock);
	make_room(store, record_bytes(bytes) + sizeof(struct format_log));
	if (file == FORMAT_MEMORY)
		wait_for_share(store, record_bytes(bytes));
	begin_piece(store, record_bytes(bytes));
	log_unit_add(store, file, off, data, bytes);
	unlock(store);
}

void log_add_all(struct store *store, unsigned file, uint64_t from, uint64_t to)
{
	enum { PIECE_BYTES = 1 << 16 };

	for (uint64_t n; from < to; from += n) {
		n = to - from < PIECE_BYTES ? to - from : PIECE_BYTES;
		log_add(store, file, from, store->maps[file].at + from, n);
	}
}

/* Bytes are copied while nobody else adds any: of a word that two threads change the later copy comes later. */
void store_keep(struct store *store, uint64_t off, uint64_t bytes)
{
	log_add_all(store, FORMAT_MEMORY, FORMAT_PAGE_BYTES + off, FORMAT_PAGE_BYTES + off + bytes);
}

uint64_t store_position(const struct store *store)
{
	return atomic_load_explicit(&store->log.appended, memory_order_acquire);
}

uint64_t store_synced(const struct store *store)
{
	return atomic_load_explicit(&store->log.synced, memory_order_acquire);
}

bool store_is_durable(const struct store *store)
{
	return log_is_on(&store->log);
}

bool store_is_backlogged(struct store *store, const void *user)
{
	struct log *log = &store->log;

	if (!log_is_on(log) || !log->is_attached)
		return false;
	if (store_position(store) - store_synced(store) > LOG_BACKLOG)
		return true;
	pthread_mutex_lock(&log->lock);
	bool has_room =
		shares_have_room(&log->buffers[log->filling].shares, &log->buffers[!log->filling].shares, user, 1);
	pthread_mutex_unlock(&log->lock);
	return !has_room;
}

void store_change_for(struct store *store, const void *user)
{
	store->log.owners_user = user;
}

bool store_has_share(struct store *store, const void *user)
{
	struct log *log = &store->log;

	if (!log_is_on(log) || !log->is_attached)
		return true;
	pthread_mutex_lock(&log->lock);
	/* After a failure no round comes that would end a wait. */
	bool has = store->failed || shares_have_cells(&log->buffers[log->filling].shares,
						      &log->buffers[!log->filling].shares, user);
	log->wanted = has ? log->wanted : log->appended;
	log->is_short |= !has;
	pthread_mutex_unlock(&log->lock);
	if (!has)
		pthread_cond_signal(&log->has_some);
	return has;
}

int log_reserve(struct store *store, uint64_t bytes)
{
	struct log *log = &store->log;

	if (bytes <= log->bytes)
		return 0;
	int status = calls_allocate(store->hooks, store->fds[FORMAT_JOURNAL], FORMAT_RECORDS_OFF + log->bytes,
				    FORMAT_RECORDS_OFF + bytes);
	if (!status)
		log->bytes = bytes;
	return status;
}

/* ---- rounds ---- */

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

/* Behind what is there; or from the beginning, once the files have all that it tells and it is empty: the disk may
 * take the end of the next round before its beginning, and would leave the first of the old ones without the rest.
 */
static int find_room(struct store *store, uint64_t bytes)
{
	struct log *log = &store->log;

	if (log->tail + bytes <= log->bytes)
		return 0;
	int status = log_empty(store);
	if (status)
		return status;
	log->tail = 0;
	return log_reserve(store, bytes);
}

static int write_piece(struct store *store, struct format_log *head, uint64_t bytes)
{
	struct log *log = &store->log;
	int status = find_room(store, bytes);

	if (status)
		return status;
	*head = (struct format_log){.magic = FORMAT_LOG_MAGIC, .seq = log->seq, .bytes = bytes};
	head->crc = format_log_crc(head);
	status =
		calls_write(store->hooks, store->fds[FORMAT_JOURNAL], head, bytes, FORMAT_RECORDS_OFF + log->tail);
	if (!status)
		status = calls_sync_data(store->hooks, store->fds[FORMAT_JOURNAL]);
	log->seq++;
	log->tail += bytes;
	return status;
}

/* Where the change belongs in the file; tables that have grown are mapped there only now. */
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
		at += record_bytes(change->bytes);
	}
	return status;
}

/* The disk begins to take what is in its place, so that little is left to wait for where the log begins anew. */
static void write_ahead(struct store *store, uint64_t bytes)
{
	struct log *log = &store->log;

	log->home_bytes += bytes;
	if (log->home_bytes < LOG_AHEAD)
		return;
	log->home_bytes = 0;
	calls_start_writing(store->hooks, store->fds[FORMAT_MEMORY]);
}

/* The buffer is for changes again. */
static void empty_buffer(struct log_buffer *buffer)
{
	if (buffer->used > LOG_KEEPS_PAGES)
		(void)madvise(buffer->at + LOG_KEEPS_PAGES, LOG_BUFFER - LOG_KEEPS_PAGES, MADV_DONTNEED);
	buffer->used = sizeof(struct format_log);
	buffer->piece = 0;
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
	shares_clear(&log->buffers[log->filling].shares);
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

/* What is in the log has to be in its place before the log begins anew, which the next piece may need. */
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
	/* Those who wait for a share find an empty buffer now, and may find a full one when the round is over. */
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
		write_ahead(store, buffer->used);
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

/* Those that the last round has answered, beside those that wait already. A short round is over before they come:
 * a thread wakes in some 50 us. */
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
	/* It waits for all of the round, also where it changes nothing itself. */
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

/* ---- the beginning and the end ---- */

/* Blocks that were written once take no change of the file system's own to be written again. */
static int open_file(struct store *store, uint64_t bytes)
{
	struct log *log = &store->log;
	struct statx stat;
	int status = calls_stat(store->hooks, store->fds[FORMAT_JOURNAL], &stat);

	if (status)
		return status;
	log->bytes = stat.stx_size - FORMAT_RECORDS_OFF;
	if (log->bytes >= bytes)
		return 0;
	status = calls_allocate(store->hooks, store->fds[FORMAT_JOURNAL], stat.stx_size,
				FORMAT_RECORDS_OFF + bytes);
	if (!status)
		status = calls_write_zeros(store->hooks, store->fds[FORMAT_JOURNAL], stat.stx_size,
					   FORMAT_RECORDS_OFF + bytes);
	if (!status)
		status = calls_sync(store->hooks, store->fds[FORMAT_JOURNAL]);
	if (!status)
		log->bytes = bytes;
	return status;
}

/* A private copy in the place of what is mapped, which becomes the file's. */
static int make_private(struct store *store, enum format_file file)
{
	struct mapping own = store->maps[file];
	void *at;
	int status = calls_map_private(store->hooks, own.fd, own.off, own.bytes, &at);

	if (status)
		return status;
	store->home[file] = own;
	own.at = at;
	store->maps[file] = own;
	return 0;
}

/* Notes are changes like all others. In the file they change when the log begins anew, so that a round's sync has
 * one place to write to. The journal's first page is not private: it is of the process and not of the state. */
static int make_journal_private(struct store *store)
{
	const struct mapping *map = &store->maps[FORMAT_JOURNAL];
	uint64_t notes = FORMAT_RECORDS_OFF - FORMAT_PAGE_BYTES;
	void *at;
	int status = calls_map_own(store->hooks, 2 * notes, &at);

	if (status)
		return status;
	store->writes.own = store->writes.records = at;
	store->log.notes = (uint8_t *)at + notes;
	store->log.notes_end = 0;
	memcpy(at, map->at + FORMAT_PAGE_BYTES, notes);
	memcpy(store->log.notes, map->at + FORMAT_PAGE_BYTES, notes);
	mapping_close(&store->journal.records);
	return mapping_own(&store->journal.records, store->hooks, FORMAT_RECORDS_BYTES);
}

int log_begin(struct store *store, const struct store_options *options)
{
	struct log *log = &store->log;
	int status = open_file(store, options->log_bytes ? options->log_bytes : LOG_BYTES);

	for (enum format_file file = FORMAT_MEMORY; !status && file < FORMAT_FILES; file++)
		status = make_private(store, file);
	if (!status)
		status = make_journal_private(store);
	for (unsigned i = 0; !status && i < 2; i++) {
		void *at;
		status = calls_map_own(store->hooks, LOG_BUFFER, &at);
		if (!status)
			log->buffers[i] = (struct log_buffer){.at = at, .used = sizeof(struct format_log)};
	}
	if (status)
		return status;
	log->user = options->user;
	log->round = 1;
	pthread_mutex_init(&log->lock, NULL);
	pthread_cond_init(&log->has_room, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&log->has_some, &monotonic);
	pthread_condattr_destroy(&monotonic);
	/* No other process's, so that what one of them left behind a round of ours is not taken for the next one.
	 */
	log->seq = (uint64_t)store->epoch << 32;
	log->tail = 0;
	return 0;
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

void log_deinit(struct store *store)
{
	struct log *log = &store->log;

	for (enum format_file file = FORMAT_MEMORY; file < FORMAT_FILES; file++)
		mapping_close(&store->home[file]);
	if (store->writes.own)
		munmap(store->writes.own, 2 * (FORMAT_RECORDS_OFF - FORMAT_PAGE_BYTES));
	for (unsigned i = 0; i < 2; i++)
		if (log->buffers[i].at)
			munmap(log->buffers[i].at, LOG_BUFFER);
}
