/* The golden vectors of the kernels, dense: each case's tensors are given to its kernel as the device would gather
 * them, and every integer of the outputs must be the vector's. What layouts do to them is tested elsewhere.
 *
 * Vectors order some tensors in another way than npumem (weights O,I,H,W; matrices [M,N]); `maps` is that table. A
 * case whose kernel is not in kernels.def is counted as not run, never as passed. Files named r11_model_* hold a
 * model's output of the 1.1 rules. */
#include <ctype.h>
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/device/kernel.h"

enum { FAMILY_MAX = 8, ROLES_MAX = 12, TEXT_BYTES = 256 };

/* The vectors' dims, as one word, and for each npumem dimension which of them it is ('1': none). */
static const struct {
	const char *dims, *npumem;
} maps[] = {
	{"NCHW", "NCHW"}, {"OIHW", "IOHW"}, {"O", "1O11"},   {"M", "1M11"},   {"N", "1N11"},
	{"MN", "NM11"},	  {"TN", "TN11"},   {"TM", "TM11"},  {"GMN", "GM1N"}, {"GM", "GM11"},
	{"abcd", "abcd"}, {"abc", "1abc"},  {"oK", "1K11"},  {"NK", "1N1K"},  {"CK", "1C1K"},
	{"HK", "1H1K"},	  {"WK", "1W1K"},   {"GMK", "GM1K"}, {"ML", "1M1L"},  {"GML", "GM1L"},
};

struct totals {
	unsigned passed, failed, not_run;
};

/* One case under way. */
struct run {
	const char *name;
	struct kernel_call call;
	const struct kernel *kernel;
	char names[ROLES_MAX][NPUMEM_FIELD_KEY_BYTES];
	bool is_output[ROLES_MAX];
	struct kernel_role roles[ROLES_MAX];
	struct kernel_operand operands[ROLES_MAX][FAMILY_MAX];
	int64_t *expected[ROLES_MAX][FAMILY_MAX]; /* of outputs, in npumem's order */
	char error[TEXT_BYTES * 4];
};

static void *take(size_t bytes)
{
	void *memory = calloc(1, bytes + !bytes);
	if (!memory)
		abort();
	return memory;
}

static bool fail(struct run *run, const char *text, const char *more)
{
	snprintf(run->error, sizeof(run->error), "%s %s", text, more);
	return false;
}

static int64_t elements(const struct kernel_operand *operand)
{
	return operand->shape.n * operand->shape.c * operand->shape.h * operand->shape.w;
}

static int64_t load(const struct kernel_operand *operand, int64_t i)
{
	int64_t low = 0, high = 0;
	npumem_dtype_range(operand->dtype, &low, &high);
	switch (npumem_dtype_bytes(operand->dtype)) {
	case 1:
		return low < 0 ? ((int8_t *)operand->data)[i] : ((uint8_t *)operand->data)[i];
	case 2:
		return low < 0 ? ((int16_t *)operand->data)[i] : ((uint16_t *)operand->data)[i];
	default:
		return low < 0 ? ((int32_t *)operand->data)[i] : (int64_t)((uint32_t *)operand->data)[i];
	}
}

static void store(struct kernel_operand *operand, int64_t i, int64_t value)
{
	switch (npumem_dtype_bytes(operand->dtype)) {
	case 1:
		((uint8_t *)operand->data)[i] = (uint8_t)value;
		break;
	case 2:
		((uint16_t *)operand->data)[i] = (uint16_t)value;
		break;
	default:
		((uint32_t *)operand->data)[i] = (uint32_t)value;
	}
}

/* Adds a dimension's letter: d0, d1, … (and e0, e1, …) are a, b, …; "one" is o, "N+M" (inputs and state in one) L;
 * a word of its own stays as it is. */
static void add_letter(char *word, const char *dim)
{
	char letter[] = "o";
	bool numbered = strlen(dim) == 2 && isdigit((unsigned char)dim[1]);
	if (numbered)
		letter[0] = (char)('a' + dim[1] - '0');
	strcat(word, strcmp(dim, "N+M") == 0 ? "L" : numbered || strcmp(dim, "one") == 0 ? letter : dim);
}

/* Extents and strides (in the vector's data) of npumem's dimensions. */
static bool map_dims(struct run *run, json_t *tensor, int64_t extents[4], int64_t strides[4])
{
	json_t *dims = json_object_get(tensor, "dims"), *shape = json_object_get(tensor, "shape");
	char word[TEXT_BYTES] = "";
	for (size_t i = 0; i < json_array_size(dims) && i < 4; i++)
		add_letter(word, json_string_value(json_array_get(dims, i)));
	for (size_t m = 0; m < sizeof(maps) / sizeof(maps[0]); m++) {
		if (strcmp(maps[m].dims, word) != 0)
			continue;
		for (unsigned d = 0; d < 4; d++) {
			const char *at = strchr(word, maps[m].npumem[d]);
			extents[d] = at ? json_integer_value(json_array_get(shape, (size_t)(at - word))) : 1;
			strides[d] = at ? 1 : 0;
			for (size_t i = at ? (size_t)(at - word) + 1 : 4; i < strlen(word); i++)
				strides[d] *= json_integer_value(json_array_get(shape, i));
		}
		return true;
	}
	return fail(run, "dims not known:", word);
}

static bool add_tensor(struct run *run, unsigned role, json_t *tensor)
{
	struct kernel_role *to = &run->roles[role];
	struct kernel_operand *operand = &run->operands[role][to->n];
	int64_t extents[4], strides[4];
	if (to->n == FAMILY_MAX || !map_dims(run, tensor, extents, strides))
		return fail(run, "tensor not understood:", run->names[role]);
	const char *dtype = json_string_value(json_object_get(tensor, "dtype"));
	*operand = (struct kernel_operand){
		.dtype = strcmp(dtype, "i32") == 0 ? NPUMEM_INT32 : npumem_dtype_parse(dtype),
		.frac_bits = json_integer_value(json_object_get(tensor, "frac_bits")),
		.shape = {extents[0], extents[1], extents[2], extents[3]},
	};
	int64_t count = elements(operand), i = 0;
	json_t *data = json_object_get(tensor, "data");
	if (operand->dtype == 0 || json_array_size(data) != (size_t)count)
		return fail(run, "type or number of elements is wrong:", run->names[role]);
	operand->data = take((size_t)count * npumem_dtype_bytes(operand->dtype));
	int64_t *values = run->expected[role][to->n] = take((size_t)count * sizeof(int64_t));
	for (int64_t n = 0; n < extents[0]; n++)
		for (int64_t c = 0; c < extents[1]; c++)
			for (int64_t h = 0; h < extents[2]; h++)
				for (int64_t w = 0; w < extents[3]; w++, i++) {
					int64_t at =
						n * strides[0] + c * strides[1] + h * strides[2] + w * strides[3];
					values[i] = json_integer_value(json_array_get(data, (size_t)at));
					store(operand, i, run->is_output[role] ? ~values[i] : values[i]);
				}
	to->n++;
	return true;
}

/* Roles as the row has them; a numbered family takes in0, in1, … as long as there are any. */
static bool add_tensors(struct run *run, json_t *tensors)
{
	size_t used = 0;
	const char *role = run->call.row->roles;
	for (; *role; role += strcspn(role, " "), role += strspn(role, " ")) {
		unsigned r = run->call.n_roles++;
		run->is_output[r] = *role == '>';
		const char *name = role + run->is_output[r];
		size_t length = strcspn(name, " ?*");
		memcpy(run->names[r], name, length);
		run->roles[r] = (struct kernel_role){run->names[r], 0, run->operands[r]};
		for (unsigned i = 0;; i++) {
			char key[NPUMEM_FIELD_KEY_BYTES + 12];
			if (name[length] == '*')
				snprintf(key, sizeof(key), "%s%u", run->names[r], i);
			else
				snprintf(key, sizeof(key), "%s", run->names[r]);
			json_t *tensor = json_object_get(tensors, key);
			if (tensor && !add_tensor(run, r, tensor))
				return false;
			used += tensor != NULL;
			if (!tensor || name[length] != '*')
				break;
		}
	}
	return used == json_object_size(tensors) || fail(run, "tensors that are no role of", run->call.row->name);
}

static bool add_param(struct run *run, const char *name, json_t *value)
{
	/* Remarks, what npumem reads from shapes, and the table of a kernel that has only one. */
	static const char *const ignored[] = {"op",	    "scalar_operand", "groups", "index_encoding",
					      "inputs_num", "gate_order",     "lut"};
	struct npumem_param param = {.n_values = 0};
	if (strcmp(name, "perm_dim") == 0)
		name = "perm";
	if (strcmp(name, "luts") == 0) { /* a cell's: all of one library */
		name = "lut";
		value = json_array_get(value, 0);
	}
	const struct npumem_param_row *row = npumem_param_by_name(name);
	if (!row || !strstr(run->call.row->parameters, name)) {
		for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
			if (strcmp(ignored[i], name) == 0)
				return true;
		return fail(run, "parameter not known:", name);
	}
	param.number = row->number;
	if (json_is_string(value)) {
		char text[TEXT_BYTES] = "";
		const char *given = json_string_value(value), *library = strstr(given, "mli");
		given = library ? library : given; /* of a table "sigmoid_mli1_1" */
		for (size_t i = 0; i + 1 < sizeof(text) && given[i]; i++)
			text[i] = (char)tolower((unsigned char)given[i]); /* an axis "C" */
		if (npumem_param_parse(name, text, &param, NULL) != 0)
			return fail(run, "parameter not understood:", name);
	} else if (json_is_object(value)) { /* padding */
		static const char *const sides[] = {"top", "bottom", "left", "right"};
		for (; param.n_values < 4; param.n_values++)
			param.values[param.n_values] =
				json_integer_value(json_object_get(value, sides[param.n_values]));
	} else if (json_is_integer(value)) {
		param.values[param.n_values++] = json_integer_value(value);
	} else {
		for (; param.n_values < json_array_size(value) && param.n_values < 4; param.n_values++)
			param.values[param.n_values] = json_integer_value(json_array_get(value, param.n_values));
	}
	run->call.params.given[param.number] = param;
	return true;
}

static bool compare(struct run *run, unsigned role, unsigned member)
{
	const struct kernel_operand *out = &run->operands[role][member];
	for (int64_t i = 0; i < elements(out); i++) {
		int64_t got = load(out, i), want = run->expected[role][member][i];
		if (got == want)
			continue;
		int64_t w = i % out->shape.w, h = i / out->shape.w % out->shape.h;
		int64_t c = i / (out->shape.w * out->shape.h) % out->shape.c;
		snprintf(run->error, sizeof(run->error), "%s rounding: %s[%lld,%lld,%lld,%lld] is %lld, not %lld",
			 npumem_rounding_name(run->call.rounding), run->names[role],
			 (long long)(i / (out->shape.w * out->shape.h * out->shape.c)), (long long)c, (long long)h,
			 (long long)w, (long long)got, (long long)want);
		return false;
	}
	return true;
}

static bool execute(struct run *run, enum npumem_rounding rounding)
{
	struct npumem_error error;
	npumem_error_clear(&error);
	run->call.rounding = rounding;
	if (run->kernel->check(&run->call, &error) != 0)
		return fail(run, "refused:", error.message);
	if (run->kernel->check_data && run->kernel->check_data(&run->call, &error) != 0)
		return fail(run, "refused:", error.message);
	size_t bytes = run->kernel->scratch_bytes ? run->kernel->scratch_bytes(&run->call) : 0;
	run->call.scratch = aligned_alloc(64, (bytes / 64 + 1) * 64);
	if (!run->call.scratch)
		abort();
	run->kernel->run(&run->call);
	free(run->call.scratch);
	for (unsigned role = 0; role < run->call.n_roles; role++)
		for (unsigned member = 0; run->is_output[role] && member < run->roles[role].n; member++)
			if (!compare(run, role, member))
				return false;
	/* The vendor's packed ones overflow on purpose. */
	return run->call.counts.wrapped == 0 || strncmp(run->call.row->name, "packed_", 7) == 0 ||
	       fail(run, "wrapped, but", "no other vector overflows");
}

static bool run_case(struct run *run, json_t *item)
{
	const char *key, *rounding = json_string_value(json_object_get(item, "rounding"));
	json_t *value;
	if (!add_tensors(run, json_object_get(item, "tensors")))
		return false;
	json_object_foreach(json_object_get(item, "params"), key, value)
	{
		if (!json_is_null(value) && !add_param(run, key, value))
			return false;
	}
	/* The 1.1 rules have one weights tensor where the others have two. */
	if (strstr(run->call.row->parameters, "rules") &&
	    json_object_get(json_object_get(item, "tensors"), "weights"))
		npumem_param_parse("rules", "mli1_1", &run->call.params.given[NPUMEM_PARAM_RULES], NULL);
	if (strcmp(rounding, "any") != 0)
		return execute(run, (enum npumem_rounding)npumem_rounding_parse(rounding));
	return execute(run, NPUMEM_CONVERGENT) && execute(run, NPUMEM_UP) && execute(run, NPUMEM_NEAREST);
}

static void free_case(struct run *run)
{
	for (unsigned role = 0; role < ROLES_MAX; role++)
		for (unsigned member = 0; member < FAMILY_MAX; member++) {
			free(run->operands[role][member].data);
			free(run->expected[role][member]);
		}
}

static void run_family(const char *path, struct totals *totals)
{
	json_error_t where;
	json_t *family = json_load_file(path, 0, &where), *item;
	size_t index;
	struct totals here = {0, 0, 0};
	if (!family) {
		printf("FAIL %s:%d: %s\n", path, where.line, where.text);
		totals->failed++;
		return;
	}
	json_array_foreach(json_object_get(family, "cases"), index, item)
	{
		struct run run = {.name = json_string_value(json_object_get(item, "name"))};
		run.call.row = npumem_kernel_by_name(json_string_value(json_object_get(item, "kernel")));
		if (!run.call.row) {
			here.not_run++;
			continue;
		}
		run.kernel = kernel_by_number(run.call.row->number);
		run.call.roles = run.roles;
		bool passed = run_case(&run, item);
		here.passed += passed;
		here.failed += !passed;
		if (!passed)
			printf("FAIL %s: %s\n", run.name, run.error);
		free_case(&run);
	}
	printf("%-24s %4u passed, %u failed, %u not run\n", strrchr(path, '/') + 1, here.passed, here.failed,
	       here.not_run);
	totals->passed += here.passed;
	totals->failed += here.failed;
	totals->not_run += here.not_run;
	json_decref(family);
}

static int is_family(const struct dirent *entry)
{
	const char *end = strrchr(entry->d_name, '.');
	return end && strcmp(end, ".json") == 0 && strcmp(entry->d_name, "luts.json") != 0;
}

int main(int argc, char **argv)
{
	const char *directory = argc > 1 ? argv[1] : "tests/conformance/vectors";
	struct dirent **entries;
	int n = scandir(directory, &entries, is_family, alphasort);
	struct totals totals = {0, 0, 0};
	for (int i = 0; i < n; i++) {
		char path[TEXT_BYTES * 4];
		snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name);
		run_family(path, &totals);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	printf("%u passed, %u failed, %u not run (no such kernel)\n", totals.passed, totals.failed,
	       totals.not_run);
	return totals.failed > 0 || totals.passed == 0;
}
