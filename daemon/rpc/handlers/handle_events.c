/* Subscribing. */
#include "daemon/rpc/calls/progress.h"
#include "daemon/rpc/handlers/handler.h"

int handle_events_subscribe(struct call *call, const Npumem__V1__SubscribeRequest *request)
{
	Npumem__V1__Subscribed message = NPUMEM__V1__SUBSCRIBED__INIT;
	struct rpc_peer *peer = call->peer;
	unsigned kinds = 0;
	int status;

	for (size_t i = 0; i < request->n_kinds; i++) {
		int kind = events_parse(request->kinds[i]);

		if (kind < 0)
			return npumem_error_set(call->error, NPUMEM_INVALID,
						"there are no events of the kind \"%.40s\"", request->kinds[i]);
		kinds |= 1u << kind;
	}
	if (!peer)
		return npumem_error_set(call->error, NPUMEM_FAILED_PRECONDITION,
					"there is no connection to send events to");
	status = reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_SUBSCRIBED, &message.base, call->error);
	if (status)
		return status;
	if (peer->subscriber && kinds) {
		peer->subscriber->kinds = kinds;
	} else if (peer->subscriber) {
		events_unsubscribe(call->rpc->service, peer->subscriber);
		peer->subscriber = NULL;
	} else if (kinds) {
		status = limits_check(&call->rpc->service->limits, peer->session->user, LIMITS_FOLLOWERS, 1,
				      call->error);
		if (status)
			return status;
		peer->subscriber = events_subscribe(call->rpc->service, peer->session, peer, kinds);
		if (!peer->subscriber)
			return heap_exhausted(call->error);
	}
	progress_subscribed(call->rpc, kinds);
	return 0;
}
