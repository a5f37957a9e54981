/* Bounds log lines about clients. Clients can cause them as often as they like, and must not bury the lines about
 * other uids. */
#ifndef SERVER_FLOOD_H
#define SERVER_FLOOD_H

#include <stdbool.h>
#include <stdint.h>

enum {
	FLOOD_LINES_MAX = 25, /* about one uid, in a second */
	FLOOD_UIDS_MAX = 64,  /* uids counted apart in a second; further ones count as one */
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

/* The number of lines left out in the last second, and the uid of most of them. */
struct flood_loss {
	uint64_t n;
	uint32_t uid;
};

/* Whether a line about this uid may be logged. *loss is set in any case; n is 0 if there is no loss to report. */
bool flood_admit(struct flood *flood, uint32_t uid, uint64_t now_ns, struct flood_loss *loss);

#endif
