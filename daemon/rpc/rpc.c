/* The surface of this folder: messages in, turns, the clock, and the end of a peer. */
#include "daemon/rpc/rpc.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "daemon/rpc/resume/absent.h"
#include "daemon/rpc/calls/advance.h"
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/calls/call.h"
#include "daemon/rpc/decode.h"
#include "daemon/rpc/order/line.h"
#include "daemon/rpc/handlers/progress.h"
#include "daemon/rpc/resume/repeat.h"
#include "daemon/service/kept/recover.h"

void rpc_init(struct rpc *rpc, struct service *service, const struct heap *heap)
{
	*rpc = (struct rpc){.service = service, .heap = heap, .alarm_ns = UINT64_MAX, .look_ns = UINT64_MAX};
	line_init(rpc);
}

void rpc_deinit(struct rpc *rpc)
{
	absent_deinit(rpc);
	call_pool_deinit(rpc);
}

struct recovering {
	struct rpc *rpc;
	void (*say)(void *ctx, bool is_loss, const char *line);
	void *ctx;
};

static struct session *new_session(void *ctx)
{
	return absent_new(((struct recovering *)ctx)->rpc);
}

static const char *method_name(uint32_t method)
{
	return method < METHODS_N ? methods_rows[method].name : "request";
}

static void keep(struct recovered *recovered, const char *line)
{
	if (recovered->n_lines < RECOVERED_LINES_MAX)
		snprintf(recovered->lines[recovered->n_lines++], RECOVERED_LINE_BYTES, "%s", line);
}

static void say(void *ctx, bool is_loss, const char *line)
{
	const struct recovering *recovering = ctx;

	keep(&recovering->rpc->service->recovered, line);
	recovering->say(recovering->ctx, is_loss, line);
}

int rpc_recover(struct rpc *rpc, const struct store_report *found,
		void (*to)(void *ctx, bool is_loss, const char *line), void *ctx)
{
	struct recovered *recovered = &rpc->service->recovered;
	struct recovering recovering = {rpc, to, ctx};
	struct recover_host host = {
		.new_session = new_session, .say = say, .method_name = method_name, .ctx = &recovering};
	int status;

	recovered->at_ns = !found->is_new && rpc->now_ns ? rpc->now_ns() : 0;
	recovered->was_clean = found->was_clean;
	for (unsigned i = 0; i < found->n_lines; i++)
		keep(recovered, found->lines[i]);
	status = recover(rpc->service, found, &host, &recovered->report);
	if (!status)
		absent_recovered(rpc);
	advance_settle(rpc);
	return status;
}

/* What does not end here has its own message from then on. */
static int receive(struct rpc *rpc, struct rpc_peer *peer, uint8_t *message, size_t bytes, bool is_owned)
{
	struct call *call = call_new(rpc, peer, message, bytes);
	int status;

	if (!call)
		return -ENOMEM;
	call->owns_message = is_owned;
	rpc->arriving = call;
	status = call_decode(call);
	if (status)
		call_end(call, status);
	else
		advance_begin(call);
	advance_arrived(rpc);
	advance_settle(rpc);
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
	struct call *call = call_new(rpc, peer, NULL, bytes);

	if (!call)
		return -ENOMEM;
	call->id = decode_salvage_id(head, bytes);
	*call->error = *error;
	call_end(call, error->status);
	advance_settle(rpc);
	return 0;
}

void rpc_peer_sent(struct rpc_peer *peer)
{
	repeat_sent(peer);
}

void rpc_settle(struct rpc *rpc)
{
	advance_settle(rpc);
}

void rpc_tick(struct rpc *rpc)
{
	rpc->alarm_ns = UINT64_MAX;
	line_tick(rpc);
	progress_look(rpc);
	absent_look(rpc);
	advance_settle(rpc);
}

void rpc_peer_close(struct rpc *rpc, struct rpc_peer *peer)
{
	peer->is_closing = true;
	peer->next_to_close = peer->calls;
	if (peer->subscriber)
		events_unsubscribe(rpc->service, peer->subscriber);
	peer->subscriber = NULL;
	advance_make_runnable(rpc, peer);
	advance_settle(rpc);
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
