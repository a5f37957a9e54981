/* Loss of power, played: of each sector of 512 bytes the disk has what was there when the file last went to it, or
 * what stands there now, by chance. With durable all that was flushed is there; without, what is there was stored
 * once, and no data is believed. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/daemon/store/script.h"

enum { DISK_BYTES = 4 << 20, SECTOR_BYTES = 512, STOPPED = 42 };

/* What child and parent share. */
struct world {
	struct {
		uint64_t inode;
		size_t bytes;
		char text[DISK_BYTES];
	} disk[STATE_FILES];
	unsigned stores_left;
	uint64_t n_flushed, n_begun;
};

static struct world *world;

static void read_whole(int fd, unsigned i)
{
	struct stat stat_of;
	ck_assert_int_eq(fstat(fd, &stat_of), 0);
	ck_assert_int_le(stat_of.st_size, DISK_BYTES);
	world->disk[i].inode = stat_of.st_ino;
	world->disk[i].bytes = (size_t)stat_of.st_size;
	ck_assert_int_eq(pread(fd, world->disk[i].text, world->disk[i].bytes, 0), stat_of.st_size);
}

static void count_down(void *ctx)
{
	(void)ctx;
	if (!--world->stores_left)
		_exit(STOPPED);
}

static void note_synced(void *ctx, int fd)
{
	struct stat stat_of;
	(void)ctx;
	ck_assert_int_eq(fstat(fd, &stat_of), 0);
	for (unsigned i = 0; i < STATE_FILES; i++)
		if (world->disk[i].inode == stat_of.st_ino)
			read_whole(fd, i);
}

static const struct store_hooks hooks = {.stored = count_down, .synced = note_synced};

/* What stands there is on the disk. */
static void begin_with_what_is_there(void)
{
	for (unsigned i = 0; i < STATE_FILES; i++) {
		int fd = open(state_path(state_files[i]), O_RDWR | O_CREAT, 0600);
		ck_assert_int_ge(fd, 0);
		read_whole(fd, i);
		close(fd);
	}
}

static void lose_power(uint64_t *chance)
{
	for (unsigned i = 0; i < STATE_FILES; i++) {
		size_t bytes;
		const char *path = state_path(state_files[i]);
		char *now = state_read(path, &bytes);
		*chance = script_hash(*chance + 1);
		/* Its length is as old as the file went to the disk, or as new. */
		size_t length = *chance & 1 ? bytes : world->disk[i].bytes;
		for (size_t at = 0; at < length; at += SECTOR_BYTES) {
			*chance = script_hash(*chance + 1);
			bool is_old = at >= bytes || *chance & 2;
			if (is_old && at < world->disk[i].bytes)
				state_write(path, world->disk[i].text + at, SECTOR_BYTES, at);
			else if (is_old)
				state_write(path, (char[SECTOR_BYTES]){0}, SECTOR_BYTES, at);
		}
		ck_assert_int_eq(truncate(path, (off_t)length), 0);
		free(now);
	}
}

static void next_boot(void)
{
	static char id[40];
	static unsigned boot = 1;
	snprintf(id, sizeof(id), "%032x", ++boot);
	state.options.boot_id = id;
}

static void write_place(struct store *store, uint64_t number)
{
	memset(script_place(store, number), (int)(number & 0xff), SCRIPT_PLACE_BYTES);
	state_keep(script_place(store, number), SCRIPT_PLACE_BYTES);
}

/* The place of every fourth number is written: what begins a write goes to the disk, with all that was committed.
 */
static bool writes_place(uint64_t number)
{
	return number % 4 == 0;
}

/* Until the power goes. */
static void run(uint64_t n)
{
	struct store_write *write;
	state.options.hooks = &hooks;
	state_open();
	ck_assert_int_eq(store_recovered(state.store), 0);
	for (uint64_t number = n;; number++) {
		world->n_begun = number + 1;
		if (writes_place(number)) {
			ck_assert_int_eq(store_write_begin(state.store, number, 0, 1, &write), 0);
			write_place(state.store, number / 4);
			store_write_end(state.store, write);
		}
		script_do(state.store, number);
		if (script_hash(number) % 4)
			continue;
		ck_assert_int_eq(store_flush(state.store), 0);
		world->n_flushed = number + 1;
	}
}

/* A process that goes on with the script and loses power after so many stores into files. */
static void play(unsigned round, uint64_t n, uint64_t *chance)
{
	int status;
	begin_with_what_is_there();
	*chance = script_hash(*chance + 1);
	/* Every other time while the state is made or opened, after one store more each time. */
	world->stores_left = 1 + (unsigned)(round & 1 ? round / 2 % 45 : *chance % 700);
	world->n_flushed = world->n_begun = n;
	pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (!child)
		run(n);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == STOPPED);
	lose_power(chance);
	next_boot();
}

/* The last write that was flushed, or a whole later one. */
static bool place_holds(struct store *store, uint64_t place)
{
	bool was_flushed = false;
	for (uint64_t number = 4 * place; number < world->n_begun; number += 4 * SCRIPT_PLACES) {
		const char *text = script_place(store, place);
		bool is_all = true, is_last = number + 4 * SCRIPT_PLACES >= world->n_flushed;
		for (unsigned i = 0; i < SCRIPT_PLACE_BYTES; i++)
			is_all = is_all && text[i] == (char)(number / 4 & 0xff);
		if (is_all && is_last)
			return true;
		was_flushed = was_flushed || number < world->n_flushed;
	}
	return !was_flushed;
}

static void memory_holds(struct store *store)
{
	const struct store_found_write *found;
	unsigned n = store_writes_found(store, &found);
	bool is_found[SCRIPT_PLACES] = {false};
	for (unsigned i = 0; i < n; i++)
		is_found[found[i].handle / 4 % SCRIPT_PLACES] = true;
	for (uint64_t place = 0; place < SCRIPT_PLACES; place++)
		ck_assert(is_found[place] || place_holds(store, place));
}

static void tables_hold(struct store *store, struct script_model *model)
{
	for (uint64_t n = world->n_flushed; n <= world->n_begun; n++) {
		script_advance(model, n);
		if (script_holds(store, model))
			return;
	}
	ck_abort_msg("%lu changes were flushed", (unsigned long)world->n_flushed);
}

static void share_world(void)
{
	world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(world, MAP_FAILED);
}

static uint64_t seed(void)
{
	const char *value = getenv("NPUMEM_STORE_SEED");
	uint64_t number = value ? strtoul(value, NULL, 0) : (uint64_t)time(NULL);
	printf("store/power: seed %lu\n", (unsigned long)number);
	return script_hash(number);
}

static unsigned rounds(void)
{
	const char *value = getenv("NPUMEM_STORE_KILLS");
	return value ? (unsigned)strtoul(value, NULL, 0) : 40;
}

TEST(durable_means_on_the_disk, .is_slow = true)
{
	struct script_model model = {0};
	uint64_t chance = seed();
	share_world();
	state.options.durable = true;
	for (unsigned round = 0, n = rounds(); round < n; round++) {
		if (round % 5 == 0) {
			state_remove(state.directory);
			ck_assert_int_eq(mkdir(state.directory, 0700), 0);
			model = (struct script_model){0};
		}
		play(round, model.n, &chance);
		state_open();
		ck_assert_msg(!state.report.is_stale && !state_tells("lost") && !state_tells("damaged"),
			      "round %u: %s", round, state.report.lines[0]);
		tables_hold(state.store, &model);
		memory_holds(state.store);
		for (uint64_t number = 0; number < model.n; number += 4)
			write_place(state.store, number / 4);
		ck_assert_int_eq(store_recovered(state.store), 0);
		state_close(false);
	}
}

/* Each cell is one that was put once. */
static void cells_are_real(const struct store *store)
{
	for (enum store_table table = 0; table < STORE_TABLES; table++)
		for (uint32_t index = 0; index < store_n_cells(store, table); index++) {
			bool is_real = store_is_lost(store, table, index) ||
				       script_cell_is(store, table, index, &(struct script_change){0});
			for (uint64_t number = 0; !is_real && number < world->n_begun; number++)
				for (unsigned i = 0; i < script_n_changes(number); i++) {
					struct script_change change = script_change(number, i);
					is_real = is_real || (change.table == table && change.index == index &&
							      script_cell_is(store, table, index, &change));
				}
			ck_assert(is_real);
		}
}

TEST(otherwise_it_is_told, .is_slow = true)
{
	uint64_t chance = seed();
	share_world();
	for (unsigned round = 0, n = rounds(); round < n; round++) {
		state_remove(state.directory);
		ck_assert_int_eq(mkdir(state.directory, 0700), 0);
		/* Every other time the state is another process's. */
		if (round & 2) {
			state_open();
			state_close(false);
		}
		play(round, 0, &chance);
		state_open();
		ck_assert(state.report.is_stale || world->n_begun == 0);
		cells_are_real(state.store);
		state_close(false);
	}
}

FIXTURE(state_set_up, state_tear_down)
