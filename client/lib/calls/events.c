/* Following what happens on the device. */
#include "client/lib/connection/engine/engine.h"
#include "client/lib/messages/message.h"

/* What was subscribed before, for where the daemon refuses this. */
struct before {
	npumem_event_callback *on_event;
	void *context;
};

static void restore(struct npumem_request *request)
{
	const struct before *before = request->state;
	request->npumem->on_event = before->on_event;
	request->npumem->event_context = before->context;
}

int npumem_subscribe_async(struct npumem *npumem, const char *const *kinds, unsigned n,
			   npumem_event_callback *on_event, void *event_context, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {.result = NPUMEM__V1__RESPONSE__RESULT_SUBSCRIBED,
						 .failed = restore};
	Npumem__V1__SubscribeRequest subscribe = NPUMEM__V1__SUBSCRIBE_REQUEST__INIT;
	struct npumem_request *made;
	int status = request_new(npumem, &kind, 0, callback, context, &made, error);
	if (status)
		return status;
	subscribe.n_kinds = n;
	subscribe.kinds = (char **)(uintptr_t)kinds;
	struct before *before = made->state = result_take(made->results, sizeof(*before));
	*before = (struct before){npumem->on_event, npumem->event_context};
	status = request_start(made, &MESSAGE_REQUEST(SUBSCRIBE, subscribe, &subscribe), NULL, request, error);
	if (status)
		return status;
	/* Events may come with the answer. */
	npumem->on_event = on_event;
	npumem->event_context = event_context;
	return 0;
}
