/* Random traces for half a second, or NPUMEM_RANDOM_SECONDS; each in a process of its own children, so that a
 * crash is a failure like any other. What fails is made shorter and printed, with the seed that gives it again:
 * NPUMEM_RANDOM_SEED. NPUMEM_RANDOM_SHRINK: for how many seconds. NPUMEM_MODEL_HISTORIES: so many traces, however
 * long that takes, from that seed on or from the first.
 *
 * To look for something else than what is known: NPUMEM_RANDOM_MODE=alone, only this mode; NPUMEM_RANDOM_WITHOUT=
 * "group seal", without these requests, groups, waits, cancels and closes; NPUMEM_RANDOM_SEQUENTIAL=1, each
 * request ends before the next is sent, which leaves what this test itself gets wrong.
 * NPUMEM_RANDOM_STRICT_LOOKS=1: also what open, list and grant tell of a tensor's bytes beside operations must be
 * as in sequence. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/random/groups.h"
#include "tests/random/run.h"

enum { GROUPS = TRACE_MODES, MODES, HANG_SECONDS = 20, SHRINK_SECONDS = 20 };

/* What a child tells, however it ends. */
struct told {
	uint64_t seed, n_traces, n_requests;
	unsigned mode, about;
	char wrong[RUN_WRONG_BYTES];
};

static struct told *told;

/* The trace of a seed, as the environment wants it. */
static void draw(uint64_t seed, unsigned mode, struct trace *trace)
{
	const char *without = getenv("NPUMEM_RANDOM_WITHOUT");

	trace_draw(seed, (enum trace_mode)mode, without ? without : "", trace);
	trace->strict_looks = getenv("NPUMEM_RANDOM_STRICT_LOOKS") != NULL;
	trace->sequential = getenv("NPUMEM_RANDOM_SEQUENTIAL") != NULL;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool run_one(const struct trace *trace)
{
	static struct run run;

	run_trace(trace, &run);
	if (!run_has_failed(&run) && trace->mode == TRACE_CHURN)
		run_check_owners(&run);
	else if (!run_has_failed(&run) && trace_is_explained(trace))
		run_explain(&run);
	else if (!run_has_failed(&run))
		run_compare(&run);
	told->n_requests += run.n;
	told->about = run.about;
	snprintf(told->wrong, sizeof(told->wrong), "%s", run.wrong);
	if (!run_has_failed(&run))
		run_free(&run);
	return !told->wrong[0];
}

/* Whether a child that ran to its end says that all was well. */
static bool child_is_well(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			abort();
	if (WIFSIGNALED(status))
		snprintf(told->wrong, sizeof(told->wrong), "the daemon's code ended by signal %d",
			 WTERMSIG(status));
	else if (WEXITSTATUS(status) && !told->wrong[0])
		snprintf(told->wrong, sizeof(told->wrong), "the daemon's code ended with %d", WEXITSTATUS(status));
	return !told->wrong[0];
}

static bool try_trace(const struct trace *trace)
{
	pid_t child;

	fflush(NULL);
	told->wrong[0] = 0;
	told->about = TRACE_VERBS;
	child = fork();
	if (child < 0)
		abort();
	if (!child) {
		/* What it says of itself was said before. */
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		alarm(HANG_SECONDS);
		_exit(run_one(trace) ? 0 : 1);
	}
	return child_is_well(child);
}

/* ---- making it shorter ---- */

static void cut(struct trace *trace, unsigned at, unsigned n)
{
	memmove(&trace->events[at], &trace->events[at + n], (trace->n - at - n) * sizeof(trace->events[0]));
	trace->n -= n;
}

static void cut_op(struct trace_request *request, unsigned at)
{
	memmove(&request->ops[at], &request->ops[at + 1], (request->n_ops - at - 1) * sizeof(request->ops[0]));
	request->n_ops--;
}

/* Keeps what is shorter where the same is still wrong with it. */
static void keep(struct trace *trace, const struct trace *shorter, unsigned about)
{
	if (!try_trace(shorter) && told->about == about)
		*trace = *shorter;
}

/* Leaves out ever smaller parts, then operations of submits. */
static void shrink(struct trace *trace)
{
	static struct trace shorter;
	const char *seconds = getenv("NPUMEM_RANDOM_SHRINK");
	double until = now() + (seconds ? strtod(seconds, NULL) : SHRINK_SECONDS);
	unsigned about = told->about;

	for (unsigned n = trace->n / 2; n && now() < until; n /= 2)
		for (unsigned at = trace->n; at >= n && now() < until; at -= at > n ? n : at) {
			shorter = *trace;
			cut(&shorter, at - n, n);
			keep(trace, &shorter, about);
			at = at > trace->n ? trace->n : at;
		}
	for (unsigned i = 0; i < trace->n; i++)
		for (unsigned k = trace->events[i].request.n_ops; k-- > 0 && now() < until;) {
			if (trace->events[i].request.verb != TRACE_SUBMIT)
				break;
			shorter = *trace;
			cut_op(&shorter.events[i].request, k);
			keep(trace, &shorter, about);
		}
	for (unsigned i = trace->n; i-- > 0 && now() < until;) {
		shorter = *trace;
		cut(&shorter, i, 1);
		keep(trace, &shorter, about);
	}
}

static void print_event(const struct trace *trace, unsigned i)
{
	const struct trace_event *event = &trace->events[i];
	static const char *const kinds[] = {"",
					    "a thread works on task",
					    "a thread ends task",
					    "the clock goes on",
					    "cancels one of its requests",
					    "hangs up",
					    "the daemon is killed"};
	char text[1024];

	if (event->kind == TRACE_SEND) {
		trace_print_request(trace, event->peer, &event->request, text, sizeof(text));
		printf("  peer %u (uid %u):%s\n", event->peer, trace_uid(trace, event->peer), text);
	} else if (event->kind == TRACE_CANCEL || event->kind == TRACE_CLOSE) {
		printf("  peer %u %s\n", event->peer, kinds[event->kind]);
	} else if (event->kind == TRACE_CLOCK || event->kind == TRACE_CRASH) {
		printf("  %s\n", kinds[event->kind]);
	} else {
		printf("  %s %" PRIu64 " modulo their number\n", kinds[event->kind], event->pick % 840);
	}
}

static void report(uint64_t seed, unsigned mode)
{
	static struct trace trace;

	printf("FAILED: NPUMEM_RANDOM_MODE=%s NPUMEM_RANDOM_SEED=%" PRIu64 "\n%s\n",
	       mode == GROUPS ? "groups" : trace_mode_name((enum trace_mode)mode), seed, told->wrong);
	if (mode == GROUPS)
		return;
	draw(seed, mode, &trace);
	shrink(&trace);
	printf("the same, shorter:\n");
	for (unsigned i = 0; i < trace.n; i++)
		print_event(&trace, i);
	if (try_trace(&trace))
		printf("(which does not fail each time)\n");
	printf("%s\n", told->wrong);
}

/* ---- many ---- */

static bool explore_one(uint64_t seed, unsigned mode)
{
	static struct trace trace;

	told->seed = seed;
	told->mode = mode;
	told->n_traces++;
	if (mode == GROUPS)
		return groups_run(seed, told->wrong, sizeof(told->wrong));
	draw(seed, mode, &trace);
	return run_one(&trace);
}

struct plan {
	uint64_t seed, n; /* n 0: as many as there is time for */
	double until;
	int mode; /* -1: all in turn */
};

static bool explore(const struct plan *plan)
{
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child < 0)
		abort();
	if (child)
		return child_is_well(child);
	for (uint64_t i = 0; plan->n ? i < plan->n : now() < plan->until; i++) {
		/* Only that it takes for ever is wrong, however slow the machine. */
		alarm(HANG_SECONDS);
		if (plan->mode >= 0 ? !explore_one(plan->seed + i, (unsigned)plan->mode)
				    : !explore_one(plan->seed + i / MODES, (unsigned)(i % MODES)))
			_exit(1);
	}
	_exit(0);
}

static int mode_of(const char *name)
{
	if (!name)
		return -1;
	for (unsigned mode = 0; mode < TRACE_MODES; mode++)
		if (!strcmp(name, trace_mode_name((enum trace_mode)mode)))
			return (int)mode;
	if (!strcmp(name, "groups"))
		return GROUPS;
	fprintf(stderr, "NPUMEM_RANDOM_MODE: alone, roomy, tight, churn, grants, crashes or groups\n");
	exit(2);
}

int main(void)
{
	const char *seconds = getenv("NPUMEM_RANDOM_SECONDS"), *seed = getenv("NPUMEM_RANDOM_SEED"),
		   *histories = getenv("NPUMEM_MODEL_HISTORIES");
	double began = now();
	struct plan plan = {.seed = seed      ? strtoull(seed, NULL, 10)
				    : seconds ? (uint64_t)time(NULL) * 1000
					      : 1,
			    .n = histories	    ? strtoull(histories, NULL, 10)
				 : seed && !seconds ? 1
						    : 0,
			    .until = began + (seconds ? strtod(seconds, NULL) : 0.5),
			    .mode = mode_of(getenv("NPUMEM_RANDOM_MODE"))};

	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (told == MAP_FAILED)
		return 1;
	if (plan.n && plan.mode < 0 && !histories)
		plan.n = MODES;
	if (!explore(&plan)) {
		printf("after %.1f s and %" PRIu64 " traces with %" PRIu64 " requests\n", now() - began,
		       told->n_traces, told->n_requests);
		report(told->seed, told->mode);
		return 1;
	}
	printf("%" PRIu64 " traces, %" PRIu64 " requests, nothing wrong\n", told->n_traces, told->n_requests);
	return told->n_traces == 0;
}
