/* Drawn anew at each event, in the width that the terminal has by then and never in its last column, where some go
 * on to the next line. No colours, so that NO_COLOR has nothing to ask for. */
#include "client/ctl/bar.h"

#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR_WIDTH = 40, BAR_BESIDE = 7 /* "[" "] 100%" */, BAR_COLUMNS = 80 };

static unsigned bar_columns(void)
{
	struct winsize size;
	bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
	return known ? size.ws_col : BAR_COLUMNS;
}

static void bar_wipe(struct bar *bar, unsigned columns)
{
	/* What was wider than the terminal is now was broken into lines by it. */
	unsigned width = bar->width < columns ? bar->width : columns - 1;
	if (width)
		fprintf(stderr, "\r%*s\r", (int)width, "");
	bar->width = 0;
}

/* Told every tenth of a second, where the request takes longer than that. */
static void bar_draw(void *context, const struct npumem_event *event)
{
	struct bar *bar = context;
	unsigned columns = bar_columns(), width = columns > BAR_BESIDE + 1 ? columns - BAR_BESIDE - 1 : 0;
	if (!event->total || bar->over)
		return;
	double part = (double)event->done / (double)event->total;
	width = width < BAR_WIDTH ? width : BAR_WIDTH;
	int full = (int)(part * width), percent = (int)(part * 100);
	bar_wipe(bar, columns);
	if (!width)
		return;
	fprintf(stderr, "[%.*s%*s] %3d%%", full, "########################################", (int)width - full, "",
		percent);
	fflush(stderr);
	bar->width = width + BAR_BESIDE;
}

void bar_follow(struct ctl *ctl, struct bar *bar)
{
	static const char *const kinds[] = {"progress"};
	*bar = (struct bar){.width = 0};
	if (isatty(STDERR_FILENO))
		npumem_subscribe(ctl->npumem, kinds, 1, bar_draw, bar, NULL);
}

void bar_end(struct bar *bar)
{
	bar_wipe(bar, bar_columns());
	fflush(stderr);
	bar->over = true;
}
