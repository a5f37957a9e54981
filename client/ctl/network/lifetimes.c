/* Tensors and their lives as text and as JSON. Operations are counted as in the file. */
#define _GNU_SOURCE /* asprintf */
#include "client/ctl/network/networks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/network/planning/planning.h"
#include "client/ctl/core/output/output.h"

/* The operation of the file that i is, or was made for. */
static unsigned number(const struct network *network, size_t i)
{
	return i < network->n_operations ? network->operations[i].place
					 : network->operations[network->n_operations - 1].place;
}

/* Up to which operation it is there. */
static unsigned until(const struct network *network, const struct lives_tensor *one)
{
	return number(network, one->to);
}

static json_t *tensor_object(const struct network *network, const struct lives_tensor *one)
{
	const struct network_tensor *tensor = &network->tensors[one->tensor];
	json_t *object = present_place(&one->place);
	json_t *more = json_pack("{s:s, s:s, s:I, s:I, s:I, s:b, s:o}", "name", tensor->name, "dtype",
				 npumem_dtype_name(one->place.dtype), "from",
				 (json_int_t)number(network, one->from), "last_use",
				 (json_int_t)number(network, one->last), "until", (json_int_t)until(network, one),
				 "keep", (int)tensor->keep, "planned_offset", jsons_integer(one->offset));
	jsons_merge(&object, more);
	return object;
}

/* Nothing of it would be refused, as far as it was checked. */
static bool fits(const struct lives *lives, const struct dry *dry)
{
	return lives->crowded == lives->n && !(dry->is_checked && dry->why.status);
}

static json_t *lives_object(const struct network *network, const struct lives *lives,
			    const struct npumem_geometry *geometry, const struct dry *dry)
{
	json_t *list = json_array();
	for (size_t i = 0; i < lives->n; i++)
		jsons_append(&list, tensor_object(network, &lives->list[i]));
	return json_pack(
		"{s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:b, s:b, s:I}", "npus", (json_int_t)geometry->n_npus,
		"npu_bytes", (json_int_t)geometry->npu_bytes, "tensors", list, "peak", (json_int_t)lives->peak,
		"peak_operation", (json_int_t)(lives->n ? number(network, lives->peak_at) : 0), "least_peak",
		(json_int_t)lives->least, "reach", (json_int_t)lives->reach, "fits", (int)fits(lives, dry),
		"checked", (int)dry->is_checked, "opened", (json_int_t)lives->n_opened);
}

static void print_table(const struct network *network, const struct lives *lives)
{
	/* On a narrow terminal: type, shape, last use, offset. */
	struct table table;
	table_init(&table, "tensor|shape|type|>bytes/NPU|>offset|operations|>last use");
	table.within = terminal_columns(STDOUT_FILENO);
	table.spare = "2164";
	for (size_t i = 0; i < lives->n; i++) {
		const struct lives_tensor *one = &lives->list[i];
		char shape[PRESENT_TEXT_BYTES], dtype[PRESENT_TEXT_BYTES];
		table_cell(&table, "%.40s", network->tensors[one->tensor].name);
		table_cell(&table, "%s", present_shape(&one->place, shape));
		table_cell(&table, "%s", present_dtype(&one->place, dtype));
		table_cell(&table, "%" PRId64, one->place.bytes_per_npu);
		if (one->offset == NPUMEM_ANY)
			table_cell(&table, "no room");
		else
			table_cell(&table, "%" PRId64, one->offset);
		if (network->tensors[one->tensor].keep)
			table_cell(&table, "%u on, kept", number(network, one->from));
		else
			table_cell(&table, "%u to %u", number(network, one->from), until(network, one));
		table_cell(&table, "%u", number(network, one->last));
	}
	table_print(&table, stdout);
}

static void print_sums(const struct network *network, const struct lives *lives,
		       const struct npumem_geometry *geometry, const struct dry *dry)
{
	printf("\npeak %" PRId64 " of %" PRId64 " bytes per NPU (%.1f %%)", lives->peak, geometry->npu_bytes,
	       100.0 * (double)lives->peak / (double)geometry->npu_bytes);
	if (lives->n)
		printf(", at operation %u", number(network, lives->peak_at));
	putchar('\n');
	if (lives->least < lives->peak)
		printf("freed right after their last use, they would take %" PRId64 "\n", lives->least);
	if (lives->n_opened)
		printf("%u tensor%s of the device not counted\n", lives->n_opened, present_s(lives->n_opened));
	if (fits(lives, dry))
		printf("it fits: placed from low offsets on, up to %" PRId64 "\n", lives->reach);
	if (!dry->is_checked)
		printf("not checked by a daemon: %s\n", dry->why.message);
}

static int64_t power_of_two(int64_t least)
{
	int64_t bytes = 1;
	while (bytes < least)
		bytes *= 2;
	return bytes;
}

static int crowded(struct ctl *ctl, const struct network *network, const struct lives *lives,
		   const struct npumem_geometry *geometry)
{
	const struct lives_tensor *one = &lives->list[lives->crowded];
	const char *name = network->tensors[one->tensor].name;
	unsigned at = number(network, one->from);
	if (lives->peak <= geometry->npu_bytes)
		return ctl_fail(ctl,
				"\"%.63s\" finds no room at operation %u, though no more than %" PRId64
				" of %" PRId64
				" bytes per NPU are taken at once: compact, or another order, may help",
				name, at, lives->peak, geometry->npu_bytes);
	return ctl_fail(
		ctl,
		"it does not fit: %" PRId64 " bytes per NPU at once, of %" PRId64
		"; \"%.63s\" is the first without room, at operation %u; a device with --npu-bytes %" PRId64
		" has it",
		lives->peak, geometry->npu_bytes, name, at, power_of_two(lives->peak));
}

static int draw(struct ctl *ctl, const struct network *network, const struct lives *lives,
		const struct npumem_geometry *geometry, const char *path)
{
	FILE *file = ctl_create(ctl, path);
	if (!file)
		return CTL_FAILED;
	timeline_draw(file, network, lives, geometry);
	return ctl_close(ctl, path, file);
}

/* The lives in one object with the costs. */
static json_t *whole_object(const struct network *network, const struct lives *lives,
			    const struct npumem_geometry *geometry, const struct rates *rates,
			    const struct costs_operation *costs, const struct costs_operation *sum,
			    const struct dry *dry)
{
	json_t *object = lives_object(network, lives, geometry, dry);
	json_t *more = costing_object(network, rates, costs, sum);
	jsons_merge(&object, more);
	return object;
}

static int print_all(struct ctl *ctl, const struct network *network, const struct lives *lives,
		     const struct npumem_geometry *geometry, const struct rates *rates, const struct dry *dry)
{
	struct costs_operation sum, *costs = costing_compute(ctl, network, geometry, rates, dry, &sum);
	size_t n = json_array_size(network->document.operations);
	if (!costs)
		return CTL_FAILED;
	if (ctl->json)
		return ctl_print(ctl, whole_object(network, lives, geometry, rates, costs, &sum, dry));
	printf("%s%s%zu tensor%s, %zu operation%s, on %" PRId64 " NPU%s of %" PRId64 " bytes\n\n",
	       network->name ? network->name : "", network->name ? ": " : "", lives->n, present_s(lives->n), n,
	       present_s(n), geometry->n_npus, present_s((uint64_t)geometry->n_npus), geometry->npu_bytes);
	print_table(network, lives);
	print_sums(network, lives, geometry, dry);
	costing_print(network, rates, costs, &sum);
	return CTL_OK;
}

/* Warns of the first read of a tensor that no earlier operation writes: a daemon refuses it, but not with
 * --uninitialized warn or allow. */
static void warn_of_values(const struct ctl *ctl, const struct network *network)
{
	char where[NETWORK_TEXT_BYTES], warning[NETWORK_TEXT_BYTES + 160] = "";
	bool *written = memory_new(network->n_tensors, sizeof(*written));
	for (size_t i = 0; i < network->n_operations && !*warning; i++) {
		const struct network_operation *operation = &network->operations[i];
		const struct network_operand of_others = {.tensor = operation->tensor};
		bool is_run = operation->kind == NETWORK_RUN;
		for (unsigned k = 0; k < (is_run ? operation->n_operands : 1); k++) {
			const struct network_operand *operand =
				is_run ? &network->operands[operation->operand + k] : &of_others;
			bool writes = network_writes(operation, operand);
			int read = operation->kind == NETWORK_COPY ? operation->source : operand->tensor;
			int root = network_root(network, read);
			bool reads = operation->kind == NETWORK_COPY || operation->kind == NETWORK_READ ||
				     operation->kind == NETWORK_EXPECT || (is_run && !writes);
			if (reads && !written[root] && !network->tensors[root].is_opened)
				snprintf(warning, sizeof(warning),
					 "%s reads tensor \"%.63s\", which nothing writes before",
					 network_where(network, operation, where), network->tensors[read].name);
			if (writes)
				written[network_root(network, operand->tensor)] = true;
		}
	}
	ctl_warn(ctl, warning);
}

enum { ROOM_BYTES_MAX = 64 << 20 };

/* The bytes of each NPU, doubled until the network fits; 0: it fits no such device. */
static int64_t room(const struct network *network, struct npumem_geometry geometry)
{
	struct npumem_error why;
	struct lives lives;
	for (; geometry.npu_bytes <= ROOM_BYTES_MAX; geometry.npu_bytes *= 2)
		if (!lives_compute(network, &geometry, &lives, &why) && lives.crowded == lives.n)
			return geometry.npu_bytes;
	return 0;
}

void lifetimes_spawn(struct ctl *ctl, const struct network *network)
{
	struct npumem_geometry geometry;
	if (ctl->npumem || !ctl->spawned || strcmp(ctl->spawned, "spawn:"))
		return;
	npumem_geometry_default(&geometry);
	int64_t bytes = room(network, geometry);
	if (bytes <= geometry.npu_bytes)
		return;
	free(ctl->spawned);
	if (asprintf(&ctl->spawned, "spawn:--npu-bytes %" PRId64, bytes) < 0)
		memory_none();
	ctl->address = ctl->spawned;
}

void lifetimes_say_room(struct ctl *ctl, const struct network *network, const struct npumem_geometry *geometry)
{
	int64_t bytes = room(network, *geometry);
	size_t length = strlen(ctl->error.message);
	if (bytes)
		snprintf(ctl->error.message + length, sizeof(ctl->error.message) - length,
			 "; a device with --npu-bytes %" PRId64 " has room for the network", bytes);
}

int lifetimes_print(struct ctl *ctl, const struct network *network, const struct npumem_geometry *geometry,
		    const struct rates *rates, const char *svg, const struct dry *dry)
{
	struct lives lives;
	if (lives_compute(network, geometry, &lives, &ctl->error)) {
		lifetimes_say_room(ctl, network, geometry);
		return CTL_FAILED;
	}
	int code = svg ? draw(ctl, network, &lives, geometry, svg) : CTL_OK;
	if (code)
		return code;
	warn_of_values(ctl, network);
	code = print_all(ctl, network, &lives, geometry, rates, dry);
	if (!code && lives.crowded < lives.n)
		return crowded(ctl, network, &lives, geometry);
	if (!code && !fits(&lives, dry)) {
		ctl->error = dry->why;
		return CTL_FAILED;
	}
	return code;
}
