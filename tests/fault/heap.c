/* Every allocation of the daemon's fails: the i-th alone, and all from the i-th on, for every i, under each input
 * of the corpus of requests, which reaches every method and kernel; and under a daemon's beginning. After each the
 * accounts add up, a refused request has changed nothing, clients can leave while there is still no memory, what
 * is asked then is done as ever, and every piece comes back. tests/fuzz/scene.c looks at all of that.
 *
 * NPUMEM_FAULT_SITES=1 prints the places that asked for memory, for addr2line. */
#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/play.h"
#include "tests/fuzz/scene.h"
#include "tests/random/daemon.h"
#include "tests/unit/daemon/device/scarce.h"

enum { SITES_MAX = 1024, PATH_BYTES = 4096, NEVER = -1 };

struct site {
	const void *address;
	unsigned n_faults;
};

static struct scarce scarce;
static struct site sites[SITES_MAX];
static unsigned n_sites;
static uint64_t n_faults, n_runs;

static void note(const void *address, bool fails)
{
	unsigned i = 0;

	while (i < n_sites && sites[i].address != address)
		i++;
	if (i == SITES_MAX)
		fuzz_fail("more than %d places that take memory", SITES_MAX);
	if (i == n_sites)
		sites[n_sites++].address = address;
	sites[i].n_faults += fails;
	n_faults += fails;
}

static void arm(int64_t fail_at, bool goes_on)
{
	scarce_arm(&scarce, fail_at);
	scarce.goes_on = goes_on;
	n_runs++;
}

static void check_returned(const char *what, int64_t i)
{
	if (scarce.n_live)
		fuzz_fail("%s, allocation %" PRId64 ": %" PRId64 " pieces never come back", what, i,
			  scarce.n_live);
}

/* ---- the corpus ---- */

/* How many allocations there were. */
static int64_t run_input(const uint8_t *bytes, size_t n, int64_t fail_at, bool goes_on)
{
	struct scene *scene;
	int64_t n_calls;

	scarce.fail_at = NEVER;
	scene = play_begin(bytes, n, &scarce.heap);
	arm(fail_at, goes_on);
	play(scene, bytes, n);
	scene_close_all(scene);
	n_calls = scarce.n_calls;
	scarce.fail_at = NEVER;
	scene_serve(scene);
	scene_free(scene);
	return n_calls;
}

static void sweep_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	static uint8_t bytes[1 << 16];
	size_t n;

	if (!file)
		fuzz_fail("%s cannot be read", path);
	n = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	for (unsigned goes_on = 0; goes_on < 2; goes_on++)
		for (int64_t i = 0; run_input(bytes, n, i, goes_on) > i; i++) {
			if (getenv("NPUMEM_FAULT_VERBOSE"))
				fprintf(stderr, "%s: without allocation %" PRId64 "%s\n", path, i,
					goes_on ? " and on" : "");
			check_returned(path, i);
		}
}

static unsigned sweep_folder(const char *path)
{
	struct dirent **entries;
	int n = scandir(path, &entries, NULL, alphasort);
	unsigned n_files = 0;

	for (int i = 0; i < n; i++) {
		char name[PATH_BYTES];

		snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.') {
			sweep_file(name);
			n_files++;
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return n_files;
}

/* ---- a daemon's beginning ---- */

static void nobody_answers(void *ctx, unsigned peer, const uint8_t *message, size_t bytes)
{
	(void)ctx;
	(void)peer;
	(void)message;
	(void)bytes;
}

/* False: nothing failed any more. */
static bool begin(int64_t fail_at)
{
	struct daemon_options options = {
		.n_npus = 8, .npu_bytes = 8192, .threads = true, .heap = &scarce.heap, .answered = nobody_answers};
	struct daemon *daemon;
	const char *wrong = NULL;
	uint64_t before = n_faults;

	arm(fail_at, false);
	daemon = daemon_new(&options);
	if (daemon) {
		if (!daemon_open(daemon, 0, 1001))
			daemon_close(daemon, 0);
		while (daemon_tasks(daemon))
			daemon_done(daemon, 0);
		wrong = daemon_free(daemon);
	}
	if (wrong)
		fuzz_fail("a daemon that began without allocation %" PRId64 ": %s", fail_at, wrong);
	check_returned("a daemon's beginning", fail_at);
	return n_faults > before;
}

int main(int argc, char **argv)
{
	unsigned n_failed = 0, n_files = 0;

	scarce_init(&scarce);
	scarce.note = note;
	for (int64_t i = 0; begin(i); i++)
		;
	for (int i = 1; i < argc; i++)
		n_files += sweep_folder(argv[i]);
	for (unsigned i = 0; i < n_sites; i++) {
		n_failed += sites[i].n_faults > 0;
		if (getenv("NPUMEM_FAULT_SITES"))
			printf("%p %u\n", sites[i].address, sites[i].n_faults);
	}
	printf("%u inputs, %" PRIu64 " runs, %" PRIu64
	       " allocations failed; of %u call sites that took memory %u\n",
	       n_files, n_runs, n_faults, n_sites, n_failed);
	return !n_files || n_failed < n_sites;
}
