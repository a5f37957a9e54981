/* Tensors in the order that the device asks for. Their cells are verified and not judged: where a tensor lay, it
 * lies again, or it is lost. */
#include "daemon/service/kept/recovery.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/service/kept/results.h"
#include "daemon/service/tensors.h"

enum { LINES_MAX = 16 }; /* about single tensors */

static void name_plainly(void *ctx, const struct tensor *tensor, char *buffer, size_t bytes)
{
	const struct record *record = record_of(tensor);

	(void)ctx;
	if (record && record->name[0])
		snprintf(buffer, bytes, "%s", record->name);
	else
		snprintf(buffer, bytes, "a tensor without a name");
}

static int refuse(struct npumem_error *error, const char *why)
{
	return npumem_error_set(error, NPUMEM_INVALID, "%s", why);
}

/* A tensor without a name whose session is over, one that is nobody's, and a view of such: its bytes go when all
 * have their place. */
static bool is_orphan(const struct recovery *recovery, const struct persist_tensor *kept)
{
	const struct tensor *base =
		kept->saved.base ? device_find(recovery->service->device, kept->saved.base) : NULL;

	return (!kept->name[0] && !recovery_session(recovery, kept->session)) || (base && !base->owner);
}

/* What the device does not look at. */
static int check_cell(const struct recovery *recovery, const struct persist_tensor *kept,
		      struct npumem_error *error)
{
	char label[NPUMEM_NAME_BYTES_MAX + 1] = "";

	if (is_orphan(recovery, kept))
		return 0;
	if (!kept->name[0]) {
		memcpy(label, kept->name + 1, NPUMEM_NAME_BYTES_MAX);
		return names_check_label(label, error);
	}
	if (names_find(&recovery->service->names, kept->uid, kept->name))
		return refuse(error, "another one has its name");
	return names_check(kept->name, error);
}

static int copy_grants(struct service *service, const struct persist_tensor *kept, struct record *record)
{
	if (!kept->n_grants || !kept->name[0])
		return 0;
	record->grants = heap_zalloc(service->heap, 1, sizeof(*record->grants));
	if (!record->grants)
		return -ENOMEM;
	record->grants->n = kept->n_grants;
	for (uint32_t i = 0; i < kept->n_grants; i++) {
		record->grants->to[i].uid = kept->grants[i].uid;
		record->grants->to[i].access = (enum record_access)kept->grants[i].access;
	}
	return 0;
}

static int attach(struct recovery *recovery, struct tensor *tensor, const struct persist_tensor *kept,
		  struct session *session)
{
	struct record *record = tensor_owner_room(tensor);
	struct service *service = recovery->service;

	/* Nobody is to be taken for who made it. */
	if (kept->session > service->last_session && kept->session <= INT64_MAX)
		service->last_session = kept->session;
	if (copy_grants(service, kept, record))
		return -ENOMEM;
	memcpy(record->name, kept->name, sizeof(record->name));
	record->session_id = kept->session;
	if (session && !recovery_is_replay(recovery)) {
		record->request = kept->request;
		record->request_index = kept->index;
		record->maker_cell = session->cell;
	}
	if (tensors_readopt(service, session, kept->uid, tensor)) {
		heap_free(service->heap, record_grants(record));
		return -ENOMEM;
	}
	/* As many as there are: which of them are the latest is known when all have come. */
	if (record->request)
		results_restore_made(session, record);
	*(tensor->base ? &recovery->report->n_views : &recovery->report->n_tensors) += 1;
	return 0;
}

static void lose_tensor(struct recovery *recovery, const struct persist_tensor *kept, uint32_t slot,
			const struct npumem_error *error)
{
	if (++recovery->report->n_refused <= LINES_MAX)
		recovery_say(recovery, true, "lost: tensor %.63s of uid %" PRIu32 ": %s",
			     kept->name[0] ? kept->name : "without a name", kept->uid, error->message);
	recovery_drop(recovery, STORE_TENSORS, slot, device_handle_stamp(kept->saved.handle));
}

static int restore_tensor(struct recovery *recovery, uint32_t slot, const struct persist_tensor *kept)
{
	struct service *service = recovery->service;
	struct npumem_error error = {.status = 0};
	struct error_context context = {.error = &error, .name = name_plainly};
	struct tensor *tensor;
	int status = check_cell(recovery, kept, &error);

	if (!status)
		status = device_restore(service->device, &kept->saved, &tensor, &context);
	if (status < 0)
		return status;
	if (status) {
		lose_tensor(recovery, kept, slot, &error);
		return 0;
	}
	if (!is_orphan(recovery, kept))
		return attach(recovery, tensor, kept, recovery_session(recovery, kept->session));
	recovery->report->n_ended++;
	return 0;
}

enum { PASSES = 3 };

/* Those that have no tensor. One that is damaged is never used again, as nobody knows what handles it gave. Counts
 * the tensors of each pass. */
static int restore_slots(struct recovery *recovery, uint32_t n_of_pass[PASSES])
{
	uint32_t n = store_n_cells(recovery->store, STORE_TENSORS);
	int status = device_restore_begin(recovery->service->device, n);
	struct persist_tensor kept;
	size_t bytes;

	for (uint32_t slot = n; slot-- > 0 && !status;) {
		uint64_t stamp = store_stamp(recovery->store, STORE_TENSORS, slot);
		bool is_lost = store_is_lost(recovery->store, STORE_TENSORS, slot);

		if (!is_lost && recovery_tensor(recovery, slot, &kept)) {
			n_of_pass[device_saved_pass(&kept.saved)]++;
			continue;
		}
		if (is_lost || store_cell(recovery->store, STORE_TENSORS, slot, &bytes)) {
			recovery->report->n_damaged++;
			recovery_drop(recovery, STORE_TENSORS, slot, UINT64_MAX);
		} else if (stamp <= UINT32_MAX) {
			device_restore_free(recovery->service->device, slot, stamp);
		}
	}
	return status;
}

int recover_tensors(struct recovery *recovery)
{
	uint32_t n = store_n_cells(recovery->store, STORE_TENSORS), n_of_pass[PASSES] = {0};
	int status = restore_slots(recovery, n_of_pass);

	for (unsigned pass = 0; pass < PASSES; pass++)
		for (uint32_t slot = 0; slot < n && n_of_pass[pass] && !status; slot++) {
			struct persist_tensor kept;

			if (recovery_tensor(recovery, slot, &kept) && device_saved_pass(&kept.saved) == pass)
				status = restore_tensor(recovery, slot, &kept);
		}
	for (uint32_t i = 0; i < recovery->n_sessions && !status; i++)
		results_sort_made(recovery->sessions[i].session);
	if (recovery->report->n_damaged)
		recovery_say(recovery, true, "lost: %" PRIu32 " tensors, whose cells are damaged",
			     recovery->report->n_damaged);
	return status;
}

/* A view whose base was freed may be left when the daemon ends: what made it is kept, as where it goes by itself.
 */
static void keep_made(const struct recovery *recovery, const struct tensor *tensor)
{
	struct persist_tensor kept;
	bool is_kept = recovery_tensor(recovery, device_handle_slot(tensor->handle), &kept);
	struct session *session = is_kept && kept.request && !recovery_is_replay(recovery)
					  ? recovery_session(recovery, kept.session)
					  : NULL;

	if (session)
		results_put_made(session, kept.request, kept.index, tensor);
}

/* Their bytes are zeroed and never written. Views first, as a base takes its own along. */
static void release_orphans(struct recovery *recovery, bool views)
{
	struct device *device = recovery->service->device;
	struct tensor *tensor = device_next(device, NULL), *next;

	for (; tensor; tensor = next) {
		next = device_next(device, tensor);
		if (tensor->owner || !tensor->base == views)
			continue;
		keep_made(recovery, tensor);
		recovery_drop(recovery, STORE_TENSORS, device_handle_slot(tensor->handle),
			      device_handle_stamp(tensor->handle));
		device_release(device, tensor, NULL, NULL);
	}
}

void recover_end_orphans(struct recovery *recovery)
{
	release_orphans(recovery, true);
	release_orphans(recovery, false);
}
