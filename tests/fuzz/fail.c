/* The end of a finding. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

void fuzz_fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("FOUND: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	abort();
}
