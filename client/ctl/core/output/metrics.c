/* One table of samples for each shape of metric, so that a new one is a row. Invariant: label values are escaped,
 * although the daemon's own names need none. */
#include "client/ctl/core/output/output.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

double metrics_fragmentation(const struct npumem_details *details)
{
	int64_t free = details->n_npus ? details->stat->free / details->n_npus : 0;
	/* Free bytes between footprints of unequal width on the same offsets are not the arena's to give. */
	if (free <= 0 || details->stat->largest_free >= free)
		return 0;
	return 1 - (double)details->stat->largest_free / (double)free;
}

uint64_t metrics_answers(const struct npumem_call_stat *call)
{
	uint64_t n = 0;
	for (unsigned i = 0; i < NPUMEM_STATUSES; i++)
		n += call->statuses[i];
	return n;
}

uint64_t metrics_refusals(const struct npumem_call_stat *call)
{
	return metrics_answers(call) - call->statuses[0];
}

double metrics_quantile(const struct npumem_call_stat *call, double part)
{
	double wanted = part * (double)metrics_answers(call), seen = 0;
	for (unsigned i = 0; i + 1 < NPUMEM_BUCKETS; i++) {
		seen += (double)call->buckets[i];
		if (seen >= wanted)
			return ldexp(1, (int)i);
	}
	return HUGE_VAL;
}

/* ---- what there is ---- */

struct device_row {
	const char *name, *help;
	size_t at; /* of an int64_t in struct npumem_stat */
};
#define DEVICE(member, help)                                                                                      \
	{                                                                                                         \
#member, help, offsetof(struct npumem_stat, member)                                               \
	}
static const struct device_row bytes_rows[] = {DEVICE(data, ""),  DEVICE(dummy, ""), DEVICE(padding, ""),
					       DEVICE(empty, ""), DEVICE(free, ""),  {NULL, NULL, 0}};
static const struct device_row gauge_rows[] = {
	{"device_total_bytes", "Local memory of all NPUs.", offsetof(struct npumem_stat, total)},
	{"device_lent_bytes", "Bytes that are one tensor's empty block and another's data.",
	 offsetof(struct npumem_stat, lent)},
	{"device_largest_free_bytes", "The largest free extent, per NPU.",
	 offsetof(struct npumem_stat, largest_free)},
	{"tensors", "Live tensors with storage.", offsetof(struct npumem_stat, tensors)},
	{"views", "Live views.", offsetof(struct npumem_stat, views)},
	{"packs_bytes", "Host memory for packed weights that are kept.", offsetof(struct npumem_stat, packs)},
	{"sessions", "Connected clients.", offsetof(struct npumem_stat, sessions)},
	{NULL, NULL, 0}};

struct counter_row {
	const char *name, *help;
	size_t at; /* of a 64-bit number in the struct of its table */
};
#define ACTIVITY(member, help)                                                                                    \
	{                                                                                                         \
#member, help, offsetof(struct npumem_activity, member)                                           \
	}
static const struct counter_row activity_rows[] = {
	ACTIVITY(dma_bytes, "Bytes moved by DMA operations."),
	ACTIVITY(kernels, "Kernels run."),
	ACTIVITY(macs, "Multiplications of kernels."),
	ACTIVITY(saturated, "Kernel outputs that were clamped to their container."),
	ACTIVITY(wrapped, "Accumulators that passed their range."),
	ACTIVITY(destroyed_bytes, "Bytes of tensors that kernels destroyed."),
	{NULL, NULL, 0}};

struct usage_row {
	const char *name, *help;
	bool counter;
	size_t at;
};
#define USAGE(member, counter, help)                                                                              \
	{                                                                                                         \
#member, help, counter, offsetof(struct npumem_usage, member)                                     \
	}
static const struct usage_row usage_rows[] = {
	USAGE(requests, true, "Requests answered."),
	USAGE(errors, true, "Requests refused."),
	USAGE(bytes_in, true, "Bytes of answered requests."),
	USAGE(bytes_out, true, "Bytes of answers."),
	USAGE(in_flight, false, "Requests waiting or running."),
	USAGE(device_bytes, false, "Bytes of footprints held, over all NPUs."),
	USAGE(tensors, false, "Tensors and views held."),
	USAGE(packs, false, "Host memory for packed weights of its tensors; of a session none."),
	{NULL, NULL, false, 0}};

static uint64_t number_at(const void *from, size_t at)
{
	return *(const uint64_t *)(const void *)((const char *)from + at);
}

/* ---- JSON ---- */

static void put_number(json_t **to, const char *name, uint64_t number)
{
	jsons_put(to, name, json_integer((json_int_t)number));
}

static json_t *usage_json(const struct npumem_usage *usage, bool session)
{
	json_t *object = json_object();
	if (session || usage->sessions)
		put_number(&object, session ? "session" : "sessions", session ? usage->session : usage->sessions);
	put_number(&object, "uid", usage->uid);
	if (session)
		put_number(&object, "pid", usage->pid);
	for (const struct usage_row *row = usage_rows; row->name; row++)
		put_number(&object, row->name, number_at(usage, row->at));
	return object;
}

static json_t *usages_json(const struct npumem_usage *const *usages, unsigned n, bool session)
{
	json_t *array = json_array();
	for (unsigned i = 0; i < n; i++)
		jsons_append(&array, usage_json(usages[i], session));
	return array;
}

static json_t *buckets_json(const uint64_t *from)
{
	json_t *buckets = json_array();
	for (unsigned i = 0; i < NPUMEM_BUCKETS; i++)
		jsons_append(&buckets, json_integer((json_int_t)from[i]));
	return buckets;
}

static json_t *statuses_json(const uint64_t *from)
{
	json_t *statuses = json_object();
	for (int i = 0; i < NPUMEM_STATUSES; i++)
		if (from[i] && npumem_status_name(i))
			put_number(&statuses, npumem_status_name(i), from[i]);
	return statuses;
}

static json_t *call_json(const struct npumem_call_stat *call)
{
	json_t *object = json_object();
	jsons_put(&object, "call", json_string(call->call));
	put_number(&object, "count", metrics_answers(call));
	put_number(&object, "errors", metrics_refusals(call));
	jsons_put(&object, "statuses", statuses_json(call->statuses));
	jsons_put(&object, "latency_buckets", buckets_json(call->buckets));
	jsons_put(&object, "seconds", json_real((double)call->total_ns / 1e9));
	return object;
}

static json_t *calls_json(const struct npumem_details *details)
{
	json_t *array = json_array();
	for (unsigned i = 0; i < details->n_calls; i++)
		jsons_append(&array, call_json(details->calls[i]));
	return array;
}

static json_t *loop_json(const struct npumem_loop_stat *loop)
{
	json_t *object = json_object();
	put_number(&object, "turns", loop->turns);
	jsons_put(&object, "seconds", json_real((double)loop->total_ns / 1e9));
	jsons_put(&object, "longest_seconds", json_real((double)loop->longest_ns / 1e9));
	jsons_put(&object, "longest_cpu_seconds", json_real((double)loop->longest_cpu_ns / 1e9));
	jsons_put(&object, "longest_wait_seconds", json_real((double)loop->longest_wait_ns / 1e9));
	jsons_put(&object, "turn_buckets", buckets_json(loop->buckets));
	return object;
}

static json_t *device_json(const struct npumem_details *details)
{
	const struct npumem_stat *stat = details->stat;
	json_t *object = json_object();
	put_number(&object, "total", (uint64_t)stat->total);
	for (const struct device_row *row = bytes_rows; row->name; row++)
		put_number(&object, row->name, number_at(stat, row->at));
	put_number(&object, "lent", (uint64_t)stat->lent);
	jsons_put(&object, "uncounted", json_boolean(stat->uncounted));
	put_number(&object, "largest_free", (uint64_t)stat->largest_free);
	jsons_put(&object, "fragmentation", json_real(metrics_fragmentation(details)));
	return object;
}

static json_t *activity_json(const struct npumem_activity *activity)
{
	json_t *object = json_object();
	for (const struct counter_row *row = activity_rows; row->name; row++)
		put_number(&object, row->name, number_at(activity, row->at));
	return object;
}

static json_t *npus_json(const struct npumem_details *details)
{
	json_t *array = json_array();
	for (unsigned i = 0; i < details->n_npus; i++)
		jsons_append(&array, json_integer(details->npu_data[i]));
	return array;
}

static json_t *running_json(const struct npumem_details *details)
{
	json_t *array = json_array();
	for (unsigned i = 0; i < details->n_running; i++) {
		const struct npumem_running *r = details->running[i];
		json_t *row = json_pack(
			"{s:I, s:I, s:I, s:I, s:s, s:s, s:f, s:I, s:I, s:b}", "session", (json_int_t)r->session,
			"uid", (json_int_t)r->uid, "pid", (json_int_t)r->pid, "request", (json_int_t)r->request,
			"call", r->call, "what", r->what, "seconds",
			details->now_ns > r->since_ns ? (double)(details->now_ns - r->since_ns) / 1e9 : 0.0,
			"done", (json_int_t)r->done, "total", (json_int_t)r->total, "waits", r->waits);
		jsons_append(&array, row);
	}
	return array;
}

json_t *metrics_json(const struct npumem_details *details)
{
	const struct npumem_stat *stat = details->stat;
	json_t *object = json_object();
	jsons_put(&object, "device", device_json(details));
	put_number(&object, "tensors", (uint64_t)stat->tensors);
	put_number(&object, "views", (uint64_t)stat->views);
	put_number(&object, "packs", (uint64_t)stat->packs);
	put_number(&object, "sessions", (uint64_t)stat->sessions);
	jsons_put(&object, "activity", activity_json(details->activity));
	if (details->loop->turns)
		jsons_put(&object, "loop", loop_json(details->loop));
	jsons_put(&object, "all", usage_json(details->all, false));
	jsons_put(&object, "npu_data", npus_json(details));
	jsons_put(&object, "uids", usages_json(details->uids, details->n_uids, false));
	jsons_put(&object, "clients", usages_json(details->clients, details->n_clients, true));
	jsons_put(&object, "calls", calls_json(details));
	jsons_put(&object, "running", running_json(details));
	return object;
}

/* ---- Prometheus ---- */

static void head(FILE *out, const char *name, const char *suffix, const char *type, const char *help)
{
	fprintf(out, "# HELP npumem_%s%s %s\n# TYPE npumem_%s%s %s\n", name, suffix, help, name, suffix, type);
}

static void label(FILE *out, const char *value)
{
	for (; *value; value++)
		if (*value == '\n')
			fputs("\\n", out);
		else
			fprintf(out, *value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
}

static void device_samples(FILE *out, const struct npumem_details *details)
{
	head(out, "device_bytes", "", "gauge", "Bytes of local memory by what they are.");
	for (const struct device_row *row = bytes_rows; row->name; row++)
		fprintf(out, "npumem_device_bytes{kind=\"%s\"} %" PRIu64 "\n", row->name,
			number_at(details->stat, row->at));
	for (const struct device_row *row = gauge_rows; row->name; row++) {
		head(out, row->name, "", "gauge", row->help);
		fprintf(out, "npumem_%s %" PRIu64 "\n", row->name, number_at(details->stat, row->at));
	}
	head(out, "device_uncounted", "", "gauge",
	     "1: tensors over one another are not counted yet: padding and lent are 0, and empty has the padding, "
	     "too.");
	fprintf(out, "npumem_device_uncounted %d\n", details->stat->uncounted);
	head(out, "device_fragmentation", "", "gauge", "1 - largest free extent / free bytes of an NPU.");
	fprintf(out, "npumem_device_fragmentation %.9g\n", metrics_fragmentation(details));
	head(out, "npu_data_bytes", "", "gauge", "Bytes of data and dummies on each NPU.");
	for (unsigned i = 0; i < details->n_npus; i++)
		fprintf(out, "npumem_npu_data_bytes{npu=\"%u\"} %" PRId64 "\n", i, details->npu_data[i]);
	for (const struct counter_row *row = activity_rows; row->name; row++) {
		head(out, row->name, "_total", "counter", row->help);
		fprintf(out, "npumem_%s_total %" PRIu64 "\n", row->name, number_at(details->activity, row->at));
	}
}

static void usage_samples(FILE *out, const struct npumem_details *details)
{
	head(out, "sessions_opened", "_total", "counter", "Clients that ever connected.");
	fprintf(out, "npumem_sessions_opened_total %" PRIu64 "\n", details->all->sessions);
	for (const struct usage_row *row = usage_rows; row->name; row++) {
		const char *suffix = row->counter ? "_total" : "", *type = row->counter ? "counter" : "gauge";
		char name[64];
		snprintf(name, sizeof(name), "uid_%s", row->name);
		head(out, name, suffix, type, row->help);
		for (unsigned i = 0; i < details->n_uids; i++)
			fprintf(out, "npumem_%s%s{uid=\"%" PRIu32 "\"} %" PRIu64 "\n", name, suffix,
				details->uids[i]->uid, number_at(details->uids[i], row->at));
		snprintf(name, sizeof(name), "session_%s", row->name);
		head(out, name, suffix, type, row->help);
		for (unsigned i = 0; i < details->n_clients; i++)
			fprintf(out,
				"npumem_%s%s{session=\"%" PRIu64 "\",uid=\"%" PRIu32 "\",pid=\"%" PRIu32
				"\"} %" PRIu64 "\n",
				name, suffix, details->clients[i]->session, details->clients[i]->uid,
				details->clients[i]->pid, number_at(details->clients[i], row->at));
	}
}

static void call_label(FILE *out, const char *call, const char *after)
{
	if (!call)
		return;
	fputs("call=\"", out);
	label(out, call);
	fprintf(out, "\"%s", after);
}

/* `call` NULL: a histogram without labels. */
static void histogram(FILE *out, const char *name, const char *call, const uint64_t *buckets, uint64_t total_ns)
{
	uint64_t below = 0;
	for (unsigned i = 0; i < NPUMEM_BUCKETS; i++) {
		below += buckets[i];
		fprintf(out, "npumem_%s_bucket{", name);
		call_label(out, call, ",");
		if (i + 1 < NPUMEM_BUCKETS)
			fprintf(out, "le=\"%.9g\"} %" PRIu64 "\n", ldexp(1e-6, (int)i), below);
		else
			fprintf(out, "le=\"+Inf\"} %" PRIu64 "\n", below);
	}
	fprintf(out, "npumem_%s_sum%s", name, call ? "{" : "");
	call_label(out, call, "}");
	fprintf(out, " %.9f\nnpumem_%s_count%s", (double)total_ns / 1e9, name, call ? "{" : "");
	call_label(out, call, "}");
	fprintf(out, " %" PRIu64 "\n", below);
}

static void call_samples(FILE *out, const struct npumem_details *details)
{
	head(out, "requests", "_total", "counter", "Answers by call and status.");
	for (unsigned i = 0; i < details->n_calls; i++)
		for (int status = 0; status < NPUMEM_STATUSES; status++) {
			const struct npumem_call_stat *call = details->calls[i];
			if (!call->statuses[status] || !npumem_status_name(status))
				continue;
			fputs("npumem_requests_total{call=\"", out);
			label(out, call->call);
			fprintf(out, "\",status=\"%s\"} %" PRIu64 "\n", npumem_status_name(status),
				call->statuses[status]);
		}
	head(out, "request_seconds", "", "histogram", "From a request to its answer.");
	for (unsigned i = 0; i < details->n_calls; i++)
		histogram(out, "request_seconds", details->calls[i]->call, details->calls[i]->buckets,
			  details->calls[i]->total_ns);
}

static void loop_samples(FILE *out, const struct npumem_loop_stat *loop)
{
	head(out, "loop_turn_seconds", "", "histogram", "What the loop does between two waits for input.");
	histogram(out, "loop_turn_seconds", NULL, loop->buckets, loop->total_ns);
	head(out, "loop_longest_seconds", "", "gauge", "The longest turn since the last reset.");
	fprintf(out, "npumem_loop_longest_seconds %.9f\n", (double)loop->longest_ns / 1e9);
	head(out, "loop_longest_cpu_seconds", "", "gauge",
	     "The most processor time of a turn since the last reset.");
	fprintf(out, "npumem_loop_longest_cpu_seconds %.9f\n", (double)loop->longest_cpu_ns / 1e9);
	head(out, "loop_longest_wait_seconds", "", "gauge",
	     "The longest that the loop slept within one turn since the last reset.");
	fprintf(out, "npumem_loop_longest_wait_seconds %.9f\n", (double)loop->longest_wait_ns / 1e9);
}

void metrics_prometheus(FILE *out, const struct npumem_details *details)
{
	device_samples(out, details);
	usage_samples(out, details);
	call_samples(out, details);
	if (details->loop->turns)
		loop_samples(out, details->loop);
}
