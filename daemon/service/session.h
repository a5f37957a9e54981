/* A session: one client's connection to the service. Its anonymous tensors live as long as it does. */
#ifndef SERVICE_SESSION_H
#define SERVICE_SESSION_H

#include <sys/types.h>

#include "daemon/service/service.h"

struct session {
	struct service *service;
	uint64_t id; /* > 0; not given again while the daemon lives */
	uint32_t uid;
	pid_t pid; /* of the client, for people; 0 where it is not known */
	struct record *anonymous;
	struct session *next, *prev;
};

/* The caller owns the storage. */
void session_init(struct session *session, struct service *service, uint32_t uid, pid_t pid);
/* Frees the session's anonymous tensors at once, with their views, also those that have names. */
void session_deinit(struct session *session);

/* True for root and the daemon's own uid. */
static inline bool session_is_admin(const struct session *session)
{
	return session->uid == 0 || session->uid == session->service->uid;
}

#endif
