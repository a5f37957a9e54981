/* Numbers on the command line. Accepts one way of writing each: no blanks, no plus sign, no octal. */
#include "client/ctl/core/words/words.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_TEXT_MAX = 40 };

bool numbers_integer(const char *text, int64_t *value)
{
	const char *digits = *text == '-' ? text + 1 : text;
	bool hex = digits[0] == '0' && digits[1] == 'x';
	char *end;
	if (!(hex ? isxdigit((unsigned char)digits[2]) : isdigit((unsigned char)digits[0])))
		return false;
	errno = 0;
	long long number = strtoll(text, &end, hex ? 16 : 10);
	*value = number;
	return !errno && !*end;
}

int numbers_count(const char *what, const char *text, int64_t *value, struct npumem_error *error)
{
	if (!numbers_integer(text, value))
		return npumem_error_set(error, NPUMEM_INVALID, "%s \"%.60s\" is not an integer", what, text);
	if (*value < 0)
		return npumem_error_set(error, NPUMEM_INVALID, "%s %s is negative", what, text);
	return 0;
}

int numbers_bytes(const char *what, const char *text, int64_t *value, struct npumem_error *error)
{
	return npumem_bytes_parse(text, value) ? 0 : numbers_count(what, text, value, error);
}

bool numbers_real(const char *text, double *value)
{
	char *end;
	if (!*text || isspace((unsigned char)*text))
		return false;
	*value = strtod(text, &end);
	return !*end;
}

int numbers_list(const char *what, const char *text, int64_t *values, unsigned most, unsigned *n,
		 struct npumem_error *error)
{
	for (*n = 0;; text++) {
		char number[NUMBER_TEXT_MAX];
		size_t length = strcspn(text, ",");
		if (*n == most)
			return npumem_error_set(error, NPUMEM_INVALID, "%s takes at most %u numbers", what, most);
		if (length >= sizeof(number))
			return npumem_error_set(error, NPUMEM_INVALID, "%s: \"%.60s\" is not an integer", what,
						text);
		memcpy(number, text, length);
		number[length] = 0;
		if (!numbers_integer(number, &values[*n]))
			return npumem_error_set(error, NPUMEM_INVALID,
						"%s \"%.60s\" is not a list of integers with commas between them",
						what, text);
		int status = numbers_count(what, number, &values[(*n)++], error);
		if (status)
			return status;
		text += length;
		if (!*text)
			return 0;
	}
}

int numbers_dims(const char *what, const char *text, struct npumem_dims *dims, struct npumem_error *error)
{
	int64_t values[4];
	unsigned n;
	int status = numbers_list(what, text, values, 4, &n, error);
	if (status)
		return status;
	if (n != 4)
		return npumem_error_set(error, NPUMEM_INVALID, "%s %.60s has %u numbers: N,C,H,W are four", what,
					text, n);
	*dims = (struct npumem_dims){values[0], values[1], values[2], values[3]};
	return 0;
}
