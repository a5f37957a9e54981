/* What is kept, by closing and by leaving: cells, stamps, memory, writes under way. */
#include "daemon/store/store.h"

#include <errno.h>
#include <sys/mman.h>

#include "tests/unit/daemon/store/state.h"

TEST(a_new_state_is_empty)
{
	size_t bytes;
	state_open();
	ck_assert(state.report.is_new && !state.report.was_clean && !state.report.is_stale);
	for (enum store_table table = 0; table < STORE_TABLES; table++) {
		ck_assert_uint_gt(store_n_cells(state.store, table), 0);
		ck_assert_ptr_null(store_cell(state.store, table, 0, &bytes));
		ck_assert_ptr_null(store_cell(state.store, table, UINT32_MAX, &bytes));
		ck_assert_uint_eq(store_stamp(state.store, table, 0), 0);
		ck_assert_uint_eq(store_stamp(state.store, table, UINT32_MAX), 0);
		ck_assert(!store_is_lost(state.store, table, 0));
	}
	const char *memory = store_memory(state.store);
	ck_assert_uint_eq((uintptr_t)memory % 4096, 0);
	for (unsigned i = 0; i < STATE_MEMORY_BYTES; i++)
		ck_assert_int_eq(memory[i], 0);
}

/* A turn of the loop makes the pages of few cells. */
TEST(a_table_grows_a_little_at_a_time)
{
	uint32_t before, after;
	state_open();
	for (unsigned i = 0; i < 10; i++) {
		before = store_n_cells(state.store, STORE_TENSORS);
		ck_assert_int_eq(store_prepare(state.store, STORE_TENSORS, before + 1, 1), 0);
		after = store_n_cells(state.store, STORE_TENSORS);
		ck_assert_uint_gt(after, before);
		ck_assert_uint_le(after, before + 256);
	}
}

static void fill(void)
{
	state_put(STORE_TENSORS, 0, "one");
	state_put(STORE_TENSORS, 1000, "far");
	state_put(STORE_SESSIONS, 3, "session");
	state_put(STORE_RESULTS, 77, "");
	state_put(STORE_TENSORS, 1, "gone");
	ck_assert_int_eq(store_prepare(state.store, STORE_TENSORS, 0, 1), 0);
	store_drop(state.store, STORE_TENSORS, 1, 0x123456789abcdef0);
	store_commit(state.store);
	ck_assert_int_eq(store_flush(state.store), 0);
	char *memory = store_memory(state.store);
	memcpy(memory, "bytes", 5);
	state_keep(memory, 5);
	memory[STATE_MEMORY_BYTES - 1] = 'z';
	state_keep(memory + STATE_MEMORY_BYTES - 1, 1);
	ck_assert_int_eq(store_flush(state.store), 0);
}

static void holds(void)
{
	size_t bytes;
	ck_assert(state_has(STORE_TENSORS, 0, "one"));
	ck_assert(state_has(STORE_TENSORS, 1000, "far"));
	ck_assert(state_has(STORE_SESSIONS, 3, "session"));
	ck_assert(state_has(STORE_RESULTS, 77, ""));
	ck_assert_ptr_null(store_cell(state.store, STORE_TENSORS, 1, &bytes));
	ck_assert_uint_eq(store_stamp(state.store, STORE_TENSORS, 1), 0x123456789abcdef0);
	ck_assert_uint_eq(store_stamp(state.store, STORE_TENSORS, 0), 0);
	ck_assert_int_eq(memcmp(store_memory(state.store), "bytes", 5), 0);
	ck_assert_int_eq(((char *)store_memory(state.store))[STATE_MEMORY_BYTES - 1], 'z');
	ck_assert_uint_eq(state.report.tables[STORE_TENSORS].n_lost, 0);
}

/* 1: with durable; 2: closed. */
TEST(all_is_there_again, .to = 4)
{
	bool clean = _i & 2;
	state.options.durable = _i & 1;
	state_open();
	fill();
	holds();
	for (unsigned i = 0; i < 5; i++) {
		state_reopen(clean);
		holds();
		ck_assert(!state.report.is_new && !state.report.is_stale);
		ck_assert_int_eq(state.report.was_clean, clean);
		ck_assert_uint_eq(state.report.tables[STORE_TENSORS].n_kept, 2);
		ck_assert_uint_eq(state.report.tables[STORE_SESSIONS].n_kept, 1);
		ck_assert_uint_eq(state.report.tables[STORE_RESULTS].n_kept, 1);
		ck_assert_int_eq(store_recovered(state.store), 0);
	}
	state_close(clean);
}

TEST(the_largest_cells)
{
	static const size_t most[STORE_TABLES] = {STORE_TENSOR_BYTES_MAX, STORE_SESSION_BYTES_MAX,
						  STORE_RESULT_BYTES_MAX};
	char text[STORE_TENSOR_BYTES_MAX];
	size_t bytes;
	state_open();
	for (unsigned i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * 7);
	for (enum store_table table = 0; table < STORE_TABLES; table++) {
		ck_assert_int_eq(store_prepare(state.store, table, 40, 40), 0);
		for (uint32_t index = 0; index < 40; index++)
			store_put(state.store, table, index, text, most[table]);
		store_commit(state.store);
	}
	state_reopen(false);
	for (enum store_table table = 0; table < STORE_TABLES; table++)
		for (uint32_t index = 0; index < 40; index++) {
			const void *cell = store_cell(state.store, table, index, &bytes);
			ck_assert_ptr_nonnull(cell);
			ck_assert_uint_eq((uintptr_t)cell % 8, 0);
			ck_assert_uint_eq(bytes, most[table]);
			ck_assert_mem_eq(cell, text, bytes);
		}
}

/* What was put and not committed is not there; of two puts the later one is. */
TEST(a_transaction_is_what_was_committed, .to = 2)
{
	state.options.durable = _i;
	state_open();
	state_put(STORE_TENSORS, 5, "before");
	ck_assert_int_eq(store_prepare(state.store, STORE_TENSORS, 10, 3), 0);
	store_put(state.store, STORE_TENSORS, 5, "first", 5);
	ck_assert_int_eq(store_prepare(state.store, STORE_SESSIONS, 100, 2), 0);
	store_put(state.store, STORE_TENSORS, 5, "second", 6);
	store_put(state.store, STORE_SESSIONS, 99, "too", 3);
	ck_assert(state_has(STORE_TENSORS, 5, "before"));
	state_reopen(false);
	ck_assert(state_has(STORE_TENSORS, 5, "before"));
	ck_assert(!state_has(STORE_SESSIONS, 99, "too"));
	ck_assert_int_eq(store_prepare(state.store, STORE_SESSIONS, 100, 3), 0);
	store_put(state.store, STORE_TENSORS, 5, "first", 5);
	store_put(state.store, STORE_TENSORS, 5, "second", 6);
	store_put(state.store, STORE_SESSIONS, 99, "too", 3);
	store_commit(state.store);
	store_commit(state.store);
	ck_assert(state_has(STORE_TENSORS, 5, "second"));
	ck_assert_int_eq(store_flush(state.store), 0);
	state_reopen(false);
	ck_assert(state_has(STORE_TENSORS, 5, "second"));
	ck_assert(state_has(STORE_SESSIONS, 99, "too"));
}

/* As many transactions as one likes may be committed between two flushes. */
TEST(many_transactions_at_once)
{
	char text[20];
	state.options.durable = true;
	state_open();
	for (unsigned round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 3000; i++) {
			uint32_t index = i % 700;
			ck_assert_int_eq(store_prepare(state.store, STORE_TENSORS, index + 1, 1), 0);
			store_put(state.store, STORE_TENSORS, index, text,
				  (size_t)snprintf(text, sizeof(text), "%u of %u", i, round));
			store_commit(state.store);
		}
		ck_assert_int_eq(store_flush(state.store), 0);
	}
	state_reopen(false);
	for (uint32_t index = 0; index < 700; index++) {
		snprintf(text, sizeof(text), "%u of 2", index < 3000 % 700 ? 2800 + index : 2100 + index);
		ck_assert_msg(state_has(STORE_TENSORS, index, text), "%u: %s", index, text);
	}
	state_close(true);
	state_open();
	ck_assert_uint_eq(state.report.tables[STORE_TENSORS].n_kept, 700);
}

/* A write that was begun is found until it is dealt with. */
TEST(writes_under_way, .to = 2)
{
	const struct store_found_write *found;
	struct store_write *one, *two, *three;
	state.options.durable = _i;
	state_open();
	ck_assert_int_eq(store_write_begin(state.store, 1, 0, 10, &one), 0);
	ck_assert_int_eq(store_write_begin(state.store, UINT64_MAX, -1, INT64_MIN, &two), 0);
	ck_assert_int_eq(store_write_begin(state.store, 0, 0, 0, &three), 0);
	store_write_end(state.store, one);
	ck_assert_int_eq(store_flush(state.store), 0);
	for (unsigned i = 0; i < 3; i++) {
		state_reopen(false);
		ck_assert_uint_eq(state.report.n_writes, 2);
		ck_assert_uint_eq(store_writes_found(state.store, &found), 2);
		ck_assert(found[0].handle == UINT64_MAX && found[0].first == -1 && found[0].count == INT64_MIN);
		ck_assert(found[1].handle == 0 && found[1].first == 0 && found[1].count == 0);
	}
	/* One of this process' is none of those. */
	ck_assert_int_eq(store_write_begin(state.store, 7, 8, 9, &one), 0);
	ck_assert_int_eq(store_recovered(state.store), 0);
	ck_assert_uint_eq(store_writes_found(state.store, &found), 0);
	state_reopen(false);
	ck_assert_uint_eq(store_writes_found(state.store, &found), 1);
	ck_assert(found[0].handle == 7 && found[0].first == 8 && found[0].count == 9);
	ck_assert_int_eq(store_recovered(state.store), 0);
}

/* All of them begin, or none; the room of those that end is free again. */
TEST(writes_together, .to = 2)
{
	static struct store_note notes[STORE_WRITES_MAX + 1];
	const struct store_found_write *found;
	state.options.durable = _i;
	state_open();
	for (unsigned i = 0; i < STORE_WRITES_MAX; i++)
		notes[i] = (struct store_note){i, i, 1, NULL};
	ck_assert_int_eq(store_writes_begin(state.store, notes, 3), 0);
	ck_assert_int_eq(store_writes_begin(state.store, &notes[3], STORE_WRITES_MAX - 2), -ENOSPC);
	ck_assert_int_eq(store_writes_begin(state.store, &notes[3], STORE_WRITES_MAX - 3), 0);
	for (unsigned i = 0; i < STORE_WRITES_MAX; i++)
		if (i != 1)
			store_write_end(state.store, notes[i].write);
	ck_assert_int_eq(store_flush(state.store), 0);
	state_reopen(false);
	ck_assert_uint_eq(store_writes_found(state.store, &found), 1);
	ck_assert_uint_eq(found[0].handle, 1);
	ck_assert_int_eq(store_recovered(state.store), 0);
	ck_assert_int_eq(store_writes_begin(state.store, notes, STORE_WRITES_MAX), 0);
}

TEST(as_many_writes_as_there_may_be)
{
	static struct store_write *writes[STORE_WRITES_MAX];
	const struct store_found_write *found;
	struct store_write *more;
	state_open();
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < STORE_WRITES_MAX; i++)
			ck_assert_int_eq(store_write_begin(state.store, i, round, 1, &writes[i]), 0);
		ck_assert_int_eq(store_write_begin(state.store, 1, 1, 1, &more), -ENOSPC);
		if (!round)
			for (unsigned i = 0; i < STORE_WRITES_MAX; i++)
				store_write_end(state.store, writes[(i * 7919) % STORE_WRITES_MAX]);
	}
	store_write_end(state.store, writes[17]);
	state_reopen(false);
	ck_assert_uint_eq(store_writes_found(state.store, &found), STORE_WRITES_MAX - 1);
	/* The one that is free is. */
	ck_assert_int_eq(store_write_begin(state.store, 1, 1, 1, &more), 0);
	ck_assert_int_eq(store_write_begin(state.store, 1, 1, 1, &more), -ENOSPC);
	ck_assert_int_eq(store_recovered(state.store), 0);
	for (unsigned i = 1; i < STORE_WRITES_MAX; i++)
		ck_assert_int_eq(store_write_begin(state.store, i, 1, 1, &more), 0);
	ck_assert_int_eq(store_write_begin(state.store, 1, 1, 1, &more), -ENOSPC);
}

/* Descriptors that somebody keeps, as systemd does, in place of a directory. */
static int kept[STATE_FILES];

static int open_kept(void *ctx, const char *name)
{
	ck_assert_ptr_eq(ctx, kept);
	unsigned i = 0;
	for (; i < STATE_FILES; i++)
		if (!strcmp(name, state_files[i]))
			break;
	int fd = fcntl(kept[i], F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

TEST(files_without_a_directory)
{
	for (unsigned i = 0; i < STATE_FILES; i++)
		kept[i] = memfd_create(state_files[i], MFD_CLOEXEC);
	state.options.directory = NULL;
	state.options.open = open_kept;
	state.options.ctx = kept;
	state_open();
	ck_assert(state.report.is_new);
	fill();
	state_reopen(false);
	holds();
	state_close(true);
	state.options.geometry_bytes = 5;
	state_refused(-EINVAL, "journal: the state is of a device of four NPUs");
	close(kept[3]);
	kept[3] = -1;
	state_refused(-EBADF, "sessions: cannot be opened: Bad file descriptor");
}

FIXTURE(state_set_up, state_tear_down)
