/* The speed of a request beside a floor, libuv and protobuf-c alone with frames of the same sizes: bench_rpc
 * [--rounds N] [--seconds S] [--json] [part of a row's name ...].
 *
 * All contenders of a row run by turns in short slices with the same client; told are medians over the rounds, and
 * medians of the ratios of neighbouring slices, which another load on the machine disturbs least. The flat floor
 * has the cheapest message of each size; the other unpacks and packs npumem's own messages. */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/rpc/heap.h"
#include "tests/bench/rpc/rows.h"

enum { ROUNDS_MAX = 1000, NEIGHBOURS_MAX = 64, PATH_BYTES = 108 };

static unsigned rounds = 15;
static double seconds = 30; /* of all slices together */
static bool json;
static char directory[] = "/tmp/bench-rpc-XXXXXX";

struct figures {
	double us, cpu_us;
	double speed, cpu; /* of the first contender, as multiples of this one's */
};

/* ---- medians ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(const double *values)
{
	double sorted[ROUNDS_MAX];
	memcpy(sorted, values, rounds * sizeof(*values));
	qsort(sorted, rounds, sizeof(*sorted), compare);
	return sorted[rounds / 2];
}

/* Of contender `i`. */
static void sum_up(struct sample (*samples)[ROUNDS_MAX], unsigned i, struct figures *figures)
{
	static double us[ROUNDS_MAX], cpu_us[ROUNDS_MAX], speed[ROUNDS_MAX], cpu[ROUNDS_MAX];
	for (unsigned r = 0; r < rounds; r++) {
		us[r] = samples[i][r].us;
		cpu_us[r] = samples[i][r].cpu_us;
		speed[r] = samples[i][r].us / samples[0][r].us;
		cpu[r] = samples[0][r].cpu_us / samples[i][r].cpu_us;
	}
	*figures = (struct figures){median(us), median(cpu_us), median(speed), median(cpu)};
}

/* ---- output ---- */

static const char *const pins[] = {[PEER_SAME] = "same", [PEER_SPLIT] = "split", [PEER_FREE] = "free"};

static void print_head(void)
{
	if (!json)
		printf("%-46s %-5s %-20s %9s %9s | %7s %7s | %7s %7s\n", "microseconds of a request", "core", "",
		       "time", "cpu", "speed", "goal", "cpu", "goal");
}

static const char *goal_text(double goal, bool at_least, bool met, char text[16])
{
	if (goal == 0)
		return "";
	snprintf(text, 16, "%s%.2f%s", at_least ? ">=" : "<=", goal, met ? "" : "!");
	return text;
}

static void print_one(const struct row *row, const struct contender *contender, unsigned i,
		      const struct figures *f)
{
	char speed_goal[16], cpu_goal[16];
	bool compared = i == 1; /* goals are of the first contender to the second */
	if (json) {
		printf("{\"row\":\"%s\",\"core\":\"%s\",\"contender\":\"%s\",\"us\":%.4f,\"cpu_us\":%.4f",
		       row->name, pins[row->pin], contender->name, f->us, f->cpu_us);
		if (i)
			printf(",\"speed\":%.4f,\"cpu\":%.4f", f->speed, f->cpu);
		if (compared && row->goal > 0)
			printf(",\"speed_at_least\":%.2f", row->goal);
		if (compared && row->cpu_goal > 0)
			printf(",\"cpu_at_most\":%.2f", row->cpu_goal);
		printf("}\n");
	} else if (i == 0) {
		printf("%-46s %-5s %-20s %9.3f %9.3f |                 |\n", row->name, pins[row->pin],
		       contender->name, f->us, f->cpu_us);
	} else {
		printf("%-46s %-5s %-20s %9.3f %9.3f | %7.2f %7s | %7.2f %7s\n", "", "", contender->name, f->us,
		       f->cpu_us, f->speed,
		       goal_text(compared ? row->goal : 0, true, f->speed >= row->goal, speed_goal), f->cpu,
		       goal_text(compared ? row->cpu_goal : 0, false, f->cpu <= row->cpu_goal, cpu_goal));
	}
}

static void tell_heap(const char *name, double calls)
{
	printf(json ? "{\"heap\":\"%s\",\"calls\":%.3f}\n" : "%-46s %8.3f\n", name, calls);
	fflush(stdout);
}

/* ---- neighbours ---- */

static unsigned start_neighbours(pid_t pids[NEIGHBOURS_MAX])
{
	unsigned n = 0;
	for (int cpu = 1; cpu < sysconf(_SC_NPROCESSORS_ONLN) && n < NEIGHBOURS_MAX; cpu++) {
		pids[n] = fork();
		if (pids[n] < 0)
			peer_die("no neighbour");
		if (pids[n]) {
			n++;
			continue;
		}
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (volatile unsigned i = 0;; i++)
			;
	}
	return n;
}

static void end_neighbours(const pid_t *pids, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

/* ---- rows ---- */

static void run(const struct row *row, const struct servers *servers, double slice_seconds)
{
	static struct sample samples[ROWS_CONTENDERS_MAX][ROUNDS_MAX];
	struct contender contenders[ROWS_CONTENDERS_MAX];
	struct figures figures;
	pid_t pids[NEIGHBOURS_MAX];
	unsigned n = 0, n_neighbours = row->busy ? start_neighbours(pids) : 0;
	rows_begin(row, servers, contenders);
	while (n < ROWS_CONTENDERS_MAX && contenders[n].peer)
		n++;
	for (unsigned r = 0; r < rounds; r++)
		for (unsigned i = 0; i < n; i++)
			rows_measure(&contenders[i], slice_seconds, &samples[i][r]);
	for (unsigned i = 0; i < n; i++) {
		sum_up(samples, i, &figures);
		print_one(row, &contenders[i], i, &figures);
	}
	fflush(stdout);
	rows_end(contenders);
	end_neighbours(pids, n_neighbours);
}

static bool wanted(const char *name, char **words, int n_words)
{
	for (int i = 0; i < n_words; i++)
		if (strstr(name, words[i]))
			return true;
	return n_words == 0;
}

static void run_all(const struct servers *servers, char **words, int n_words)
{
	unsigned n = 0;
	for (unsigned i = 0; i < n_rows; i++)
		n += wanted(rows[i].name, words, n_words);
	print_head();
	for (unsigned i = 0; i < n_rows; i++)
		if (wanted(rows[i].name, words, n_words))
			run(&rows[i], servers, seconds / rounds / n / ROWS_CONTENDERS_MAX);
}

/* ---- servers ---- */

static char *path_of(const char *name, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "%s/%.64s", directory, name);
	return path;
}

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

/* Also where the bench is ended by peer_die. Killed daemons leave what they would have removed. */
static void clean_up(void)
{
	char path[PATH_BYTES];
	DIR *files = opendir(directory);
	for (struct dirent *file; files && (file = readdir(files));)
		if (file->d_name[0] != '.')
			unlink(path_of(file->d_name, path));
	if (files)
		closedir(files);
	rmdir(directory);
}

static void start_daemon(struct peer *peer, const char *npumemd, const char *name, bool spins)
{
	char path[PATH_BYTES];
	path_of(name, path);
	const char *arguments[] = {npumemd, "--socket", path, "--log", "warning", spins ? "--spin-us" : NULL,
				   "50",    NULL};
	peer_start(peer, arguments, path, NULL, NULL);
}

static void start(struct servers *servers, const char *npumemd)
{
	char path[PATH_BYTES];
	*servers = (struct servers){0};
	start_daemon(&servers->daemon, npumemd, "daemon", false);
	if (!servers->daemon.pid) {
		fprintf(stderr, "bench_rpc: no daemon: %s\n", npumemd);
		exit(1);
	}
	if (knows(npumemd, "--spin-us"))
		start_daemon(&servers->spinning, npumemd, "spinning", true);
	else
		printf(json ? "" : "npumemd has no --spin-us: of spinning rows the client alone spins\n");
	path_of("floor", path);
	const char *arguments[] = {FLOOR, path, NULL};
	peer_start(&servers->floor, arguments, path, NULL, NULL);
	if (!servers->floor.pid)
		fprintf(stderr, "bench_rpc: no floor, and no ratios to it: %s\n", FLOOR);
}

static void run_heap(const char *npumemd)
{
	char path[PATH_BYTES];
	path_of("heap", path);
	const char *arguments[] = {npumemd, "--socket", path, "--log", "warning", NULL};
	if (!json)
		printf("\n%-46s %8s   goal: 0\n", "calls of the heap, a request", "");
	if (!heap_measure(arguments, path, COUNT, tell_heap))
		fprintf(stderr, "bench_rpc: nothing to count with: %s\n", COUNT);
}

int main(int argc, char **argv)
{
	const char *npumemd = getenv("NPUMEMD") ? getenv("NPUMEMD") : NPUMEMD;
	struct servers servers;
	int at = 1;
	for (; at < argc && !strncmp(argv[at], "--", 2); at++) {
		if (!strcmp(argv[at], "--json"))
			json = true;
		else if (!strcmp(argv[at], "--rounds") && at + 1 < argc)
			rounds = (unsigned)atoi(argv[++at]);
		else if (!strcmp(argv[at], "--seconds") && at + 1 < argc)
			seconds = atof(argv[++at]);
		else
			rounds = 0;
	}
	if (rounds < 1 || rounds > ROUNDS_MAX || seconds <= 0) {
		fprintf(stderr,
			"usage: bench_rpc [--rounds N] [--seconds S] [--json] [part of a row's name ...]\n");
		return 2;
	}
	if (!mkdtemp(directory))
		peer_die("no directory");
	atexit(clean_up);
	start(&servers, npumemd);
	run_all(&servers, argv + at, argc - at);
	if (wanted("heap", argv + at, argc - at))
		run_heap(npumemd);
	peer_end(&servers.daemon);
	peer_end(&servers.spinning);
	peer_end(&servers.floor);
	return 0;
}
