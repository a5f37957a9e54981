/* What all devices hold and did: a line each, or their metrics for a scrape. */
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/devices/labels.h"
#include "client/ctl/core/table.h"
#include "client/ctl/devices/devices.h"

static double number(const json_t *stat, const char *part, const char *key)
{
	const json_t *from = part ? json_object_get(stat, part) : stat;
	return json_number_value(json_object_get(from, key));
}

/* What a second brought, of a counter in `part`; 0 where there was no look before. */
static double rate(const struct answer *now, const struct answer *before, const char *part, const char *key)
{
	if (!before || !before->text || !(now->at > before->at))
		return 0;
	double more = number(now->json, part, key) - number(before->json, part, key);
	return more > 0 ? more / (now->at - before->at) : 0;
}

static void cells_used(struct table *table, const char *name, const json_t *stat)
{
	double total = number(stat, "device", "total");
	table_cell(table, "%s", name);
	table_cell(table, "%.0f", total);
	table_cell(table, "%.1f", total > 0 ? 100 - 100 * number(stat, "device", "free") / total : 0);
	table_cell(table, "%.1f", total > 0 ? 100 * number(stat, "device", "data") / total : 0);
	table_cell(table, "%.1f", 100 * number(stat, "device", "fragmentation"));
	table_cell(table, "%.0f", number(stat, NULL, "tensors"));
	table_cell(table, "%.0f", number(stat, NULL, "sessions"));
}

/* Totals, or with `rates` what a second brought. */
static int print_table(struct ctl *ctl, const struct devices *devices, const struct answer *answers,
		       const struct answer *before, bool rates, FILE *out)
{
	static const bool right[] = {false, true, true, true, true, true, true, true, true, true, true};
	static const char *const titles[] = {"DEVICE", "BYTES",	  "USED %",  "DATA %",
					     "FRAG %", "TENSORS", "SESSIONS"};
	static const struct {
		const char *title, *per_second, *part, *key;
	} counters[] = {{"REQUESTS", "REQUESTS/s", "all", "requests"},
			{"REFUSED", "REFUSED/s", "all", "errors"},
			{"DMA BYTES", "DMA B/s", "activity", "dma_bytes"},
			{"KERNELS", "KERNELS/s", "activity", "kernels"}};
	struct table table;
	table_init(&table, sizeof(right), right);
	for (unsigned i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		table_cell(&table, "%s", titles[i]);
	for (unsigned k = 0; k < 4; k++)
		table_cell(&table, "%s", rates ? counters[k].per_second : counters[k].title);
	for (unsigned i = 0; i < devices->n; i++) {
		const struct answer *one = &answers[i], *old = before ? &before[i] : NULL;
		if (!one->text)
			continue;
		cells_used(&table, devices->list[i].name, one->json);
		for (unsigned k = 0; k < 4; k++)
			table_cell(&table, "%.0f",
				   rates ? rate(one, old, counters[k].part, counters[k].key)
					 : number(one->json, counters[k].part, counters[k].key));
	}
	return table_print(&table, out) ? CTL_OK : ctl_fail(ctl, "no memory for the table");
}

static int print_prometheus(struct ctl *ctl, const struct devices *devices, const struct answer *answers)
{
	struct labelled *list = calloc(devices->n + 1, sizeof(*list));
	for (unsigned i = 0; i < devices->n && list; i++)
		list[i] = (struct labelled){devices->list[i].name, answers[i].text};
	bool good = list && labels_print(stdout, list, devices->n);
	free(list);
	return good ? CTL_OK : ctl_fail(ctl, "no memory for the metrics");
}

int devices_stat(struct ctl *ctl, const struct args *args)
{
	struct answer *answers = NULL;
	struct devices devices;
	bool prometheus = args_has(args, "--prometheus");
	if (prometheus && ctl->json)
		return ctl_usage(ctl, "--json and --prometheus exclude each other");
	int code = ask_devices(ctl, &devices);
	if (!code && !(answers = ask_all(&devices, &stat_command, args, !prometheus)))
		code = ctl_fail(ctl, "no memory for the answers");
	if (!code && prometheus)
		code = print_prometheus(ctl, &devices, answers);
	else if (!code && ctl->json)
		code = ctl_print(ctl, ask_json(&devices, answers, "stat", false));
	else if (!code)
		code = print_table(ctl, &devices, answers, NULL, false, stdout);
	if (!code && !prometheus && !ctl->json)
		ask_complain(&devices, answers, stdout);
	/* A scrape of devices that are all down is one. */
	if (!code && !prometheus)
		code = ask_outcome(ctl, &devices, answers);
	ask_free(answers, devices.n);
	devices_deinit(&devices);
	return code;
}

/* ---- top ---- */

int devices_look_init(struct ctl *ctl, struct devices_look *look)
{
	look->before = NULL;
	return ask_devices(ctl, &look->devices);
}

static int print_line(struct ctl *ctl, json_t *object, FILE *out)
{
	int bad = !object || json_dumpf(object, out, JSON_COMPACT) || putc('\n', out) == EOF;
	json_decref(object);
	return bad ? ctl_fail(ctl, "cannot write the result") : CTL_OK;
}

int devices_look(struct ctl *ctl, struct devices_look *look, FILE *out)
{
	static const struct args none;
	const struct devices *devices = &look->devices;
	struct answer *answers = ask_all(devices, &stat_command, &none, true);
	if (!answers)
		return ctl_fail(ctl, "no memory for the answers");
	int code = ctl->json ? print_line(ctl, ask_json(devices, answers, "stat", false), out)
			     : print_table(ctl, devices, answers, look->before, true, out);
	if (!code && !ctl->json)
		ask_complain(devices, answers, out);
	ask_free(look->before, devices->n);
	look->before = answers;
	return code;
}

void devices_look_deinit(struct devices_look *look)
{
	ask_free(look->before, look->devices.n);
	devices_deinit(&look->devices);
}
