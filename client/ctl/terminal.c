/* The width of terminals. Asked for anew each time: it changes. */
#include "client/ctl/terminal.h"

#include <sys/ioctl.h>

unsigned terminal_columns(int fd)
{
	struct winsize size;
	return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}
