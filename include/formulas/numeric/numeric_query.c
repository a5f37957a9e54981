/* Roles, parameters and extents of a question about a kernel. What they mean is the kernel's business. */
#include "include/formulas/numeric/numeric_query.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "include/formulas/sizes.h"

const struct npumem_numeric_operand *numeric_query_find(const struct numeric_query *query, const char *role)
{
	for (unsigned i = 0; i < query->question->n_operands; i++)
		if (!strcmp(query->question->operands[i].role, role))
			return &query->question->operands[i];
	return NULL;
}

static bool has_shape(const struct npumem_numeric_operand *operand)
{
	const struct npumem_dims *shape = &operand->shape;
	return shape->n || shape->c || shape->h || shape->w;
}

int numeric_query_need(const struct numeric_query *query, const char *role,
		       const struct npumem_numeric_operand **operand)
{
	*operand = numeric_query_find(query, role);
	if (*operand && has_shape(*operand))
		return 0;
	return npumem_error_set(query->error, NPUMEM_INVALID, "%s: the shape of %s is missing",
				query->question->kernel, role);
}

int64_t numeric_query_flattened(const struct npumem_numeric_operand *operand)
{
	return sizes_mul(sizes_mul(operand->shape.c, operand->shape.h), operand->shape.w);
}

int64_t numeric_query_param(const struct numeric_query *query, const char *name, unsigned i, int64_t fallback)
{
	for (unsigned p = 0; p < query->question->n_params; p++) {
		const struct npumem_param *one = &query->question->params[p];
		if (!strcmp(npumem_param_by_number(one->number)->name, name))
			return i < one->n_values ? one->values[i] : fallback;
	}
	return fallback;
}

int numeric_query_equal(const struct numeric_query *query, const char *what, int64_t is, const char *of,
			int64_t expected)
{
	if (is == expected)
		return 0;
	npumem_error_number(query->error, "value", is);
	npumem_error_number(query->error, "expected", expected);
	return npumem_error_set(query->error, NPUMEM_INVALID, "%s: %s is %" PRId64 ", but %s is %" PRId64,
				query->question->kernel, what, is, of, expected);
}

int numeric_query_within(const struct numeric_query *query, const char *what, int64_t value, int64_t least,
			 int64_t most)
{
	if (value >= least && value <= most)
		return 0;
	npumem_error_number(query->error, "value", value);
	return npumem_error_set(query->error, NPUMEM_INVALID, "%s: %s %" PRId64 " is not in %" PRId64 "..%" PRId64,
				query->question->kernel, what, value, least, most);
}

int numeric_query_add(const struct numeric_query *query, const struct npumem_numeric_operand *data,
		      const struct npumem_numeric_operand *weights, const struct npumem_numeric_operand *bias,
		      int64_t n)
{
	struct numeric_sums *sums = query->sums;
	if (n > NPUMEM_PRODUCTS_MAX)
		return npumem_error_set(query->error, NPUMEM_INVALID,
					"%s: an output would add up %" PRId64 " %s, more than %" PRId64,
					query->question->kernel, n, weights ? "products" : "data",
					NPUMEM_PRODUCTS_MAX);
	assert(sums->n < NPUMEM_SUMS_MAX); /* each has operands of its own */
	sums->sums[sums->n++] = (struct numeric_sum){data, weights, bias, n};
	return 0;
}

/* ---- checks ---- */

static bool list_has(const char *list, const char *word)
{
	for (; *list; list += strspn(list, " ")) {
		size_t length = strcspn(list, " ");
		bool family = list[length - 1] == '*';
		size_t plain = length - family;
		if (!strncmp(list, word, plain)) {
			size_t digits = family ? strspn(word + plain, "0123456789") : 0;
			if (digits == strlen(word + plain) && (digits > 0) == family)
				return true;
		}
		list += length;
	}
	return false;
}

static int check_operand(const struct numeric_query *query, const char *roles, unsigned i)
{
	static const char *const names[] = {"n", "c", "h", "w"};
	const struct npumem_numeric_operand *operand = &query->question->operands[i];
	const int64_t extents[] = {operand->shape.n, operand->shape.c, operand->shape.h, operand->shape.w};
	if (!operand->role || strlen(operand->role) >= NPUMEM_FIELD_KEY_BYTES || !list_has(roles, operand->role))
		return npumem_error_set(query->error, NPUMEM_INVALID, "%s has no tensor \"%.40s\"; it has: %s",
					query->question->kernel, operand->role ? operand->role : "", roles);
	for (unsigned other = 0; other < i; other++)
		if (!strcmp(query->question->operands[other].role, operand->role))
			return npumem_error_set(query->error, NPUMEM_INVALID, "%s: %s is given twice",
						query->question->kernel, operand->role);
	for (unsigned d = 0; d < 4 && has_shape(operand); d++) {
		char what[NPUMEM_FIELD_KEY_BYTES + 8];
		snprintf(what, sizeof(what), "%s of %s", names[d], operand->role);
		int status = numeric_query_within(query, what, extents[d], 1, NUMERIC_QUERY_EXTENT_MAX);
		if (status)
			return status;
	}
	return 0;
}

/* Values of an enumeration are counted from 1; 0 choices: any integer. */
static int64_t n_choices(const struct npumem_param_row *row)
{
	int64_t n = row->choices[0] != 0;
	for (const char *at = row->choices; *at; at++)
		n += *at == ' ';
	return n;
}

static int check_param(const struct numeric_query *query, const char *params, unsigned i)
{
	const struct npumem_param *given = &query->question->params[i];
	const struct npumem_param_row *row = npumem_param_by_number(given->number);
	int status = 0;
	if (!row)
		return npumem_error_set(query->error, NPUMEM_INVALID, "there is no parameter %d", given->number);
	if (strcmp(row->name, "rounding") && !list_has(params, row->name))
		return npumem_error_set(query->error, NPUMEM_INVALID,
					"%s has no parameter %s; it has: %s%srounding", query->question->kernel,
					row->name, params, *params ? " " : "");
	if (given->n_values < row->least || given->n_values > row->most)
		return npumem_error_set(query->error, NPUMEM_INVALID, "%s: %s has %u values, not %u to %u",
					query->question->kernel, row->name, given->n_values, row->least,
					row->most);
	for (unsigned v = 0; v < given->n_values && n_choices(row) && !status; v++)
		status = numeric_query_within(query, row->name, given->values[v], 1, n_choices(row));
	for (unsigned other = 0; other < i; other++)
		if (query->question->params[other].number == given->number)
			return npumem_error_set(query->error, NPUMEM_INVALID, "%s: %s is given twice",
						query->question->kernel, row->name);
	return status;
}

int numeric_query_check(const struct numeric_query *query, const char *roles, const char *params)
{
	const struct npumem_advise *question = query->question;
	int status = 0;
	if (question->n_operands > NPUMEM_OPERANDS_MAX)
		return npumem_error_set(query->error, NPUMEM_INVALID, "%u operands are more than the %d of a call",
					question->n_operands, NPUMEM_OPERANDS_MAX);
	if (question->n_params > NPUMEM_PARAMS_MAX)
		return npumem_error_set(query->error, NPUMEM_INVALID,
					"%u parameters are more than the %d of a call", question->n_params,
					NPUMEM_PARAMS_MAX);
	for (unsigned i = 0; i < question->n_operands && !status; i++)
		status = check_operand(query, roles, i);
	for (unsigned i = 0; i < question->n_params && !status; i++)
		status = check_param(query, params, i);
	return status;
}
