/* Drawn anew at each event, in the width that the terminal has by then and never in its last column, where some go
 * on to the next line. No colours, so that NO_COLOR has nothing to ask for. */
#include "client/ctl/ctl.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/core/output/output.h"

enum { BAR_PAUSE_NS = 100000000 };
enum { BAR_WIDTH = 40, BAR_BESIDE = 7 /* "[" "] 100%" */, BAR_COLUMNS = 80 };

static const char *interrupted; /* what an interrupt prints */

/* Ends this program as an interrupt does, with a word about what that did: the daemon takes back what a client
 * that is gone had asked for. */
static void cancelled(int number)
{
	(void)!write(STDERR_FILENO, interrupted, strlen(interrupted));
	raise(number);
}

void bar_interrupt(const char *text, struct sigaction *before)
{
	struct sigaction action = {.sa_handler = cancelled, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
	interrupted = text;
	sigaction(SIGINT, NULL, before);
	if (before->sa_handler == SIG_DFL)
		sigaction(SIGINT, &action, NULL);
}

static unsigned bar_columns(void)
{
	unsigned columns = terminal_columns(STDERR_FILENO);
	return columns ? columns : BAR_COLUMNS;
}

static void bar_wipe(struct bar *bar, unsigned columns)
{
	/* What was wider than the terminal is now was broken into lines by it. */
	unsigned width = bar->width < columns ? bar->width : columns - 1;
	if (width)
		fprintf(stderr, "\r%*s\r", (int)width, "");
	bar->width = 0;
}

static void bar_draw(struct bar *bar, double part)
{
	unsigned columns = bar_columns(), width = columns > BAR_BESIDE + 1 ? columns - BAR_BESIDE - 1 : 0;
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

/* Called every tenth of a second, where the request takes longer than that. The connection may outlive the bar's
 * frame, and an event may come after the bar's end: so the context is the program's. */
static void bar_told(void *context, const struct npumem_event *event)
{
	const struct ctl *ctl = context;
	struct bar *bar = ctl->bar;
	if (!event->total || !bar || event->session != bar->session)
		return;
	double part = (double)event->done / (double)event->total;
	if (bar->total)
		part = ((double)bar->done + part * (double)bar->share) / (double)bar->total;
	bar_draw(bar, part);
}

/* The daemon sends progress events for long requests only. For many short ones the bar is drawn here, as rarely.
 */
void bar_part(struct bar *bar, size_t done, size_t share)
{
	uint64_t now = ctl_now_ns();
	bar->done = done;
	bar->share = share;
	if (!bar->shown || !bar->total || now - bar->drawn_ns < BAR_PAUSE_NS)
		return;
	bar->drawn_ns = now;
	bar_draw(bar, (double)done / (double)bar->total);
}

void bar_follow(struct ctl *ctl, struct bar *bar)
{
	static const char *const kinds[] = {"progress"};
	bar_interrupt("\nnpumemctl: cancelled; its outputs count as unwritten\n", &bar->before);
	struct sigaction before = bar->before;
	*bar = (struct bar){.ctl = ctl,
			    .before = before,
			    .shown = isatty(STDERR_FILENO) && !ctl->hushed,
			    .drawn_ns = ctl_now_ns()};
	ctl->bar = bar;
	const struct npumem_info *info = NULL;
	if (bar->shown)
		npumem_info(ctl->npumem, &info, NULL);
	bar->session = info ? info->session : 0;
	npumem_release(info);
	if (bar->shown)
		npumem_subscribe(ctl->npumem, kinds, 1, bar_told, ctl, NULL);
}

void bar_end(struct bar *bar)
{
	bar_wipe(bar, bar_columns());
	fflush(stderr);
	sigaction(SIGINT, &bar->before, NULL);
	bar->ctl->bar = NULL;
	if (bar->shown)
		npumem_subscribe(bar->ctl->npumem, NULL, 0, bar_told, bar->ctl, NULL);
}
