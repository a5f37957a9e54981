/* Who may see and use which tensor, and how others' tensors are spoken of.
 *
 * A session uses the named tensors of its uid and its own anonymous ones; root and the daemon's uid use
 * everybody's named ones, and see all in lists and dumps. Whatever else there is, is answered as if there were
 * nothing: by NOT_FOUND with the same words, and in refusals as "a tensor of uid 1001 (4096 bytes per NPU)". */
#ifndef SERVICE_ACCESS_H
#define SERVICE_ACCESS_H

#include "daemon/service/session.h"

/* A tensor as a request names it: by handle, or where that is 0 by "NAME" or "UID:NAME". */
struct access_ref {
	uint64_t handle;
	const char *name; /* never NULL */
};

/* 0; INVALID where neither is given; NOT_FOUND. */
int access_find(const struct session *session, const struct access_ref *ref, struct tensor **out,
		struct npumem_error *error);

/* Whether the session may know of this tensor, in lists, moves and dumps. */
bool access_sees(const struct session *session, const struct tensor *tensor);

/* A name for `tensor` as this session may hear it. */
void access_name(const struct session *session, const struct tensor *tensor, char *buffer, size_t bytes);

/* The asker that stands for this session in calls of the device. */
struct asker access_asker(const struct session *session, struct npumem_error *error);

#endif
