/* Whether the uid that the kernel names for a peer is the peer's own. In a user namespace whose map does not cover
 * all uids, peers that have no name there all arrive as the overflow uid, and would share each other's tensors. */
#ifndef SERVER_IDENTITY_H
#define SERVER_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

struct identity {
	bool is_partial; /* there are uids without a name here */
	uint32_t overflow_uid;
};

/* Reads what /proc says of this process. What cannot be read is taken for the worse. */
void identity_init(struct identity *identity);

/* From the texts of /proc/self/uid_map and /proc/sys/kernel/overflowuid; NULL: it cannot be read. */
void identity_parse(struct identity *identity, const char *uid_map, const char *overflow_uid);

/* False where more than one may have it. */
static inline bool identity_is_known(const struct identity *identity, uint32_t uid)
{
	return !identity->is_partial || uid != identity->overflow_uid;
}

#endif
