/* A track must not have slices that overlap, or viewers drop the later ones: what runs beside another of its
 * client and queue goes to the next track. Waits overlap at will, so that they are asynchronous events, which a
 * viewer spreads itself; so is what finds no track. Times of a record are not trusted: an entry that ends before
 * it starts, or begins before the record does, is left out. */
#include "client/ctl/core/report/report.h"

#include <string.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"

enum { LANES = 32, LANE_NAME_BYTES = 24 };

struct client {
	json_int_t session;
	json_int_t ends[2][LANES]; /* of the last slice: DMA, kernels; 0: the track has none */
};

struct trace {
	json_t *events;
	struct client *clients;
	size_t n_clients;
	json_int_t begin;
};

/* A quarter of a nanosecond above, as viewers cut off what is below a nanosecond, and 0.123 * 1000 is less than
 * 123: a slice would begin before the end of the one before it. Durations may become shorter. */
static double microseconds(const struct trace *trace, json_int_t ns)
{
	return ((double)(ns - trace->begin) + 0.25) / 1000;
}

/* ---- clients ---- */

static struct client *client_of(struct trace *trace, const json_t *row)
{
	json_int_t session = jsons_number(row, "session");
	char name[96];
	for (size_t i = trace->n_clients; i-- > 0;)
		if (trace->clients[i].session == session)
			return &trace->clients[i];
	struct client *client = memory_grow(&trace->clients, trace->n_clients++, sizeof(*client));
	client->session = session;
	snprintf(name, sizeof(name),
		 "session %" JSON_INTEGER_FORMAT ": uid %" JSON_INTEGER_FORMAT ", pid %" JSON_INTEGER_FORMAT,
		 session, jsons_number(row, "uid"), jsons_number(row, "pid"));
	json_array_append_new(trace->events, json_pack("{s:s, s:s, s:I, s:{s:s}}", "ph", "M", "name",
						       "process_name", "pid", session, "args", "name", name));
	return client;
}

/* The thread number of the first track that is free by then, 0 for none. */
static int lane_of(struct trace *trace, struct client *client, bool is_kernel, json_int_t start, json_int_t end)
{
	json_int_t *ends = client->ends[is_kernel];
	char name[LANE_NAME_BYTES];
	int lane = 0;
	while (lane < LANES && ends[lane] > start)
		lane++;
	if (lane == LANES)
		return 0;
	int thread = 1 + (is_kernel ? LANES : 0) + lane;
	if (!ends[lane]) {
		snprintf(name, sizeof(name), lane ? "%s %d" : "%s", is_kernel ? "kernels" : "DMA", lane + 1);
		json_array_append_new(trace->events,
				      json_pack("{s:s, s:s, s:I, s:i, s:{s:s}}", "ph", "M", "name", "thread_name",
						"pid", client->session, "tid", thread, "args", "name", name));
	}
	ends[lane] = end > ends[lane] ? end : ends[lane];
	return thread;
}

/* ---- operations ---- */

static json_t *arguments_of(const json_t *row)
{
	static const char *const facts[] = {"request", "bytes",	    "saturated", "wrapped",
					    "macs",    "destroyed", "warning"};
	json_t *arguments = json_object(), *value;
	const json_t *tensor;
	size_t i;
	for (i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		if ((value = json_object_get(row, facts[i])))
			json_object_set(arguments, facts[i], value);
	json_array_foreach(json_object_get(row, "tensors"), i, tensor)
	{
		const char *name = json_string_value(json_array_get(tensor, 3));
		json_object_set(arguments, json_string_value(json_array_get(tensor, 0)),
				json_array_get(tensor, *name ? 3 : 1));
	}
	return arguments;
}

/* The wait, and the arrow to this operation from the one that it waited for. */
static void add_wait(struct trace *trace, const json_t *row, size_t id, const json_t *operations, int thread)
{
	const json_t *found = json_object_get(row, "waited_for");
	const json_t *other = found ? json_array_get(operations, (size_t)json_integer_value(found)) : NULL;
	json_int_t session = jsons_number(row, "session"), start = jsons_number(row, "start");
	char name[96];
	if (!jsons_number(row, "came") || jsons_number(row, "came") >= start)
		return;
	snprintf(name, sizeof(name), "%.40s waits%s%.40s", jsons_string(row, "name"), other ? " for " : "",
		 other ? jsons_string(other, "name") : "");
	json_array_append_new(trace->events, json_pack("{s:s, s:s, s:s, s:I, s:I, s:f, s:{s:s}}", "ph", "b", "cat",
						       "wait", "name", name, "pid", session, "id", (json_int_t)id,
						       "ts", microseconds(trace, jsons_number(row, "came")),
						       "args", "why", jsons_string(row, "why")));
	json_array_append_new(trace->events,
			      json_pack("{s:s, s:s, s:s, s:I, s:I, s:f}", "ph", "e", "cat", "wait", "name", name,
					"pid", session, "id", (json_int_t)id, "ts", microseconds(trace, start)));
	if (!other || !json_object_get(other, "thread"))
		return;
	/* An arrow begins within its slice, and not at its end, which is another's. */
	json_array_append_new(trace->events,
			      json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:f}", "ph", "s", "cat", "waited_for",
					"name", "waited for", "pid", jsons_number(other, "session"), "tid",
					jsons_number(other, "thread"), "id", (json_int_t)id, "ts",
					microseconds(trace, jsons_number(other, "start"))));
	json_array_append_new(trace->events,
			      json_pack("{s:s, s:s, s:s, s:s, s:I, s:i, s:I, s:f}", "ph", "f", "bp", "e", "cat",
					"waited_for", "name", "waited for", "pid", session, "tid", thread, "id",
					(json_int_t)id, "ts", microseconds(trace, start)));
}

static void add_begin_and_end(struct trace *trace, const json_t *row, size_t id)
{
	static const char *const phases[] = {"b", "e"};
	json_int_t times[] = {jsons_number(row, "start"), jsons_number(row, "end")};
	for (int i = 0; i < 2; i++)
		json_array_append_new(trace->events,
				      json_pack("{s:s, s:s, s:s, s:I, s:I, s:f, s:o}", "ph", phases[i], "cat",
						jsons_string(row, "queue"), "name", jsons_string(row, "name"),
						"pid", jsons_number(row, "session"), "id", (json_int_t)id, "ts",
						microseconds(trace, times[i]), "args", arguments_of(row)));
}

static void add_operation(struct trace *trace, json_t *row, size_t id, const json_t *operations)
{
	json_int_t start = jsons_number(row, "start"), end = jsons_number(row, "end");
	bool is_told = end && end >= start && start >= trace->begin && jsons_number(row, "came") >= trace->begin;
	struct client *client = is_told ? client_of(trace, row) : NULL;
	if (!client)
		return;
	int thread = lane_of(trace, client, !strcmp(jsons_string(row, "queue"), "kernel"), start, end);
	if (!thread) {
		add_begin_and_end(trace, row, id);
		return;
	}
	json_object_set_new(row, "thread", json_integer(thread));
	json_array_append_new(trace->events,
			      json_pack("{s:s, s:s, s:s, s:I, s:i, s:f, s:f, s:o}", "ph", "X", "cat",
					jsons_string(row, "queue"), "name",
					jsons_string(row, *jsons_string(row, "label") ? "label" : "name"), "pid",
					client->session, "tid", thread, "ts", microseconds(trace, start), "dur",
					(double)(end - start) / 1000, "args", arguments_of(row)));
	add_wait(trace, row, id, operations, thread);
}

static void add_refusal(struct trace *trace, const json_t *entry)
{
	const char *status = jsons_string(entry, "status");
	json_int_t answered = jsons_number(entry, "answered_ns");
	if (!*status || !answered || answered < trace->begin || !client_of(trace, entry))
		return;
	json_array_append_new(trace->events,
			      json_pack("{s:s, s:s, s:s, s:s, s:I, s:f, s:{s:I, s:s}}", "ph", "i", "s", "p", "cat",
					"refused", "name", status, "pid", jsons_number(entry, "session"), "ts",
					microseconds(trace, answered), "args", "request",
					jsons_number(entry, "number"), "message",
					jsons_string(json_object_get(entry, "answer"), "message")));
}

/* ---- memory ---- */

/* Counters of the device, which is the process 0. */
static void add_memory(struct trace *trace, const json_t *entries)
{
	json_t *steps = memory_of(entries), *bytes;
	size_t i;
	json_array_foreach(steps, i, bytes)
	{
		json_int_t at = jsons_number(bytes, "at");
		json_object_del(bytes, "at");
		if (at >= trace->begin)
			json_array_append_new(trace->events,
					      json_pack("{s:s, s:s, s:s, s:i, s:f, s:O}", "ph", "C", "cat",
							"memory", "name", "bytes of all NPUs", "pid", 0, "ts",
							microseconds(trace, at), "args", bytes));
	}
	if (json_array_size(steps))
		json_array_append_new(trace->events,
				      json_pack("{s:s, s:s, s:i, s:{s:s}}", "ph", "M", "name", "process_name",
						"pid", 0, "args", "name", "device"));
}

/* ---- all of it ---- */

static json_int_t begin_of(const json_t *entries)
{
	json_int_t begin = 0;
	const json_t *entry;
	size_t i;
	json_array_foreach(entries, i, entry)
	{
		json_int_t came = jsons_number(entry, "came_ns");
		if (came && (!begin || came < begin))
			begin = came;
	}
	return begin;
}

bool trace_write(FILE *out, const json_t *chronicle)
{
	const json_t *entries = json_object_get(chronicle, "entries"), *entry;
	const json_t *operations = json_object_get(chronicle, "operations");
	struct trace trace = {.events = json_array(), .begin = begin_of(entries)};
	size_t i;
	for (i = 0; i < json_array_size(operations); i++)
		add_operation(&trace, json_array_get(operations, i), i, operations);
	json_array_foreach(entries, i, entry) add_refusal(&trace, entry);
	add_memory(&trace, entries);
	json_t *whole = json_pack("{s:s, s:O}", "displayTimeUnit", "ns", "traceEvents", trace.events);
	return !json_dumpf(whole, out, JSON_COMPACT | JSON_REAL_PRECISION(15)) && fputc('\n', out) != EOF &&
	       !fflush(out);
}
