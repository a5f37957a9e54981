/* A row for each operation that costs. Cycles are there only where rates are declared; it never gives a time. */
#include "client/ctl/network/networks.h"

#include <inttypes.h>
#include <unistd.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"

struct costs_operation *costing_compute(struct ctl *ctl, const struct network *network,
					const struct npumem_geometry *geometry, const struct rates *rates,
					const struct dry *dry, struct costs_operation *sum)
{
	struct costs_operation *costs = memory_new(network->n_operations, sizeof(*costs));
	*sum = (struct costs_operation){.is_known = true};
	for (size_t i = 0; i < network->n_operations; i++) {
		if (!costs_has(&network->operations[i]))
			continue;
		if (costs_compute(network, geometry, rates, i, dry->costs ? &dry->costs[i] : NULL, &costs[i],
				  &ctl->error) ||
		    costs_add(sum, &costs[i], &ctl->error))
			return NULL;
		sum->is_known &= costs[i].is_known;
	}
	return costs;
}

/* ---- text ---- */

static void print_number(struct table *table, bool is_known, int64_t number)
{
	if (is_known)
		table_cell(table, "%" PRId64, number);
	else
		table_cell(table, "?");
}

static void print_row(struct table *table, const struct costs_operation *cost, bool is_known, bool with_cycles)
{
	print_number(table, is_known, cost->macs);
	print_number(table, is_known, cost->dma_bytes);
	print_number(table, is_known, cost->read_bytes);
	print_number(table, is_known, cost->written_bytes);
	print_number(table, is_known, cost->npus);
	print_number(table, is_known, cost->lanes);
	if (with_cycles)
		print_number(table, is_known, cost->cycles);
}

static void print_what(struct table *table, const struct network *network,
		       const struct network_operation *operation)
{
	char number[24], what[NETWORK_TEXT_BYTES];
	network_what(network, operation, what);
	table_cell(table, "%s", network_number(operation, number));
	table_cell(table, "%.40s%s%.40s", what, operation->name && !operation->is_implied ? " " : "",
		   operation->name && !operation->is_implied ? operation->name : "");
}

#define COSTING_TITLES ">|operation|>MACs|>DMA bytes|>bytes read|>bytes written|>NPUs|>lanes"

void costing_print(const struct network *network, const struct rates *rates, const struct costs_operation *costs,
		   const struct costs_operation *sum)
{
	/* On a narrow terminal: lanes, NPUs, bytes written, bytes read. */
	char formula[RATES_TEXT_BYTES];
	struct table table;
	table_init(&table, rates ? COSTING_TITLES "|>cycles" : COSTING_TITLES);
	table.within = terminal_columns(STDOUT_FILENO);
	table.spare = "7654";
	table.cut = 1;
	for (size_t i = 0; i < network->n_operations; i++) {
		if (!costs_has(&network->operations[i]))
			continue;
		print_what(&table, network, &network->operations[i]);
		print_row(&table, &costs[i], costs[i].is_known, rates);
	}
	table_cell(&table, "%s", "");
	table_cell(&table, "all (NPUs, lanes: the most)");
	print_row(&table, sum, true, rates);
	putchar('\n');
	table_print(&table, stdout);
	if (!sum->is_known)
		printf("?: not known here: a tensor of the device, or what the device refuses; \"all\" is without "
		       "it\n");
	if (rates)
		printf("as declared: %s\n", rates_formula(rates, formula));
}

/* ---- JSON ---- */

/* `rates`: with cycles. */
static json_t *numbers(const struct costs_operation *cost, bool rates)
{
	json_t *object = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "macs", (json_int_t)cost->macs, "dma_bytes",
				   (json_int_t)cost->dma_bytes, "local_read_bytes", (json_int_t)cost->read_bytes,
				   "local_written_bytes", (json_int_t)cost->written_bytes, "npus",
				   (json_int_t)cost->npus, "lanes", (json_int_t)cost->lanes);
	if (rates)
		json_object_set_new(object, "cycles", json_integer(cost->cycles));
	return object;
}

static json_t *operation_object(const struct network *network, size_t i, const struct rates *rates,
				const struct costs_operation *cost)
{
	const struct network_operation *operation = &network->operations[i];
	char number[24], what[NETWORK_TEXT_BYTES];
	network_what(network, operation, what);
	return json_pack("{s:s, s:s, s:s?, s:o}", "operation", network_number(operation, number), "what", what,
			 "name", operation->name, "costs", cost->is_known ? numbers(cost, rates) : json_null());
}

static json_t *rates_object(const struct rates *rates)
{
	char formula[RATES_TEXT_BYTES];
	return json_pack("{s:I, s:I, s:I, s:s}", "macs_per_cycle", (json_int_t)rates->macs_per_cycle,
			 "dma_bytes_per_cycle", (json_int_t)rates->dma_bytes_per_cycle, "overhead",
			 (json_int_t)rates->overhead, "formula", rates_formula(rates, formula));
}

json_t *costing_object(const struct network *network, const struct rates *rates,
		       const struct costs_operation *costs, const struct costs_operation *sum)
{
	json_t *list = json_array();
	for (size_t i = 0; i < network->n_operations; i++)
		if (costs_has(&network->operations[i]))
			jsons_append(&list, operation_object(network, i, rates, &costs[i]));
	return json_pack("{s:o, s:o, s:b, s:o*}", "operations", list, "sums", numbers(sum, rates), "sums_complete",
			 (int)sum->is_known, "cost", rates ? rates_object(rates) : NULL);
}
