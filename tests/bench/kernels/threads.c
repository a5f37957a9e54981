/* Two threads of one daemon on one kernel, again and again in one submit, so that the way there and back does not
 * count. One thread is the same daemon on one processor: whatever it has, it runs one after the other. Nobody
 * spins, as that would take a processor from the second thread. */
#include <stdio.h>

#include "tests/bench/kernels/cases.h"
#include "tests/bench/support/neighbours.h"

static const char conv_a[] = "conv2d in=fx8/7[1,64,56,56] weights=fx8/7[64,64,3,3] bias=fx8/7[1,64,1,1] "
			     "out=fx8/3[1,64,56,56] padding=1,1,1,1";

enum { RUNS = 16 };

static void run_submit(void *context)
{
	const struct remote_op *op = context;
	struct npumem_operation operations[RUNS];
	const struct npumem_submitted *submitted;
	for (unsigned i = 0; i < RUNS; i++)
		operations[i] = remote_operation(op);
	remote_expect(op->remote,
		      npumem_submit(op->remote->npumem, operations, RUNS, &submitted, &op->remote->error));
	npumem_release(submitted);
}

static void run(const struct bench *bench, const char *name, bool busy, double goal)
{
	struct neighbours neighbours = {.n = 0};
	struct remote one, two;
	struct remote_op op_one, op_two;
	struct call call;
	struct bench_measured m;
	enum bench_time time = busy ? BENCH_TYPICAL : BENCH_CLOCK;
	if (!bench_wanted(bench, name))
		return;
	call_parse(&call, conv_a);
	double macs = call_macs(&call) * RUNS;
	/* Started where it stays: a daemon has as many threads as there are processors for it. */
	peer_pin(NULL, PEER_SAME);
	remote_open(&one,
		    &(struct remote_options){.name = "one", .isa = bench->isa, .pin = PEER_SAME, .sleeps = true});
	peer_pin(NULL, PEER_FREE);
	remote_open(&two,
		    &(struct remote_options){.name = "two", .isa = bench->isa, .pin = PEER_FREE, .sleeps = true});
	remote_place(&one, &call, NULL, &op_one);
	remote_place(&two, &call, NULL, &op_two);
	if (busy)
		neighbours_start(&neighbours);
	const struct bench_contender contenders[] = {
		{"two threads", run_submit, &op_two, macs, time},
		{"one thread", run_submit, &op_one, macs, time},
	};
	bench_measure(bench, contenders, 2, &m);
	neighbours_end(&neighbours);
	bench_compare(bench, name, &m, 0, 1, "GMAC/s", 1e-9, goal);
	remote_close(&one);
	remote_close(&two);
}

void cases_threads(const struct bench *bench)
{
	run(bench, "two threads on fx8 conv a, through the daemon", false, 1.9);
	run(bench, "two threads on fx8 conv a, beside a busy neighbour", true, 0.95);
}
