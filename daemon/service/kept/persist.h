/* The part of the service's tables that outlives the process: the contents of the store's cells, and the only
 * functions that change them. Every change is prepared before the last step that can fail and committed after it,
 * before its reply. Without a store all of this does nothing. recover.h reads the cells. */
#ifndef SERVICE_PERSIST_H
#define SERVICE_PERSIST_H

#include "daemon/device/operations/kernel.h"
#include "daemon/service/tables.h"
#include "daemon/store/store.h"

enum {
	PERSIST_VERSION = 1,	/* of the cells' contents */
	PERSIST_RESERVE = 1024, /* so many changes of one commit always have room */
};
#define PERSIST_NO_CELL UINT32_MAX /* + 1: no cell is asked for */

/* ---- the contents of cells ---- */

/* In STORE_SESSIONS: a session that has a token. */
struct persist_session {
	uint64_t id;
	uint64_t forgotten_below, changed_below; /* as in struct session */
	uint32_t uid;
	uint8_t lingers, reserved[3];
	uint8_t token[PERSIST_TOKEN_BYTES];
};
_Static_assert(sizeof(struct persist_session) <= STORE_SESSION_BYTES_MAX, "it has room");

/* The kinds of results (results.h). */
enum results_kind {
	RESULTS_MADE = 1, /* a tensor that is gone: handle, address */
	RESULTS_CHANGED,  /* sealed, granted or renamed: handle */
	RESULTS_FREED,	  /* number: of tensors */
	RESULTS_DONE,	  /* an operation that ran; number: 1 if it must not run twice, else 0 */
	RESULTS_DIED,	  /* it ran when the daemon died abnormally; number: how often */
	RESULTS_STALE,	  /* of stale.h: requests up to the id `number` are not repeatable */
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

/* With a durable state: the disk is so far behind, or the user has so many changes for it, that further changes
 * are made on a thread that may wait for it. */
static inline bool persist_is_backlogged(const struct persist *persist, const struct limits_user *user)
{
	return persist->store && store_is_backlogged(persist->store, user);
}

/* From here on the loop's changes count as those of `user`. */
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

/* Takes room for n_changes more puts and drops, and for a cell unless that is PERSIST_NO_CELL. 0;
 * RESOURCE_EXHAUSTED. */
int persist_prepare(struct service *service, enum store_table table, uint32_t cell, uint32_t n_changes,
		    struct npumem_error *error);
/* The same for a caller that cannot fail: without room, earlier puts are committed first. */
void persist_make_room(struct service *service, uint32_t n_changes);

/* Takes a free cell, and prepares n_changes with it. 0; RESOURCE_EXHAUSTED. */
int persist_take_cell(struct service *service, enum store_table table, uint32_t n_changes, uint32_t *cell,
		      struct npumem_error *error);
void persist_give_cell(struct service *service, enum store_table table, uint32_t cell);
/* The first n cells are those of a store that was found; used(ctx, cell) returns whether one is in use. 0 or
 * -ENOMEM. */
int persist_find_cells(struct persist *persist, enum store_table table, bool (*used)(void *ctx, uint32_t cell),
		       void *ctx);

/* ---- tensors ---- */

/* Room for n new tensors, none of which has a record yet. 0; RESOURCE_EXHAUSTED. */
int persist_prepare_new(struct service *service, struct tensor *const *tensors, unsigned n,
			struct npumem_error *error);
/* Writes a tensor's cell; prepared. Commits nothing. */
void persist_put(struct service *service, const struct tensor *tensor);
/* Writes a tensor's cell without name and session: recovery frees the tensor. Prepared. Commits nothing. */
void persist_disown(struct service *service, const struct tensor *tensor);
/* Drops a tensor's cell; cannot fail. May commit earlier changes, but none that were prepared together with this
 * one. */
void persist_drop(struct service *service, const struct tensor *tensor);
/* Commits all puts and drops. */
static inline void persist_commit(struct persist *persist)
{
	if (persist->store)
		store_commit(persist->store);
}

/* ---- sessions ---- */

/* Gives a session a token, the first time. 0; RESOURCE_EXHAUSTED; INTERNAL (no random bytes). */
int persist_session_begin(struct session *session, bool lingers, struct npumem_error *error);
/* The session of this uid with this token; NULL: there is none. The time does not depend on how many bytes of a
 * token are right: it depends on the number of sessions in a bucket, 4 of 16,384. */
struct session *persist_session_find(const struct persist *persist, uint32_t uid,
				     const uint8_t token[PERSIST_TOKEN_BYTES]);
/* Its token does not find it any more. */
void persist_session_hide(struct session *session);
/* It takes over session->cell, which recovery found or another session had; its token finds it. */
void persist_session_adopt(struct session *session);
/* The session of a cell; NULL: none. */
static inline struct session *persist_session_at(const struct persist *persist, uint32_t cell)
{
	return cell < persist->owners_room ? persist->owners[cell] : NULL;
}
/* Writes its cell; prepared. */
void persist_session_put(struct session *session);
/* Drops its cell. Commits as persist_drop does. */
void persist_session_drop(struct session *session);

#endif
