/* Draws traces. Which bytes are in a write, and which tensors are alike, is chosen so that most requests are not
 * refused: one shape for almost all, so that they can be copied into each other. */
#include "tests/random/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/npumem.pb-c.h"

static const char *const verbs[] = {"write", "read", "fill", "copy",	"run",	     "submit",
				    "alloc", "view", "free", "open",	"seal",	     "grant",
				    "list",  "stat", "dump", "compact", "subscribe", "rename"};

const char *trace_mode_name(enum trace_mode mode)
{
	static const char *const names[] = {"alone", "roomy", "tight", "churn"};

	return names[mode];
}

uint64_t trace_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

struct draw {
	struct trace *trace;
	uint64_t state;
	unsigned peer;
	unsigned one_in_handle; /* refs by handle: one in so many */
	unsigned n_slots;	/* in use: few, so that requests meet */
};

static unsigned below(struct draw *draw, unsigned n)
{
	return (unsigned)(trace_random(&draw->state) % n);
}

static bool one_in(struct draw *draw, unsigned n)
{
	return below(draw, n) == 0;
}

uint32_t trace_uid(const struct trace *trace, unsigned peer)
{
	/* Two clients of the first uid. */
	return 1001 + (trace->mode == TRACE_CHURN ? peer / 2 : peer ? peer - 1 : 0);
}

int trace_first_value(const struct trace *trace, unsigned peer)
{
	return 1 + (int)(trace_uid(trace, peer) - 1001) * TRACE_VALUES;
}

void trace_name(const struct trace *trace, unsigned peer, unsigned slot, char name[TRACE_NAME_BYTES])
{
	if (slot == TRACE_NOBODY)
		snprintf(name, TRACE_NAME_BYTES, "nobody");
	else if (slot >= TRACE_SHARED)
		snprintf(name, TRACE_NAME_BYTES, "%d:m%u", TRACE_HOST_UID, slot - TRACE_SHARED);
	else if (trace->mode == TRACE_CHURN)
		snprintf(name, TRACE_NAME_BYTES, "t%u", slot);
	else
		snprintf(name, TRACE_NAME_BYTES, "p%ut%u", peer, slot);
}

/* ---- requests ---- */

static struct trace_ref draw_own(struct draw *draw)
{
	return (struct trace_ref){below(draw, draw->n_slots), one_in(draw, draw->one_in_handle)};
}

static struct trace_ref draw_ref(struct draw *draw)
{
	if (draw->trace->mode != TRACE_CHURN && one_in(draw, 4))
		return (struct trace_ref){TRACE_SHARED + below(draw, TRACE_N_SHARED), one_in(draw, 4)};
	return draw_own(draw);
}

static int draw_value(struct draw *draw)
{
	return trace_first_value(draw->trace, draw->peer) + (int)below(draw, TRACE_VALUES);
}

static void draw_range(struct draw *draw, struct trace_op *op)
{
	int64_t elements = TRACE_N * TRACE_C_NARROW * TRACE_W;

	op->count = op->verb == TRACE_READ ? 0 : TRACE_N * TRACE_C * TRACE_W;
	if (one_in(draw, 2))
		return;
	op->first = below(draw, (unsigned)elements - 1);
	op->count = 1 + below(draw, (unsigned)(elements - op->first));
}

static void draw_run(struct draw *draw, struct trace_op *op)
{
	/* The first three keep a value what it is, or choose one of two: also where values say whose they are. */
	static const int kernels[] = {NPUMEM__V1__KERNEL__RELU, NPUMEM__V1__KERNEL__CONVERT_TENSOR,
				      NPUMEM__V1__KERNEL__ELTWISE_MAX, NPUMEM__V1__KERNEL__ELTWISE_ADD};

	op->kernel = kernels[below(draw, draw->trace->mode == TRACE_CHURN ? 3 : 4)];
	op->n_refs = op->kernel == NPUMEM__V1__KERNEL__ELTWISE_MAX || op->kernel == NPUMEM__V1__KERNEL__ELTWISE_ADD
			     ? 3
			     : 2;
}

static void draw_op(struct draw *draw, struct trace_op *op)
{
	static const enum trace_verb choice[] = {TRACE_WRITE, TRACE_READ, TRACE_READ, TRACE_FILL,
						 TRACE_FILL,  TRACE_COPY, TRACE_COPY, TRACE_RUN};

	*op = (struct trace_op){.verb = choice[below(draw, sizeof(choice) / sizeof(choice[0]))], .n_refs = 1};
	if (op->verb == TRACE_COPY)
		op->n_refs = 2;
	if (op->verb == TRACE_RUN)
		draw_run(draw, op);
	if (op->verb == TRACE_READ || op->verb == TRACE_WRITE)
		draw_range(draw, op);
	op->value = draw_value(draw);
	for (unsigned i = 0; i < op->n_refs; i++)
		op->refs[i] = draw_ref(draw);
}

static void draw_submit(struct draw *draw, struct trace_request *request)
{
	unsigned group = 0;

	request->n_ops = 2 + below(draw, TRACE_OPS - 1);
	for (unsigned i = 0; i < request->n_ops; i++) {
		draw_op(draw, &request->ops[i]);
		if (one_in(draw, 3))
			group = one_in(draw, 2) ? 0 : 1 + below(draw, 2);
		request->ops[i].group = group;
	}
}

static void draw_alloc(struct draw *draw, struct trace_request *request)
{
	bool tight = draw->trace->mode == TRACE_TIGHT;

	request->n_tensors = one_in(draw, 4) ? 1 + below(draw, TRACE_TENSORS) : 1;
	for (unsigned i = 0; i < request->n_tensors; i++)
		request->tensors[i] = (struct trace_tensor){.slot = below(draw, draw->n_slots),
							    .anonymous = one_in(draw, 6),
							    .packed = one_in(draw, 2),
							    .narrow = one_in(draw, 10),
							    .pinned = one_in(draw, 8),
							    .dma_only = one_in(draw, 12)};
	if ((tight || draw->trace->mode == TRACE_CHURN) && one_in(draw, 2))
		request->wait_ms = 1 + below(draw, 5000);
}

static void draw_about(struct draw *draw, struct trace_request *request)
{
	struct trace_op *op = &request->ops[0];

	request->n_ops = request->verb == TRACE_FREE && one_in(draw, 4) ? 2 : 1;
	for (unsigned i = 0; i < request->n_ops; i++)
		request->ops[i] = (struct trace_op){.verb = request->verb, .n_refs = 1, .refs = {draw_own(draw)}};
	if (request->verb == TRACE_OPEN || request->verb == TRACE_DUMP)
		op->refs[0] = draw_ref(draw);
	if (request->verb == TRACE_RENAME) {
		op->n_refs = 2;
		op->refs[1] = (struct trace_ref){below(draw, draw->n_slots), false};
	}
	if (request->verb == TRACE_GRANT)
		op->value = NPUMEM__V1__ACCESS__ACCESS_NONE + (int)below(draw, 3);
	if (request->verb == TRACE_DUMP) {
		op->first = below(draw, 4096);
		op->count = 1 + below(draw, 512);
	}
	if (request->verb != TRACE_VIEW)
		return;
	op->n_refs = 2;
	op->refs[1] = draw_ref(draw);
	op->first = one_in(draw, 2) ? 0 : TRACE_W / 2;
	op->count = TRACE_W / 2;
}

static enum trace_verb draw_verb(struct draw *draw)
{
	unsigned pick = below(draw, 100);

	/* What is alike below: operations, changes, looks, and the rare ones. */
	if (pick < 44)
		return TRACE_READ;
	if (pick < 52)
		return TRACE_SUBMIT;
	if (pick < 70)
		return TRACE_ALLOC;
	if (pick < 82)
		return TRACE_FREE;
	if (pick < 86)
		return TRACE_VIEW;
	if (pick < 90)
		return TRACE_OPEN;
	if (pick < 93)
		return TRACE_COMPACT;
	return (enum trace_verb)(TRACE_SEAL + below(draw, TRACE_RENAME - TRACE_SEAL));
}

static void draw_request(struct draw *draw, struct trace_request *request)
{
	request->verb = draw_verb(draw);
	/* What is sealed can never be written again: seldom. */
	if (request->verb == TRACE_SEAL && !one_in(draw, 3))
		request->verb = TRACE_OPEN;
	if (draw->trace->mode == TRACE_ALONE && request->verb == TRACE_OPEN && one_in(draw, 2))
		request->verb = TRACE_RENAME;
	switch (request->verb) {
	case TRACE_READ:
		request->n_ops = 1;
		draw_op(draw, &request->ops[0]);
		request->verb = request->ops[0].verb;
		break;
	case TRACE_SUBMIT:
		draw_submit(draw, request);
		break;
	case TRACE_ALLOC:
		draw_alloc(draw, request);
		break;
	case TRACE_COMPACT:
		request->dry_run = one_in(draw, 2);
		break;
	case TRACE_LIST:
	case TRACE_STAT:
	case TRACE_SUBSCRIBE:
		break;
	default:
		draw_about(draw, request);
		break;
	}
}

/* ---- traces ---- */

static enum trace_kind draw_kind(struct draw *draw, unsigned percent_done)
{
	unsigned pick = below(draw, 100);

	if (pick < percent_done)
		return one_in(draw, 3) ? TRACE_WORK : TRACE_DONE;
	if (pick >= 97)
		return TRACE_CLOCK;
	if (draw->trace->mode >= TRACE_TIGHT && pick >= 94)
		return TRACE_CANCEL;
	return TRACE_SEND;
}

static bool leaves_out(const char *without, const struct trace_event *event)
{
	static const char *const kinds[] = {"", "", "", "", "cancel", "close"};
	const char *word = event->kind == TRACE_SEND ? verbs[event->request.verb] : kinds[event->kind];

	return *word && strstr(without, word);
}

static void trim(const char *without, struct trace_request *request)
{
	for (unsigned i = 0; i < request->n_ops && strstr(without, "group"); i++)
		request->ops[i].group = 0;
	if (strstr(without, "wait"))
		request->wait_ms = 0;
}

void trace_draw(uint64_t seed, enum trace_mode mode, const char *without, struct trace *trace)
{
	struct draw draw = {.trace = trace, .state = seed * TRACE_MODES + mode};
	unsigned percent_done, n = 0;

	memset(trace, 0, sizeof(*trace));
	trace->seed = seed;
	trace->mode = mode;
	trace->n_peers = mode == TRACE_ALONE ? 1 : mode == TRACE_CHURN ? TRACE_PEERS : 2 + below(&draw, 2);
	trace->n = 40 + below(&draw, TRACE_EVENTS - 40);
	percent_done = 10 + below(&draw, 50);
	draw.one_in_handle = 2 + below(&draw, 8);
	draw.n_slots = 3 + below(&draw, TRACE_SLOTS - 2);
	for (unsigned i = 0; i < trace->n; i++) {
		struct trace_event *event = &trace->events[n];

		draw.peer = event->peer = below(&draw, trace->n_peers);
		event->kind = draw_kind(&draw, percent_done);
		if (mode >= TRACE_TIGHT && i > trace->n / 2 && one_in(&draw, 200))
			event->kind = TRACE_CLOSE;
		event->pick = trace_random(&draw.state);
		event->request = (struct trace_request){0};
		if (event->kind == TRACE_SEND)
			draw_request(&draw, &event->request);
		trim(without, &event->request);
		n += !leaves_out(without, event);
	}
	trace->n = n;
}

/* ---- for people ---- */

struct line {
	char *text;
	size_t bytes, used;
};

static __attribute__((format(printf, 2, 3))) void say(struct line *line, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(line->text + line->used, line->bytes - line->used, format, arguments);
	va_end(arguments);
	line->used += n < 0 ? 0 : (size_t)n;
	if (line->used >= line->bytes)
		line->used = line->bytes - 1;
}

static void say_ref(struct line *line, const struct trace *trace, unsigned peer, const struct trace_ref *ref)
{
	char name[TRACE_NAME_BYTES];

	trace_name(trace, peer, ref->slot, name);
	say(line, " %s%s", name, ref->by_handle ? "(handle)" : "");
}

static void say_op(struct line *line, const struct trace *trace, unsigned peer, const struct trace_op *op)
{
	say(line, " %s", verbs[op->verb]);
	if (op->verb == TRACE_RUN)
		say(line, " %s",
		    protobuf_c_enum_descriptor_get_value(&npumem__v1__kernel__descriptor, op->kernel)->name);
	for (unsigned i = 0; i < op->n_refs; i++)
		say_ref(line, trace, peer, &op->refs[i]);
	if (op->verb == TRACE_FILL || op->verb == TRACE_WRITE || op->verb == TRACE_GRANT)
		say(line, " = %d", op->value);
	if (op->count)
		say(line, " [%d, +%d]", (int)op->first, (int)op->count);
	if (op->group)
		say(line, " {group %u}", op->group);
}

void trace_print_request(const struct trace *trace, unsigned peer, const struct trace_request *request, char *text,
			 size_t bytes)
{
	struct line line = {text, bytes, 0};
	struct trace_op bare = {.verb = request->verb};

	text[0] = 0;
	if (!request->n_ops || request->verb == TRACE_SUBMIT)
		say_op(&line, trace, peer, &bare);
	for (unsigned i = 0; i < request->n_ops; i++) {
		say(&line, "%s", i ? ";" : "");
		say_op(&line, trace, peer, &request->ops[i]);
	}
	for (unsigned i = 0; i < request->n_tensors; i++) {
		const struct trace_tensor *tensor = &request->tensors[i];

		say_ref(&line, trace, peer, &(struct trace_ref){tensor->slot, false});
		say(&line, "%s%s%s%s", tensor->anonymous ? " (no name)" : "", tensor->packed ? " long" : "",
		    tensor->narrow ? " narrow" : "", tensor->dma_only ? " dma-only" : "");
	}
	if (request->wait_ms)
		say(&line, " wait %u ms", request->wait_ms);
	if (request->dry_run)
		say(&line, " dry run");
}
