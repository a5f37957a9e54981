/* Which users may see and use which tensor, and how a tensor of another user is named in messages.
 *
 * A session owns the named tensors of its uid and its own anonymous ones, and may read or write what others
 * granted to its uid; root and the daemon's uid own everybody's named ones, and see all in lists and dumps. A view
 * of another user's tensor belongs to the user that made it, but gives that user no more rights than the base
 * does. All other tensors are answered as if they did not exist: by NOT_FOUND with the same words, and in refusals
 * as "a tensor of uid 1001 (4096 bytes per NPU)". */
#ifndef SERVICE_ACCESS_H
#define SERVICE_ACCESS_H

#include "daemon/device/tensors/error_context.h"
#include "daemon/service/record.h"

struct session;

/* A tensor as a request names it: by handle, or where that is 0 by "NAME" or "UID:NAME". */
struct access_ref {
	uint64_t handle;
	const char *name; /* never NULL */
};

/* What a request wants to do with a tensor; each includes those before it. */
enum access_need { ACCESS_READ = RECORD_READ, ACCESS_WRITE = RECORD_WRITE, ACCESS_OWN };

/* Finds a tensor and checks that the session may do that with it. 0; INVALID where neither is given; NOT_FOUND
 * where there is none that the session sees (*out is one that it sees, and that a free will take away; or NULL);
 * PERMISSION_DENIED where it sees it and may do less (*out is set). */
int access_find(const struct session *session, const struct access_ref *ref, enum access_need need,
		struct tensor **out, struct npumem_error *error);
/* The check alone; NOT_FOUND where the session does not see it any more. */
int access_check(const struct session *session, const struct tensor *tensor, enum access_need need,
		 struct npumem_error *error);

/* Whether the session may know of this tensor, in lists, moves and dumps. */
bool access_sees(const struct session *session, const struct tensor *tensor);

/* A name for `tensor` as this session may hear it. */
void access_name(const struct session *session, const struct tensor *tensor, char *buffer, size_t bytes);

/* The context that stands for this session in calls of the device. */
struct error_context access_context(const struct session *session, struct npumem_error *error);
/* The same for a worker thread: of tensors that the session was found to see and that stay meanwhile. */
struct error_context access_context_of_own(const struct session *session, struct npumem_error *error);

#endif
