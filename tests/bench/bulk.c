/* Bulk data through a shared segment, beside memcpy of the same bytes: bench_bulk [options] [part of a case's name
 * ...]. Both sides spin. "Scatter" and "gather" are the same operation of a device in this process: what moving
 * the bytes costs without a daemon. GB/s of payload. */
#include <stdio.h>
#include <string.h>

#include "tests/bench/support/bench.h"
#include "tests/bench/support/inside.h"
#include "tests/bench/support/probe.h"
#include "tests/bench/support/remote.h"

static const struct shape {
	const char *name, *tensor;
	double through, alone; /* goals: of memcpy; 0: none */
} shapes[] = {
	{"3.2 MB, fp32 4x256x28x28", "fp32/-1[4,256,28,28]", 0.85, 0.9},
	{"200 KB, fx8 1x64x56x56", "fx8/4[1,64,56,56]", 0.5, 0.9},
	{"25 KB in 7x7 features, fx8 1x512x7x7", "fx8/4[1,512,7,7]", 0.3, 0.6},
	{"3.2 MB compact, fp32 4x256x28x28", "fp32/-1[4,256,28,28]:compact", 0, 0},
	{"25 KB in 7x7 features, compact", "fx8/4[1,512,7,7]:compact", 0, 0},
	{"1000 B in 1x1 features, fx8 1x1000x1x1", "fx8/4[1,1000,1,1]", 0, 0},
	{"1000 B in 1x1 features, compact", "fx8/4[1,1000,1,1]:compact", 0, 0},
	{"200 KB in mode 4n, int8 4x64x28x28", "int8/-1[4,64,28,28]:4n", 0, 0},
};

enum { SUBMIT = 16 };

struct transfer {
	struct remote *remote;
	const struct npumem_segment *segment;
	uint64_t handle;
	uint64_t point; /* a tensor of one byte */
	struct npumem_operation operations[SUBMIT];
};

static void run_write(void *context)
{
	const struct transfer *t = context;
	remote_expect(t->remote, npumem_write_segment(t->remote->npumem, t->handle, t->segment, 0, NULL, 0, 0,
						      &t->remote->error));
}

static void run_read(void *context)
{
	const struct transfer *t = context;
	remote_expect(t->remote, npumem_read_segment(t->remote->npumem, t->handle, t->segment, 0, NULL, 0, 0, NULL,
						     &t->remote->error));
}

/* Next to no bytes: what is left is the way there and back. */
static void run_point(void *context)
{
	const struct transfer *t = context;
	remote_expect(t->remote, npumem_fill(t->remote->npumem, t->point, 1, &t->remote->error));
}

static void run_submit(void *context)
{
	const struct transfer *t = context;
	const struct npumem_submitted *submitted;
	remote_expect(t->remote,
		      npumem_submit(t->remote->npumem, t->operations, SUBMIT, &submitted, &t->remote->error));
	npumem_release(submitted);
}

static void make_submit(struct transfer *t, bool reads)
{
	for (unsigned i = 0; i < SUBMIT; i++)
		t->operations[i] = (struct npumem_operation){.size = sizeof(struct npumem_operation),
							     .kind = reads ? NPUMEM_OP_READ : NPUMEM_OP_WRITE,
							     .handle = t->handle,
							     .segment = t->segment};
}

static void tell(const struct bench *bench, const struct shape *shape, const struct bench_measured *m, bool reads)
{
	enum { THROUGH, SEVERAL, ALONE, COPY, POINT };
	char name[BENCH_NAME_BYTES];
	snprintf(name, sizeof(name), "%s of %s", reads ? "read" : "write", shape->name);
	bench_compare(bench, name, m, THROUGH, COPY, "GB/s", 1e-9, shape->through);
	if (shape->through > 0)
		bench_compare(bench, name, m, THROUGH, POINT, "GB/s", 1e-9, 0);
	snprintf(name, sizeof(name), "%s of %s, %d in a submit", reads ? "read" : "write", shape->name, SUBMIT);
	bench_compare(bench, name, m, SEVERAL, COPY, "GB/s", 1e-9, 0);
	snprintf(name, sizeof(name), "%s of %s, alone", reads ? "gather" : "scatter", shape->name);
	bench_compare(bench, name, m, ALONE, COPY, "GB/s", 1e-9, shape->alone);
}

/* A kernel that any type of tensor can be an operand of gives the tensor its words. */
static void run(const struct bench *bench, struct inside *inside, struct remote *remote, const struct shape *shape,
		uint64_t point)
{
	char text[128];
	struct call call;
	struct inside_op inside_op, alone;
	struct remote_op remote_op;
	struct probe_copy copy;
	struct bench_measured m;
	struct transfer transfer = {.remote = remote, .point = point};
	snprintf(text, sizeof(text), "convert_tensor in=%s", shape->tensor);
	call_parse(&call, text);
	size_t bytes = call.tensors[0].bytes;
	inside_place(inside, &call, NULL, &inside_op);
	remote_place(remote, &call, NULL, &remote_op);
	transfer.handle = remote_op.operands[0].handle;
	probe_copy_init(&copy, bytes);
	remote_expect(remote, npumem_segment_create(remote->npumem, bytes, &transfer.segment, &remote->error));
	memcpy(transfer.segment->base, copy.from, bytes);
	for (int reads = 0; reads < 2; reads++) {
		inside_transfer(inside, inside_out(&inside_op, &call), reads ? OP_READ : OP_WRITE,
				reads ? copy.to : copy.from, bytes, &alone);
		make_submit(&transfer, reads);
		const struct bench_contender contenders[] = {
			{"daemon", reads ? run_read : run_write, &transfer, (double)bytes, BENCH_CLOCK},
			{"submit", run_submit, &transfer, (double)bytes * SUBMIT, BENCH_CLOCK},
			{"alone", inside_run, &alone, (double)bytes, BENCH_OWN},
			{"memcpy", probe_copy_run, &copy, (double)bytes, BENCH_OWN},
			{"the way there and back alone", run_point, &transfer, (double)bytes, BENCH_CLOCK},
		};
		bench_measure(bench, contenders, 5, &m);
		tell(bench, shape, &m, reads);
	}
	remote_expect(remote, npumem_segment_close(remote->npumem, transfer.segment, &remote->error));
	probe_copy_deinit(&copy);
	inside_drop(&inside_op);
	remote_drop(&remote_op);
}

int main(int argc, char **argv)
{
	struct bench bench = {.name = "bulk", .rounds = 11, .seconds = 0.03};
	struct inside inside;
	struct remote remote;
	struct remote_op point;
	struct call call;
	bench_options(&bench, argc, argv);
	inside_open(&inside, bench.isa);
	remote_open(&remote, &(struct remote_options){.name = "daemon", .isa = bench.isa, .pin = PEER_FREE});
	call_parse(&call, "convert_tensor in=fx8/4[1,1,1,1]");
	remote_place(&remote, &call, NULL, &point);
	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (bench_wanted(&bench, shapes[i].name))
			run(&bench, &inside, &remote, &shapes[i], point.operands[0].handle);
	remote_close(&remote);
	inside_close(&inside);
	bench_end(&bench);
	return 0;
}
