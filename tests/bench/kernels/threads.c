/* Two threads of one daemon on one kernel, again and again in one submit, so that the way there and back does not
 * count. One thread is the same daemon on one processor: whatever it has, it runs one after the other. Two of
 * those on two processors are what the machine can do. Nobody spins, as that would take a processor from the
 * second thread. */
#include <stdio.h>

#include <npumem/async.h>

#include "tests/bench/kernels/cases.h"
#include "tests/bench/support/neighbours.h"

static const char conv_a[] = "conv2d in=fx8/7[1,64,56,56] weights=fx8/7[64,64,3,3] bias=fx8/7[1,64,1,1] "
			     "out=fx8/3[1,64,56,56] padding=1,1,1,1";

enum { RUNS = 16 };

static void repeat(const struct remote_op *op, struct npumem_operation *operations)
{
	for (unsigned i = 0; i < RUNS; i++)
		operations[i] = remote_operation(op);
}

static void run_submit(void *context)
{
	const struct remote_op *op = context;
	struct npumem_operation operations[RUNS];
	const struct npumem_submitted *submitted;
	repeat(op, operations);
	remote_expect(op->remote,
		      npumem_submit(op->remote->npumem, operations, RUNS, &submitted, &op->remote->error));
	npumem_release(submitted);
}

static void expect_done(void *context, const struct npumem_answer *answer)
{
	struct remote *remote = context;
	if (answer->status)
		remote->error = *answer->error;
	remote_expect(remote, answer->status);
}

static void run_submits(void *context)
{
	const struct remote_op *const *ops = context;
	struct npumem_operation operations[RUNS];
	struct remote *remote = ops[0]->remote;
	repeat(ops[0], operations);
	remote_expect(remote, npumem_submit_async(remote->npumem, operations, RUNS, expect_done, remote, NULL,
						  &remote->error));
	remote_expect(remote, npumem_process(remote->npumem, &remote->error));
	run_submit((void *)ops[1]);
	remote_expect(remote, npumem_flush(remote->npumem, &remote->error));
}

/* On one processor, the client's or another. */
static void open_one(struct remote *remote, const struct bench *bench, const char *name, enum peer_pin pin)
{
	/* Started with one: a daemon has as many threads as there are processors for it. */
	peer_pin(NULL, PEER_SAME);
	remote_open(remote, &(struct remote_options){.name = name, .isa = bench->isa, .pin = pin, .sleeps = true});
	peer_pin(NULL, PEER_FREE);
}

static void run(const struct bench *bench, const char *name, bool busy, double goal)
{
	struct neighbours neighbours = {.n = 0};
	struct remote one, other, two;
	struct remote_op op_one, op_other, op_two;
	const struct remote_op *const both[] = {&op_one, &op_other};
	struct call call;
	struct bench_measured m;
	enum bench_time time = busy ? BENCH_TYPICAL : BENCH_CLOCK;
	if (!bench_wanted(bench, name))
		return;
	call_parse(&call, conv_a);
	double macs = call_macs(&call) * RUNS;
	open_one(&one, bench, "one", PEER_SAME);
	open_one(&other, bench, "other", PEER_SPLIT);
	remote_open(&two,
		    &(struct remote_options){.name = "two", .isa = bench->isa, .pin = PEER_FREE, .sleeps = true});
	remote_place(&one, &call, NULL, &op_one);
	remote_place(&other, &call, NULL, &op_other);
	remote_place(&two, &call, NULL, &op_two);
	if (busy)
		neighbours_start(&neighbours);
	const struct bench_contender contenders[] = {
		{"two threads", run_submit, &op_two, macs, time},
		{"one thread", run_submit, &op_one, macs, time},
		{"two daemons at once", run_submits, (void *)both, 2 * macs, time},
	};
	bench_measure(bench, contenders, busy ? 2 : 3, &m);
	neighbours_end(&neighbours);
	bench_compare(bench, name, &m, 0, 1, "GMAC/s", 1e-9, goal);
	if (!busy)
		bench_compare(bench, name, &m, 0, 2, "GMAC/s", 1e-9, 0);
	remote_close(&one);
	remote_close(&other);
	remote_close(&two);
}

void cases_threads(const struct bench *bench)
{
	run(bench, "two threads on fx8 conv a, through the daemon", false, 1.9);
	run(bench, "two threads on fx8 conv a, beside a busy neighbour", true, 0.95);
}
