/* What terminals can do. Asked for anew each time: it changes. */
#include "client/ctl/core/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

unsigned terminal_columns(int fd)
{
	struct winsize size;
	return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool terminal_colours(int fd)
{
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
	return isatty(fd) && !(none && *none) && term && *term && strcmp(term, "dumb");
}
