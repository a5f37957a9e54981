/* A session's beginning and end.
 * Invariant: the list `unnamed` holds exactly the unnamed tensors that were made in this session. */
#include "daemon/service/session.h"

#include <errno.h>
#include <utlist.h>

#include "daemon/service/kept/results.h"
#include "daemon/service/segments.h"
#include "daemon/service/kept/stale.h"

/* 0 or -ENOMEM. The user is the session's in any case. */
static int begin(struct session *session, struct service *service, struct limits_user *user, pid_t pid)
{
	struct session_unnamed *unnamed = user ? heap_zalloc(service->heap, 1, sizeof(*unnamed)) : NULL;

	if (!unnamed) {
		if (user)
			limits_drop(&service->limits, user);
		return -ENOMEM;
	}
	*session = (struct session){.service = service,
				    .id = ++service->last_session,
				    .uid = user->uid,
				    .user = user,
				    .pid = pid,
				    .unnamed = unnamed};
	DL_PREPEND(service->sessions, session);
	service->n_sessions++;
	service->metrics.sessions++;
	return 0;
}

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
	if (begin(session, service, user, pid))
		return heap_exhausted(error);
	limits_charge(&service->limits, user, LIMITS_SESSIONS, 1);
	return 0;
}

int session_restore(struct session *session, struct service *service, const struct persist_session *kept,
		    uint32_t cell)
{
	if (begin(session, service, limits_take(&service->limits, kept->uid), 0))
		return -ENOMEM;
	session->is_absent = true;
	session->id = kept->id;
	if (kept->id > service->last_session)
		service->last_session = kept->id;
	session->has_token = true;
	session->lingers = kept->lingers;
	session->forgotten_below = kept->forgotten_below;
	session->changed_below = kept->changed_below;
	memcpy(session->token, kept->token, sizeof(session->token));
	session->cell = cell;
	persist_session_adopt(session);
	return 0;
}

bool session_is_fresh(const struct session *session)
{
	return !session->has_token && !session->unnamed->first && !session->segments && !session->last_segment;
}

/* What it has, but its connection, the user and the shared memory. */
static void hand_over(struct session *from, struct session *to)
{
	uint64_t id = to->id;
	struct session_unnamed *unnamed = to->unnamed;

	to->id = from->id;
	from->id = id;
	to->unnamed = from->unnamed;
	from->unnamed = unnamed;
	to->has_token = true;
	to->lingers = from->lingers;
	memcpy(to->token, from->token, sizeof(to->token));
	to->cell = from->cell;
	to->answered_below = from->answered_below;
	to->forgotten_below = from->forgotten_below;
	to->changed_below = from->changed_below;
	to->stale = from->stale;
	from->stale = (struct ids){.n = 0};
	to->made = from->made;
	to->n_made = from->n_made;
	from->made = NULL;
	from->n_made = 0;
	to->results = from->results;
	to->n_results = from->n_results;
	from->results = NULL;
	from->n_results = 0;
	from->has_token = false;
	from->is_spent = true;
	persist_session_adopt(to);
}

void session_return(struct session *absent, struct session *to)
{
	hand_over(absent, to);
}

int session_stay_away(struct session *session, struct session *absent)
{
	int status = begin(absent, session->service, limits_take(&session->service->limits, session->uid), 0);

	if (status)
		return status;
	absent->is_absent = true;
	hand_over(session, absent);
	return 0;
}

static int by_slot(const struct record *a, const struct record *b)
{
	uint32_t one = device_handle_slot(a->tensor->handle), other = device_handle_slot(b->tensor->handle);

	return one < other ? 1 : -1;
}

void session_settle(struct session *session)
{
	DL_SORT(session->unnamed->first, by_slot);
}

size_t session_hide(struct session *session, struct tensor **tensors, size_t most)
{
	size_t n = 0;

	for (; session->unnamed->first && n < most; n++) {
		tensors[n] = session->unnamed->first->tensor;
		service_hide(session->service, tensors[n]);
	}
	return n;
}

/* What is left when it has no tensors. */
static void end(struct session *session)
{
	struct service *service = session->service;

	segments_deinit(session);
	DL_DELETE(service->sessions, session);
	service->n_sessions--;
	if (!session->is_absent)
		limits_give_back(&service->limits, session->user, LIMITS_SESSIONS, 1);
	heap_free(service->heap, session->unnamed);
	session->unnamed = NULL;
	limits_drop(&service->limits, session->user);
}

void session_deinit(struct session *session)
{
	struct service *service = session->service;

	session->request = 0;
	persist_session_end(session);
	service->events.actor = session;
	/* A base may take several of the list with it. */
	while (session->unnamed->first)
		service_release(service, session->unnamed->first->tensor);
	persist_commit(&service->persist);
	service->events.actor = NULL;
	if (!session->is_spent) {
		events_client_gone(session);
		recorder_session_end(&service->recorder, session);
	}
	end(session);
}

void session_leave(struct session *session)
{
	results_leave(session);
	stale_leave(session);
	while (session->unnamed->first)
		service_leave(session->service, session->unnamed->first->tensor);
	end(session);
}
