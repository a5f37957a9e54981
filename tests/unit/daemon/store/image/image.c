/* An image is the state as it was when it began, whatever changes while it is told, and by whom. */
#include "daemon/store/image/image.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tests/unit/daemon/store/state.h"

enum { PAGES = 600, MEMORY_BYTES = PAGES * 4096, WRITERS = 3 };

static char copy[80];

static void set_up(void)
{
	state_set_up();
	state.options.memory_bytes = MEMORY_BYTES;
	snprintf(copy, sizeof(copy), "%s-copy", state.directory);
	ck_assert_int_eq(mkdir(copy, 0700), 0);
}

static void tear_down(void)
{
	state_tear_down();
	unlink(state_path_in(copy, "manifest"));
	state_remove(copy);
	ck_assert(access(copy, F_OK));
}

static uint8_t *memory(void)
{
	return store_memory(state.store);
}

/* As whoever writes local memory does. */
static void set(uint64_t off, uint8_t value)
{
	store_image_before(state.store, off, 1);
	memory()[off] = value;
}

static void keep_piece(const struct store_piece *piece)
{
	int fd = open(state_path_in(copy, piece->file), O_WRONLY | O_CREAT, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_uint_le(piece->bytes, STORE_PIECE_BYTES);
	ck_assert_uint_le(piece->off + piece->bytes, piece->file_bytes);
	ck_assert_int_eq(ftruncate(fd, (off_t)piece->file_bytes), 0);
	ck_assert_int_eq(pwrite(fd, piece->data, piece->bytes, (off_t)piece->off), (ssize_t)piece->bytes);
	close(fd);
}

/* The next n pieces (0: all). Whether that was all. */
static bool tell(unsigned n)
{
	struct store_piece piece = {.is_last = false};
	for (unsigned i = 0; !piece.is_last && (!n || i < n); i++) {
		store_image_next(state.store, &piece);
		keep_piece(&piece);
	}
	return piece.is_last;
}

static void open_copy(void)
{
	state_close(false);
	state.options.directory = copy;
	state_open();
	ck_assert(state.report.was_clean && !state.report.n_writes);
	ck_assert(access(state_path_in(copy, "manifest"), F_OK));
	state.options.directory = state.directory;
}

static void fill(void)
{
	for (unsigned page = 0; page < PAGES; page += 3)
		memset(memory() + page * 4096, (int)page % 250 + 1, 4096);
	state_put(STORE_TENSORS, 0, "one");
	state_put(STORE_TENSORS, 500, "far");
	state_put(STORE_SESSIONS, 3, "session");
}

static void check_memory(void)
{
	for (unsigned page = 0; page < PAGES; page++) {
		const uint8_t *at = memory() + page * 4096;
		uint8_t value = page % 3 ? 0 : (uint8_t)(page % 250 + 1);
		for (unsigned i = 0; i < 4096; i++)
			ck_assert_uint_eq(at[i], value);
	}
}

static void check(void)
{
	size_t bytes;
	check_memory();
	ck_assert(state_has(STORE_TENSORS, 0, "one"));
	ck_assert(state_has(STORE_TENSORS, 500, "far"));
	ck_assert(state_has(STORE_SESSIONS, 3, "session"));
	ck_assert_ptr_null(store_cell(state.store, STORE_TENSORS, 1, &bytes));
	ck_assert_ptr_null(store_cell(state.store, STORE_RESULTS, 9000, &bytes));
}

/* _i: after so many pieces everything changes. */
TEST(what_changes_later_is_not_in_it, .to = 6)
{
	state.options.durable = _i % 2;
	state_open();
	fill();
	ck_assert_int_eq(store_image_begin(state.store), 0);
	ck_assert_int_eq(store_image_begin(state.store), -EBUSY);
	ck_assert(_i == 0 || !tell((unsigned)_i));
	for (uint64_t off = 7; off < MEMORY_BYTES; off += 1000)
		set(off, 77);
	state_put(STORE_TENSORS, 0, "another");
	state_put(STORE_TENSORS, 1, "new");
	state_put(STORE_RESULTS, 9000, "behind the end");
	ck_assert_int_eq(store_prepare(state.store, STORE_SESSIONS, 0, 1), 0);
	store_drop(state.store, STORE_SESSIONS, 3, 5);
	store_commit(state.store);
	ck_assert_uint_gt(store_image_held(state.store), STORE_PIECE_BYTES);
	ck_assert(tell(0));
	store_image_end(state.store);
	ck_assert_uint_eq(store_image_held(state.store), 0);
	open_copy();
	check();
}

TEST(the_next_one_is_of_its_own_moment)
{
	state_open();
	ck_assert_int_eq(store_image_begin(state.store), 0);
	set(5000, 1);
	ck_assert(!tell(1));
	store_image_end(state.store);
	store_image_end(state.store);
	store_image_give_back(state.store);
	store_image_before(state.store, 0, MEMORY_BYTES);
	memset(memory(), 0, MEMORY_BYTES);
	fill();
	ck_assert_int_eq(store_image_begin(state.store), 0);
	ck_assert(tell(0));
	store_image_end(state.store);
	open_copy();
	check();
}

/* ---- threads ---- */

static atomic_bool is_over;

static void *write_on(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg, at = seed;
	while (!atomic_load(&is_over)) {
		at = at * 1103515245 + 12345;
		/* Bytes of its own, of everybody's pages. */
		set((at >> 8) % (PAGES * 1024) * 4 + seed, (uint8_t)at);
	}
	return NULL;
}

TEST(writers_on_other_threads)
{
	pthread_t threads[WRITERS];
	state_open();
	fill();
	ck_assert_int_eq(store_image_begin(state.store), 0);
	for (uintptr_t i = 0; i < WRITERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, write_on, (void *)i), 0);
	ck_assert(tell(0));
	atomic_store(&is_over, true);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	store_image_end(state.store);
	open_copy();
	check();
}

/* ---- failures ---- */

static int n_failures, fail_at;

static int fail_call(void *ctx, const char *call)
{
	(void)ctx;
	return !strcmp(call, "mmap") && n_failures++ == fail_at ? ENOMEM : 0;
}

static void *alloc_or_fail(void *ctx, size_t bytes)
{
	(void)ctx;
	return n_failures++ == fail_at ? NULL : malloc(bytes);
}

static void free_it(void *ctx, void *at)
{
	(void)ctx;
	free(at);
}

/* _i: 0 mappings fail, 1 memory. */
TEST(without_room_there_is_none, .to = 2)
{
	static const struct store_hooks hooks = {.fail = fail_call};
	static const struct heap heap = {alloc_or_fail, free_it, NULL};
	unsigned n = 0;
	fail_at = -1;
	if (_i)
		state.options.heap = &heap;
	else
		state.options.hooks = &hooks;
	state_open();
	fill();
	for (int status = -1; status; n++) {
		n_failures = 0;
		fail_at = (int)n;
		status = store_image_begin(state.store);
		ck_assert(!status || status == -ENOMEM);
		ck_assert(!status || !store_image_held(state.store));
	}
	ck_assert_uint_gt(n, 2);
	fail_at = -1;
	ck_assert(tell(0));
	store_image_end(state.store);
	open_copy();
	check();
}

FIXTURE(set_up, tear_down)
