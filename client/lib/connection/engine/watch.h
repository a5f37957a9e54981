/* What an event loop watches in place of a socket that may be replaced by another: an epoll fd, readable where
 * there is something to do, that stays the same. A number that another socket is put at (dup2) would not do: a set
 * of epoll, which most loops sleep in, forgets it. */
#ifndef CLIENT_LIB_WATCH_H
#define CLIENT_LIB_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "client/lib/connection/clock.h"

struct watch {
	int fd;	    /* -1: the caller has not asked for it */
	int timer;  /* in its set */
	int socket; /* that is watched, or -1 */
	bool wants_write;
	int64_t at; /* that the timer is set to */
};

#define WATCH_INIT ((struct watch){.fd = -1, .timer = -1, .socket = -1, .at = CLOCK_NEVER})

/* Watches `socket` (-1: none yet). 0 or -errno, and nothing changed. */
int watch_open(struct watch *watch, int socket);
/* Each does nothing where it is not open. Another socket; before the one so far is closed. -errno: it is not
 * watched. */
int watch_replace(struct watch *watch, int socket);
/* Whether it is to be readable, too, where the socket can be written. */
void watch_write(struct watch *watch, bool wants_write);
/* It is to be readable from then on, too (clock.h), whatever the socket does, until it is set to another time. For
 * a caller that sleeps without a timeout, which is right while there is a daemon. */
void watch_timer(struct watch *watch, int64_t at);
void watch_close(struct watch *watch);

#endif
