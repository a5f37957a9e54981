/* What it costs that state outlives the process: bench_store [options]. A change of one tensor's cell and of two
 * tables, a write under way, and opening a state of 10,000 tensors, in a directory in memory. No peer has such. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/store.h"
#include "tests/bench/support/bench.h"
#include "tests/bench/support/peer.h"

enum { CELL_BYTES = 240, N_CELLS = 10000, N_CHANGES = 1000 };

static char directory[64];
static struct store *store;
static uint32_t next_cell;
static uint8_t payload[CELL_BYTES];

static void open_store(void)
{
	static struct store_report report;
	char error[STORE_ERROR_BYTES];
	struct store_options options = {
		.directory = directory,
		.geometry = "bench",
		.geometry_bytes = 5,
		.geometry_text = "bench",
		.memory_bytes = 1 << 20,
		.boot_id = "00000000000000000000000000000001",
		.heap = &heap_libc,
	};

	if (store_open(&options, &store, &report, error))
		peer_die(error);
}

static void prepare(enum store_table table, uint32_t index, uint32_t n_changes)
{
	if (store_prepare(store, table, index + 1, n_changes))
		peer_die("no room");
}

static void change_one(void *context)
{
	(void)context;
	for (unsigned i = 0; i < N_CHANGES; i++) {
		next_cell = (next_cell + 7919) % N_CELLS;
		prepare(STORE_TENSORS, next_cell, 1);
		store_put(store, STORE_TENSORS, next_cell, payload, sizeof(payload));
		store_commit(store);
	}
}

/* As a request to free and one to allocate have it, with what they answered. */
static void change_pair(void *context)
{
	(void)context;
	for (unsigned i = 0; i < N_CHANGES; i++) {
		next_cell = (next_cell + 7919) % N_CELLS;
		prepare(STORE_TENSORS, next_cell, 2);
		prepare(STORE_RESULTS, next_cell % 4096, 2);
		store_put(store, STORE_TENSORS, next_cell, payload, sizeof(payload));
		store_put(store, STORE_RESULTS, next_cell % 4096, payload, 40);
		store_commit(store);
	}
}

static void write_one(void *context)
{
	struct store_write *write;

	(void)context;
	for (unsigned i = 0; i < N_CHANGES; i++) {
		if (store_write_begin(store, i, 0, 64, &write))
			peer_die("no room");
		store_write_end(store, write);
	}
}

static void reopen(void *context)
{
	(void)context;
	store_close(store, false);
	open_store();
}

static void tell(const struct bench *bench, const char *name, void (*run)(void *context), double scale,
		 const char *unit, double goal)
{
	struct bench_contender contender = {"npumem", run, NULL, 1, BENCH_OWN};
	struct bench_measured measured;

	if (!bench_wanted(bench, name))
		return;
	bench_measure(bench, &contender, 1, &measured);
	struct bench_row row = {
		.name = name,
		.value = bench_seconds(&measured, 0) * scale,
		.unit = unit,
		.kind = BENCH_VALUE_AT_MOST,
		.goal = goal,
	};
	bench_tell(bench, &row);
}

static void remove_all(void)
{
	static const char *const names[] = {"journal", "memory", "tensors", "sessions", "results"};
	char path[100];

	store_close(store, false);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		unlink(path);
	}
	rmdir(directory);
}

int main(int argc, char **argv)
{
	struct bench bench = {.name = "store", .rounds = 11, .seconds = 0.05};

	bench_options(&bench, argc, argv);
	snprintf(directory, sizeof(directory), "%s/npumem-bench-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(directory))
		peer_die("no directory");
	open_store();
	for (uint32_t i = 0; i < N_CELLS; i++) {
		prepare(STORE_TENSORS, i, 1);
		store_put(store, STORE_TENSORS, i, payload, sizeof(payload));
		store_commit(store);
	}
	tell(&bench, "a cell of 240 bytes", change_one, 1e9 / N_CHANGES, "ns", 400);
	tell(&bench, "and one of 40 bytes", change_pair, 1e9 / N_CHANGES, "ns", 500);
	tell(&bench, "a write under way", write_one, 1e9 / N_CHANGES, "ns", 10);
	tell(&bench, "opened with 10,000 cells", reopen, 1e3, "ms", 20);
	remove_all();
	bench_end(&bench);
	return 0;
}
