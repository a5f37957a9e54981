/* A process that ends at any moment: what it committed is there, and of what it was at all or nothing. */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/daemon/store/script.h"

/* What the script has done so far, told after it was. */
struct progress {
	volatile uint64_t n_done, n_begun, n_ended; /* commits; writes to local memory */
};

static void step(struct store *store, struct progress *progress, uint64_t number)
{
	struct store_write *write;
	progress->n_begun = number + 1;
	ck_assert_int_eq(store_write_begin(store, number, (int64_t)(number % SCRIPT_PLACES), 1, &write), 0);
	memset(script_place(store, number), (int)(number & 0xff), SCRIPT_PLACE_BYTES);
	state_keep(script_place(store, number), SCRIPT_PLACE_BYTES);
	store_write_end(store, write);
	ck_assert_int_eq(store_flush(store), 0);
	progress->n_ended = number + 1;
	script_do(store, number);
	ck_assert_int_eq(store_flush(store), 0);
	progress->n_done = number + 1;
}

static bool is_all(const char *place, uint64_t number)
{
	for (unsigned i = 0; i < SCRIPT_PLACE_BYTES; i++)
		if (place[i] != (char)(number & 0xff))
			return false;
	return true;
}

/* Of places whose last write was told to have ended, and that none is found under way for, all is there. */
static void memory_holds(struct store *store, const struct progress *progress)
{
	const struct store_found_write *found;
	unsigned n = store_writes_found(store, &found);
	bool is_found[SCRIPT_PLACES] = {false};
	for (unsigned i = 0; i < n; i++) {
		ck_assert_uint_lt(found[i].handle, progress->n_begun);
		ck_assert_uint_eq(found[i].handle % SCRIPT_PLACES, (uint64_t)found[i].first);
		is_found[found[i].first] = true;
	}
	for (uint64_t number = 0; number < progress->n_begun; number++) {
		bool is_last = number + SCRIPT_PLACES >= progress->n_begun;
		if (!is_last || is_found[number % SCRIPT_PLACES])
			continue;
		const char *place = script_place(store, number);
		if (number < progress->n_ended)
			ck_assert(is_all(place, number));
		else /* it was cut off before it was noted, or after it was done */
			ck_assert(is_all(place, number) ||
				  is_all(place, number < SCRIPT_PLACES ? 0 : number - SCRIPT_PLACES));
	}
}

/* The state is that after what was told, or after one more. */
static void tables_hold(struct store *store, struct script_model *model, const struct progress *progress)
{
	script_advance(model, progress->n_done);
	if (script_holds(store, model))
		return;
	script_advance(model, progress->n_done + 1);
	ck_assert_msg(script_holds(store, model), "after %lu changes", (unsigned long)progress->n_done);
}

static struct progress *shared(void)
{
	struct progress *progress =
		mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(progress, MAP_FAILED);
	return progress;
}

/* ---- after each store into a file ---- */

enum { STEPS = 4, STOPPED = 42, FINISHED };

static unsigned stores_left;

static void count_down(void *ctx)
{
	(void)ctx;
	if (!--stores_left)
		_exit(STOPPED);
}

static const struct store_hooks stopping = {.stored = count_down};

/* A process that opens the state, goes on with the script up to `most`, and ends after so many stores. Whether it
 * was that which ended it. */
static bool run_stopped(struct progress *progress, unsigned after, uint64_t most)
{
	pid_t child = fork();
	int status;
	ck_assert_int_ge(child, 0);
	if (!child) {
		stores_left = after;
		state.options.hooks = &stopping;
		state_open();
		for (uint64_t number = progress->n_done; number < most; number++)
			step(state.store, progress, number);
		_exit(FINISHED);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && (WEXITSTATUS(status) == STOPPED || WEXITSTATUS(status) == FINISHED));
	return WEXITSTATUS(status) == STOPPED;
}

static void check_after_stop(const struct progress *progress)
{
	struct script_model model = {0};
	state_open();
	ck_assert(!state_tells("damaged") && !state_tells("lost") && !state.report.is_stale);
	tables_hold(state.store, &model, progress);
	memory_holds(state.store, progress);
	state_close(false);
}

/* From the state's making on. Every third time recovery is stopped as well, somewhere, and twice. */
TEST(stopped_after_each_store, .to = 2)
{
	struct progress *progress = shared();
	unsigned after = 0;
	bool is_stopped;
	state.options.durable = _i;
	do {
		state_remove(state.directory);
		*progress = (struct progress){0};
		is_stopped = run_stopped(progress, ++after, STEPS);
		for (unsigned i = 0; after % 3 == 0 && i < 2; i++)
			run_stopped(progress, 1 + after % 41, 0);
		check_after_stop(progress);
	} while (is_stopped);
	ck_assert_uint_gt(after, 100);
	munmap(progress, sizeof(*progress));
}

/* ---- at any moment ---- */

static void run_until_killed(struct progress *progress)
{
	state_open();
	for (uint64_t number = progress->n_done;; number++)
		step(state.store, progress, number);
}

static void sleep_us(uint64_t us)
{
	struct timespec t = {0, (long)us * 1000};
	nanosleep(&t, NULL);
}

/* What was found is what the next process goes on from. */
static void check_after_kill(struct progress *progress, struct script_model *model)
{
	state_open();
	ck_assert(!state_tells("damaged") && !state_tells("lost") && !state.report.is_stale);
	tables_hold(state.store, model, progress);
	memory_holds(state.store, progress);
	/* Its places are written again from here on, as recovery would have them. */
	for (uint64_t place = 0; place < SCRIPT_PLACES; place++)
		for (uint64_t back = 1; back <= SCRIPT_PLACES && back <= model->n; back++)
			if ((model->n - back) % SCRIPT_PLACES == place) {
				memset(script_place(state.store, place), (int)(model->n - back) & 0xff,
				       SCRIPT_PLACE_BYTES);
				state_keep(script_place(state.store, place), SCRIPT_PLACE_BYTES);
			}
	ck_assert_int_eq(store_recovered(state.store), 0);
	progress->n_done = progress->n_begun = progress->n_ended = model->n;
	state_close(false);
}

static unsigned long setting(const char *name, unsigned long otherwise)
{
	const char *value = getenv(name);
	return value ? strtoul(value, NULL, 0) : otherwise;
}

/* NPUMEM_STORE_KILLS of them; NPUMEM_STORE_SEED says at which moments. */
TEST(killed_at_any_moment, .is_slow = true)
{
	unsigned long n_kills = setting("NPUMEM_STORE_KILLS", 200);
	uint64_t seed = setting("NPUMEM_STORE_SEED", (unsigned long)time(NULL)), most_us = 4000;
	struct progress *progress = shared();
	struct script_model model = {0};
	printf("store/kill: %lu kills, seed %lu\n", n_kills, (unsigned long)seed);
	for (unsigned long i = 0; i < n_kills; i++) {
		state.options.durable = i & 1;
		pid_t child = fork();
		ck_assert_int_ge(child, 0);
		if (!child)
			run_until_killed(progress);
		sleep_us(script_hash(seed + i) % most_us);
		kill(child, SIGKILL);
		int status;
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "kill %lu: it ended by itself",
			      i);
		check_after_kill(progress, &model);
		/* Where a process takes longer than that to begin. */
		if (!model.n && most_us < 400000)
			most_us += most_us / 8;
	}
	ck_assert_uint_gt(model.n, 0);
	munmap(progress, sizeof(*progress));
}

FIXTURE(state_set_up, state_tear_down)
