/* Asks each time, as a terminal changes its size. */
#include "client/ctl/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

enum { SCREEN_COLUMNS = 80, SCREEN_PIPE = 1 << 16 };

unsigned screen_columns(FILE *file)
{
	struct winsize size;
	if (!isatty(fileno(file)))
		return SCREEN_PIPE;
	return !ioctl(fileno(file), TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : SCREEN_COLUMNS;
}
