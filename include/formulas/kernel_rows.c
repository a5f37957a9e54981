/* The rows of kernels.def and params.def as tables, and the text form of a parameter.
 * What a kernel does with its parameters is its own business: here only their number and their names count. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <npumem/kernels.h>

const struct npumem_kernel_row npumem_kernel_rows[] = {
#define KERNEL(name, NAME, number, roles, parameters, types, summary)                                             \
	{#name, number, roles, parameters, types, summary},
#include <npumem/kernels.def>
#undef KERNEL
};
const unsigned npumem_n_kernel_rows = sizeof(npumem_kernel_rows) / sizeof(npumem_kernel_rows[0]);

const struct npumem_param_row npumem_param_rows[] = {
#define PARAM(NAME, name, number, least, most, choices, fallback) {name, number, least, most, choices, fallback},
#include <npumem/params.def>
#undef PARAM
};
const unsigned npumem_n_param_rows = sizeof(npumem_param_rows) / sizeof(npumem_param_rows[0]);

#define PARAM(NAME, name, number, least, most, choices, fallback)                                                 \
	_Static_assert((number) > 0 && (number) < NPUMEM_PARAMS_MAX, name ": the number does not fit the table"); \
	_Static_assert((least) <= (most) && (most) <= NPUMEM_PARAM_VALUES_MAX, name ": too many values");
#include <npumem/params.def>
#undef PARAM

const struct npumem_kernel_row *npumem_kernel_by_name(const char *name)
{
	for (unsigned i = 0; name && i < npumem_n_kernel_rows; i++) {
		if (!strcmp(npumem_kernel_rows[i].name, name))
			return &npumem_kernel_rows[i];
	}
	return NULL;
}

const struct npumem_kernel_row *npumem_kernel_by_number(int number)
{
	for (unsigned i = 0; i < npumem_n_kernel_rows; i++) {
		if (npumem_kernel_rows[i].number == number)
			return &npumem_kernel_rows[i];
	}
	return NULL;
}

const struct npumem_param_row *npumem_param_by_name(const char *name)
{
	for (unsigned i = 0; name && i < npumem_n_param_rows; i++) {
		if (!strcmp(npumem_param_rows[i].name, name))
			return &npumem_param_rows[i];
	}
	return NULL;
}

const struct npumem_param_row *npumem_param_by_number(int number)
{
	for (unsigned i = 0; i < npumem_n_param_rows; i++) {
		if (npumem_param_rows[i].number == number)
			return &npumem_param_rows[i];
	}
	return NULL;
}

enum { CHOICES_TEXT_BYTES = 120 };

/* "none gen 1 6" as "none, gen, 1, 6". */
static const char *with_commas(const char *choices, char text[CHOICES_TEXT_BYTES])
{
	size_t n = 0;
	for (; *choices && n < CHOICES_TEXT_BYTES - 2; choices++) {
		if (*choices == ' ')
			text[n++] = ',';
		text[n++] = *choices;
	}
	text[n] = 0;
	return text;
}

/* "2 integers (h,w)", "1 to 4 integers", "one of none, gen, 1, 6". */
static const char *expected(const struct npumem_param_row *row, char *buffer, size_t bytes)
{
	const char *order = npumem_param_order(row);
	char count[32], choices[CHOICES_TEXT_BYTES];
	if (row->least == row->most)
		snprintf(count, sizeof(count), "%u", row->least);
	else
		snprintf(count, sizeof(count), "%u to %u", row->least, row->most);
	if (row->choices[0] && row->most == 1)
		snprintf(buffer, bytes, "one of %s", with_commas(row->choices, choices));
	else if (row->choices[0])
		snprintf(buffer, bytes, "%s of %s", count, with_commas(row->choices, choices));
	else
		snprintf(buffer, bytes, "%s integer%s%s%s%s", count, row->most == 1 ? "" : "s", *order ? " (" : "",
			 order, *order ? ")" : "");
	return buffer;
}

/* The position of text[0..length) among the words of `choices`, from 1; 0 where it is none of them. */
static int64_t choice_number(const char *choices, const char *text, size_t length)
{
	int64_t number = 1;
	for (const char *word = choices; *word; number++) {
		size_t word_length = strcspn(word, " ");
		if (word_length == length && !strncmp(word, text, length))
			return number;
		word += word_length;
		word += strspn(word, " ");
	}
	return 0;
}

static bool parse_value(const struct npumem_param_row *row, const char *text, size_t length, int64_t *value)
{
	if (row->choices[0]) {
		*value = choice_number(row->choices, text, length);
		return *value != 0;
	}
	/* strtoll would skip leading space and take "+"; a value is written one way. */
	if (length == 0 || !(text[0] == '-' || (text[0] >= '0' && text[0] <= '9')))
		return false;
	char *end;
	errno = 0;
	long long number = strtoll(text, &end, 10);
	*value = number;
	return errno == 0 && end == text + length;
}

int npumem_param_parse(const char *name, const char *text, struct npumem_param *param, struct npumem_error *error)
{
	const struct npumem_param_row *row = npumem_param_by_name(name);
	if (!row)
		return npumem_error_set(error, NPUMEM_INVALID, "there is no parameter \"%s\"", name ? name : "");
	char buffer[160];
	struct npumem_param parsed = {.number = row->number};
	unsigned n = 0;
	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");
		int64_t value;
		if (!parse_value(row, at, length, &value))
			return npumem_error_set(error, NPUMEM_INVALID, "parameter %s takes %s, not \"%.*s\"", name,
						expected(row, buffer, sizeof(buffer)),
						(int)(length < 64 ? length : 64), at);
		if (n < row->most)
			parsed.values[n] = value;
		n++;
		at += length;
		if (!*at)
			break;
	}
	if (n < row->least || n > row->most)
		return npumem_error_set(error, NPUMEM_INVALID, "parameter %s takes %s, not %u value%s", name,
					expected(row, buffer, sizeof(buffer)), n, n == 1 ? "" : "s");
	parsed.n_values = n;
	*param = parsed;
	return 0;
}
