/* Following what happens on the device. */
#include "client/lib/call.h"

int npumem_subscribe(struct npumem *npumem, const char *const *kinds, unsigned n, npumem_event_callback *callback,
		     void *context, struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__SubscribeRequest message = NPUMEM__V1__SUBSCRIBE_REQUEST__INIT;
	npumem_event_callback *before = npumem->on_event;
	void *context_before = npumem->event_context;
	struct call call = {.take = NULL};
	message.n_kinds = n;
	message.kinds = (char **)(uintptr_t)kinds;
	request.call_case = NPUMEM__V1__REQUEST__CALL_SUBSCRIBE;
	request.subscribe = &message;
	/* Events may come with the answer. */
	npumem->on_event = callback;
	npumem->event_context = context;
	int status = call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_SUBSCRIBED, &call, error);
	if (status) {
		npumem->on_event = before;
		npumem->event_context = context_before;
	}
	return status;
}
