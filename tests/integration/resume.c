/* A client of a daemon that is killed and started again: pipelines of random operations, segments, events, and
 * (where SEED is odd) allocations that wait. Every answer must be as from a daemon that lives, by a model of what
 * each tensor holds.
 *
 * usage: integration_resume ADDRESS SEED, until stdin ends; then it looks at everything once more, and tells what
 * it did in one line. Exits with 1 where something is not as it has to be. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <npumem/async.h>

enum { TENSORS = 8, BYTES = 6000, SLOTS = 32, HANDLES = 1 << 16, ROUNDS_LEAST = 200, BIG_BYTES = 2 << 20 };

enum kind { FILL, WRITE, WRITE_SEGMENT, READ, READ_SEGMENT, COPY, ADD, ADD_IN_PLACE, SUBMIT, ALLOC, FREE, KINDS };

struct tensor {
	uint64_t handle;
	int8_t holds[BYTES]; /* once all that was sent is done */
	unsigned n_readers;  /* not answered */
	bool is_changing;    /* in its place: left alone until that is answered */
};

/* One request under way, with memory of its own. */
struct slot {
	struct world *world;
	bool is_used;
	enum kind kind;
	struct tensor *readers[2]; /* what it reads */
	struct tensor *changing;
	const struct npumem_segment *segment;
	int8_t data[BYTES], expected[BYTES];
};

struct world {
	struct npumem *npumem;
	uint32_t state;
	struct tensor tensors[TENSORS];
	struct slot slots[SLOTS];
	uint64_t unnamed[HANDLES]; /* that were made for a while */
	unsigned n_unnamed, n_freed, n_handles;
	uint64_t *handles; /* all that were ever given */
	unsigned n_answers, n_events, n_granted, n_aborted;
	uint64_t hog;
	const struct npumem_tensor *big;
	uint8_t *big_data, *big_got;
	unsigned n_big; /* of two requests under way */
	bool is_unsure; /* what tensors hold: nothing is sent until all is answered */
};

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static void must(int status, const struct npumem_error *error, const char *what)
{
	if (status)
		fail(what, error->message);
}

static uint32_t random_next(struct world *world)
{
	world->state ^= world->state << 13;
	world->state ^= world->state >> 17;
	return world->state ^= world->state << 5;
}

static void new_handle(struct world *world, uint64_t handle)
{
	for (unsigned i = 0; i < world->n_handles; i++)
		if (world->handles[i] == handle)
			fail("alloc", "a handle was given twice");
	if (world->n_handles < HANDLES)
		world->handles[world->n_handles++] = handle;
}

/* Where the daemon cannot tell how far a request came, it says so, and what was sent after it may not find what it
 * should: all begins anew then. */
static bool answered(struct world *world, const struct npumem_answer *answer, const char *what)
{
	if (answer->status == NPUMEM_ABORTED) {
		world->n_aborted++;
		world->is_unsure = true;
	} else if (answer->status != NPUMEM_DATA_LOST || !world->is_unsure) {
		must(answer->status, answer->error, what);
	}
	return !world->is_unsure;
}

static void on_answer(void *context, const struct npumem_answer *answer)
{
	static const char *const kinds[KINDS] = {
		"fill", "write", "write from a segment", "read",   "read to a segment",
		"copy", "add",	 "add in place",	 "submit", "alloc",
		"free"};
	struct slot *slot = context;
	struct world *world = slot->world;
	/* What it was cut off in is lost. */
	if (slot->kind == ADD_IN_PLACE && answer->status == NPUMEM_DATA_LOST)
		world->is_unsure = true;
	/* The other client's allocation may wait for what is free. */
	bool is_refused = slot->kind == ALLOC && answer->status == NPUMEM_RESOURCE_EXHAUSTED;
	bool is_known = is_refused || answered(world, answer, kinds[slot->kind]);
	if (slot->changing)
		slot->changing->is_changing = false;
	if (is_known && (slot->kind == READ || slot->kind == SUBMIT) && memcmp(slot->data, slot->expected, BYTES))
		fail("read", "not what was written");
	if (is_known && slot->kind == READ_SEGMENT && memcmp(slot->segment->base, slot->expected, BYTES))
		fail("read to a segment", "not what was written");
	if (slot->kind == ALLOC && !answer->status) {
		new_handle(world, answer->tensors->list[0]->handle);
		world->unnamed[world->n_unnamed++ % HANDLES] = answer->tensors->list[0]->handle;
	}
	for (unsigned i = 0; i < 2; i++)
		if (slot->readers[i])
			slot->readers[i]->n_readers--;
	slot->is_used = false;
	world->n_answers++;
}

static void on_granted(void *context, const struct npumem_answer *answer)
{
	struct world *world = context;
	/* Between requests that were answered and not read it counts as one of them; then there is no hog any
	 * more. */
	if (answer->status == NPUMEM_ABORTED) {
		world->n_aborted++;
		return;
	}
	must(answer->status, answer->error, "an allocation that waited");
	new_handle(world, answer->tensors->list[0]->handle);
	world->hog = answer->tensors->list[0]->handle;
	world->n_granted++;
}

static void on_event(void *context, const struct npumem_event *event)
{
	struct world *world = context;
	world->n_events++;
	(void)event;
}

static struct npumem_allocation of(const char *name, int64_t bytes)
{
	struct npumem_allocation allocation = NPUMEM_ALLOCATION_INIT;
	allocation.name = name;
	allocation.spec.dtype = NPUMEM_FX8;
	allocation.spec.frac_bits = 4;
	allocation.spec.shape = (struct npumem_dims){1, 1, 1, bytes};
	return allocation;
}

/* ---- operations ---- */

/* Data operations that are not answered may be done twice, so what one reads is not written before it is. */
static struct tensor *pick(struct world *world, bool to_write)
{
	for (unsigned tries = 0; tries < 4 * TENSORS; tries++) {
		struct tensor *tensor = &world->tensors[random_next(world) % TENSORS];
		if (!tensor->is_changing && (!to_write || !tensor->n_readers))
			return tensor;
	}
	return NULL;
}

static void reads(struct slot *slot, unsigned i, struct tensor *tensor)
{
	slot->readers[i] = tensor;
	tensor->n_readers++;
}

static int send_write(struct world *world, struct slot *slot, struct npumem_error *error)
{
	struct tensor *tensor = pick(world, true);
	int8_t value = (int8_t)random_next(world);
	if (!tensor)
		return -1;
	if (slot->kind == FILL) {
		memset(tensor->holds, value, BYTES);
		return npumem_fill_async(world->npumem, tensor->handle, value, on_answer, slot, NULL, error);
	}
	for (unsigned i = 0; i < BYTES; i++)
		tensor->holds[i] = (int8_t)(value + (int8_t)(i * 7));
	if (slot->kind == WRITE) {
		memcpy(slot->data, tensor->holds, BYTES);
		return npumem_write_part_async(world->npumem, tensor->handle, 0, slot->data, BYTES, on_answer,
					       slot, NULL, error);
	}
	memcpy(slot->segment->base, tensor->holds, BYTES);
	return npumem_write_segment_async(world->npumem, tensor->handle, slot->segment, 0, NULL, 0, 0, on_answer,
					  slot, NULL, error);
}

static int send_read(struct world *world, struct slot *slot, struct npumem_error *error)
{
	struct tensor *tensor = pick(world, false);
	if (!tensor)
		return -1;
	reads(slot, 0, tensor);
	memcpy(slot->expected, tensor->holds, BYTES);
	if (slot->kind == READ)
		return npumem_read_part_async(world->npumem, tensor->handle, 0, BYTES, slot->data, BYTES,
					      on_answer, slot, NULL, error);
	return npumem_read_segment_async(world->npumem, tensor->handle, slot->segment, 0, NULL, 0, 0, on_answer,
					 slot, NULL, error);
}

static int8_t saturated(int sum)
{
	return (int8_t)(sum > 127 ? 127 : sum < -128 ? -128 : sum);
}

/* One that does the same when it is done twice. */
static int send_submit(struct world *world, struct slot *slot, struct tensor *a, struct tensor *to,
		       struct npumem_error *error)
{
	struct npumem_operation operations[3] = {{.size = sizeof(operations[0])}};
	int8_t value = (int8_t)random_next(world);
	if (a->n_readers)
		return -1;
	operations[2] = operations[1] = operations[0];
	operations[0].kind = NPUMEM_OP_FILL;
	operations[0].handle = a->handle;
	operations[0].value = value;
	operations[1].kind = NPUMEM_OP_COPY;
	operations[1].handle = to->handle;
	operations[1].source = a->handle;
	operations[2].kind = NPUMEM_OP_READ;
	operations[2].handle = to->handle;
	operations[2].data = slot->data;
	operations[2].bytes = BYTES;
	memset(a->holds, value, BYTES);
	memset(to->holds, value, BYTES);
	memset(slot->expected, value, BYTES);
	reads(slot, 0, a);
	reads(slot, 1, to);
	return npumem_submit_async(world->npumem, operations, 3, on_answer, slot, NULL, error);
}

static int send_run(struct world *world, struct slot *slot, struct npumem_error *error)
{
	struct tensor *a = pick(world, false), *b = pick(world, false), *to = pick(world, true);
	if (!a || !b || !to || a == to || b == to)
		return -1;
	if (slot->kind == SUBMIT)
		return send_submit(world, slot, a, to, error);
	if (slot->kind == ADD_IN_PLACE) {
		b = to;
		slot->changing = to;
		to->is_changing = true;
	}
	reads(slot, 0, a);
	if (slot->kind == COPY) {
		memcpy(to->holds, a->holds, BYTES);
		return npumem_copy_async(world->npumem, to->handle, a->handle, on_answer, slot, NULL, error);
	}
	if (b != to)
		reads(slot, 1, b);
	for (unsigned i = 0; i < BYTES; i++)
		to->holds[i] = saturated(a->holds[i] + b->holds[i]);
	struct npumem_operand operands[] = {{"in1", a->handle}, {"in2", b->handle}, {"out", to->handle}};
	return npumem_run_async(world->npumem, "eltwise_add", operands, 3, NULL, 0, on_answer, slot, NULL, error);
}

static int send_table(struct world *world, struct slot *slot, struct npumem_error *error)
{
	struct npumem_allocation allocation = of(NULL, 300);
	if (slot->kind == ALLOC)
		return world->n_unnamed - world->n_freed > 50
			       ? -1
			       : npumem_alloc_async(world->npumem, &allocation, 1, on_answer, slot, NULL, error);
	if (world->n_freed == world->n_unnamed)
		return -1;
	return npumem_free_async(world->npumem, &world->unnamed[world->n_freed++ % HANDLES], 1, on_answer, slot,
				 NULL, error);
}

static void send_one(struct world *world, struct slot *slot)
{
	struct npumem_error error;
	slot->kind = random_next(world) % KINDS;
	slot->readers[0] = slot->readers[1] = slot->changing = NULL;
	slot->is_used = true;
	int status = slot->kind <= WRITE_SEGMENT  ? send_write(world, slot, &error)
		     : slot->kind <= READ_SEGMENT ? send_read(world, slot, &error)
		     : slot->kind <= SUBMIT	  ? send_run(world, slot, &error)
						  : send_table(world, slot, &error);
	if (status < 0)
		slot->is_used = false; /* nothing to do it with */
	else
		must(status, &error, "sending");
}

/* ---- many frames ---- */

static void on_big_answer(void *context, const struct npumem_answer *answer)
{
	struct world *world = context;
	bool is_known = answered(world, answer, "many bytes");
	if (!--world->n_big && is_known && memcmp(world->big_got, world->big_data, BIG_BYTES))
		fail("read of many bytes", "not what was written");
}

static void send_big(struct world *world)
{
	struct npumem_error error;
	if (world->n_big)
		return;
	world->n_big = 2;
	for (unsigned i = 0, value = random_next(world); i < BIG_BYTES; i++)
		world->big_data[i] = (uint8_t)(value + i * 7 + i / 1000);
	memset(world->big_got, 0, BIG_BYTES);
	must(npumem_write_async(world->npumem, world->big, world->big_data, BIG_BYTES, on_big_answer, world, NULL,
				&error),
	     &error, "sending");
	must(npumem_read_async(world->npumem, world->big, world->big_got, BIG_BYTES, on_big_answer, world, NULL,
			       &error),
	     &error, "sending");
}

/* ---- together ---- */

static void begin_anew(struct world *world)
{
	struct npumem_error error;
	must(npumem_flush(world->npumem, &error), &error, "flush");
	for (unsigned i = 0; i < TENSORS; i++) {
		struct tensor *tensor = &world->tensors[i];
		memset(tensor->holds, 1, BYTES);
		must(npumem_fill(world->npumem, tensor->handle, 1, &error), &error, "fill");
	}
	world->is_unsure = false;
}

/* Most of what is left of the device, so that the next one of its size waits. */
static void take_the_rest(struct world *world)
{
	const struct npumem_stat *stat;
	const struct npumem_tensor *tensor;
	struct npumem_error error;
	must(npumem_stat(world->npumem, &stat, &error), &error, "stat");
	struct npumem_allocation rest = of(NULL, stat->largest_free * 3 / 5);
	rest.spec.start_npu = 0;
	must(npumem_alloc(world->npumem, &rest, 1, &tensor, &error), &error, "alloc of the rest");
	world->hog = tensor->handle;
	new_handle(world, tensor->handle);
	npumem_release(tensor);
	npumem_release(stat);
}

/* The next one waits until this one goes. */
static void pass_the_rest_on(struct world *world)
{
	struct npumem_allocation rest = of(NULL, 0);
	const struct npumem_tensor *tensor;
	struct npumem_error error;
	uint64_t hog = world->hog;
	if (!hog)
		return;
	int status;
	/* Where many were answered and not read, those between them count as changed, too. */
	while ((status = npumem_show(world->npumem, hog, &tensor, &error)) == NPUMEM_ABORTED)
		world->n_aborted++;
	must(status, &error, "show");
	rest.spec.shape = tensor->place.shape;
	rest.spec.start_npu = 0;
	npumem_release(tensor);
	world->hog = 0;
	must(npumem_alloc_wait_async(world->npumem, &rest, 1, 600000, on_granted, world, NULL, &error), &error,
	     "an allocation that waits");
	must(npumem_free_async(world->npumem, &hog, 1, NULL, NULL, NULL, &error), &error, "free");
}

static void begin(struct world *world, const char *address, unsigned seed)
{
	static const char *const kinds[] = {"allocated", "freed"};
	struct npumem_error error;
	char name[32];
	must(npumem_open(address, NULL, &world->npumem, &error), &error, "open");
	must(npumem_subscribe(world->npumem, kinds, 2, on_event, world, &error), &error, "subscribe");
	for (unsigned i = 0; i < TENSORS; i++) {
		const struct npumem_tensor *tensor;
		snprintf(name, sizeof(name), "t%u-%u", i, seed);
		struct npumem_allocation allocation = of(i % 2 ? name : NULL, BYTES);
		must(npumem_alloc(world->npumem, &allocation, 1, &tensor, &error), &error, "alloc");
		world->tensors[i].handle = tensor->handle;
		new_handle(world, tensor->handle);
		must(npumem_fill(world->npumem, tensor->handle, 0, &error), &error, "fill");
		npumem_release(tensor);
	}
	for (unsigned i = 0; i < SLOTS; i++) {
		world->slots[i].world = world;
		must(npumem_segment_create(world->npumem, BYTES, &world->slots[i].segment, &error), &error,
		     "segment");
	}
	struct npumem_allocation big = of(NULL, BIG_BYTES / 8);
	big.spec.shape.c = 8;
	must(npumem_alloc(world->npumem, &big, 1, &world->big, &error), &error, "alloc of many bytes");
	world->big_data = malloc(BIG_BYTES);
	world->big_got = malloc(BIG_BYTES);
	/* One of two clients, as each might get the other's. */
	if (seed % 2)
		take_the_rest(world);
}

static bool is_over(void)
{
	struct pollfd pollfd = {.fd = 0, .events = POLLIN};
	return poll(&pollfd, 1, 0) == 1;
}

static void end(struct world *world)
{
	struct npumem_error error;
	int8_t data[BYTES];
	unsigned events = world->n_events;
	must(npumem_flush(world->npumem, &error), &error, "flush");
	for (unsigned i = 0; i < TENSORS && !world->is_unsure; i++) {
		must(npumem_read_part(world->npumem, world->tensors[i].handle, 0, BYTES, data, BYTES, NULL,
				      &error),
		     &error, "read at the end");
		if (memcmp(data, world->tensors[i].holds, BYTES))
			fail("at the end", "a tensor does not hold what was written");
	}
	must(npumem_free(world->npumem, &world->tensors[0].handle, 1, &error), &error, "free at the end");
	must(npumem_info(world->npumem, NULL, &error), &error, "info");
	/* It may come behind the reply. */
	for (unsigned seconds = 0; world->n_events == events && seconds < 60; seconds++) {
		struct pollfd pollfd = {.fd = npumem_fd(world->npumem), .events = POLLIN};
		poll(&pollfd, 1, 1000);
		must(npumem_process(world->npumem, &error), &error, "process");
	}
	if (world->n_events == events)
		fail("events", "none come any more");
	printf("%u answers, %u waited, %u aborted, %u events\n", world->n_answers, world->n_granted,
	       world->n_aborted, world->n_events);
	npumem_close(world->npumem);
}

int main(int argc, char **argv)
{
	static struct world world;
	struct npumem_error error;
	if (argc != 3)
		return 2;
	unsigned seed = (unsigned)strtoul(argv[2], NULL, 10);
	world.state = seed * 2654435761u + 1;
	world.handles = calloc(HANDLES, sizeof(*world.handles));
	begin(&world, argv[1], seed);
	printf("ready\n");
	fflush(stdout);
	for (unsigned round = 0; round < ROUNDS_LEAST || !is_over(); round++) {
		if (world.is_unsure)
			begin_anew(&world);
		for (unsigned i = 0; i < SLOTS; i++)
			if (!world.slots[i].is_used)
				send_one(&world, &world.slots[i]);
		if (round % 64 == 0)
			pass_the_rest_on(&world);
		if (round % 100 == 0)
			send_big(&world);
		struct pollfd pollfd = {.fd = npumem_fd(world.npumem), .events = POLLIN};
		if (npumem_wants_write(world.npumem))
			pollfd.events |= POLLOUT;
		if (npumem_in_flight(world.npumem))
			poll(&pollfd, 1, npumem_timeout(world.npumem));
		must(npumem_process(world.npumem, &error), &error, "process");
	}
	end(&world);
	free(world.handles);
	free(world.big_data);
	free(world.big_got);
	return 0;
}
