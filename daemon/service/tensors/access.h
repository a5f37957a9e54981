/* Which users may see and use which tensor, and how a tensor of another user is named in messages.
 *
 * A session owns the named tensors of its uid and its own anonymous ones, and may read or write tensors that
 * others granted to its uid. Root and the daemon's uid own the named tensors of all uids, and see all tensors in
 * lists and dumps. A view of another user's tensor belongs to the user that made it, but gives that user no more
 * rights than the base does. A request that names any other tensor gets NOT_FOUND, in the same words as if it did
 * not exist; other refusals call it "a tensor of uid 1001 (4096 bytes per NPU)". */
#ifndef SERVICE_ACCESS_H
#define SERVICE_ACCESS_H

#include "daemon/device/tensors/error_context.h"
#include "daemon/service/tensors/record.h"

struct session;

/* The reference of a request to a tensor: a handle, or if that is 0 "NAME" or "UID:NAME". */
struct access_ref {
	uint64_t handle;
	const char *name; /* never NULL */
};

/* What a request wants to do with a tensor; each includes those before it. */
enum access_need { ACCESS_READ = RECORD_READ, ACCESS_WRITE = RECORD_WRITE, ACCESS_OWN };

/* Finds a tensor and checks the session's right to it. 0; INVALID: the reference is empty; NOT_FOUND: the session
 * sees no such tensor (*out: NULL, or a visible tensor whose free has arrived); PERMISSION_DENIED: the session
 * sees it but may do less (*out is set). */
int access_find(const struct session *session, const struct access_ref *ref, enum access_need need,
		struct tensor **out, struct npumem_error *error);
/* The check alone; NOT_FOUND: the session does not see it any more. */
int access_check(const struct session *session, const struct tensor *tensor, enum access_need need,
		 struct npumem_error *error);
/* Whether the session could read a view that it makes of `base`, which it may read: a view gives its owner no more
 * rights than the root does, and `base` may be a view that was granted without its root. 0; PERMISSION_DENIED. */
int access_check_base(const struct session *session, const struct tensor *base, struct npumem_error *error);

/* Whether the session may know of this tensor, in lists, moves and dumps. */
bool access_sees(const struct session *session, const struct tensor *tensor);

/* Writes a name for `tensor` that this session may see. */
void access_name(const struct session *session, const struct tensor *tensor, char *buffer, size_t bytes);

/* The context that stands for this session in calls of the device. */
struct error_context access_context(const struct session *session, struct npumem_error *error);
/* The same for a worker thread: only for tensors that the session may see and that stay meanwhile. */
struct error_context access_context_of_own(const struct session *session, struct npumem_error *error);

#endif
