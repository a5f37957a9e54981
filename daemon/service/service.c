/* The service's tables and the two places where a tensor enters and leaves them.
 * Invariant: each live tensor of the device has a record; each record is either named or its session's.
 * Decides nothing: who may ask for what is in access.c. */
#include "daemon/service/service.h"

#include <assert.h>
#include <errno.h>
#include <utlist.h>

#include "daemon/service/session.h"

int service_init(struct service *service, struct device *device, const struct heap *heap, uint32_t uid,
		 uint64_t seed)
{
	service->device = device;
	service->heap = heap;
	service->uid = uid;
	limits_init(&service->limits, heap, uid);
	service->events.heap = heap;
	waiting_init(&service->waiting, &service->limits);
	device_keep_for_owner(device, sizeof(struct record));
	recorder_init(&service->recorder, heap);
	service->persist = (struct persist){.heap = heap};
	scheduler_init(&service->scheduler);
	return names_init(&service->names, heap, seed);
}

void service_adopt(struct service *service, struct session *session, struct tensor *tensor)
{
	struct record *record = tensor_owner_room(tensor);

	record->tensor = tensor;
	tensor->owner = record;
	if (record->name[0]) {
		names_add(&service->names, record);
		return;
	}
	record->unnamed = session->unnamed;
	DL_PREPEND(record->unnamed->first, record);
	record->unnamed->device_bytes += record->charge;
	record->unnamed->n++;
}

/* It may end before a tensor that goes. */
static void leave_session(struct record *record)
{
	struct session_unnamed *unnamed = record->unnamed;

	if (!unnamed)
		return;
	DL_DELETE(unnamed->first, record);
	unnamed->device_bytes -= record->charge;
	unnamed->n--;
	record->unnamed = NULL;
}

static void mark_one(struct record *record, struct scheduler_entry *by)
{
	if (!record->going || by->arrival < record->going->arrival)
		record->going = by;
	leave_session(record);
}

void service_mark_going(struct tensor *tensor, struct scheduler_entry *by)
{
	mark_one(record_of(tensor), by);
	for (struct tensor *view = tensor->base ? NULL : tensor->views; view; view = view->next_view)
		mark_one(record_of(view), by);
}

static void hide_one(struct service *service, struct record *record)
{
	if (record->is_gone)
		return;
	record->is_gone = true;
	if (record->name[0])
		names_remove(&service->names, record);
	leave_session(record);
}

void service_hide(struct service *service, struct tensor *tensor)
{
	hide_one(service, record_of(tensor));
	for (struct tensor *view = tensor->base ? NULL : tensor->views; view; view = view->next_view)
		hide_one(service, record_of(view));
}

struct release {
	struct service *service;
	unsigned n;
};

static void give_back(struct service *service, struct record *record)
{
	limits_give_back(&service->limits, record->user, LIMITS_TENSORS, 1);
	limits_give_back(&service->limits, record->user, LIMITS_DEVICE_BYTES, record->charge);
	limits_drop(&service->limits, record->user);
	heap_free(service->heap, record->grants);
}

static void forget(void *ctx, struct tensor *tensor)
{
	struct release *release = ctx;
	struct record *record = record_of(tensor);

	scheduler_forget_root(&release->service->scheduler, &record->queue);
	events_tensor(release->service, EVENTS_FREED, tensor, release->service->events.actor, -1);
	persist_drop(release->service, tensor);
	tensor->owner = NULL;
	give_back(release->service, record);
	release->service->waiting.room = true;
	release->n++;
}

unsigned service_release(struct service *service, struct tensor *tensor)
{
	struct release release = {service, 0};

	service_hide(service, tensor);
	device_release(service->device, tensor, forget, &release);
	events_room(service);
	return release.n;
}

void service_leave(struct service *service, struct tensor *tensor)
{
	hide_one(service, record_of(tensor));
	give_back(service, record_of(tensor));
	tensor->owner = NULL;
}

static void leave_all(struct service *service)
{
	for (struct tensor *tensor = NULL; (tensor = device_next(service->device, tensor));)
		if (tensor->owner)
			service_leave(service, tensor);
}

static void release_all(struct service *service)
{
	struct tensor *tensor;

	while ((tensor = device_next(service->device, NULL)))
		service_release(service, tensor);
}

void service_deinit(struct service *service)
{
	assert(!service->sessions && !service->waiting.first);
	scheduler_deinit(&service->scheduler);
	if (persist_is_on(&service->persist))
		leave_all(service);
	else
		release_all(service);
	assert(!service->names.n);
	names_deinit(&service->names);
	persist_deinit(&service->persist);
	limits_deinit(&service->limits);
	recorder_deinit(&service->recorder);
}
