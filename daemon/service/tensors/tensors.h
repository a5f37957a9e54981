/* A session's operations on whole tensors: allocate, view, free, seal, list. Each changes all that it is asked to,
 * or nothing. */
#ifndef SERVICE_TENSORS_H
#define SERVICE_TENSORS_H

#include "daemon/device/device.h"
#include "daemon/service/limits.h"
#include "daemon/service/order/waiting.h"
#include "daemon/service/tensors/access.h"
#include "daemon/service/tensors/places.h"

enum { TENSORS_ALLOC_MAX = 256 }; /* of one request */

/* The turn of an allocation, if others wait for room. */
enum tensors_turn {
	TENSORS_AT_ONCE, /* not queued: leaves the largest free extent as it is, if a waiter claims it */
	TENSORS_LAST,	 /* about to be queued: takes nothing while a waiter claims the largest free extent */
	TENSORS_HEAD,	 /* queued, its turn: takes any room but the range that another waiter claims; while it is
			  * searched for, it holds the largest free extent only if it or its user claims that */
};
/* Allocates n <= TENSORS_ALLOC_MAX tensors, in steps (device_alloc_step). 0; INVALID, ALREADY_EXISTS, or
 * device_alloc's status; RESOURCE_EXHAUSTED also if it is not this request's turn. */
struct tensors_alloc {
	struct session *session;
	const struct device_request *requests; /* the caller's, until the end */
	const char *const *names;	       /* never NULL; empty for an anonymous one */
	const char *const *labels;	       /* never NULL; of tensors without names */
	unsigned n;
	struct tensor **tensors;
	enum tensors_turn turn;
	const struct waiter *waiter; /* with TENSORS_HEAD: its own */

	int64_t largest; /* the largest free extent before the step */
	struct places places;
	uint64_t held[LIMITS_N]; /* charged to its user between two steps */
	int refused;		 /* its status, while what it has is released; else 0 */
	bool lacks_places;	 /* it is refused as no places would be left for others */
	unsigned n_in_order;	 /* tensors of which the scheduler knows what they meet */
	struct device_alloc device;
};
int tensors_alloc_begin(struct tensors_alloc *alloc, struct npumem_error *error);
/* -EAGAIN: the caller calls it again. If it was refused, `refused` is set, and the error stays. Between two steps
 * the host memory of the search is charged (LIMITS_REQUEST_BYTES), and the tensors that have their places;
 * RESOURCE_EXHAUSTED if that passes a limit. */
int tensors_alloc_step(struct tensors_alloc *alloc, int64_t *steps, struct npumem_error *error);
/* After -EAGAIN: the next steps release what it has, and the last one returns `status`. */
static inline void tensors_alloc_cancel(struct tensors_alloc *alloc, int status)
{
	alloc->refused = status;
}
/* The part of a step that checks the request's turn. `claims`: of other waiters, before the allocation. Tensors in
 * a range that another waiter claims are allocated again elsewhere. 0 or RESOURCE_EXHAUSTED. */
int tensors_check_turn(struct tensors_alloc *alloc, struct waiting_claims claims, struct npumem_error *error);
/* The same after a step that is not the last one, of the first n tensors. 0 or RESOURCE_EXHAUSTED. */
int tensors_check_held(struct tensors_alloc *alloc, struct waiting_claims claims, unsigned n,
		       struct npumem_error *error);
/* Whether the refused request may succeed after something is freed. */
bool tensors_lacked_room(const struct npumem_error *error);

/* Counts the moves of a compaction and commits them; prepared (persist.h). */
void tensors_moved(struct service *service, const struct device_move *moves, unsigned n);

/* Makes a view of `base`: a slice or, if `shape` or `frac_bits` is given, all elements with these. `name` as
 * above; `label` is empty if there is a name. 0; INVALID, ALREADY_EXISTS, RESOURCE_EXHAUSTED. */
int tensors_view(struct session *session, struct tensor *base, const char *name, const char *label,
		 const struct device_slice *slice, const struct npumem_dims *shape, const int64_t *frac_bits,
		 struct tensor **view, struct npumem_error *error);

/* Adopts a restored tensor, whose record has name, grants and maker: its owner is `uid`, or `session` if it has no
 * name. 0 or -ENOMEM. */
int tensors_readopt(struct service *service, struct session *session, uint32_t uid, struct tensor *tensor);

enum { TENSORS_FREE_MAX = 256 }; /* of one request */

/* Checks the list of a free: 0; INVALID if a tensor is in it twice (the field `tensor_index` says which), or for
 * more than TENSORS_FREE_MAX. */
int tensors_free_check(struct session *session, struct tensor *const *tensors, size_t n,
		       struct npumem_error *error);
/* service_mark_going for each; puts views first, as a base frees its own. */
void tensors_mark_going(struct service *service, struct tensor **tensors, size_t n);
/* Their free takes effect and is committed: no request finds them any more, their names are free, and the next
 * process does not restore them. No operation uses them. */
void tensors_hide(struct session *session, struct tensor *const *tensors, size_t n);
/* Releases hidden tensors and their views in steps of bounded work: n_freed is complete when tensors_free_step
 * returns true. During a recording the room of all comes back in the last step. */
struct tensors_free {
	struct tensor *const *tensors; /* the caller's; views come first */
	size_t n, at, first_root, next_root;
	uint64_t n_freed;
};
void tensors_free_begin(struct tensors_free *free, struct tensor *const *tensors, size_t n);
bool tensors_free_step(struct session *session, struct tensors_free *free);

/* Makes a tensor read-only for good, after device_seal_check. 0 or RESOURCE_EXHAUSTED. */
int tensors_seal(struct session *session, struct tensor *tensor, struct npumem_error *error);

/* Renames a tensor that no thread uses. 0, also if it has this name; INVALID (`name` is not valid, or the tensor
 * has none); ALREADY_EXISTS (its owner has another tensor of that name). */
int tensors_rename(struct session *session, struct tensor *tensor, const char *name, struct npumem_error *error);

/* Lets another uid read or write a named tensor, or takes that back. 0; INVALID (it has no name);
 * RESOURCE_EXHAUSTED (too many grants of one tensor, or no host memory). */
int tensors_grant(struct session *session, struct tensor *tensor, uint32_t uid, enum record_access access,
		  struct npumem_error *error);

/* device_after among the tensors that the session sees. */
struct tensor *tensors_after(const struct session *session, uint64_t *at, unsigned *looks);

/* A tensor as a session may see it. */
struct tensors_description {
	const struct tensor *tensor;
	const char *name; /* belongs to the tensor */
	char label[NPUMEM_NAME_BYTES_MAX + 1];
	uint32_t uid;
	uint64_t base_handle; /* 0: no view, or the session does not see its base */
	char base_name[ERROR_CONTEXT_NAME_BYTES];
	const char *state; /* ok, unwritten, partly written, damaged, lost */
	struct device_state bytes;
};
/* `state`: from device_state. NULL: it is counted here, which may take long. */
void tensors_describe(const struct session *session, const struct tensor *tensor, const struct device_state *state,
		      struct tensors_description *description);
/* The state of a tensor that was just allocated: no bytes need be counted. */
void tensors_new_state(const struct tensor *tensor, struct device_state *state);

#endif
