/* A bar on stderr, where that is a terminal, while one request takes long. */
#ifndef CTL_BAR_H
#define CTL_BAR_H

#include "client/ctl/ctl.h"

/* It must stay until the connection is closed. */
struct bar {
	unsigned width; /* columns that it takes now; 0: it is not shown */
	bool over;
};

/* Before the request is sent, on an open connection. Does nothing where stderr is no terminal, or the daemon knows
 * no progress. */
void bar_follow(struct ctl *ctl, struct bar *bar);
/* When it is answered, before anything else is printed. */
void bar_end(struct bar *bar);

#endif
