/* Accesses that are compared with those before them in later turns, as there are many of these. The user whose
 * entry waits pays for the turns. One access of a user is compared at a time, and goes on where it was when the
 * turn ended: so an access behind any number of others is compared with each once. */
#ifndef SERVICE_PUT_OFF_H
#define SERVICE_PUT_OFF_H

#include "daemon/service/order/entries.h"

struct put_off {
	struct scheduler_user *comparing; /* users with `compared` */
	struct fair_queue *queue;	  /* of the loop: their turns */
};

/* Adds an access that is not ready, and not put off yet. */
void put_off_add(struct put_off *put_off, struct scheduler_access *access);
/* Compares the user's accesses with at most about `*most` others. The next one of them that conflicts with none,
 * and is put off no more; NULL: none in this turn. */
struct scheduler_access *put_off_next(struct put_off *put_off, struct scheduler_user *user, unsigned *most);
/* An access conflicts with another one, or is gone. No effect if it is not put off. */
void put_off_remove(struct put_off *put_off, struct scheduler_access *access);
/* An access leaves its place in its queue. */
void put_off_pass(struct put_off *put_off, const struct scheduler_access *access);

#endif
