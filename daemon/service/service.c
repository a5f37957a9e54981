/* The service's tables and the two places where a tensor enters and leaves them. Invariant: each live tensor of
 * the device has a record; each record is either named or its session's. Decides no rights: they are in access.c.
 */
#include "daemon/service/service.h"

#include <assert.h>
#include <errno.h>
#include <utlist.h>

#include "daemon/device/device.h"
#include "daemon/service/kept/persist.h"
#include "daemon/service/kept/results.h"
#include "daemon/service/observed/events.h"
#include "daemon/service/observed/recorder.h"
#include "daemon/service/order/waiting.h"

int service_init(struct service *service, struct device *device, const struct heap *heap, uint32_t uid,
		 uint64_t seed)
{
	service->device = device;
	service->heap = heap;
	service->uid = uid;
	limits_init(&service->limits, heap, &device_options(device)->geometry, uid);
	service->events.heap = heap;
	waiting_init(&service->waiting, &service->limits);
	device_keep_for_owner(device, sizeof(struct record));
	recorder_init(&service->recorder, heap, &service->queue, &service->self);
	service->persist = (struct persist){.heap = heap};
	scheduler_init(&service->scheduler, &service->queue, &service->self);
	return names_init(&service->names, heap, seed);
}

void service_adopt(struct service *service, struct session *session, struct tensor *tensor)
{
	struct record *record = tensor_owner_room(tensor);

	tensor->owner = record;
	record->changed_at = ++service->changes;
	if (record_of_base(record))
		record_of_base(record)->n_views++;
	if (record->name[0]) {
		names_add(&service->names, record);
		return;
	}
	record->unnamed = session->unnamed;
	DL_PREPEND(record->unnamed->first, record);
	record->unnamed->device_bytes += record_device_bytes(record);
	record->unnamed->n++;
}

/* The session may end before a tensor that is going. */
static void leave_session(struct record *record)
{
	struct session_unnamed *unnamed = record->unnamed;

	if (!unnamed)
		return;
	DL_DELETE(unnamed->first, record);
	unnamed->device_bytes -= record_device_bytes(record);
	unnamed->n--;
	record->unnamed = NULL;
}

void service_mark_going(struct service *service, struct tensor *tensor)
{
	record_of(tensor)->changed_at = ++service->changes;
	record_of(tensor)->is_going = true;
}

bool service_leaves_session(struct tensor *tensor)
{
	if (!record_is_going(record_of(tensor)))
		return false;
	leave_session(record_of(tensor));
	return true;
}

void service_hide(struct service *service, struct tensor *tensor)
{
	struct record *record = record_of(tensor);

	if (record->is_gone)
		return;
	record->is_gone = true;
	record->changed_at = ++service->changes;
	if (record_of_base(record))
		record_of_base(record)->n_views--;
	if (record->name[0])
		names_remove(&service->names, record);
	leave_session(record);
}

struct release {
	struct service *service;
	unsigned n;
};

void service_count_place(struct service *service, struct tensor *tensor, int64_t offset, int by)
{
	struct record *record = tensor_owner_room(tensor);

	if (!tensor->base)
		occupancy_add(&record->user->places, device_options(service->device)->geometry.npu_bytes, offset,
			      offset + tensor_bytes_per_npu(tensor), by);
}

static void give_back(struct service *service, struct record *record)
{
	struct tensor *tensor = record_tensor(record);

	service_count_place(service, tensor, tensor_offset(tensor), -1);
	limits_give_back(&service->limits, record->user, LIMITS_TENSORS, 1);
	limits_give_back(&service->limits, record->user, LIMITS_VIEWS, tensor->base != NULL);
	limits_give_back(&service->limits, record->user, LIMITS_DEVICE_BYTES, record_device_bytes(record));
	if (!tensor->base)
		totals_add(&record->user->totals, service->limits.geometry, tensor, -1);
	limits_give_back(&service->limits, record->user, LIMITS_HOST_BYTES, record->host_bytes);
	limits_drop(&service->limits, record->user);
	heap_free(service->heap, record_grants(record));
}

static void forget(void *ctx, struct tensor *tensor)
{
	struct release *release = ctx;
	struct record *record = record_of(tensor);

	service_hide(release->service, tensor);
	recorder_tensor_leaves(&release->service->recorder, tensor);
	scheduler_forget(&release->service->scheduler, tensor);
	events_tensor(release->service, EVENTS_FREED, tensor, release->service->events.actor, -1);
	results_gone(release->service, tensor);
	persist_drop(release->service, tensor);
	give_back(release->service, record);
	tensor->owner = NULL;
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
	service_hide(service, tensor);
	give_back(service, record_of(tensor));
	tensor->owner = NULL;
}

/* Remaining tensors end with the device, or stay in the store. */
static void leave_all(struct service *service)
{
	for (struct tensor *tensor = NULL; (tensor = device_next(service->device, tensor));)
		if (tensor->owner)
			service_leave(service, tensor);
}

void service_deinit(struct service *service)
{
	assert(!service->sessions && !service->waiting.first);
	scheduler_deinit(&service->scheduler);
	leave_all(service);
	assert(!service->names.n);
	names_deinit(&service->names);
	results_pool_deinit(&service->persist);
	persist_deinit(&service->persist);
	limits_deinit(&service->limits);
	recorder_deinit(&service->recorder);
}
