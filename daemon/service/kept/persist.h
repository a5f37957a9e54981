/* What of the service's tables outlives the process: which cells of the store hold what, and the one place where
 * they change. Every change is prepared before the last step that can fail and committed after it, before its
 * reply. Without a store all of this does nothing. Does not read the cells again: recover.h does. */
#ifndef SERVICE_PERSIST_H
#define SERVICE_PERSIST_H

#include "daemon/device/operations/kernel.h"
#include "daemon/service/tables.h"
#include "daemon/store/store.h"

enum {
	PERSIST_VERSION = 1,	/* of what cells hold */
	PERSIST_RESERVE = 1024, /* changes of one commit that there is room for at all times */
};
#define PERSIST_NO_CELL UINT32_MAX /* + 1: no cell is asked for */

/* ---- what a cell holds ---- */

/* STORE_SESSIONS: of one that has a token. */
struct persist_session {
	uint64_t id;
	uint64_t forgotten_below, changed_below; /* as in struct session */
	uint32_t uid;
	uint8_t lingers, reserved[3];
	uint8_t token[PERSIST_TOKEN_BYTES];
};
_Static_assert(sizeof(struct persist_session) <= STORE_SESSION_BYTES_MAX, "it has room");

/* What a result is of (results.h). */
enum results_kind {
	RESULTS_MADE = 1, /* a tensor that is gone: handle, address */
	RESULTS_CHANGED,  /* sealed, granted or renamed: handle */
	RESULTS_FREED,	  /* number: of tensors */
	RESULTS_DONE,  /* an operation that is not to be done twice, or was before one of these: number is 1 there
			*/
	RESULTS_DIED,  /* it ran when the daemon died abnormally; number: how often */
	RESULTS_STALE, /* of stale.h: no result, but that requests up to the id `number` are not known any more */
};

/* In STORE_RESULTS. */
struct results_cell {
	uint64_t session, request;
	uint32_t kind, index; /* of the tensor, or the operation, in the request */
	uint64_t handle;
	int64_t address;
	uint64_t number;
	struct kernel_counts counts;
};
_Static_assert(sizeof(struct results_cell) <= STORE_RESULT_BYTES_MAX, "it has room");

/* ---- the state ---- */

static inline bool persist_is_on(const struct persist *persist)
{
	return persist->store;
}

static inline bool persist_is_durable(const struct persist *persist)
{
	return persist->store && store_is_durable(persist->store);
}

/* With a durable state: the disk is so far behind, or has so much of the user's to take, that what changes more is
 * for a thread that may wait for it. */
static inline bool persist_is_backlogged(const struct persist *persist, const struct limits_user *user)
{
	return persist->store && store_is_backlogged(persist->store, user);
}

/* Whose changes the loop makes from here on. */
static inline void persist_change_for(const struct persist *persist, const struct limits_user *user)
{
	if (persist->store)
		store_change_for(persist->store, user);
}

/* With a durable state: whether the user may change tables in the round that the disk takes next. Each request waits
 * for all of its round, so a round has a share for each user. */
static inline bool persist_has_share(const struct persist *persist, const struct limits_user *user)
{
	return !persist->store || store_has_share(persist->store, user);
}

/* For the service's persist, whose members down to `is_replay` are set, with an empty store or before recovery. 0
 * or RESOURCE_EXHAUSTED. */
int persist_begin(struct service *service, struct npumem_error *error);
/* Leaves the store as it is. */
void persist_deinit(struct persist *persist);

/* Room for so many puts and drops more, and for a cell of that number where it is not PERSIST_NO_CELL. 0;
 * RESOURCE_EXHAUSTED, which says that the state has no room. */
int persist_prepare(struct service *service, enum store_table table, uint32_t cell, uint32_t n_changes,
		    struct npumem_error *error);
/* For what cannot fail: what was put so far is committed where there is no room for more beside it. */
void persist_make_room(struct service *service, uint32_t n_changes);

/* A free cell; prepared with it are n_changes. 0; RESOURCE_EXHAUSTED. */
int persist_take_cell(struct service *service, enum store_table table, uint32_t n_changes, uint32_t *cell,
		      struct npumem_error *error);
void persist_give_cell(struct service *service, enum store_table table, uint32_t cell);
/* The first n cells are those of a store that was found; used(ctx, cell) tells which of them are in use. 0 or
 * -ENOMEM. */
int persist_find_cells(struct persist *persist, enum store_table table, bool (*used)(void *ctx, uint32_t cell),
		       void *ctx);

/* ---- tensors ---- */

/* Room for n new tensors, none of which has a record yet. 0; RESOURCE_EXHAUSTED. */
int persist_prepare_new(struct service *service, struct tensor *const *tensors, unsigned n,
			struct npumem_error *error);
/* Puts a tensor as it is; prepared. Commits nothing. */
void persist_put(struct service *service, const struct tensor *tensor);
/* Puts a tensor as one of nobody, whose bytes go when it is found; prepared. Commits nothing. */
void persist_disown(struct service *service, const struct tensor *tensor);
/* A tensor goes; cannot fail. Commits nothing that was not prepared to go together. */
void persist_drop(struct service *service, const struct tensor *tensor);
/* All that was put and dropped. */
static inline void persist_commit(struct persist *persist)
{
	if (persist->store)
		store_commit(persist->store);
}

/* ---- sessions ---- */

/* Gives a session a token, the first time. 0; RESOURCE_EXHAUSTED; INTERNAL (no random bytes). */
int persist_session_begin(struct session *session, bool lingers, struct npumem_error *error);
/* The session of this uid with this token; NULL: there is none. The time does not depend on how many bytes of a
 * token are right: a lookup takes as long as there are sessions in one bucket, 4 of 16,384. */
struct session *persist_session_find(const struct persist *persist, uint32_t uid,
				     const uint8_t token[PERSIST_TOKEN_BYTES]);
/* Nobody finds it by its token any more. */
void persist_session_hide(struct session *session);
/* It has a cell already, as it was found or was another's, which is its from now on; it is found by its token. */
void persist_session_adopt(struct session *session);
/* Whose cell it is; NULL: nobody's. */
static inline struct session *persist_session_at(const struct persist *persist, uint32_t cell)
{
	return cell < persist->owners_room ? persist->owners[cell] : NULL;
}
/* Its cell as it is; prepared. */
void persist_session_put(struct session *session);
/* Its cell goes. Commits nothing that was not prepared to go together. */
void persist_session_drop(struct session *session);

#endif
