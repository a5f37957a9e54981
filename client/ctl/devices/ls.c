/* The tensors of all devices in one table. */

#include "client/ctl/core/output/output.h"
#include "client/ctl/devices/devices.h"

static const char *text_of(const json_t *tensor, const char *key)
{
	const char *text = json_string_value(json_object_get(tensor, key));
	return text ? text : "-";
}

static void cell_count(struct table *table, const json_t *tensor, const char *key)
{
	const json_t *count = json_object_get(tensor, key);
	if (json_is_integer(count))
		table_cell(table, "%" JSON_INTEGER_FORMAT, json_integer_value(count));
	else
		table_cell(table, "-");
}

static void row(struct table *table, const char *device, const json_t *tensor)
{
	const json_t *shape = json_object_get(tensor, "shape"), *frac = json_object_get(tensor, "frac_bits");
	json_int_t n[4];
	for (unsigned i = 0; i < 4; i++)
		n[i] = json_integer_value(json_array_get(shape, i));
	table_cell(table, "%s", device);
	table_cell(table, "%s", text_of(tensor, "name"));
	cell_count(table, tensor, "uid");
	if (json_is_integer(frac))
		table_cell(table, "%s Q.%" JSON_INTEGER_FORMAT, text_of(tensor, "dtype"),
			   json_integer_value(frac));
	else
		table_cell(table, "%s", text_of(tensor, "dtype"));
	table_cell(table,
		   "[%" JSON_INTEGER_FORMAT ",%" JSON_INTEGER_FORMAT ",%" JSON_INTEGER_FORMAT
		   ",%" JSON_INTEGER_FORMAT "]",
		   n[0], n[1], n[2], n[3]);
	table_cell(table, "%s", text_of(tensor, "layout"));
	table_cell(table, "%s", text_of(tensor, "mode"));
	cell_count(table, tensor, "address");
	cell_count(table, tensor, "bytes_per_npu");
	table_cell(table, "%s", text_of(tensor, "state"));
}

static int print_table(const struct devices *devices, const struct answer *answers)
{
	const json_t *tensor;
	struct table table;
	size_t k;
	table_init(&table, "DEVICE|NAME|>UID|DTYPE|SHAPE|LAYOUT|MODE|>ADDRESS|>BYTES/NPU|STATE");
	for (unsigned i = 0; i < devices->n; i++)
		json_array_foreach(json_object_get(answers[i].json, "tensors"), k, tensor)
			row(&table, devices->list[i].name, tensor);
	table_print(&table, stdout);
	ask_complain(devices, answers, stdout);
	return CTL_OK;
}

int devices_ls(struct ctl *ctl, const struct args *args)
{
	struct answer *answers;
	struct devices devices;
	int code = ask_devices(ctl, &devices);
	if (code)
		return code;
	answers = ask_all(&devices, &ls_command, args, true);
	code = ctl->json ? ctl_print(ctl, ask_json(&devices, answers, "tensors", true))
			 : print_table(&devices, answers);
	if (!code)
		code = ask_outcome(ctl, &devices, answers);
	ask_free(answers, devices.n);
	return code;
}
