/* The log of a durable state: what a beginning of it leaves, rounds that are damaged, room, and other threads. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <zlib.h>

#include "daemon/store/log/log.h"
#include "daemon/store/log/shares.h"
#include "tests/unit/daemon/store/state.h"

static void open_durable(void)
{
	state.options.durable = true;
	state_open();
}

static void keep(size_t off, char what, size_t bytes)
{
	memset((char *)store_memory(state.store) + off, what, bytes);
	store_keep(state.store, off, bytes);
}

static void put(uint32_t index, const char *text)
{
	ck_assert_int_eq(store_prepare(state.store, STORE_TENSORS, index + 1, 1), 0);
	store_put(state.store, STORE_TENSORS, index, text, strlen(text));
	store_commit(state.store);
}

static void flush(void)
{
	ck_assert_int_eq(store_flush(state.store), 0);
	ck_assert_uint_eq(store_synced(state.store), store_position(state.store));
}

static char byte_at(size_t off)
{
	return ((const char *)store_memory(state.store))[off];
}

/* What was not written out is gone together, memory and tables. */
TEST(a_kill_leaves_whole_rounds)
{
	open_durable();
	put(1, "first");
	keep(100, 'a', 50);
	flush();
	put(1, "second");
	keep(100, 'b', 50);
	state_reopen(false);
	ck_assert(state_has(STORE_TENSORS, 1, "first"));
	ck_assert(byte_at(100) == 'a' && byte_at(149) == 'a' && !byte_at(150));
}

/* The rounds before the damaged one count, and none behind it. The files' own copies are put back, as the disk may
 * not have them. */
TEST(a_damaged_round_ends_it, .to = 4)
{
	char *files[STATE_FILES];
	size_t bytes[STATE_FILES];
	struct format_log head;
	open_durable();
	for (unsigned i = 0; i < STATE_FILES; i++)
		files[i] = state_read(state_path(state_files[i]), &bytes[i]);
	uint64_t at = FORMAT_RECORDS_OFF, second = 0;
	for (unsigned round = 0; round < 3; round++) {
		put(2, round == 0 ? "one" : round == 1 ? "two" : "three");
		flush();
		int fd = open(state_path("journal"), O_RDONLY);
		ck_assert_int_eq(pread(fd, &head, sizeof(head), (off_t)at), sizeof(head));
		close(fd);
		ck_assert_uint_eq(head.magic, FORMAT_LOG_MAGIC);
		second = round == 1 ? at : second;
		at += head.bytes;
	}
	state_close(false);
	for (unsigned i = 1; i < STATE_FILES; i++)
		state_write(state_path(state_files[i]), files[i], bytes[i], 0);
	char *journal = state_read(state_path("journal"), &bytes[0]);
	if (_i == 0)
		journal[second + sizeof(head) + 20] ^= 1;
	else if (_i == 1)
		((struct format_log *)(void *)(journal + second))->seq++;
	else if (_i == 2)
		((struct format_log *)(void *)(journal + second))->bytes = UINT64_MAX;
	state_write(state_path("journal"), journal + second, sizeof(head) + 40, second);
	free(journal);
	for (unsigned i = 0; i < STATE_FILES; i++)
		free(files[i]);
	state_open();
	ck_assert(state_has(STORE_TENSORS, 2, _i == 3 ? "three" : "one"));
	ck_assert(!state_tells("damaged") && !state_tells("lost"));
}

/* Earlier versions had a CRC for a round's sum. It is believed in a state of theirs only. */
TEST(a_round_of_version_2, .from = 1, .to = 3)
{
	enum { OFF = offsetof(struct format_log, sum) + 4 };
	size_t bytes, tensors_bytes;
	char *journal, *tensors;

	open_durable();
	tensors = state_read(state_path("tensors"), &tensors_bytes);
	put(2, "one");
	flush();
	state_close(false);
	state_write(state_path("tensors"), tensors, tensors_bytes, 0);
	free(tensors);
	journal = state_read(state_path("journal"), &bytes);
	struct format_header *header = (void *)journal;
	header->version = 1U << _i;
	header->crc = (uint32_t)crc32_z(0, (const uint8_t *)header, offsetof(struct format_header, crc));
	struct format_log *head = (void *)(journal + FORMAT_RECORDS_OFF);
	head->sum = 0;
	uLong crc = crc32_z(0, (const uint8_t *)head, OFF);
	head->sum = (uint64_t)crc32_z(crc, (const uint8_t *)(head + 1), head->bytes - sizeof(*head)) << 32;
	state_write(state_path("journal"), journal, bytes, 0);
	free(journal);
	state_open();
	ck_assert_int_eq(state_has(STORE_TENSORS, 2, "one"), _i == 1);
	state_close(true);
}

/* Many times the log's length, in rounds of every length. */
TEST(it_begins_anew)
{
	open_durable();
	for (unsigned i = 1; i <= 600; i++) {
		size_t bytes = 1 + i * 37 % 9000;
		keep(i % 100, (char)i, bytes);
		put(i % 50, (char[]){(char)('A' + i % 20), 0});
		flush();
		if (i % 100 == 0) {
			state_reopen(false);
			ck_assert_int_eq(store_recovered(state.store), 0);
			ck_assert_int_eq(byte_at(i % 100 + bytes - 1), (char)i);
			ck_assert(state_has(STORE_TENSORS, i % 50, (char[]){(char)('A' + i % 20), 0}));
		}
	}
	state_reopen(true);
	ck_assert(state.report.was_clean);
}

/* The journal as it was at its last two syncs. */
static struct {
	char *text;
	size_t bytes;
} journals[2];

static void copy_journal(void *ctx, int fd)
{
	struct stat synced, journal;
	(void)ctx;
	ck_assert_int_eq(fstat(fd, &synced), 0);
	ck_assert_int_eq(stat(state_path("journal"), &journal), 0);
	if (synced.st_ino != journal.st_ino)
		return;
	free(journals[0].text);
	journals[0] = journals[1];
	journals[1].text = state_read(state_path("journal"), &journals[1].bytes);
}

static void keep_and_flush(size_t off, char what, size_t bytes)
{
	keep(off, what, bytes);
	flush();
}

/* The disk may take the end of a write before its beginning. Where the log begins anew, the round that was first
 * until then must not be found as if nothing had followed it. */
TEST(it_begins_anew_when_the_power_goes)
{
	enum { FIRST_SECTOR = 512 };
	static const struct store_hooks hooks = {.synced = copy_journal};
	struct format_log head, first;
	state.options.hooks = &hooks;
	open_durable();
	ck_assert_int_eq(store_recovered(state.store), 0);
	keep_and_flush(100, 'a', 420);
	memcpy(&first, journals[1].text + FORMAT_RECORDS_OFF, sizeof(first));
	keep_and_flush(100, 'b', 50);
	do {
		keep_and_flush(4000, 'c', 5000);
		memcpy(&head, journals[1].text + FORMAT_RECORDS_OFF, sizeof(head));
	} while (head.seq == first.seq);
	/* The power went in the sync of the last round: its first sector is as it was at the sync before. */
	memcpy(journals[1].text + FORMAT_RECORDS_OFF, journals[0].text + FORMAT_RECORDS_OFF, FIRST_SECTOR);
	state_write(state_path("journal"), journals[1].text, journals[1].bytes, 0);
	state_close(false);
	state_open();
	ck_assert_int_eq(byte_at(100), 'b');
	state_close(true);
	for (unsigned i = 0; i < 2; i++)
		free(journals[i].text);
}

/* A round that changes the first byte of local memory. */
struct forged {
	struct format_log head;
	uint32_t file, bytes;
	uint64_t off;
	char data[8];
};

static struct forged forge(uint64_t seq)
{
	struct forged forged = {
		.head = {.magic = FORMAT_LOG_MAGIC, .seq = seq, .bytes = sizeof(forged)},
		.file = FORMAT_MEMORY,
		.bytes = sizeof(forged.data),
		.off = FORMAT_PAGE_BYTES,
		.data = "forged",
	};
	forged.head.sum = log_sum(&forged.head);
	return forged;
}

/* All elements are these. The log begins anew once, and ends where one of them begins. */
static void keep_elements(const struct forged *forged)
{
	enum { OFF = 4096, BYTES = 72 * sizeof(*forged) };
	const unsigned heads = sizeof(struct format_log) + sizeof(struct format_change);
	const unsigned rounds = (1 << 16) / (BYTES + heads) + 1;
	open_durable();
	for (unsigned i = 0; i < BYTES; i += sizeof(*forged))
		memcpy((char *)store_memory(state.store) + OFF + i, forged, sizeof(*forged));
	for (unsigned round = 0; round < rounds; round++) {
		store_keep(state.store, OFF, BYTES);
		flush();
	}
	store_keep(state.store, OFF, sizeof(*forged));
	flush();
}

/* The number of the log's last round; the elements begin behind it. */
static uint64_t last_round(void)
{
	size_t bytes;
	char *journal = state_read(state_path("journal"), &bytes), *at = journal + FORMAT_RECORDS_OFF;
	struct format_log head, last;
	memcpy(&head, at, sizeof(head));
	do {
		last = head;
		at += last.bytes;
		memcpy(&head, at, sizeof(head));
	} while (head.bytes != sizeof(struct forged));
	ck_assert_uint_eq(head.magic, FORMAT_LOG_MAGIC);
	free(journal);
	return last.seq;
}

/* Elements stay behind the log's end from before it began anew. A client that knew the next number, as from a
 * daemon of its own, could make recovery take them for a round. */
TEST(elements_are_no_round)
{
	struct forged forged = forge(0);
	keep_elements(&forged);
	forged = forge(last_round() + 1);
	state_tear_down();
	state_set_up();
	keep_elements(&forged);
	last_round();
	state_reopen(false);
	ck_assert_int_eq(byte_at(0), 0);
}

enum { TORN_WORDS = 1024, TORN_ROUND = sizeof(struct format_log) + sizeof(struct format_change) + 8 * TORN_WORDS };

static void keep_words(uint64_t word)
{
	for (unsigned i = 0; i < TORN_WORDS; i++)
		memcpy((char *)store_memory(state.store) + 8 * i, &word, sizeof(word));
	store_keep(state.store, 0, 8 * TORN_WORDS);
	flush();
}

/* The number of the round at the log's beginning, which changes when the log begins anew. */
static uint64_t first_round(void)
{
	struct format_log head;
	int fd = open(state_path("journal"), O_RDONLY);

	ck_assert_int_eq(pread(fd, &head, sizeof(head), FORMAT_RECORDS_OFF), sizeof(head));
	close(fd);
	return head.seq;
}

static void begin_lap(uint64_t word)
{
	uint64_t first = first_round();

	do
		keep_words(word);
	while (first_round() == first);
}

/* The disk has the beginning of a round only, and behind it elements of the lap before. CRC-32 takes the mixture
 * for the round: a word and the same word with the polynomial's bits flipped have the same CRC in all rounds. */
TEST(a_torn_round_is_none)
{
	const uint64_t polynomial = (UINT64_C(0xedb88320) << 1) | 1, old = 0x1111111111111111,
		       new = old ^ polynomial;
	enum { TORN = FORMAT_RECORDS_OFF + TORN_ROUND * 3 / 2 / 512 * 512 };
	char *before, *memory;
	size_t bytes, memory_bytes;

	open_durable();
	keep_words(old);
	begin_lap(old); /* whose second round has old words */
	begin_lap(old);
	before = state_read(state_path("journal"), &bytes);
	memory = state_read(state_path("memory"), &memory_bytes);
	keep_words(new);
	state_close(false);
	state_write(state_path("journal"), before + TORN, bytes - TORN, TORN);
	state_write(state_path("memory"), memory, memory_bytes, 0);
	free(before);
	free(memory);
	state_open();
	ck_assert_int_eq(byte_at(0), old & 255);
	state_close(true);
}

/* A commit that is longer than the log. */
TEST(one_that_is_longer_than_the_log)
{
	enum { N = 1000 };
	static const char text[STORE_TENSOR_BYTES_MAX];
	open_durable();
	ck_assert_int_eq(store_prepare(state.store, STORE_TENSORS, N, N), 0);
	for (uint32_t i = 0; i < N; i++)
		store_put(state.store, STORE_TENSORS, i, text, sizeof(text));
	store_commit(state.store);
	flush();
	keep(0, 'x', 10);
	flush();
	state_reopen(false);
	ck_assert_uint_eq(state.report.tables[STORE_TENSORS].n_kept, N);
	ck_assert_int_eq(byte_at(9), 'x');
}

/* A round that is longer than the log takes no more of the disk, as it goes in pieces. */
TEST(a_round_longer_than_the_log)
{
	enum { N = 100, BYTES = 9000 }; /* 3.5 times the log */
	struct stat before, after;
	state.options.log_bytes = 1 << 18;
	open_durable();
	flush();
	ck_assert_int_eq(stat(state_path("journal"), &before), 0);
	for (unsigned i = 0; i < N; i++) {
		keep(i, (char)('a' + i % 20), BYTES);
		put(i, (char[]){(char)('A' + i % 20), 0});
	}
	ck_assert_int_eq(store_write_out(state.store, NULL, NULL), 0);
	ck_assert_uint_eq(store_synced(state.store), store_position(state.store));
	ck_assert_int_eq(stat(state_path("journal"), &after), 0);
	ck_assert_int_eq(after.st_size, before.st_size);
	state_reopen(false);
	for (unsigned i = 0; i < N; i++) {
		ck_assert(state_has(STORE_TENSORS, i, (char[]){(char)('A' + i % 20), 0}));
		ck_assert_int_eq(byte_at(i), 'a' + (int)i % 20);
	}
	ck_assert_int_eq(byte_at(N - 1 + BYTES - 1), 'a' + (N - 1) % 20);
}

/* A user that has its share of a round changes nothing more until the next one. */
TEST(shares_of_changes_of_tables)
{
	static const char text[STORE_TENSOR_BYTES_MAX];
	static const int one, other, growing;
	unsigned n = 0;
	open_durable();
	store_attach(state.store);
	store_change_for(state.store, &other);
	put(0, "x");
	/* The cells of a table that grows are in the log, too. */
	store_change_for(state.store, &growing);
	ck_assert_int_eq(store_prepare(state.store, STORE_TENSORS, 5000, 1), 0);
	ck_assert(!store_has_share(state.store, &growing));
	store_change_for(state.store, &one);
	while (store_has_share(state.store, &one)) {
		ck_assert_uint_lt(n, 5000);
		ck_assert_int_eq(store_prepare(state.store, STORE_TENSORS, n + 1, 1), 0);
		store_put(state.store, STORE_TENSORS, n++, text, sizeof(text));
		store_commit(state.store);
	}
	ck_assert_uint_gt(n * sizeof(text), 64 << 10);
	ck_assert(store_has_share(state.store, &other));
	ck_assert_int_eq(store_write_out(state.store, NULL, NULL), 0);
	ck_assert(store_has_share(state.store, &one));
	store_detach(state.store);
}

/* Nor does the disk know of a table's new length. */
TEST(a_table_that_grew)
{
	struct stat stat_of;
	/* It does once the log begins anew. */
	state.options.log_bytes = 1 << 18;
	open_durable();
	ck_assert_int_eq(stat(state_path("tensors"), &stat_of), 0);
	put(300, "far");
	flush();
	state_close(false);
	ck_assert_int_eq(truncate(state_path("tensors"), stat_of.st_size), 0);
	state_open();
	ck_assert(state_has(STORE_TENSORS, 300, "far"));
	ck_assert(!state_tells("lost"));
}

/* Moving it takes milliseconds of a turn where it is large. */
TEST(a_table_that_grows_stays_where_it_is, .to = 2)
{
	const void *at;
	size_t bytes;
	state.options.durable = _i;
	state_open();
	put(0, "first");
	at = store_cell(state.store, STORE_TENSORS, 0, &bytes);
	for (uint32_t n = 1000; n <= 20000; n += 1000) {
		put(n, "far");
		ck_assert_ptr_eq(store_cell(state.store, STORE_TENSORS, 0, &bytes), at);
	}
	state_reopen(false);
}

/* A state goes on with, and without. */
TEST(from_one_to_the_other)
{
	for (unsigned i = 0; i < 6; i++) {
		state.options.durable = i & 1;
		state_open();
		ck_assert_int_eq(store_is_durable(state.store), i & 1);
		ck_assert_int_eq(byte_at(7), i ? (char)('a' + i - 1) : 0);
		ck_assert(!i || state_has(STORE_TENSORS, 3, (char[]){(char)('a' + i - 1), 0}));
		memset((char *)store_memory(state.store) + 7, 'a' + (int)i, 1);
		state_keep((char *)store_memory(state.store) + 7, 1);
		state_put(STORE_TENSORS, 3, (char[]){(char)('a' + i), 0});
		state_close(i & 2);
	}
}

/* ---- threads ---- */

static void *write_out(void *arg)
{
	unsigned *n = arg;
	while (store_wait(state.store))
		if (!store_write_out(state.store, NULL, NULL))
			++*n;
	return NULL;
}

static void *change(void *arg)
{
	size_t at = (size_t)(uintptr_t)arg;
	for (unsigned i = 0; i <= 2000; i++)
		keep(at * 3000, (char)i, 3000);
	return NULL;
}

static void wait_until_synced(void)
{
	for (uint64_t position = store_position(state.store); store_synced(state.store) < position;)
		usleep(100);
}

/* Others wait where the disk is behind; this one does not. */
TEST(changes_of_many_threads)
{
	pthread_t writer, others[4];
	unsigned n_rounds = 0;
	uint64_t round = 0;
	open_durable();
	store_attach(state.store);
	ck_assert_int_eq(pthread_create(&writer, NULL, write_out, &n_rounds), 0);
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&others[i], NULL, change, (void *)(uintptr_t)i), 0);
	for (unsigned i = 0; i < 200; i++)
		put(i, "cell");
	for (unsigned i = 0; i < 4; i++)
		pthread_join(others[i], NULL);
	store_want(state.store, NULL, &round);
	wait_until_synced();
	store_stop_waiting(state.store);
	pthread_join(writer, NULL);
	store_detach(state.store);
	ck_assert_uint_gt(n_rounds, 5);
	state_reopen(false);
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(byte_at(i * 3000 + 2999), (char)2000);
	ck_assert(state_has(STORE_TENSORS, 199, "cell"));
}

static atomic_uint sync_us;

static void sync_slowly(void *ctx, int fd)
{
	(void)ctx;
	(void)fd;
	usleep(sync_us);
}

static void want(uint64_t *client)
{
	keep(0, 'a', 8);
	store_want(state.store, NULL, client);
}

/* The first one comes back at once, and the others a little later. Where they do not come back the round begins
 * without them, and the next one expects no more than came. */
TEST(a_round_waits_for_clients_that_were_just_answered)
{
	static const struct store_hooks hooks = {.synced = sync_slowly};
	uint64_t first = 0, second = 0, third = 0;
	unsigned n_rounds = 0;
	pthread_t writer;
	state.options.hooks = &hooks;
	sync_us = 0;
	open_durable();
	sync_us = 500000; /* beside which what a busy machine takes for 10 ms is short */
	store_attach(state.store);
	want(&first);
	want(&second);
	want(&third);
	ck_assert_int_eq(pthread_create(&writer, NULL, write_out, &n_rounds), 0);
	wait_until_synced();
	want(&first);
	usleep(10000);
	want(&second);
	want(&third);
	wait_until_synced();
	for (unsigned i = 0; i < 2; i++) {
		/* As a client does whose change is there already. The writer waits before it and after it. */
		usleep(10000);
		store_want(state.store, NULL, &second);
		usleep(10000);
		want(&first);
		wait_until_synced();
	}
	sync_us = 0;
	store_stop_waiting(state.store);
	pthread_join(writer, NULL);
	store_detach(state.store);
	ck_assert_uint_eq(n_rounds, 4);
}

static _Thread_local const void *thread_user;

static const void *user_of_thread(void)
{
	return thread_user;
}

struct keeper {
	const char *user;
	size_t off;
	unsigned n; /* of 64 KiB */
	atomic_uint done;
	pthread_t thread;
};

static void *keep_as(void *arg)
{
	struct keeper *keeper = arg;
	thread_user = keeper->user;
	for (; keeper->done < keeper->n; keeper->done++)
		keep(keeper->off, 'k', 1 << 16);
	return NULL;
}

static void begin_keeper(struct keeper *keeper)
{
	ck_assert_int_eq(pthread_create(&keeper->thread, NULL, keep_as, keeper), 0);
}

/* Until it has done so much, and some time longer in which it could do more. */
static void await(const struct keeper *keeper, unsigned n)
{
	for (unsigned i = 0; i < 60000 && keeper->done < n; i++)
		usleep(1000);
	usleep(20000);
	ck_assert_uint_eq(keeper->done, n);
}

/* No round is made until each user has what it may have. */
TEST(a_full_round_has_room_for_another_user)
{
	struct keeper many[] = {{"a", 0, 64, 0, 0}, {"a", 1 << 16, 64, 0, 0}}, few = {"b", 1 << 17, 1, 0, 0};
	state.options.user = user_of_thread;
	state.options.memory_bytes = 4 << 16;
	open_durable();
	store_attach(state.store);
	begin_keeper(&many[0]);
	await(&many[0], 31);
	begin_keeper(&many[1]);
	await(&many[1], 0);
	begin_keeper(&few);
	await(&few, 1);
	await(&many[0], 31);
	while (many[0].done < many[0].n || many[1].done < many[1].n) {
		ck_assert_int_eq(store_write_out(state.store, NULL, NULL), 0);
		usleep(100);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(many[i].thread, NULL);
	pthread_join(few.thread, NULL);
	store_detach(state.store);
}

/* It waits for all that the other one changes. */
TEST(a_user_that_only_waits_keeps_a_round_short)
{
	struct keeper one = {"a", 0, 64, 0, 0};
	uint64_t round = 0;
	state.options.user = user_of_thread;
	state.options.memory_bytes = 1 << 16;
	open_durable();
	store_attach(state.store);
	store_want(state.store, "b", &round);
	begin_keeper(&one);
	await(&one, SHARES_TOGETHER / 2 / (1 << 16) - 1);
	while (one.done < one.n) {
		ck_assert_int_eq(store_write_out(state.store, NULL, NULL), 0);
		usleep(100);
	}
	pthread_join(one.thread, NULL);
	store_detach(state.store);
}

/* A byte takes a record of 24. */
TEST(a_share_counts_what_the_log_gets)
{
	static const int user, other;
	uint64_t round = 0;
	open_durable();
	store_attach(state.store);
	store_want(state.store, &other, &round);
	store_change_for(state.store, &user);
	for (unsigned n = 0; !store_is_backlogged(state.store, &user); n++) {
		ck_assert_uint_lt(n, SHARES_TOGETHER / 2 / 24 + 1);
		keep(0, 'a', 1);
	}
	store_detach(state.store);
}

/* A byte of a page is a page for the disk. Of a page that has changed, only its bytes count. */
TEST(a_share_counts_pages)
{
	static const int user, other;
	uint64_t round = 0;
	unsigned n = 0;
	state.options.memory_bytes = 1 << 20;
	open_durable();
	store_attach(state.store);
	store_want(state.store, &other, &round);
	store_change_for(state.store, &user);
	for (; !store_is_backlogged(state.store, &user); n++) {
		ck_assert_uint_le(n, SHARES_TOGETHER / 2 / 1024);
		keep(n * (size_t)FORMAT_PAGE_BYTES, 'a', 1);
	}
	ck_assert_int_eq(store_write_out(state.store, NULL, NULL), 0);
	store_want(state.store, &other, &round);
	for (unsigned i = 0; i < n; i++)
		keep(i * (size_t)FORMAT_PAGE_BYTES, 'b', 1);
	ck_assert(!store_is_backlogged(state.store, &user));
	store_detach(state.store);
}

static uint64_t first_seq(void)
{
	struct format_log head;
	int fd = open(state_path("journal"), O_RDONLY);
	ck_assert_int_eq(pread(fd, &head, sizeof(head), FORMAT_RECORDS_OFF), sizeof(head));
	close(fd);
	return head.seq;
}

/* What the sync of the files has to write is bounded, however short the log is. */
TEST(it_begins_anew_after_many_pages)
{
	enum { PAGES = 4096, A_ROUND = 64 };
	state.options.memory_bytes = (uint64_t)PAGES * FORMAT_PAGE_BYTES;
	state.options.log_bytes = 4 << 20;
	open_durable();
	keep(0, 'a', 1);
	flush();
	uint64_t seq = first_seq();
	for (unsigned i = 0; i < PAGES; i++) {
		keep(i * (size_t)FORMAT_PAGE_BYTES, 'b', 1);
		if (i % A_ROUND == A_ROUND - 1)
			flush();
	}
	ck_assert_uint_ge(first_seq(), seq + PAGES / A_ROUND / 2);
	seq = first_seq();
	for (unsigned i = 0; i < 16; i++) {
		keep(0, (char)i, 8192);
		flush();
	}
	ck_assert_uint_le(first_seq(), seq + 8);
	state_reopen(false);
	ck_assert(byte_at(PAGES / 2 * (size_t)FORMAT_PAGE_BYTES) == 'b' && byte_at(0) == 15);
}

static int fail_syncs(void *ctx, const char *call)
{
	return *(bool *)ctx && !strcmp(call, "fdatasync") ? EIO : 0;
}

/* A thread that waits for room goes on. */
TEST(a_disk_that_fails)
{
	bool fails = false;
	const struct store_hooks hooks = {.fail = fail_syncs, .ctx = &fails};
	pthread_t writer, other;
	unsigned n_rounds = 0;
	state.options.hooks = &hooks;
	open_durable();
	fails = true;
	store_attach(state.store);
	ck_assert_int_eq(pthread_create(&writer, NULL, write_out, &n_rounds), 0);
	ck_assert_int_eq(pthread_create(&other, NULL, change, NULL), 0);
	pthread_join(other, NULL);
	pthread_join(writer, NULL);
	ck_assert_uint_eq(n_rounds, 0);
	ck_assert_int_eq(store_failed(state.store), -EIO);
	ck_assert_int_eq(store_flush(state.store), -EIO);
	ck_assert_uint_lt(store_synced(state.store), store_position(state.store));
	store_detach(state.store);
	ck_assert_int_eq(store_close(state.store, true), -EIO);
	state.store = NULL;
}

FIXTURE(state_set_up, state_tear_down)
