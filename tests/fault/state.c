/* A state under faults: every allocation of a recovery fails, once and from then on, and the next recovery has all
 * the same; the process stops after every store into its files while requests change them, and what the next one
 * has is what was answered, with or without the request that was under way; every system call of the store fails,
 * at the start, where it is told, and under requests, which are refused and change nothing.
 *
 * Every day some of the stops, evenly; with NPUMEM_FAULT_WHOLE=1 all of them. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/rpc/rpc.h"
#include "daemon/store/hooks.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/left.h"
#include "tests/fuzz/request.h"
#include "tests/fuzz/scene.h"
#include "tests/random/daemon.h"
#include "tests/unit/daemon/device/scarce.h"

enum { NEVER = -1, MESSAGES_MAX = 80, STOPS_EVERY_DAY = 150, BYTES_MAX = 1 << 14 };

static struct left killed, closed;
static struct store_report report;
static char error[STORE_ERROR_BYTES];
static struct {
	uint64_t stops, allocations, calls, runs;
} done;

/* ---- memory ---- */

static struct scarce scarce;

static void note(const void *caller, bool fails)
{
	(void)caller;
	done.allocations += fails;
}

static unsigned count_tensors(struct scene *scene)
{
	const struct device *device = daemon_rpc(scene_daemon(scene))->service->device;
	unsigned n = 0;

	for (struct tensor *tensor = device_next(device, NULL); tensor; tensor = device_next(device, tensor))
		n++;
	return n;
}

static void send_all(struct scene *scene, uint64_t *after);

/* A recovery without the i-th allocation; false: it had all. */
static bool recover_scarcely(int64_t i, bool goes_on)
{
	struct store *store = NULL;
	struct scene *scene;

	scarce_arm(&scarce, i);
	scarce.goes_on = goes_on;
	if (left_open(&scarce.heap, NULL, &store, &report, error)) {
		if (!error[0])
			fuzz_fail("a state is refused without a word");
	} else {
		/* Opening sessions of clients is not recovery. */
		scene = left_scene(store, &report, &scarce.heap);
		scarce.fail_at = NEVER;
		if (scene)
			scene_free(scene);
		store_close(store, false);
	}
	scarce.fail_at = NEVER;
	if (scarce.n_live)
		fuzz_fail("allocation %" PRId64 " of a recovery: %" PRId64 " pieces never come back", i,
			  scarce.n_live);
	done.runs++;
	return scarce.n_calls > i;
}

/* Whatever came before, the state is as it was. */
static void recover_well(const struct left *left)
{
	struct store *store;
	struct scene *scene;

	if (left_open(NULL, NULL, &store, &report, error))
		fuzz_fail("after a recovery that failed: %s", error);
	scene = left_scene(store, &report, NULL);
	if (!scene)
		fuzz_fail("after a recovery that failed there is none");
	left_check(left, daemon_rpc(scene_daemon(scene))->service->device);
	/* All but the session's own that does not come back are there. */
	if (count_tensors(scene) + 2 < left->n_tensors)
		fuzz_fail("%u of %u tensors are left", count_tensors(scene), left->n_tensors);
	scene_wait(scene, 31000);
	scene_close_all(scene);
	scene_serve(scene);
	scene_free(scene);
	store_close(store, false);
}

/* Requests that change the state, without the i-th allocation; false: they had all. */
static bool ask_scarcely(int64_t i, bool goes_on)
{
	struct store *store;
	struct scene *scene;

	left_put_back(&closed);
	scarce.fail_at = NEVER;
	if (left_open(&scarce.heap, NULL, &store, &report, error))
		fuzz_fail("%s", error);
	scene = left_scene(store, &report, &scarce.heap);
	scarce_arm(&scarce, i);
	scarce.goes_on = goes_on;
	send_all(scene, NULL);
	scene_close_all(scene);
	scarce.fail_at = NEVER;
	scene_serve(scene);
	scene_free(scene);
	store_close(store, false);
	if (scarce.n_live)
		fuzz_fail("allocation %" PRId64 " under a state: %" PRId64 " pieces never come back", i,
			  scarce.n_live);
	done.runs++;
	return scarce.n_calls > i;
}

static void sweep_memory(void)
{
	for (unsigned goes_on = 0; goes_on < 2; goes_on++)
		for (int64_t i = 0; ask_scarcely(i, goes_on); i++)
			;
}

static void sweep_recovery(const struct left *left)
{
	for (unsigned goes_on = 0; goes_on < 2; goes_on++)
		for (int64_t i = 0;; i++) {
			bool goes;

			left_put_back(left);
			goes = recover_scarcely(i, goes_on);
			recover_well(left);
			if (!goes)
				break;
		}
}

/* What it leaves of the state is nobody's. */
static void sweep_replay(const struct left *left)
{
	left_is_replay = true;
	for (unsigned goes_on = 0; goes_on < 2; goes_on++)
		for (int64_t i = 0;; i++) {
			left_put_back(left);
			if (!recover_scarcely(i, goes_on))
				break;
		}
	left_is_replay = false;
}

/* ---- stops ---- */

static struct {
	int64_t n, stop_at; /* stores into files */
	jmp_buf out;
	/* Which system call fails. */
	int64_t n_calls, fail_at;
	int number;
} power;

static void stored(void *ctx)
{
	(void)ctx;
	if (power.n++ == power.stop_at)
		longjmp(power.out, 1);
}

static int fail(void *ctx, const char *call)
{
	(void)ctx;
	(void)call;
	if (power.fail_at == NEVER || power.n_calls++ != power.fail_at)
		return 0;
	done.calls++;
	return power.number;
}

static const struct store_hooks hooks = {.fail = fail, .stored = stored};

/* What outlives the process: named tensors, in no order. */
static uint64_t digest_named(struct scene *scene)
{
	const struct device *device = daemon_rpc(scene_daemon(scene))->service->device;
	uint64_t sum = 0;

	for (struct tensor *tensor = device_next(device, NULL); tensor; tensor = device_next(device, tensor))
		if (record_of(tensor)->name[0] && !record_of(tensor)->is_gone)
			sum += left_digest(tensor) * (tensor->handle | 1);
	return sum;
}

/* A script: messages of one peer, as an input of `request` has them. */
struct script {
	uint8_t bytes[BYTES_MAX];
	size_t n;
	uint64_t after[MESSAGES_MAX + 1]; /* what there was after so many of them */
	unsigned n_messages;
};
static struct script script;
static unsigned n_sent, most_sent = MESSAGES_MAX; /* of the process that is stopped */

static void send_all(struct scene *scene, uint64_t *after)
{
	struct fuzz_bytes input = {script.bytes + 1, script.bytes + script.n};

	for (n_sent = 0; fuzz_left(&input) && n_sent < most_sent; n_sent++) {
		size_t n;

		if (after)
			after[n_sent] = digest_named(scene);
		fuzz_byte(&input);
		n = request_length(&input);
		scene_send(scene, SCENE_OTHER, input.at, n);
		input.at += n;
	}
	if (after)
		after[n_sent] = digest_named(scene);
}

/* Stops after so many stores; false: there were no more. What the process had is never freed, as if it was dead.
 */
static bool stop(int64_t stop_at)
{
	struct store *store;
	struct scene *scene;
	static volatile bool is_whole;

	left_put_back(&closed);
	power.stop_at = NEVER;
	power.fail_at = NEVER;
	if (left_open(NULL, &hooks, &store, &report, error))
		fuzz_fail("%s", error);
	scene = left_scene(store, &report, NULL);
	power.n = 0;
	power.stop_at = stop_at;
	is_whole = false;
	if (!setjmp(power.out)) {
		send_all(scene, stop_at == NEVER ? script.after : NULL);
		is_whole = true;
	}
	power.stop_at = NEVER;
	store_close(store, false);
	return !is_whole;
}

/* `is_answered`: all that was sent was. */
static void check_stopped(int64_t at, bool is_answered)
{
	unsigned sent = n_sent;
	struct store *store;
	struct scene *scene;
	uint64_t now;

	if (left_open(NULL, NULL, &store, &report, error))
		fuzz_fail("stopped after store %" PRId64 " in request %u: %s", at, sent, error);
	scene = left_scene(store, &report, NULL);
	if (!scene || report.tables[STORE_TENSORS].n_lost)
		fuzz_fail("stopped after store %" PRId64 " in request %u: tensors are lost", at, sent);
	now = digest_named(scene);
	if (now != script.after[sent] && (is_answered || now != script.after[sent + 1]))
		fuzz_fail("stopped after store %" PRId64 " in request %u: neither as before it nor as after it",
			  at, sent);
	scene_wait(scene, 31000);
	scene_close_all(scene);
	scene_free(scene);
	store_close(store, false);
	done.stops++;
}

static void sweep_stops(void)
{
	int64_t n, step = 1;

	stop(NEVER);
	n = power.n;
	script.n_messages = n_sent;
	if (!getenv("NPUMEM_FAULT_WHOLE") && n > STOPS_EVERY_DAY)
		step = n / STOPS_EVERY_DAY;
	for (int64_t i = 0; i < n; i += step)
		if (stop(i))
			check_stopped(i, false);
	/* With the last answer the process ends. */
	for (most_sent = 1; most_sent <= script.n_messages; most_sent++) {
		stop(n);
		check_stopped(n, true);
	}
	most_sent = MESSAGES_MAX;
}

/* ---- system calls ---- */

/* The i-th fails while requests are answered: scene.c sees that what is refused has changed nothing. */
static bool fail_under_requests(int64_t i, int number)
{
	struct store *store;
	struct scene *scene;

	left_put_back(&closed);
	power.fail_at = NEVER;
	if (left_open(NULL, &hooks, &store, &report, error))
		fuzz_fail("%s", error);
	scene = left_scene(store, &report, NULL);
	power.n_calls = 0;
	power.fail_at = i;
	power.number = number;
	send_all(scene, NULL);
	scene_close_all(scene);
	power.fail_at = NEVER;
	scene_serve(scene);
	scene_free(scene);
	store_close(store, false);
	return power.n_calls > i;
}

/* The i-th fails when the state is opened: it is refused, and then opened as it was. */
static bool fail_at_start(const struct left *left, int64_t i, int number)
{
	struct store *store;

	left_put_back(left);
	power.n_calls = 0;
	power.fail_at = i;
	power.number = number;
	if (!left_open(NULL, &hooks, &store, &report, error))
		store_close(store, false);
	else if (!error[0])
		fuzz_fail("a state is refused without a word");
	power.fail_at = NEVER;
	recover_well(left);
	return power.n_calls > i;
}

static void sweep_calls(void)
{
	static const int numbers[] = {ENOSPC, ENOMEM, EIO, EINTR};

	power.stop_at = NEVER;
	for (unsigned k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
		for (int64_t i = 0; fail_at_start(&closed, i, numbers[k]); i++)
			;
		for (int64_t i = 0; fail_at_start(&killed, i, numbers[k]); i++)
			;
		for (int64_t i = 0; fail_under_requests(i, numbers[k]); i++)
			;
	}
}

/* ---- scripts ---- */

static void load(const char *path)
{
	FILE *file = fopen(path, "rb");

	if (!file)
		fuzz_fail("%s cannot be read", path);
	script.n = fread(script.bytes, 1, sizeof(script.bytes), file);
	fclose(file);
	if (!script.n || script.bytes[0])
		fuzz_fail("%s is no plain script", path);
}

int main(int argc, char **argv)
{
	scarce_init(&scarce);
	scarce.note = note;
	left_begin(&killed, &closed);
	sweep_recovery(&killed);
	sweep_recovery(&closed);
	sweep_replay(&killed);
	for (int i = 1; i < argc; i++) {
		load(argv[i]);
		sweep_memory();
		sweep_stops();
		sweep_calls();
	}
	printf("%" PRIu64 " runs with %" PRIu64 " allocations failed, %" PRIu64 " stops, %" PRIu64
	       " system calls failed\n",
	       done.runs, done.allocations, done.stops, done.calls);
	return !done.stops || !done.calls || !done.allocations;
}
