/* The counters as JSON and in Prometheus' format. */
#include "client/ctl/core/output/output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

struct sample {
	struct npumem_details details;
	int64_t npu_data[2];
	struct npumem_stat stat;
	struct npumem_activity activity;
	struct npumem_loop_stat loop;
	struct npumem_usage all, uid, client;
	const struct npumem_usage *uids[1], *clients[1];
	struct npumem_call_stat calls[2];
	const struct npumem_call_stat *call_list[2];
};

static void sample_init(struct sample *sample)
{
	*sample = (struct sample){.npu_data = {11, 12}};
	sample->stat = (struct npumem_stat){.total = 2048,
					    .data = 100,
					    .free = 1000,
					    .largest_free = 400,
					    .tensors = 3,
					    .views = 1,
					    .sessions = 2};
	sample->activity.macs = 77;
	sample->loop.turns = 5;
	sample->loop.buckets[1] = 5;
	sample->all.requests = 9;
	sample->all.sessions = 4;
	sample->details.n_npus = 2;
	sample->details.npu_data = sample->npu_data;
	sample->details.n_uids = sample->details.n_clients = 1;
	sample->details.stat = &sample->stat;
	sample->details.activity = &sample->activity;
	sample->details.loop = &sample->loop;
	sample->details.all = &sample->all;
	sample->uids[0] = &sample->uid;
	sample->clients[0] = &sample->client;
	sample->details.uids = sample->uids;
	sample->details.clients = sample->clients;
	sample->uid = (struct npumem_usage){.uid = 1001, .requests = 8, .sessions = 2};
	sample->client = (struct npumem_usage){.uid = 1001, .session = 5, .pid = 6, .bytes_in = 7};
	sample->details.n_calls = 2;
	sample->call_list[0] = &sample->calls[0];
	sample->call_list[1] = &sample->calls[1];
	sample->details.calls = sample->call_list;
	strcpy(sample->calls[0].call, "write");
	sample->calls[0].statuses[0] = 90;
	sample->calls[0].statuses[NPUMEM_NOT_FOUND] = 10;
	sample->calls[0].buckets[0] = 60;
	sample->calls[0].buckets[3] = 39;
	sample->calls[0].buckets[NPUMEM_BUCKETS - 1] = 1;
	sample->calls[0].total_ns = UINT64_C(2500000000);
	strcpy(sample->calls[1].call, "a\"\\\nb");
	sample->calls[1].statuses[0] = 1;
	sample->calls[1].buckets[2] = 1;
}

TEST(figures)
{
	struct sample sample;
	sample_init(&sample);
	ck_assert_uint_eq(metrics_answers(&sample.calls[0]), 100);
	ck_assert_uint_eq(metrics_refusals(&sample.calls[0]), 10);
	/* Bounds of buckets, in microseconds. */
	ck_assert_double_eq(metrics_quantile(&sample.calls[0], 0.5), 1);
	ck_assert_double_eq(metrics_quantile(&sample.calls[0], 0.6), 1);
	ck_assert_double_eq(metrics_quantile(&sample.calls[0], 0.61), 8);
	ck_assert_double_eq(metrics_quantile(&sample.calls[0], 0.99), 8);
	ck_assert(isinf(metrics_quantile(&sample.calls[0], 0.999)));
	/* Of 500 free bytes on each NPU, 400 are in one piece. */
	ck_assert_double_eq_tol(metrics_fragmentation(&sample.details), 0.2, 1e-12);
	sample.stat.largest_free = 600;
	ck_assert_double_eq(metrics_fragmentation(&sample.details), 0);
	sample.stat.free = 0;
	ck_assert_double_eq(metrics_fragmentation(&sample.details), 0);
	sample.details.n_npus = 0;
	ck_assert_double_eq(metrics_fragmentation(&sample.details), 0);
}

static json_int_t number(const json_t *object, const char *name)
{
	ck_assert_msg(json_is_integer(json_object_get(object, name)), "no %s", name);
	return json_integer_value(json_object_get(object, name));
}

TEST(as_json)
{
	struct sample sample;
	sample_init(&sample);
	json_t *all = metrics_json(&sample.details), *row;
	ck_assert_ptr_nonnull(all);
	ck_assert_int_eq(number(json_object_get(all, "device"), "total"), 2048);
	ck_assert_int_eq(number(json_object_get(all, "device"), "free"), 1000);
	ck_assert_int_eq(number(all, "tensors"), 3);
	ck_assert_int_eq(number(json_object_get(all, "activity"), "macs"), 77);
	ck_assert_int_eq(number(json_object_get(all, "loop"), "turns"), 5);
	ck_assert_int_eq(number(json_object_get(all, "all"), "sessions"), 4);
	ck_assert_int_eq(json_integer_value(json_array_get(json_object_get(all, "npu_data"), 1)), 12);
	row = json_array_get(json_object_get(all, "uids"), 0);
	ck_assert_int_eq(number(row, "requests"), 8);
	ck_assert_ptr_null(json_object_get(row, "pid"));
	row = json_array_get(json_object_get(all, "clients"), 0);
	ck_assert_int_eq(number(row, "session"), 5);
	ck_assert_int_eq(number(row, "pid"), 6);
	ck_assert_int_eq(number(row, "bytes_in"), 7);
	row = json_array_get(json_object_get(all, "calls"), 0);
	ck_assert_int_eq(number(row, "count"), 100);
	ck_assert_int_eq(number(row, "errors"), 10);
	ck_assert_int_eq(number(json_object_get(row, "statuses"), "NOT_FOUND"), 10);
	ck_assert_uint_eq(json_object_size(json_object_get(row, "statuses")), 2);
	ck_assert_uint_eq(json_array_size(json_object_get(row, "latency_buckets")), NPUMEM_BUCKETS);
	ck_assert_double_eq_tol(json_real_value(json_object_get(row, "seconds")), 2.5, 1e-9);
	ck_assert_uint_eq(json_array_size(json_object_get(all, "calls")), 2);
	json_decref(all);
}

static char *prometheus(const struct npumem_details *details)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	ck_assert_ptr_nonnull(out);
	metrics_prometheus(out, details);
	ck_assert_int_eq(fclose(out), 0);
	return text;
}

static void has_line(const char *text, const char *line)
{
	const char *at = strstr(text, line);
	ck_assert_msg(at && (at == text || at[-1] == '\n') && at[strlen(line)] == '\n', "no line %s", line);
}

TEST(for_prometheus)
{
	struct sample sample;
	sample_init(&sample);
	char *text = prometheus(&sample.details);
	has_line(text, "npumem_device_bytes{kind=\"free\"} 1000");
	has_line(text, "npumem_tensors 3");
	has_line(text, "npumem_device_fragmentation 0.2");
	has_line(text, "npumem_npu_data_bytes{npu=\"1\"} 12");
	has_line(text, "npumem_macs_total 77");
	has_line(text, "npumem_uid_requests_total{uid=\"1001\"} 8");
	has_line(text, "npumem_session_bytes_in_total{session=\"5\",uid=\"1001\",pid=\"6\"} 7");
	has_line(text, "npumem_requests_total{call=\"write\",status=\"NOT_FOUND\"} 10");
	/* Buckets count what is below them, and what is in none is in the last. */
	has_line(text, "npumem_request_seconds_bucket{call=\"write\",le=\"1e-06\"} 60");
	has_line(text, "npumem_request_seconds_bucket{call=\"write\",le=\"4e-06\"} 60");
	has_line(text, "npumem_request_seconds_bucket{call=\"write\",le=\"8e-06\"} 99");
	has_line(text, "npumem_request_seconds_bucket{call=\"write\",le=\"+Inf\"} 100");
	has_line(text, "npumem_request_seconds_sum{call=\"write\"} 2.500000000");
	has_line(text, "npumem_request_seconds_count{call=\"write\"} 100");
	has_line(text, "npumem_requests_total{call=\"a\\\"\\\\\\nb\",status=\"OK\"} 1");
	free(text);
}

/* Every metric is introduced once, right before its samples, and no sample comes twice. */
TEST(well_formed)
{
	struct sample sample;
	sample_init(&sample);
	char *text = prometheus(&sample.details), *rest, type[128] = "", seen[16384] = "\n";
	unsigned n = 0;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char name[128], key[160];
		if (!strncmp(line, "# HELP ", 7))
			continue;
		if (sscanf(line, "# TYPE %127s", name) == 1) {
			snprintf(key, sizeof(key), "\n# %s\n", name);
			ck_assert_msg(!strstr(seen, key), "%s twice", line);
			strcat(seen, key + 1);
			strcpy(type, name);
			continue;
		}
		ck_assert_int_eq(sscanf(line, "%127[a-z0-9_]", name), 1);
		ck_assert_msg(!strncmp(name, type, strlen(type)), "%s below %s", line, type);
		const char *suffix = name + strlen(type);
		ck_assert_msg(!*suffix || !strcmp(suffix, "_bucket") || !strcmp(suffix, "_sum") ||
				      !strcmp(suffix, "_count"),
			      "%s below %s", line, type);
		n++;
	}
	ck_assert_uint_gt(n, 100);
	free(text);
}
