/* How many lines about clients are said. Clients can cause them as often as they like, and must not be able to
 * bury the others', nor what is said about another uid. */
#ifndef SERVER_FLOOD_H
#define SERVER_FLOOD_H

#include <stdbool.h>
#include <stdint.h>

enum {
	FLOOD_LINES_MAX = 25, /* about one uid, in a second */
	FLOOD_UIDS_MAX = 64,  /* that are told apart in a second; the others are counted as one */
};

/* Zero at first. */
struct flood {
	uint64_t since_ns;
	unsigned n_uids;
	struct flood_uid {
		uint32_t uid;
		uint64_t n;
	} uids[FLOOD_UIDS_MAX + 1];
};

/* What was left out of a second that is over, and the uid that most of it was about. */
struct flood_loss {
	uint64_t n;
	uint32_t uid;
};

/* Whether a line about this uid may be said. *loss is set in any case, its n to 0 where nothing is to be told. */
bool flood_admit(struct flood *flood, uint32_t uid, uint64_t now_ns, struct flood_loss *loss);

#endif
