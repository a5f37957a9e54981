/* Lines for people. Owns nothing. */
#include "daemon/store/opening.h"

#include <stdarg.h>
#include <stdio.h>

const char *const opening_names[FORMAT_FILES] = {"journal", "memory", "tensors", "sessions", "results"};

static void write_line(const struct opening *opening, enum format_file file, const char *format, va_list list)
{
	const char *directory = opening->options->directory;
	int n = snprintf(opening->error, STORE_ERROR_BYTES, "%.200s%s%s: ", directory ? directory : "",
			 directory ? "/" : "", opening_names[file]);

	vsnprintf(opening->error + n, STORE_ERROR_BYTES - (size_t)n, format, list);
}

int opening_refuse(const struct opening *opening, enum format_file file, int status, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	write_line(opening, file, format, list);
	va_end(list);
	return status;
}

int opening_judge(const struct opening *opening, enum format_file file, enum store_verdict verdict,
		  const char *format, ...)
{
	va_list list;

	va_start(list, format);
	write_line(opening, file, format, list);
	va_end(list);
	opening->report->verdict = verdict;
	return verdict_status(verdict);
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
