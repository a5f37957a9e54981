/* The golden vectors of the kernels, dense: each case's tensors are given to its kernel as the device would gather
 * them, and every integer of the outputs must be the vector's. What layouts do to them is tested elsewhere.
 *
 * Vectors order some tensors in another way than npumem (weights O,I,H,W; matrices [M,N]) and have other names for
 * some parameters: the tables below. A case whose kernel is not in kernels.def is counted as not run, never as
 * passed. Files named r11_model_* hold a model's output and are left out. */
#include <ctype.h>
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/device/operations/kernel.h"

enum { FAMILY_MAX = 8, ROLES_MAX = 12, TEXT_BYTES = 256 };

/* The vectors' dims, and which of them each npumem dimension is ("-": none). */
static const struct {
	const char *dims, *npumem[4];
} maps[] = {
	{"N C H W", {"N", "C", "H", "W"}},
	{"O I H W", {"I", "O", "H", "W"}},
	{"O", {"-", "O", "-", "-"}},
	{"S", {"-", "-", "-", "-"}},
	{"N", {"-", "N", "-", "-"}},
	{"M", {"-", "M", "-", "-"}},
	{"M N", {"N", "M", "-", "-"}},
	{"T N", {"T", "N", "-", "-"}},
	{"T M", {"T", "M", "-", "-"}},
	{"G M N", {"G", "M", "-", "N"}},
	{"G M K", {"G", "M", "-", "K"}},
	{"G M", {"G", "M", "-", "-"}},
	{"M N+M", {"-", "M", "-", "N+M"}},
	{"G M N+M", {"G", "M", "-", "N+M"}},
	{"one K", {"-", "K", "-", "-"}},
	{"N K", {"-", "N", "-", "K"}},
	{"C K", {"-", "C", "-", "K"}},
	{"H K", {"-", "H", "-", "K"}},
	{"W K", {"-", "W", "-", "K"}},
	{"d0 d1 d2", {"-", "d0", "d1", "d2"}},
	{"e0 e1 e2", {"-", "e0", "e1", "e2"}},
	{"d0 d1 d2 d3", {"d0", "d1", "d2", "d3"}},
	{"e0 e1 e2 e3", {"e0", "e1", "e2", "e3"}},
};

/* Parameters that npumem calls otherwise. */
static const struct {
	const char *vector, *npumem;
} renames[] = {{"perm_dim", "perm"}, {"luts", "lut"}};

/* Remarks, and what npumem reads from shapes: left out where the kernel has no such parameter. A dilation is 1
 * then. */
static const char *const remarks[] = {"op",	    "scalar_operand", "groups",	    "dilation",
				      "inputs_num", "index_encoding", "gate_order", "lut"};

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

static int find_dim(json_t *dims, const char *name)
{
	for (size_t i = 0; i < json_array_size(dims); i++)
		if (strcmp(json_string_value(json_array_get(dims, i)), name) == 0)
			return (int)i;
	return -1;
}

/* Extents and strides (in the vector's data) of npumem's dimensions. */
static bool map_dims(struct run *run, json_t *tensor, int64_t extents[4], int64_t strides[4])
{
	json_t *dims = json_object_get(tensor, "dims"), *shape = json_object_get(tensor, "shape");
	char text[TEXT_BYTES] = "";
	for (size_t i = 0; i < json_array_size(dims) && i < 4; i++) {
		size_t length = strlen(text);
		snprintf(text + length, sizeof(text) - length, "%s%s", i > 0 ? " " : "",
			 json_string_value(json_array_get(dims, i)));
	}
	for (size_t m = 0; m < sizeof(maps) / sizeof(maps[0]); m++) {
		if (strcmp(maps[m].dims, text) != 0)
			continue;
		for (unsigned d = 0; d < 4; d++) {
			int at = find_dim(dims, maps[m].npumem[d]);
			extents[d] = at < 0 ? 1 : json_integer_value(json_array_get(shape, (size_t)at));
			strides[d] = at < 0 ? 0 : 1;
			for (size_t i = (size_t)at + 1; at >= 0 && i < json_array_size(shape); i++)
				strides[d] *= json_integer_value(json_array_get(shape, i));
		}
		return true;
	}
	return fail(run, "dims not known:", text);
}

static int parse_dtype(const char *name)
{
	return npumem_dtype_parse(strcmp(name, "i32") == 0 ? "int32" : name);
}

static bool add_tensor(struct run *run, unsigned role, json_t *tensor)
{
	struct kernel_role *to = &run->roles[role];
	struct kernel_operand *operand = &run->operands[role][to->n];
	int64_t extents[4], strides[4];
	if (to->n == FAMILY_MAX || !map_dims(run, tensor, extents, strides))
		return fail(run, "tensor not understood:", run->names[role]);
	*operand = (struct kernel_operand){
		.dtype = parse_dtype(json_string_value(json_object_get(tensor, "dtype"))),
		.frac_bits = json_integer_value(json_object_get(tensor, "frac_bits")),
		.shape = {extents[0], extents[1], extents[2], extents[3]},
	};
	int64_t count = elements(operand), i = 0;
	json_t *data = json_object_get(tensor, "data");
	if (operand->dtype == 0 || json_array_size(data) != (size_t)count)
		return fail(run, "type or number of elements is wrong:", run->names[role]);
	kernel_operand_dense(operand, take((size_t)count * npumem_dtype_bytes(operand->dtype)));
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

/* True where the space separated `words` have `word`. */
static bool has_word(const char *words, const char *word)
{
	size_t length = strlen(word);
	for (; *words; words += strcspn(words, " "), words += strspn(words, " "))
		if (strncmp(words, word, length) == 0 && (words[length] == ' ' || !words[length]))
			return true;
	return false;
}

static bool is_remark(const char *name, json_t *value)
{
	if (strcmp(name, "dilation") == 0 && (json_integer_value(json_array_get(value, 0)) != 1 ||
					      json_integer_value(json_array_get(value, 1)) != 1))
		return false;
	for (size_t i = 0; i < sizeof(remarks) / sizeof(remarks[0]); i++)
		if (strcmp(remarks[i], name) == 0)
			return true;
	return false;
}

/* "C" and "sigmoid_mli2_0" as npumem has them: "c" and "mli2_0". */
static bool parse_choice(const char *name, const char *text, struct npumem_param *param)
{
	const char *table = strstr(text, "_mli");
	char choice[TEXT_BYTES];
	snprintf(choice, sizeof(choice), "%s", table ? table + 1 : text);
	for (char *at = choice; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	return npumem_param_parse(name, choice, param, NULL) == 0;
}

static void take_integers(json_t *array, struct npumem_param *param)
{
	for (; param->n_values < json_array_size(array) && param->n_values < 4; param->n_values++)
		param->values[param->n_values] = json_integer_value(json_array_get(array, param->n_values));
}

static void take_padding(json_t *object, struct npumem_param *param)
{
	static const char *const sides[] = {"top", "bottom", "left", "right"};
	for (; param->n_values < 4; param->n_values++)
		param->values[param->n_values] =
			json_integer_value(json_object_get(object, sides[param->n_values]));
}

static bool add_param(struct run *run, const char *name, json_t *value)
{
	struct npumem_param param = {.n_values = 0};
	for (size_t i = 0; i < sizeof(renames) / sizeof(renames[0]); i++)
		name = strcmp(renames[i].vector, name) == 0 ? renames[i].npumem : name;
	const struct npumem_param_row *row = npumem_param_by_name(name);
	if (!row || !has_word(run->call.row->parameters, name))
		return is_remark(name, value) || fail(run, "parameter not known:", name);
	param.number = row->number;
	json_t *choice = json_is_array(value) ? json_array_get(value, 0) : value;
	if (json_is_string(choice)) {
		if (!parse_choice(name, json_string_value(choice), &param))
			return fail(run, "parameter not understood:", name);
	} else if (json_is_object(value)) {
		take_padding(value, &param);
	} else if (json_is_integer(value)) {
		param.values[param.n_values++] = json_integer_value(value);
	} else {
		take_integers(value, &param);
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
	run->call.isa = isa_best();
	if (run->kernel->check(&run->call, &error) != 0)
		return fail(run, "refused:", error.message);
	_Alignas(16) uint8_t plan[KERNEL_PLAN_BYTES];
	run->call.plan = plan;
	if (run->kernel->plan)
		run->kernel->plan(&run->call);
	if (run->kernel->check_data && run->kernel->check_data(&run->call, &error) != 0)
		return fail(run, "refused:", error.message);
	size_t bytes = run->kernel->scratch_bytes ? run->kernel->scratch_bytes(&run->call) : 0;
	run->call.scratch = aligned_alloc(64, (bytes / 64 + 1) * 64);
	if (!run->call.scratch)
		abort();
	void *pack = NULL;
	bytes = run->kernel->pack_bytes ? run->kernel->pack_bytes(&run->call) : 0;
	if (bytes) {
		pack = aligned_alloc(64, (bytes / 64 + 1) * 64);
		if (!pack || !run->kernel->pack(&run->call, pack))
			abort();
	}
	run->call.pack = pack;
	run->kernel->run(&run->call);
	free(run->call.scratch);
	free(pack);
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
	if (has_word(run->call.row->parameters, "rules") &&
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
