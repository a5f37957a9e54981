/* What recover.c and recover_tensors.c share. */
#ifndef SERVICE_RECOVERY_H
#define SERVICE_RECOVERY_H

#include "daemon/service/session.h"
#include "daemon/service/kept/tensor_cell.h"

struct recover_host;
struct recover_report;

enum { RECOVERY_LINE_BYTES = 512 };

struct recovery_session {
	uint64_t id;
	struct session *session;
};

struct recovery {
	struct service *service;
	struct store *store;
	const struct recover_host *host;
	struct recover_report *report;
	struct recovery_session *sessions; /* by id */
	uint32_t n_sessions;
	bool mixed; /* cells may be of different times: after a loss of power without `durable` */
};

void recovery_say(const struct recovery *recovery, bool is_loss, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void recovery_drop(struct recovery *recovery, enum store_table table, uint32_t cell, uint64_t stamp);
/* Whether the state is a snapshot with which a recording begins. */
bool recovery_is_replay(const struct recovery *recovery);
/* For qsort and bsearch of recovery->sessions. */
int recovery_by_id(const void *a, const void *b);
/* NULL: no session with that id was restored. */
struct session *recovery_session(const struct recovery *recovery, uint64_t id);
/* Reads the tensor's cell of a slot. False: there is no valid one. */
bool recovery_tensor(const struct recovery *recovery, uint32_t slot, struct persist_tensor *kept);

/* In this order; each returns 0, -ENOMEM, or the store's error. */
int recover_sessions(struct recovery *recovery);
int recover_tensors(struct recovery *recovery);
/* Frees the tensors without an owner. They had to keep their places until all others had theirs. */
void recover_end_orphans(struct recovery *recovery);

#endif
