/* stat: how the device's bytes are used, and the requests and data of each uid and client. */
#include "client/ctl/command.h"

#include <inttypes.h>
#include <math.h>

#include "client/ctl/core/output/output.h"
#include "client/ctl/ctl.h"
#include "client/ctl/devices/devices.h"

static const struct option stat_options[] = {
	{"--prometheus", NULL, "prints Prometheus' text exposition format", false},
	{"--reset", NULL, "resets the longest turns of the daemon's loop after they are printed", false},
	{NULL, NULL, NULL, false},
};

static void stat_share(const char *label, int64_t bytes, int64_t total)
{
	present_line(stdout, label, "%-12" PRId64 " %5.1f %%", bytes,
		     total > 0 ? 100.0 * (double)bytes / (double)total : 0.0);
}

static void stat_device(const struct npumem_details *details)
{
	const struct npumem_stat *stat = details->stat;
	const struct npumem_activity *a = details->activity;
	printf("%" PRId64 " bytes on all NPUs\n", stat->total);
	stat_share("data", stat->data, stat->total);
	stat_share("dummy", stat->dummy, stat->total);
	if (stat->uncounted)
		present_line(stdout, "padding", "-            not counted yet: it is in empty");
	else
		stat_share("padding", stat->padding, stat->total);
	stat_share("empty", stat->empty, stat->total);
	stat_share("free", stat->free, stat->total);
	if (stat->uncounted)
		present_line(stdout, "lent", "-            not counted yet");
	else
		present_line(stdout, "lent", "%" PRId64 " (empty blocks that hold other tensors' data)",
			     stat->lent);
	present_line(stdout, "largest free", "%" PRId64 " bytes per NPU", stat->largest_free);
	present_line(stdout, "fragmentation", "%.1f %%", 100 * metrics_fragmentation(details));
	present_line(stdout, "tensors", "%" PRId64, stat->tensors);
	present_line(stdout, "views", "%" PRId64, stat->views);
	present_line(stdout, "sessions", "%" PRId64, stat->sessions);
	present_line(stdout, "packed weights", "%" PRId64 " bytes that are kept", stat->packs);
	present_line(stdout, "moved by DMA", "%" PRIu64 " bytes", a->dma_bytes);
	present_line(stdout, "kernels", "%" PRIu64 ", %" PRIu64 " macs", a->kernels, a->macs);
	present_line(stdout, "saturated", "%" PRIu64 ", wrapped %" PRIu64, a->saturated, a->wrapped);
	present_line(stdout, "destroyed", "%" PRIu64 " bytes", a->destroyed_bytes);
	if (!details->loop->turns)
		return;
	present_line(stdout, "longest turn",
		     "%.3f ms of the daemon's loop, %.3f ms of processor time, %.3f ms asleep",
		     (double)details->loop->longest_ns / 1e6, (double)details->loop->longest_cpu_ns / 1e6,
		     (double)details->loop->longest_wait_ns / 1e6);
}

static void stat_time(struct table *table, double us)
{
	if (us == HUGE_VAL)
		table_cell(table, "> 16 s");
	else if (us < 1000)
		table_cell(table, "< %.0f us", us);
	else if (us < 1e6)
		table_cell(table, "< %.3g ms", us / 1e3);
	else
		table_cell(table, "< %.3g s", us / 1e6);
}

static void stat_calls(const struct npumem_details *details)
{
	struct table table;
	table_init(&table, "CALL|>ANSWERS|>REFUSED|>MEDIAN|>99 %");
	for (unsigned i = 0; i < details->n_calls; i++) {
		table_cell(&table, "%s", details->calls[i]->call);
		table_cell(&table, "%" PRIu64, metrics_answers(details->calls[i]));
		table_cell(&table, "%" PRIu64, metrics_refusals(details->calls[i]));
		stat_time(&table, metrics_quantile(details->calls[i], 0.5));
		stat_time(&table, metrics_quantile(details->calls[i], 0.99));
	}
	putchar('\n');
	table_print(&table, stdout);
}

static void stat_uids(const struct ctl *ctl, const struct npumem_details *details)
{
	char user[USERS_TEXT_BYTES];
	struct table table;
	table_init(&table, ">UID|>SESSIONS|>REQUESTS|>REFUSED|>BYTES IN|>BYTES OUT|>HELD|>TENSORS|>PACKS");
	for (unsigned i = 0; i < details->n_uids; i++) {
		const struct npumem_usage *u = details->uids[i];
		table_cell(&table, "%s", users_text(ctl, u->uid, user));
		table_cell(&table, "%" PRIu64, u->sessions);
		table_cell(&table, "%" PRIu64, u->requests);
		table_cell(&table, "%" PRIu64, u->errors);
		table_cell(&table, "%" PRIu64, u->bytes_in);
		table_cell(&table, "%" PRIu64, u->bytes_out);
		table_cell(&table, "%" PRId64, u->device_bytes);
		table_cell(&table, "%" PRId64, u->tensors);
		table_cell(&table, "%" PRId64, u->packs);
	}
	putchar('\n');
	table_print(&table, stdout);
}

static int stat_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_details *details;
	bool prometheus = args_has(args, "--prometheus");
	if (prometheus && ctl->json)
		return ctl_usage(ctl, "--json and --prometheus exclude each other");
	int code = ctl_connect(ctl);
	if (code)
		return code;
	if (npumem_stat_details(ctl->npumem, args_has(args, "--reset"), &details, &ctl->error))
		return CTL_FAILED;
	if (ctl->json)
		return ctl_print(ctl, metrics_json(details));
	if (prometheus) {
		metrics_prometheus(stdout, details);
	} else {
		stat_device(details);
		stat_calls(details);
		stat_uids(ctl, details);
	}
	return CTL_OK;
}

const struct command stat_command = {
	.options = stat_options,
	.run = stat_run,
	.all = devices_stat,
	.notes = "Root and the daemon's uid see all. Any other uid sees how full the device is, and otherwise "
		 "only its own\n"
		 "activity: sessions, requests, latencies, bytes moved, results, data on each NPU.",
};
