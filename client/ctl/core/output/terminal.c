/* What terminals can do. Asked for anew each time: it changes. */
#include "client/ctl/core/output/output.h"

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

/* U+0080 to U+009F are controls, too: U+009B begins a terminal's command as ESC [ does. U+2028 to U+202E and
 * U+2066 to U+2069 end a line, or turn its direction. */
size_t terminal_control_bytes(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;
	if (*c && (*c < ' ' || *c == 0x7f))
		return 1;
	if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
		return 2;
	bool is_wide = c[0] == 0xe2 && ((c[1] == 0x80 && c[2] >= 0xa8 && c[2] <= 0xae) ||
					(c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9));
	return is_wide ? 3 : 0;
}

void terminal_put(FILE *out, const char *text)
{
	while (*text) {
		size_t n = terminal_control_bytes(text);
		fputc(n ? '?' : *text, out);
		text += n ? n : 1;
	}
}
