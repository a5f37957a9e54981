/* Kernels for people and for programs, from kernels.def, params.def, exceptions.def and provenance.def. Shapes are
 * those that the summary names after a role ("in [N,I,H,W]", "c, h [1,M,1,1]"). Owns nothing. */
#include "client/ctl/core/kernels/kernels.h"

#include <ctype.h>
#include <string.h>

#include "client/ctl/core/output/output.h"
#include "client/ctl/core/words/words.h"

static const struct describe_provenance provenances[] = {
#define PROVENANCE(name, rounding, source) {#name, rounding, source},
#include "client/ctl/core/kernels/provenance.def"
#undef PROVENANCE
};

const struct describe_provenance *describe_provenance(const struct npumem_kernel_row *row)
{
	for (unsigned i = 0; i < sizeof(provenances) / sizeof(provenances[0]); i++)
		if (!strcmp(provenances[i].name, row->name))
			return &provenances[i];
	return NULL;
}

/* ---- shapes ---- */

static bool is_name(char letter)
{
	return isalnum((unsigned char)letter) || letter == '_';
}

/* Past "name" or "nameN" at `at`; NULL where another word stands there. */
static const char *skip_role(const char *at, const char *role)
{
	size_t length = strlen(role);
	if (strncmp(at, role, length))
		return NULL;
	at += length + (at[length] == 'N');
	return is_name(*at) ? NULL : at;
}

/* The bracket after a role and others that share it: "prev_out, cell_in [". NULL: a comma of the text. */
static const char *bracket_after(const char *at)
{
	for (;;) {
		at += strspn(at, " ");
		if (*at == '[')
			return at;
		if (*at != ',')
			return NULL;
		at += 1 + strspn(at + 1, " ");
		if (!is_name(*at))
			return NULL;
		while (is_name(*at))
			at++;
	}
}

const char *describe_shape(const struct npumem_kernel_row *row, const char *role, char *text)
{
	text[0] = 0;
	for (const char *at = row->summary; *at; at++) {
		const char *after = at == row->summary || !is_name(at[-1]) ? skip_role(at, role) : NULL;
		const char *open = after ? bracket_after(after) : NULL;
		if (!open)
			continue;
		size_t length = strcspn(open, "]") + 1;
		if (!strncmp(open + length, " or [", 5))
			length += strcspn(open + length, "]") + 1;
		snprintf(text, DESCRIBE_SHAPE_BYTES, "%.*s", (int)length, open);
		return text;
	}
	return text;
}

/* ---- JSON ---- */

static json_t *words_array(const char *list)
{
	json_t *array = json_array();
	struct lists_word word;
	while (lists_next(&list, &word))
		json_array_append_new(array, json_string(word.text));
	return array;
}

static json_t *roles_array(const struct npumem_kernel_row *row)
{
	json_t *array = json_array();
	const char *list = row->roles;
	struct lists_word role;
	while (lists_next(&list, &role)) {
		char shape[DESCRIBE_SHAPE_BYTES];
		describe_shape(row, role.text, shape);
		json_array_append_new(array, json_pack("{s:s, s:b, s:b, s:b, s:s*}", "role", role.text, "output",
						       role.output, "optional", role.optional, "numbered",
						       role.family, "shape", *shape ? shape : NULL));
	}
	return array;
}

static const struct exception {
	const char *of, *param, *choices, *fallback;
} exceptions[] = {
#define EXCEPTION(of, param, choices, fallback) {of, param, choices, fallback},
#include "client/ctl/core/kernels/exceptions.def"
#undef EXCEPTION
};

/* A parameter's row, with what `row` takes otherwise. */
static struct npumem_param_row param_of(const struct npumem_kernel_row *row, const char *name)
{
	struct npumem_param_row param = *npumem_param_by_name(name);
	for (unsigned i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++) {
		const struct exception *one = &exceptions[i];
		if (strcmp(one->param, name) || (strcmp(one->of, row->name) && strcmp(one->of, row->types)))
			continue;
		param.choices = one->choices;
		param.fallback = one->fallback;
	}
	return param;
}

/* Takes the first parameter of *list, moved past it; rounding is the last one. False at the end. */
static bool param_next(const struct npumem_kernel_row *row, const char **list, struct npumem_param_row *param)
{
	struct lists_word word;
	if (!*list)
		return false;
	bool more = lists_next(list, &word);
	*param = param_of(row, more ? word.text : "rounding");
	if (!more)
		*list = NULL;
	return true;
}

static json_t *params_array(const struct npumem_kernel_row *row)
{
	json_t *array = json_array();
	const char *list = row->parameters;
	struct npumem_param_row param;
	while (param_next(row, &list, &param))
		json_array_append_new(array, json_pack("{s:s, s:i, s:i, s:o, s:o}", "name", param.name, "least",
						       (int)param.least, "most", (int)param.most, "choices",
						       words_array(param.choices), "default",
						       jsons_text(param.fallback)));
	return array;
}

json_t *describe_object(const struct npumem_kernel_row *row)
{
	const struct describe_provenance *from = describe_provenance(row);
	return json_pack("{s:s, s:i, s:s, s:o, s:o, s:o, s:s, s:s}", "name", row->name, "number", row->number,
			 "summary", row->summary, "roles", roles_array(row), "types", words_array(row->types),
			 "parameters", params_array(row), "rounding", from ? from->rounding : "", "source",
			 from ? from->source : "");
}

/* ---- text ---- */

void describe_wrap(FILE *out, const char *text, unsigned at, unsigned indent, unsigned columns)
{
	while (*(text += strspn(text, " "))) {
		size_t length = strcspn(text, " ");
		bool starts = at <= indent;
		if (!starts && columns && at + 1 + length > columns) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
			starts = true;
		}
		fprintf(out, "%s%.*s", starts ? "" : " ", (int)length, text);
		at += (unsigned)length + !starts;
		text += length;
	}
	fputc('\n', out);
}

enum { DESCRIBE_LABEL = 14 };

/* A label and what it labels. */
static void print_entry(FILE *out, const char *label, const char *text, unsigned columns)
{
	int n = fprintf(out, "  %-*s ", DESCRIBE_LABEL - 3, label);
	describe_wrap(out, text, (unsigned)n, (unsigned)n, columns);
}

static void print_role(FILE *out, const struct npumem_kernel_row *row, const struct lists_word *role,
		       unsigned columns)
{
	char label[sizeof(role->text) + 2], shape[DESCRIBE_SHAPE_BYTES], text[160];
	snprintf(label, sizeof(label), "%s%s", role->text, role->family ? "N" : "");
	describe_shape(row, role->text, shape);
	snprintf(text, sizeof(text), "%s%s%s%s", role->output ? "written " : "read ", shape,
		 role->family ? "; numbered from 0" : "", role->optional ? "; may be left out" : "");
	print_entry(out, label, text, columns);
}

static void print_param(FILE *out, const struct npumem_param_row *param, unsigned columns)
{
	const char *order = npumem_param_order(param);
	char text[200], count[32] = "", choices[100] = "an integer";
	if (param->least < param->most)
		snprintf(count, sizeof(count), "%u to %u ", param->least, param->most);
	else if (param->most > 1)
		snprintf(count, sizeof(count), "%u ", param->most);
	if (*param->choices)
		lists_text(param->choices, " | ", "", choices, sizeof(choices));
	else if (*count)
		snprintf(choices, sizeof(choices), "integers%s%s", *order ? ": " : "", order);
	snprintf(text, sizeof(text), "%s%s%s; %s%s", count, *count && *param->choices ? "of " : "", choices,
		 *param->fallback ? "default: " : "must be given", param->fallback);
	print_entry(out, param->name, text, columns);
}

/* A line to be copied: what must be given. */
static void print_example(FILE *out, const struct npumem_kernel_row *row, unsigned columns)
{
	char line[256];
	const char *list = row->roles, *params = row->parameters;
	struct npumem_param_row param;
	struct lists_word role;
	int n = snprintf(line, sizeof(line), "npumemctl run %s", row->name);
	while (lists_next(&list, &role) && (size_t)n < sizeof(line))
		if (!role.optional)
			n += snprintf(line + n, sizeof(line) - (size_t)n, " %s%s=NAME", role.text,
				      role.family ? "0" : "");
	while (param_next(row, &params, &param) && (size_t)n < sizeof(line))
		if (!*param.fallback)
			n += snprintf(line + n, sizeof(line) - (size_t)n, " %s=...", param.name);
	fputs("\n  ", out);
	describe_wrap(out, line, 2, 2, columns);
}

void describe_print(FILE *out, const struct npumem_kernel_row *row, unsigned columns)
{
	const struct describe_provenance *from = describe_provenance(row);
	const char *list = row->roles, *params = row->parameters;
	char types[120];
	struct npumem_param_row param;
	struct lists_word role;
	unsigned n = (unsigned)fprintf(out, "%s:", row->name);
	describe_wrap(out, row->summary, n, 2, columns);
	fputs("\ntensors\n", out);
	while (lists_next(&list, &role))
		print_role(out, row, &role, columns);
	fputs("\nparameters\n", out);
	while (param_next(row, &params, &param))
		print_param(out, &param, columns);
	fputs("\narithmetic\n", out);
	snprintf(types, sizeof(types), "%s%s%s", row->types,
		 lists_has(row->types, "fx16w8") ? "; fx16w8 is fx16 with weights and bias of fx8" : "",
		 lists_has(row->types, "int") ? "; int is each integer type" : "");
	print_entry(out, "types", types, columns);
	print_entry(out, "rounds", from ? from->rounding : "", columns);
	print_entry(out, "source", from ? from->source : "", columns);
	print_example(out, row, columns);
}
