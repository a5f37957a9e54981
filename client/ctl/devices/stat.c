/* What all devices hold and did: a line each, or their metrics for a scrape. */
#include <string.h>

#include "client/ctl/core/devices/list.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"
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

/* What the i-th of these devices has said before; NULL: nothing. */
static const struct answer *said_before(const struct devices_look *before, const struct devices *devices,
					unsigned i)
{
	const char *name = devices->list[i].name;
	if (!before || !before->before)
		return NULL;
	if (i < before->devices.n && !strcmp(before->devices.list[i].name, name))
		return &before->before[i];
	for (unsigned k = 0; k < before->devices.n; k++)
		if (!strcmp(before->devices.list[k].name, name))
			return &before->before[k];
	return NULL;
}

/* Totals, or with `before` what a second brought since that look. */
static int print_table(const struct devices *devices, const struct answer *answers,
		       const struct devices_look *before, FILE *out)
{
	static const struct {
		const char *part, *key;
	} counters[] = {
		{"all", "requests"}, {"all", "errors"}, {"activity", "dma_bytes"}, {"activity", "kernels"}};
#define STAT_TITLES "DEVICE|>BYTES|>USED %|>DATA %|>FRAG %|>TENSORS|>SESSIONS|>"
	struct table table;
	table_init(&table, before ? STAT_TITLES "REQUESTS/s|>REFUSED/s|>DMA B/s|>KERNELS/s"
				  : STAT_TITLES "REQUESTS|>REFUSED|>DMA BYTES|>KERNELS");
	for (unsigned i = 0; i < devices->n; i++) {
		const struct answer *one = &answers[i], *old = said_before(before, devices, i);
		if (!one->text)
			continue;
		cells_used(&table, devices->list[i].name, one->json);
		for (unsigned k = 0; k < 4; k++)
			table_cell(&table, "%.0f",
				   before ? rate(one, old, counters[k].part, counters[k].key)
					  : number(one->json, counters[k].part, counters[k].key));
	}
	table_print(&table, out);
	ask_complain(devices, answers, out);
	return CTL_OK;
}

static int print_prometheus(const struct devices *devices, const struct answer *answers)
{
	struct labelled *list = memory_new(devices->n, sizeof(*list));
	for (unsigned i = 0; i < devices->n; i++)
		list[i] = (struct labelled){devices->list[i].name, answers[i].text};
	labels_print(stdout, list, devices->n);
	return CTL_OK;
}

int devices_stat(struct ctl *ctl, const struct args *args)
{
	struct answer *answers;
	struct devices devices;
	bool prometheus = args_has(args, "--prometheus");
	if (prometheus && ctl->json)
		return ctl_usage(ctl, "--json and --prometheus exclude each other");
	int code = ask_devices(ctl, &devices);
	if (code)
		return code;
	answers = ask_all(&devices, &stat_command, args, !prometheus);
	code = prometheus  ? print_prometheus(&devices, answers)
	       : ctl->json ? ctl_print(ctl, ask_json(&devices, answers, "stat", false))
			   : print_table(&devices, answers, NULL, stdout);
	/* A scrape of devices that are all down is one. */
	if (!code && !prometheus)
		code = ask_outcome(ctl, &devices, answers);
	ask_free(answers, devices.n);
	return code;
}

/* ---- top ---- */

int devices_look_init(struct ctl *ctl, struct devices_look *look)
{
	look->before = NULL;
	return ask_devices(ctl, &look->devices);
}

int devices_look(struct ctl *ctl, struct devices_look *look, FILE *out)
{
	static const struct args none;
	struct devices_look now;
	int code = devices_look_init(ctl, &now);
	if (code)
		return code;
	now.before = ask_all(&now.devices, &stat_command, &none, true);
	code = ctl->json ? ctl_print_line(ctl, ask_json(&now.devices, now.before, "stat", false), out)
			 : print_table(&now.devices, now.before, look, out);
	ask_free(look->before, look->devices.n);
	devices_deinit(&look->devices);
	*look = now;
	return code;
}
