/* Owns the buffers. Invariant: they have a sequence of whole units. rounds.c writes them out. */
#include "daemon/store/log/log.h"

#include <errno.h>
#include <sys/mman.h>

#include "daemon/store/files/calls.h"

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

/* No unit is as large as a buffer (store_prepare), so there will be room. */
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

/* A piece is at most half of the log, so that a round of any length fits the log on the disk. */
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

/* Notes of writes do not wait for a share: they are small, and the noted bytes will wait. */
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

/* The number of pages of these bytes that have not changed since the log began. `marks`: now they have. */
static uint64_t first_changes(struct store *store, uint64_t off, uint64_t bytes, bool marks)
{
	uint64_t n = 0;

	for (uint64_t page = off / FORMAT_PAGE_BYTES; page * FORMAT_PAGE_BYTES < off + bytes; page++) {
		uint64_t *word = &store->log.changed[page / 64], bit = UINT64_C(1) << page % 64;
		n += !(*word & bit);
		*word |= marks ? bit : 0;
	}
	return n;
}

/* The disk writes a whole page for a change of one byte, when the log begins anew or before. */
static void take_share(struct store *store, uint64_t off, uint64_t bytes)
{
	uint64_t all = log_change_bytes(bytes), pages = first_changes(store, off, bytes, false);

	wait_for_share(store, pages * LOG_PAGE_SHARE > all ? pages * LOG_PAGE_SHARE : all);
	pages = first_changes(store, off, bytes, true) * FORMAT_PAGE_BYTES;
	store->log.buffers[store->log.filling].apart += pages > all ? pages - all : 0;
}

void log_unit_add(struct store *store, unsigned file, uint64_t off, const void *data, uint64_t bytes)
{
	struct log *log = &store->log;
	struct log_buffer *buffer = &log->buffers[log->filling];
	uint64_t all = log_change_bytes(bytes);

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
	struct log *log = &store->log;

	pthread_mutex_lock(&log->lock);
	make_room(store, log_change_bytes(bytes) + sizeof(struct format_log));
	if (file == FORMAT_MEMORY)
		take_share(store, off, bytes);
	else if (file != FORMAT_JOURNAL) /* a table grows: by more bytes than its new cells need */
		shares_add_cells(&log->buffers[log->filling].shares, user_of(log), log_change_bytes(bytes));
	begin_piece(store, log_change_bytes(bytes));
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

/* The lock is held during the copy: if two threads change one word, the later copy is later in the log. */
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
	/* After a failure no further round would end a wait. */
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

/* ---- the beginning and the end ---- */

/* Writes all blocks once: a second write needs no change of the file system's metadata. */
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

/* Maps a private copy for `maps`; the mapping of the file becomes `home`. */
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

/* Notes of writes are changes like all others. The file gets them when the log begins anew, so that the sync of a
 * round has only one place to write. The journal's first page is not private: it belongs to the process and not to
 * the state. */
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
	/* Unlike any other process's, so that a round which another one left behind ours is not taken for our next
	 * one; and no client can guess it, as elements stay behind our last round that may be a round's bytes. */
	if (!status)
		status = calls_random(store->hooks, &log->seq, sizeof(log->seq));
	if (status)
		return status;
	log->changed = heap_zalloc(store->heap, log_changed_words(store), sizeof(*log->changed));
	if (!log->changed)
		return -ENOMEM;
	log->user = options->user;
	log->round = 1;
	pthread_mutex_init(&log->lock, NULL);
	pthread_cond_init(&log->has_room, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&log->has_some, &monotonic);
	pthread_condattr_destroy(&monotonic);
	log->tail = 0;
	return 0;
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
	heap_free(store->heap, log->changed);
}
