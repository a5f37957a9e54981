/* The daemon's only voice. stderr may be a file, a terminal or the journal's socket; systemd says which by
 * JOURNAL_STREAM, whose device and inode are compared since a child inherits the variable but not always the fd.
 */
#include "daemon/server/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum log_level least = LOG_LEVEL_INFO;
static bool is_journal;

void log_init(enum log_level level)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat status;
	uintmax_t device, inode;

	least = level;
	is_journal = stream && sscanf(stream, "%ju:%ju", &device, &inode) == 2 &&
		     fstat(STDERR_FILENO, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

int log_level_parse(const char *name)
{
	static const struct {
		const char *name;
		enum log_level level;
	} levels[] = {{"error", LOG_LEVEL_ERROR},
		      {"warning", LOG_LEVEL_WARNING},
		      {"info", LOG_LEVEL_INFO},
		      {"debug", LOG_LEVEL_DEBUG}};

	for (unsigned i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (strcmp(levels[i].name, name) == 0)
			return levels[i].level;
	return 0;
}

void log_line(enum log_level level, const char *format, ...)
{
	char line[1024];
	va_list arguments;
	int used = 0;
	size_t length;

	if (level > least)
		return;
	if (is_journal)
		used = snprintf(line, sizeof(line), "<%d>", level);
	used += snprintf(line + used, sizeof(line) - (size_t)used, "npumemd: ");
	va_start(arguments, format);
	vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, arguments);
	va_end(arguments);
	length = strlen(line);
	line[length++] = '\n';
	/* At once, so that lines of several processes do not mix; a lost one is not worth an error. */
	if (write(STDERR_FILENO, line, length) < 0)
		return;
}
