/* A session's beginning and end.
 * Invariant: the list `anonymous` holds exactly the unnamed tensors that were made in this session. */
#include "daemon/service/session.h"

#include "daemon/service/segments.h"

void session_init(struct session *session, struct service *service, uint32_t uid, pid_t pid)
{
	*session = (struct session){.service = service,
				    .id = ++service->last_session,
				    .uid = uid,
				    .pid = pid,
				    .next = service->sessions};
	if (session->next)
		session->next->prev = session;
	service->sessions = session;
	service->n_sessions++;
}

void session_deinit(struct session *session)
{
	struct service *service = session->service;

	/* A base may take several of the list with it. */
	while (session->anonymous)
		service_release(service, session->anonymous->tensor);
	segments_deinit(session);
	if (session->prev)
		session->prev->next = session->next;
	else
		service->sessions = session->next;
	if (session->next)
		session->next->prev = session->prev;
	service->n_sessions--;
}
