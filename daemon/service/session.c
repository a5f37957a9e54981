/* A session's beginning and end.
 * Invariant: the list `unnamed` holds exactly the unnamed tensors that were made in this session. */
#include "daemon/service/session.h"

#include <errno.h>
#include <utlist.h>

#include "daemon/service/kept/persist.h"
#include "daemon/service/kept/results.h"
#include "daemon/service/kept/stale.h"
#include "daemon/service/observed/events.h"
#include "daemon/service/observed/recorder.h"
#include "daemon/service/segments.h"
#include "daemon/service/service.h"

/* Takes over a reference to `user`, also if it fails. 0 or -ENOMEM. */
static int begin(struct session *session, struct service *service, struct limits_user *user, uint32_t uid,
		 pid_t pid)
{
	struct session_unnamed *unnamed = user ? heap_zalloc(service->heap, 1, sizeof(*unnamed)) : NULL;

	if (!unnamed) {
		if (user)
			limits_drop(&service->limits, user);
		return -ENOMEM;
	}
	*session = (struct session){.service = service,
				    .id = ++service->last_session,
				    .uid = uid,
				    .user = user,
				    .pid = pid,
				    .unnamed = unnamed};
	DL_PREPEND(service->sessions, session);
	DL_PREPEND2(user->sessions, session, user_prev, user_next);
	service->n_sessions++;
	user->n_sessions++;
	service->metrics.all.sessions++;
	user->account.sessions++;
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
	if (begin(session, service, user, uid, pid))
		return heap_exhausted(error);
	limits_charge(&service->limits, user, LIMITS_SESSIONS, 1);
	return 0;
}

int session_restore(struct session *session, struct service *service, const struct persist_session *kept,
		    uint32_t cell)
{
	if (begin(session, service, limits_take(&service->limits, kept->uid), kept->uid, 0))
		return -ENOMEM;
	session->is_detached = true;
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

/* Host memory of its results and ids, as results.c and ids.c charge it. */
static uint64_t kept_bytes(const struct session *session)
{
	return session->n_results * sizeof(struct result) + session->stale.room * sizeof(*session->stale.many);
}

/* The two have the same uid, which may have another account since /etc/subuid was read again. */
static void move_charges(struct session *from, struct session *to)
{
	struct limits_table *limits = &from->service->limits;

	limits_give_back(limits, from->user, LIMITS_REQUEST_BYTES, kept_bytes(from));
	limits_charge(limits, to->user, LIMITS_REQUEST_BYTES, kept_bytes(from));
}

void session_hand_over(struct session *from, struct session *to)
{
	uint64_t id = to->id;
	struct session_unnamed *unnamed = to->unnamed;

	move_charges(from, to);
	to->id = from->id;
	from->id = id;
	to->unnamed = from->unnamed;
	from->unnamed = unnamed;
	persist_session_hide(from);
	from->has_token = false;
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
	from->is_continued = true;
	recorder_hand_over(&from->service->recorder, from, to);
	persist_session_adopt(to);
}

int session_stay_away(struct session *session, struct session *detached)
{
	int status = begin(detached, session->service, limits_hold(session->user), session->uid, 0);

	if (status)
		return status;
	detached->is_detached = true;
	session_hand_over(session, detached);
	return 0;
}

/* ---- walks ---- */

void session_walk_begin(struct session_walk *walk, const struct session *asking)
{
	struct service *service = asking->service;
	bool is_all = session_is_admin(asking);

	*walk = (struct session_walk){
		.service = service, .is_all = is_all, .at = is_all ? service->sessions : asking->user->sessions};
	DL_PREPEND(service->walks, walk);
}

const struct session *session_walk_next(struct session_walk *walk)
{
	const struct session *session = walk->at;

	if (session)
		walk->at = walk->is_all ? session->next : session->user_next;
	return session;
}

void session_walk_end(struct session_walk *walk)
{
	DL_DELETE(walk->service->walks, walk);
}

/* The session ends: no walk finds it. */
static void leave_walks(struct session *session)
{
	struct session_walk *walk;

	DL_FOREACH(session->service->walks, walk)
	if (walk->at == session)
		session_walk_next(walk);
}

/* ---- the end ---- */

size_t session_hide(struct session *session, struct tensor **tensors, size_t most)
{
	size_t n = 0;

	while (session->unnamed->first && n < most) {
		struct tensor *tensor = record_tensor(session->unnamed->first);

		if (service_leaves_session(tensor))
			continue;
		service_hide(session->service, tensor);
		tensors[n++] = tensor;
	}
	return n;
}

/* Ends the rest of a session that has no tensors. */
static void end(struct session *session)
{
	struct service *service = session->service;

	segments_deinit(session);
	leave_walks(session);
	if (session->has_token)
		persist_session_hide(session);
	DL_DELETE(service->sessions, session);
	DL_DELETE2(session->user->sessions, session, user_prev, user_next);
	service->n_sessions--;
	session->user->n_sessions--;
	if (!session->is_detached)
		limits_give_back(&service->limits, session->user, LIMITS_SESSIONS, 1);
	heap_free(service->heap, session->unnamed);
	session->unnamed = NULL;
	limits_drop(&service->limits, session->user);
}

void session_forget(struct session *session)
{
	if (!session->has_token)
		return;
	session->has_token = false;
	/* First: if the daemon dies in between, the next process drops results without a session. */
	persist_session_drop(session);
	results_deinit(session);
	persist_commit(&session->service->persist);
}

void session_deinit(struct session *session)
{
	struct service *service = session->service;

	session->request = 0;
	session_forget(session);
	service->events.actor = session;
	/* A base may take several views of the list with it. */
	while (session->unnamed->first)
		service_release(service, record_tensor(session->unnamed->first));
	persist_commit(&service->persist);
	service->events.actor = NULL;
	if (!session->is_continued) {
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
		service_leave(session->service, record_tensor(session->unnamed->first));
	end(session);
}
