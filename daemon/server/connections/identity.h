/* Whether the uid that the kernel reports for a peer is the peer's own. If the map of a user namespace does not
 * cover all uids, peers without a uid there are all reported as the overflow uid, and would share each other's
 * tensors. */
#ifndef SERVER_IDENTITY_H
#define SERVER_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

struct identity {
	bool is_partial; /* the map does not cover all uids */
	uint32_t overflow_uid;
};

/* Reads the files in /proc of this process. For a file that cannot be read the worse case is assumed. */
void identity_init(struct identity *identity);

/* From the texts of /proc/self/uid_map and /proc/sys/kernel/overflowuid; NULL: it cannot be read. */
void identity_parse(struct identity *identity, const char *uid_map, const char *overflow_uid);

/* False: several users may be reported with it. */
static inline bool identity_is_known(const struct identity *identity, uint32_t uid)
{
	return !identity->is_partial || uid != identity->overflow_uid;
}

#endif
