/* The speed of a request beside a floor, libuv and protobuf-c alone with frames of the same sizes, and beside
 * redis: bench_rpc [options] [part of a row's name ...]; tests/bench/support/bench.h has the options.
 *
 * All contenders of a row run by turns in short slices with the same client; told are medians over the rounds, and
 * medians of the ratios of neighbouring slices, which another load on the machine disturbs least. The flat floor
 * has the cheapest message of each size; the other unpacks and packs npumem's own messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/rpc/heap.h"
#include "tests/bench/rpc/rows.h"
#include "tests/bench/support/bench.h"
#include "tests/bench/support/neighbours.h"
#include "tests/bench/support/scratch.h"

static struct bench bench = {.name = "rpc", .rounds = 15, .seconds = 0.03};

struct figures {
	double us, cpu_us;
	double speed, cpu; /* of the first contender, as multiples of this one's */
};

/* Of contender `i`. */
static void sum_up(struct sample (*samples)[BENCH_ROUNDS_MAX], unsigned i, struct figures *figures)
{
	double us[BENCH_ROUNDS_MAX], cpu_us[BENCH_ROUNDS_MAX], speed[BENCH_ROUNDS_MAX], cpu[BENCH_ROUNDS_MAX];
	unsigned n = bench.rounds;
	for (unsigned r = 0; r < n; r++) {
		us[r] = samples[i][r].us;
		cpu_us[r] = samples[i][r].cpu_us;
		speed[r] = samples[i][r].us / samples[0][r].us;
		cpu[r] = samples[0][r].cpu_us / samples[i][r].cpu_us;
	}
	*figures = (struct figures){bench_median(us, n), bench_median(cpu_us, n), bench_median(speed, n),
				    bench_median(cpu, n)};
}

/* ---- output ---- */

/* The first contender beside contender `i`: goals are of that to the second. */
static void tell(const struct row *row, const struct contender *contenders, unsigned i, const struct figures *f)
{
	static const char *const pins[] = {
		[PEER_SAME] = "one core", [PEER_SPLIT] = "two cores", [PEER_FREE] = "any core"};
	char name[BENCH_NAME_BYTES], cpu_name[BENCH_NAME_BYTES + 16];
	snprintf(name, sizeof(name), "%s, %s", row->name, pins[row->pin]);
	snprintf(cpu_name, sizeof(cpu_name), "%s, processor time", name);
	const struct bench_row speed = {name,
					f[0].us,
					"us",
					contenders[i].name,
					f[i].us,
					f[i].speed,
					i == 1 && row->goal > 0 ? BENCH_RATIO_AT_LEAST : BENCH_NO_GOAL,
					row->goal};
	const struct bench_row cpu = {cpu_name,
				      f[0].cpu_us,
				      "us",
				      contenders[i].name,
				      f[i].cpu_us,
				      f[i].cpu,
				      i == 1 && row->cpu_goal > 0 ? BENCH_RATIO_AT_MOST : BENCH_NO_GOAL,
				      row->cpu_goal};
	bench_tell(&bench, &speed);
	bench_tell(&bench, &cpu);
}

static void tell_heap(const char *name, double calls)
{
	char text[BENCH_NAME_BYTES];
	snprintf(text, sizeof(text), "calls of the heap, %s", name);
	const struct bench_row row = {
		.name = text, .value = calls, .unit = "calls", .kind = BENCH_VALUE_AT_MOST, .goal = 0.1};
	bench_tell(&bench, &row);
}

/* ---- rows ---- */

static void run(const struct row *row, const struct servers *servers)
{
	static struct sample samples[ROWS_CONTENDERS_MAX][BENCH_ROUNDS_MAX];
	struct contender contenders[ROWS_CONTENDERS_MAX];
	struct figures figures[ROWS_CONTENDERS_MAX];
	struct neighbours neighbours = {.n = 0};
	unsigned n = 0;
	if (row->busy)
		neighbours_start(&neighbours);
	rows_begin(row, servers, contenders);
	while (n < ROWS_CONTENDERS_MAX && contenders[n].peer)
		n++;
	for (unsigned r = 0; r < bench.rounds; r++)
		for (unsigned i = 0; i < n; i++)
			rows_measure(&contenders[i], bench.seconds, &samples[i][r]);
	for (unsigned i = 0; i < n; i++) {
		sum_up(samples, i, &figures[i]);
		if (i)
			tell(row, contenders, i, figures);
	}
	rows_end(contenders);
	neighbours_end(&neighbours);
}

/* ---- servers ---- */

/* Whether the daemon has an option. */
static bool knows(const char *npumemd, const char *option)
{
	char command[4200], line[256];
	snprintf(command, sizeof(command), "'%s' --help", npumemd);
	FILE *help = popen(command, "r");
	bool found = false;
	while (help && fgets(line, sizeof(line), help))
		found |= strstr(line, option) != NULL;
	if (help)
		pclose(help);
	return found;
}

static void start_daemon(struct peer *peer, const char *npumemd, const char *name, bool spins)
{
	char path[SCRATCH_PATH_BYTES];
	scratch_path(name, path);
	const char *arguments[] = {npumemd, "--socket", path, "--log", "warning", spins ? "--spin-us" : NULL,
				   "50",    NULL};
	peer_start(peer, arguments, path, NULL, NULL);
}

static void start_redis(struct peer *peer)
{
	char path[SCRATCH_PATH_BYTES];
	const char *arguments[] = {"/usr/bin/redis-server",
				   "--port",
				   "0",
				   "--unixsocket",
				   scratch_path("redis", path),
				   "--save",
				   "",
				   "--appendonly",
				   "no",
				   "--logfile",
				   "/dev/null",
				   NULL};
	peer_start(peer, arguments, path, NULL, NULL);
	if (!peer->pid)
		bench_missing("redis", "redis-server, tests/bench/packages.sh");
}

static void start(struct servers *servers, const char *npumemd)
{
	char path[SCRATCH_PATH_BYTES];
	*servers = (struct servers){0};
	start_daemon(&servers->daemon, npumemd, "daemon", false);
	if (!servers->daemon.pid) {
		fprintf(stderr, "bench_rpc: no daemon: %s\n", npumemd);
		exit(1);
	}
	if (knows(npumemd, "--spin-us"))
		start_daemon(&servers->spinning, npumemd, "spinning", true);
	scratch_path("floor", path);
	const char *arguments[] = {FLOOR, path, NULL};
	peer_start(&servers->floor, arguments, path, NULL, NULL);
	start_redis(&servers->redis);
}

static void run_heap(const char *npumemd)
{
	char path[SCRATCH_PATH_BYTES];
	scratch_path("heap", path);
	const char *arguments[] = {npumemd, "--socket", path, "--log", "warning", NULL};
	if (!heap_measure(arguments, path, COUNT, tell_heap))
		bench_missing("what counts calls of the heap", "none under a sanitizer");
}

int main(int argc, char **argv)
{
	const char *npumemd = getenv("NPUMEMD") ? getenv("NPUMEMD") : NPUMEMD;
	struct servers servers;
	bench_options(&bench, argc, argv);
	start(&servers, npumemd);
	for (unsigned i = 0; i < n_rows; i++)
		if (bench_wanted(&bench, rows[i].name))
			run(&rows[i], &servers);
	if (bench_wanted(&bench, "calls of the heap"))
		run_heap(npumemd);
	peer_end(&servers.daemon);
	peer_end(&servers.spinning);
	peer_end(&servers.floor);
	peer_end(&servers.redis);
	bench_end(&bench);
	return 0;
}
