/* The expression of `view`. Each range is a:b, a:, :b, : or a single index; those left out at the end are whole.
 * Counting from the end is refused, not guessed at. Whether a range lies within the base is the daemon's to say.
 */
#include "client/ctl/core/arrays/slice.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *blanks(const char *at)
{
	return at + strspn(at, " \t");
}

/* Copies [from, to) without blanks at its ends. False where nothing is left, or too much. */
static bool name_copy(const char *from, const char *to, char *name)
{
	from = blanks(from);
	while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
		to--;
	size_t length = (size_t)(to - from);
	if (to <= from || length >= SLICE_NAME_BYTES)
		return false;
	memcpy(name, from, length);
	name[length] = 0;
	return true;
}

static int bad_range(const char *text, const char *why, struct npumem_error *error)
{
	int length = (int)strcspn(text, ",]");
	while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		length--;
	return npumem_error_set(error, NPUMEM_INVALID, "range \"%.*s\" %s", length > 40 ? 40 : length, text, why);
}

/* An index at *at; NPUMEM_ANY where there is none. */
static int index_parse(const char *range, const char **at, int64_t *value, struct npumem_error *error)
{
	char *end;
	*value = NPUMEM_ANY;
	*at = blanks(*at);
	if (**at == '-')
		return bad_range(range, "counts from the end: indices are 0 and up", error);
	if (!isdigit((unsigned char)**at))
		return 0;
	errno = 0;
	*value = strtoll(*at, &end, 10);
	if (errno)
		return bad_range(range, "is past 64 bits", error);
	*at = blanks(end);
	return 0;
}

static int range_parse(const char **at, int64_t *from, int64_t *to, struct npumem_error *error)
{
	const char *range = blanks(*at);
	int status = index_parse(range, at, from, error);
	if (status)
		return status;
	if (**at == ':') {
		(*at)++;
		status = index_parse(range, at, to, error);
		if (status)
			return status;
		*from = *from == NPUMEM_ANY ? 0 : *from;
		if (*to != NPUMEM_ANY && *to <= *from)
			return bad_range(range, "holds nothing", error);
	} else if (*from == NPUMEM_ANY || *from == INT64_MAX) {
		return bad_range(range, "is not one of a:b, a:, :b, : and a", error);
	} else {
		*to = *from + 1;
	}
	if (**at != ',' && **at != ']')
		return bad_range(range, "is not one of a:b, a:, :b, : and a", error);
	return 0;
}

int slice_parse(const char *text, struct slice *slice, struct npumem_error *error)
{
	*slice = (struct slice){.ranges = false};
	for (unsigned i = 0; i < 4; i++)
		slice->range[i].to = NPUMEM_ANY;
	const char *equals = strchr(text, '='), *open = strchr(text, '[');
	const char *end = open ? open : text + strlen(text);
	if (!equals || equals > end || !name_copy(text, equals, slice->name) ||
	    !name_copy(equals + 1, end, slice->base))
		return npumem_error_set(error, NPUMEM_INVALID,
					"\"%.100s\" is not NAME = BASE[n0:n1,c0:c1,h0:h1,w0:w1]", text);
	if (!open)
		return 0;
	if (!strchr(open, ']'))
		return npumem_error_set(error, NPUMEM_INVALID, "\"%.100s\": the ] is missing", text);
	slice->ranges = true;
	const char *at = blanks(open + 1);
	for (unsigned i = 0; *at != ']'; i++) {
		if (i == 4)
			return npumem_error_set(error, NPUMEM_INVALID, "more than four ranges: N,C,H,W");
		int status = range_parse(&at, &slice->range[i].from, &slice->range[i].to, error);
		if (status)
			return status;
		if (*at == ',' && *(at = blanks(at + 1)) == ']')
			return npumem_error_set(error, NPUMEM_INVALID, "a comma without a range after it");
	}
	if (*blanks(at + 1))
		return npumem_error_set(error, NPUMEM_INVALID, "\"%.40s\" after the ranges", blanks(at + 1));
	return 0;
}

static void range_resolve(const struct slice *slice, unsigned i, int64_t extent, int64_t *from, int64_t *to)
{
	*from = slice->range[i].from;
	*to = slice->range[i].to == NPUMEM_ANY ? extent : slice->range[i].to;
}

void slice_resolve(const struct slice *slice, const struct npumem_dims *shape, struct npumem_dims *from,
		   struct npumem_dims *to)
{
	range_resolve(slice, 0, shape->n, &from->n, &to->n);
	range_resolve(slice, 1, shape->c, &from->c, &to->c);
	range_resolve(slice, 2, shape->h, &from->h, &to->h);
	range_resolve(slice, 3, shape->w, &from->w, &to->w);
}
