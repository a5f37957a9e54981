/* The surface of this folder: messages in, turns, the clock, and the end of a peer. Ready calls, and peers whose
 * held calls may arrive, are work of their users in service->queue. Nothing here is called back from below: what
 * becomes possible is queued, and the loop runs it, or rpc_settle where there is no loop. */
#include "daemon/rpc/rpc.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/calls/ending.h"
#include "daemon/rpc/calls/life.h"
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/decode.h"
#include "daemon/rpc/handlers/replayed.h"
#include "daemon/rpc/handlers/operations/operate.h"
#include "daemon/rpc/handlers/operations/progress.h"
#include "daemon/rpc/order/arrive.h"
#include "daemon/rpc/order/gate.h"
#include "daemon/rpc/order/line.h"
#include "daemon/rpc/resume/detached.h"
#include "daemon/rpc/resume/repeat.h"
#include "daemon/service/kept/recover.h"

/* ---- turns ---- */

static void start(struct call *call)
{
	call->state = CALL_RUNNING;
	if (call->is_paused) {
		call->is_paused = false;
		perform_go_on(call, perform_finish_step(call));
	} else if (call->error->status) {
		life_end(call, call->error->status);
	} else if (call->peer->is_closing && !call->is_committed) {
		life_drop(call);
	} else {
		perform_begin(call);
	}
}

static void run_call(struct fair_work *work)
{
	struct call *call = (struct call *)((char *)work - offsetof(struct call, work));
	struct rpc *rpc = call->rpc;

	start(call);
	runs_off_loop(rpc->service);
}

/* What waits is dropped, what runs is stopped where it can be. False where it goes on in another turn. */
static bool close_calls(struct rpc *rpc, struct rpc_peer *peer, uint64_t end_ns)
{
	struct call *call;

	while ((call = peer->next_to_close)) {
		if (rpc_spell_is_over(rpc, end_ns)) {
			rpc_wake(rpc, peer);
			return false;
		}
		peer->next_to_close = call->next;
		if (call_is_started(call))
			perform_cancel(call);
		else if (!call->is_committed)
			life_drop(call);
	}
	return true;
}

static void end_peer(struct rpc *rpc, struct rpc_peer *peer)
{
	ending_give_up_snapshot(rpc, peer->session);
	if (!peer->ending.is_final && detached_keep(rpc, peer)) {
		ending_leave(rpc, peer);
		return;
	}
	peer->ending.is_final = true;
	ending_go_on(rpc, peer);
}

static void run_peer(struct fair_work *work)
{
	struct rpc_peer *peer = (struct rpc_peer *)((char *)work - offsetof(struct rpc_peer, turn));
	struct rpc *rpc = peer->rpc;
	uint64_t end_ns = rpc_spell_end(rpc);

	if (close_calls(rpc, peer, end_ns)) {
		arrive_open(rpc, peer, end_ns);
		if (peer->is_closing && !peer->n_calls)
			end_peer(rpc, peer);
	}
	runs_off_loop(rpc->service);
}

/* ---- what follows from what was done ---- */

static void set_alarm(struct rpc *rpc)
{
	uint64_t at = line_alarm(rpc), due = progress_due(rpc);

	at = due < at ? due : at;
	due = detached_due(rpc);
	at = due < at ? due : at;
	if (!rpc->set_alarm || at == rpc->alarm_ns)
		return;
	rpc->alarm_ns = at;
	rpc->set_alarm(rpc->ctx, at);
}

static bool is_settled(const struct rpc *rpc)
{
	return !rpc->detached && !rpc->service->waiting.first && !rpc->service->events.ready &&
	       rpc->report_ns == UINT64_MAX && rpc->alarm_ns == UINT64_MAX;
}

void rpc_settle(struct rpc *rpc)
{
	struct fair_queue *queue = &rpc->service->queue;
	bool runs_all = !rpc_has_loop(rpc);

	if (is_settled(rpc) && (!runs_all || fair_queue_is_empty(queue))) {
		runs_off_loop(rpc->service);
		return;
	}
	line_serve(rpc);
	while (runs_all && !fair_queue_is_empty(queue)) {
		struct fair_work *work = fair_queue_take(queue);

		work->run(work);
		line_serve(rpc);
	}
	progress_send(rpc);
	set_alarm(rpc);
	runs_off_loop(rpc->service);
}

/* ---- the beginning and the end ---- */

/* What a test needs that gives no other one. */
static uint64_t no_time(void)
{
	return 0;
}

void rpc_init(struct rpc *rpc, struct service *service, const struct heap *heap)
{
	*rpc = (struct rpc){.service = service,
			    .heap = heap,
			    .now_ns = no_time,
			    .run_call = run_call,
			    .run_peer = run_peer,
			    .settle = rpc_settle,
			    .alarm_ns = UINT64_MAX,
			    .report_ns = UINT64_MAX};
	line_init(rpc);
}

void rpc_deinit(struct rpc *rpc)
{
	detached_deinit(rpc);
	life_pool_deinit(rpc);
	operate_pool_deinit(rpc);
}

static const char *method_name(uint32_t method)
{
	return method < METHODS_N ? methods_rows[method].name : "request";
}

int rpc_recover(struct rpc *rpc, const struct store_report *found,
		void (*say)(void *ctx, bool is_loss, const char *line), void *ctx)
{
	struct recovered *recovered = &rpc->service->recovered;
	struct recover_host host = {
		.new_session = detached_new, .ctx = rpc, .say = say, .say_ctx = ctx, .method_name = method_name};
	int status;

	recovered->at_ns = found->is_new ? 0 : rpc->now_ns();
	status = recover(rpc->service, found, &host, &recovered->report);
	if (!status)
		detached_recovered(rpc);
	rpc_settle(rpc);
	return status;
}

/* ---- what comes ---- */

/* One by which a session gets its token, or goes on, is behind nothing: what comes after it is of the session that
 * it makes, with a token from the beginning. So is one by which a session stays no longer without its connection,
 * if the session has nothing else under way: the connection may end at once. */
static bool is_free_standing(const struct call *call)
{
	const Npumem__V1__Request *request = call->request;

	if (request->call_case != NPUMEM__V1__REQUEST__CALL_RESUME)
		return call_row(call)->kind <= METHODS_KIND_FREE_STANDING;
	return request->resume->token.len || !call->session->has_token ||
	       (!request->resume->linger && call->peer->n_calls == 1);
}

static void begin(struct call *call)
{
	int status;

	if (is_free_standing(call)) {
		call->state = CALL_RUNNING;
		status = replayed_check_deaths(call);
		if (status)
			life_end(call, status);
		else
			perform_begin(call);
	} else {
		arrive_receive(call);
	}
}

/* At once, while its message is there: a call that runs later has to keep a copy of it. */
static void start_arrived(struct rpc *rpc)
{
	struct call *call = rpc->arriving;

	if (!call || call->state != CALL_READY || call->is_started)
		return;
	fair_queue_remove(&call->work);
	start(call);
}

/* A call that does not end here has its own message from then on. */
static int receive(struct rpc *rpc, struct rpc_peer *peer, uint8_t *message, size_t bytes, bool is_owned)
{
	struct call *call = life_new(rpc, peer, message, bytes);
	int status;

	if (!call)
		return -ENOMEM;
	call->owns_message = is_owned;
	rpc->arriving = call;
	status = decode_call(call);
	/* An operation by itself ends here, or is known to be long. Of anything else that is not known yet, and
	 * the payload may be of a call that a later one in the message took the place of. */
	if (!status && call->borrowed && !call_is_single(call))
		status = charge_own_message(call);
	if (status)
		life_end(call, status);
	else
		begin(call);
	start_arrived(rpc);
	rpc_settle(rpc);
	/* Nothing points into bytes that are the caller's again. */
	assert(!rpc->arriving || call_outlives_message(rpc->arriving));
	rpc->arriving = NULL;
	return 0;
}

int rpc_receive(struct rpc *rpc, struct rpc_peer *peer, const uint8_t *message, size_t bytes)
{
	return receive(rpc, peer, (uint8_t *)(uintptr_t)message, bytes, false);
}

int rpc_receive_owned(struct rpc *rpc, struct rpc_peer *peer, uint8_t *message, size_t bytes)
{
	int status = receive(rpc, peer, message, bytes, true);

	if (status)
		heap_free(rpc->heap, message);
	return status;
}

int rpc_refuse_part(struct rpc *rpc, struct rpc_peer *peer, const struct npumem_error *error, const uint8_t *head,
		    size_t bytes)
{
	struct call *call = life_new(rpc, peer, NULL, bytes);

	if (!call)
		return -ENOMEM;
	call->id = decode_salvage_id(head, bytes);
	*call->error = *error;
	life_end(call, error->status);
	rpc_settle(rpc);
	return 0;
}

void rpc_peer_sent(struct rpc_peer *peer)
{
	repeat_sent(peer);
}

void rpc_synced(struct rpc *rpc)
{
	struct limits_user *user;

	for (user = rpc->service->limits.users; user; user = user->next) {
		line_synced(rpc, user);
		gate_synced(rpc, &user->order);
	}
}

void rpc_tick(struct rpc *rpc)
{
	rpc->alarm_ns = UINT64_MAX;
	line_tick(rpc);
	progress_report(rpc);
	detached_expire(rpc);
	rpc_settle(rpc);
}

void rpc_peer_close(struct rpc *rpc, struct rpc_peer *peer)
{
	ending_announce(rpc, peer);
	rpc_settle(rpc);
}

void rpc_peer_end_waiting(struct rpc *rpc, struct rpc_peer *peer)
{
	struct call *call = peer->calls, *next;

	for (; call && !peer->is_closing; call = next) {
		next = call->next;
		line_end(call);
	}
	rpc_settle(rpc);
}

void rpc_peer_ready(struct rpc *rpc, struct rpc_peer *peer)
{
	if (peer->subscriber)
		progress_send_to(rpc, peer->subscriber);
}

int rpc_refuse(struct buffer *out, int status, const char *message)
{
	struct npumem_error error;
	struct reply reply;

	if (reply_begin(&reply, out))
		return -ENOMEM;
	npumem_error_clear(&error);
	npumem_error_set(&error, status, "%s", message);
	reply_end(&reply, 0, &error);
	return 0;
}
