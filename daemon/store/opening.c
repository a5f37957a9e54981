/* What is said to people. Owns nothing. */
#include "daemon/store/opening.h"

#include <stdarg.h>
#include <stdio.h>

const char *const opening_names[FORMAT_FILES] = {"journal", "memory", "tensors", "sessions", "results"};

int opening_refuse(const struct opening *opening, enum format_file file, int status, const char *format, ...)
{
	const char *directory = opening->options->directory;
	va_list list;

	int n = snprintf(opening->error, STORE_ERROR_BYTES, "%.200s%s%s: ", directory ? directory : "",
			 directory ? "/" : "", opening_names[file]);
	va_start(list, format);
	vsnprintf(opening->error + n, STORE_ERROR_BYTES - (size_t)n, format, list);
	va_end(list);
	return status;
}

void opening_tell(const struct opening *opening, const char *format, ...)
{
	struct store_report *report = opening->report;
	va_list list;

	if (report->n_lines == STORE_LINES_MAX)
		return;
	va_start(list, format);
	vsnprintf(report->lines[report->n_lines++], STORE_ERROR_BYTES, format, list);
	va_end(list);
}
