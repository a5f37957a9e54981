/* A bar on stderr, where that is a terminal, while one request takes long. */
#ifndef CTL_BAR_H
#define CTL_BAR_H

#include <signal.h>

#include "client/ctl/ctl.h"

/* From bar_follow to bar_end, ctl->bar is this one. */
struct bar {
	struct ctl *ctl;
	unsigned width;		 /* columns that it takes now; 0: it is not shown */
	struct sigaction before; /* of an interrupt, which meanwhile says what it cancelled */
	bool shown;		 /* where there is a terminal */
	uint64_t session;	 /* its own: events of other sessions arrive, too */
	uint64_t drawn_ns;
	size_t total, done, share; /* of several requests; total 0: it is one */
};

/* Before the request is sent, on an open connection. Does nothing where stderr is no terminal, or the daemon knows
 * no progress. */
void bar_follow(struct ctl *ctl, struct bar *bar);
/* Of several requests with bar->total parts in all: the next has `share` of them, and `done` are over. */
void bar_part(struct bar *bar, size_t done, size_t share);
/* When it is answered, before anything else is printed; on every way out after bar_follow. */
void bar_end(struct bar *bar);

/* Until *before is set again, an interrupt prints `text` before it ends the program; not where another handler is
 * set. */
void bar_interrupt(const char *text, struct sigaction *before);

#endif
