/* Divides the room of a round of the log among users, so that a user that changes much cannot keep a user that
 * changes little from the next round. A round in which one user changes memory may be long. A round of several is
 * short, because each of them waits for all of it. Knows no lock and no bytes: the log calls it under its lock. */
#ifndef STORE_SHARES_H
#define STORE_SHARES_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SHARES_ALONE = 2 << 20,	     /* bytes a round of one user */
	SHARES_TOGETHER = 256 << 10, /* bytes a round of several, in equal shares */
	SHARES_USERS_MAX = 64,	     /* further users have one share together */
};

/* The users that changed memory or tables in one round, and those of the last round but one: the two buffers of the
 * log take turns, and each keeps the users of its own last round. Users are only compared. */
struct shares {
	unsigned n;
	struct {
		const void *user;
		uint64_t bytes, cells; /* of memory, of tables */
		bool is_active;	       /* in this round */
	} users[SHARES_USERS_MAX];
};

/* Whether the user may add so many bytes to the round `now`, which follows the round `before`. A user that has
 * nothing in the round may always add. */
bool shares_have_room(const struct shares *now, const struct shares *before, const void *user, uint64_t bytes);
void shares_add(struct shares *now, const void *user, uint64_t bytes);
/* The same for changes of tables, which have a share of their own, as large: otherwise the user's own writes,
 * whose threads wait for each next round, would take its share of every round. */
bool shares_have_cells(const struct shares *now, const struct shares *before, const void *user);
void shares_add_cells(struct shares *now, const void *user, uint64_t bytes);
/* The struct of the last round but one becomes that of the next round: its users stay, without bytes. */
void shares_next(struct shares *shares);

#endif
