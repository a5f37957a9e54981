/* What a session does with whole tensors: allocate, view, free, open, seal, list.
 * All of it changes everything it is asked to, or nothing. */
#ifndef SERVICE_TENSORS_H
#define SERVICE_TENSORS_H

#include "daemon/device/device.h"
#include "daemon/service/access.h"
#include "daemon/service/places.h"
#include "daemon/service/waiting.h"

enum { TENSORS_ALLOC_MAX = 256 }; /* of one request */

/* Whose turn it is, where others wait for room. */
enum tensors_turn {
	TENSORS_AT_ONCE, /* not in line: takes what is not of the largest free extent, where one claims that */
	TENSORS_LAST,	 /* about to stand in line: takes nothing while one there claims the largest free extent */
	TENSORS_HEAD,	 /* its turn in line: takes what it finds, but for the range that another one claims */
};
/* Allocates n <= TENSORS_ALLOC_MAX tensors, in steps (device_alloc_step), and in turn. 0; INVALID, ALREADY_EXISTS,
 * or what device_alloc says; RESOURCE_EXHAUSTED also where it is not this one's turn. */
struct tensors_alloc {
	struct session *session;
	const struct device_request *requests; /* the caller's, as long as it takes */
	const char *const *names;	       /* never NULL; empty for an anonymous one */
	const char *const *labels;	       /* never NULL; of those without names */
	unsigned n;
	struct tensor **tensors;
	enum tensors_turn turn;
	const struct waiter *waiter; /* with TENSORS_HEAD: its own */

	int64_t largest; /* free before */
	struct places places;
	size_t search_bytes; /* that its uid is charged for between two steps */
	struct device_alloc device;
};
int tensors_alloc_begin(struct tensors_alloc *alloc, struct npumem_error *error);
/* -EAGAIN: to be called again, or cancelled; until then the host memory of a search counts as the request's
 * (LIMITS_REQUEST_BYTES), and where it may not RESOURCE_EXHAUSTED is the answer. */
int tensors_alloc_step(struct tensors_alloc *alloc, int64_t *steps, struct npumem_error *error);
void tensors_alloc_cancel(struct tensors_alloc *alloc);
/* The part of a step that looks whether it is the request's turn. `claims`: of others, before the allocation. What
 * lies in a range that another one claims is allocated again elsewhere. 0; RESOURCE_EXHAUSTED: the device has
 * released the tensors again. */
int tensors_check_turn(struct tensors_alloc *alloc, struct waiting_claims claims, struct npumem_error *error);
/* Whether that refusal may be over when something is freed. */
bool tensors_lacked_room(const struct npumem_error *error);

/* A compaction has decided these moves: prepared (persist.h). Commits. */
void tensors_moved(struct service *service, const struct device_move *moves, unsigned n);

/* A slice of `base`, or where `shape` or `frac_bits` is given the same elements with these. `name` as above,
 * `label` empty or that of one without a name. 0; INVALID, ALREADY_EXISTS, RESOURCE_EXHAUSTED. */
int tensors_view(struct session *session, struct tensor *base, const char *name, const char *label,
		 const struct device_slice *slice, const struct npumem_dims *shape, const int64_t *frac_bits,
		 struct tensor **view, struct npumem_error *error);

/* A tensor that was restored, whose record has its name, grants and maker: it belongs to `uid` again, and without
 * a name to `session`. 0 or -ENOMEM. */
int tensors_readopt(struct service *service, struct session *session, uint32_t uid, struct tensor *tensor);

enum { TENSORS_FREE_MAX = 256 }; /* of one request */

/* Whether the session may free all of these: 0; INVALID where one is there twice, or they are more than
 * TENSORS_FREE_MAX (the field `tensor_index` tells which). */
int tensors_free_check(struct session *session, struct tensor *const *tensors, size_t n,
		       struct npumem_error *error);
/* service_mark_going for each; puts views first, as a base takes its own with it. */
void tensors_mark_going(struct service *service, struct tensor **tensors, size_t n);
/* Their free takes effect, for good: nobody finds them any more, their names are free, and whatever happens to the
 * daemon they are gone for the next one, too. Nothing is under way with them. */
void tensors_hide(struct session *session, struct tensor *const *tensors, size_t n);
/* Releases what was hidden so, with its views, in steps of bounded work: n_freed is complete when
 * tensors_free_step says true. While a record is made their room comes back in one step, the last one. */
struct tensors_free {
	struct tensor *const *tensors; /* the caller's; views come first */
	size_t n, at, first_root, next_root;
	uint64_t n_freed;
};
void tensors_free_begin(struct tensors_free *free, struct tensor *const *tensors, size_t n);
bool tensors_free_step(struct session *session, struct tensors_free *free);

/* Makes a tensor read-only for good. 0, or what device_seal says. */
int tensors_seal(struct session *session, struct tensor *tensor, struct npumem_error *error);

/* Another name for a named tensor that no thread uses. 0, also where it has this name; INVALID (`name` may not be
 * one, or the tensor has none); ALREADY_EXISTS (its owner has another of that name). */
int tensors_rename(struct session *session, struct tensor *tensor, const char *name, struct npumem_error *error);

/* Lets another uid read or write a named tensor, or takes that back. 0; INVALID (it has no name);
 * RESOURCE_EXHAUSTED (too many grants of one tensor, or no host memory). */
int tensors_grant(struct session *session, struct tensor *tensor, uint32_t uid, enum record_access access,
		  struct npumem_error *error);

/* device_after among the tensors that the session sees. */
struct tensor *tensors_after(const struct session *session, uint64_t *at, unsigned *looks);

/* What a session is told of a tensor. */
struct tensors_description {
	const struct tensor *tensor;
	const char *name; /* belongs to the tensor */
	char label[NPUMEM_NAME_BYTES_MAX + 1];
	uint32_t uid;
	uint64_t base_handle; /* 0: no view, or its base is not for this session's eyes */
	char base_name[ERROR_CONTEXT_NAME_BYTES];
	const char *state; /* ok, unwritten, partly written, damaged, lost */
	struct device_state bytes;
};
/* `state`: what device_state says, where that is known. NULL: it is looked at here, which may take long. */
void tensors_describe(const struct session *session, const struct tensor *tensor, const struct device_state *state,
		      struct tensors_description *description);
/* The state of a tensor that was just allocated: of its bytes none need be counted. */
void tensors_new_state(const struct tensor *tensor, struct device_state *state);

#endif
