/* A session's beginning and end.
 * Invariant: the list `anonymous` holds exactly the unnamed tensors that were made in this session. */
#include "daemon/service/session.h"

#include <utlist.h>

#include "daemon/service/segments.h"

int session_init(struct session *session, struct service *service, uint32_t uid, pid_t pid,
		 struct npumem_error *error)
{
	struct limits_user *user = limits_take(&service->limits, uid);
	int status;

	if (!user)
		return heap_exhausted(error);
	status = limits_check(&service->limits, user, LIMITS_SESSIONS, 1, error);
	if (status) {
		limits_drop(&service->limits, user);
		return status;
	}
	limits_charge(&service->limits, user, LIMITS_SESSIONS, 1);
	*session = (struct session){
		.service = service, .id = ++service->last_session, .uid = uid, .user = user, .pid = pid};
	DL_PREPEND(service->sessions, session);
	service->n_sessions++;
	service->metrics.sessions++;
	return 0;
}

size_t session_hide(struct session *session, struct tensor **tensors, size_t most)
{
	size_t n = 0;

	for (; session->anonymous && n < most; n++) {
		tensors[n] = session->anonymous->tensor;
		service_hide(session->service, tensors[n]);
	}
	return n;
}

void session_deinit(struct session *session)
{
	struct service *service = session->service;

	service->events.actor = session;
	/* A base may take several of the list with it. */
	while (session->anonymous)
		service_release(service, session->anonymous->tensor);
	service->events.actor = NULL;
	events_client_gone(session);
	segments_deinit(session);
	recorder_session_end(&service->recorder, session);
	DL_DELETE(service->sessions, session);
	service->n_sessions--;
	limits_give_back(&service->limits, session->user, LIMITS_SESSIONS, 1);
	limits_drop(&service->limits, session->user);
}
