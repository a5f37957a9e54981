/* Invariant: the device announces changes, and the store has an image, exactly while there is an owner. */
#include "daemon/service/kept/snapshot.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/device/device.h"
#include "daemon/service/kept/persist.h"

static void count(struct session *session)
{
	struct service *service = session->service;
	struct snapshot *snapshot = &service->snapshot;
	uint64_t held = store_image_held(service->persist.store);

	limits_give_back(&service->limits, session->user, LIMITS_SCRATCH_BYTES, snapshot->charge);
	limits_charge(&service->limits, session->user, LIMITS_SCRATCH_BYTES, held);
	snapshot->charge = held;
}

int snapshot_check(const struct session *session, struct npumem_error *error)
{
	const struct service *service = session->service;

	if (!session_is_admin(session))
		return npumem_error_set(error, NPUMEM_PERMISSION_DENIED,
					"only root and uid %" PRIu32
					", as whom the daemon runs, may take a snapshot: it has the bytes of all "
					"uids",
					service->uid);
	if (!persist_is_on(&service->persist))
		return npumem_error_set(error, NPUMEM_FAILED_PRECONDITION,
					"a snapshot is a copy of the daemon's state, and it runs without "
					"--state-dir");
	if (service->snapshot.owner)
		return npumem_error_set(error, NPUMEM_FAILED_PRECONDITION,
					"a snapshot is being taken, in session %" PRIu64 " of process %d",
					service->snapshot.owner->id, (int)service->snapshot.owner->pid);
	if (service->snapshot.is_ending)
		return npumem_error_set(error, NPUMEM_FAILED_PRECONDITION, "a snapshot is being given up");
	return 0;
}

static void before(void *ctx, uint64_t off, uint64_t bytes)
{
	store_image_before(ctx, off, bytes);
}

int snapshot_begin(struct session *session, struct npumem_error *error)
{
	struct service *service = session->service;
	struct snapshot *snapshot = &service->snapshot;
	int status = store_image_begin(service->persist.store);

	if (status)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"the daemon cannot hold a snapshot: %s; nothing was changed",
					strerror(-status));
	device_tell(service->device, before, service->persist.store);
	snapshot->owner = session;
	snapshot->number = ++snapshot->last_number;
	count(session);
	return 0;
}

int snapshot_find(const struct session *session, uint64_t number, struct npumem_error *error)
{
	const struct snapshot *snapshot = &session->service->snapshot;

	if (snapshot->owner == session && snapshot->number == number)
		return 0;
	return npumem_error_set(error, NPUMEM_NOT_FOUND, "this session has no snapshot %" PRIu64, number);
}

void snapshot_told(struct session *session)
{
	if (!session->service->snapshot.piece.is_last)
		count(session);
	else if (snapshot_end(session))
		snapshot_gone(session->service); /* as its pages went with their pieces */
}

bool snapshot_end(struct session *session)
{
	struct service *service = session->service;

	if (service->snapshot.owner != session)
		return false;
	device_tell_no_more(service->device);
	store_image_end(service->persist.store);
	count(session);
	service->snapshot.owner = NULL;
	service->snapshot.is_ending = true;
	return true;
}

void snapshot_give_back(void *service)
{
	store_image_give_back(((struct service *)service)->persist.store);
}

void snapshot_gone(void *service)
{
	((struct service *)service)->snapshot.is_ending = false;
}
