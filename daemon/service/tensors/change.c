/* Seals, names and grants. Each change and its result (results.h) are one commit. */
#include <inttypes.h>
#include <string.h>

#include "daemon/service/kept/results.h"
#include "daemon/service/observed/events.h"
#include "daemon/service/tables.h"
#include "daemon/service/tensors/tensors.h"

/* Commits a prepared change with its result. */
static void keep_change(struct session *session, const struct tensor *tensor)
{
	persist_put(session->service, tensor);
	results_put(session, (struct results_cell){.kind = RESULTS_CHANGED, .handle = tensor->handle});
	persist_commit(&session->service->persist);
}

int tensors_seal(struct session *session, struct tensor *tensor, struct npumem_error *error)
{
	int status = results_prepare(session, 1, error);

	if (status)
		return status;
	device_seal(tensor);
	keep_change(session, tensor);
	events_tensor(session->service, EVENTS_SEALED, tensor, session, -1);
	return 0;
}

/* Whether the record may have this name instead of its own. */
static int check_new_name(struct session *session, const struct record *record, const char *name,
			  struct npumem_error *error)
{
	const struct record *other;
	int status;

	if (!record->name[0])
		return npumem_error_set(error, NPUMEM_INVALID,
					"a tensor without a name dies with its session and cannot be renamed");
	status = names_check(name, error);
	if (status)
		return status;
	other = names_find(&session->service->names, record->uid, name);
	if (!other || other == record)
		return 0;
	npumem_error_set(error, NPUMEM_ALREADY_EXISTS, "there is a tensor %s already", name);
	npumem_error_text(error, "tensor", name);
	return NPUMEM_ALREADY_EXISTS;
}

int tensors_rename(struct session *session, struct tensor *tensor, const char *name, struct npumem_error *error)
{
	struct names *names = &session->service->names;
	struct record *record = record_of(tensor);
	char before[NPUMEM_NAME_BYTES_MAX + 1];
	int status = check_new_name(session, record, name, error);

	if (status || !strcmp(record->name, name))
		return status;
	status = results_prepare(session, 1, error);
	if (status)
		return status;
	memcpy(before, record->name, sizeof(before));
	names_remove(names, record);
	memset(record->name, 0, sizeof(record->name));
	memcpy(record->name, name, strlen(name));
	names_add(names, record);
	record->changed_at = ++session->service->changes;
	keep_change(session, tensor);
	events_renamed(session->service, tensor, session, before);
	return 0;
}

/* Makes room for grants, charged to the owner's user until the tensor goes. 0; RESOURCE_EXHAUSTED. */
static int make_grants(struct session *session, struct record *record, struct npumem_error *error)
{
	struct limits_table *limits = &session->service->limits;
	int status;

	if (record->grants)
		return 0;
	status = limits_check(limits, record->user, LIMITS_HOST_BYTES, sizeof(*record->grants), error);
	if (status)
		return status;
	record->grants = heap_zalloc(session->service->heap, 1, sizeof(*record->grants));
	if (!record->grants)
		return heap_exhausted(error);
	record->host_bytes += (uint32_t)sizeof(*record->grants);
	limits_charge(limits, record->user, LIMITS_HOST_BYTES, sizeof(*record->grants));
	return 0;
}

/* Sets or removes the i-th grant, which is the uid's or a new one. */
static void set_grant(struct record_grants *grants, unsigned i, uint32_t uid, enum record_access access)
{
	if (access != RECORD_NONE) {
		grants->to[i].uid = uid;
		grants->to[i].access = access;
		grants->n += i == grants->n;
	} else if (i < grants->n) {
		grants->to[i] = grants->to[--grants->n];
	}
}

int tensors_grant(struct session *session, struct tensor *tensor, uint32_t uid, enum record_access access,
		  struct npumem_error *error)
{
	struct record *record = record_of(tensor);
	struct record_grants *grants;
	unsigned i = 0;
	int status;

	if (!record->name[0])
		return npumem_error_set(error, NPUMEM_INVALID,
					"a tensor without a name dies with its session and cannot be granted");
	if (uid == record->uid)
		return npumem_error_set(error, NPUMEM_INVALID, "uid %" PRIu32 " owns %s", uid, record->name);
	status = make_grants(session, record, error);
	if (status)
		return status;
	grants = record->grants;
	while (i < grants->n && grants->to[i].uid != uid)
		i++;
	if (access != RECORD_NONE && i == RECORD_GRANTS_MAX)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"%s is granted to %d uids, the most that it can be", record->name,
					RECORD_GRANTS_MAX);
	status = results_prepare(session, 1, error);
	if (status)
		return status;
	set_grant(grants, i, uid, access);
	keep_change(session, tensor);
	return 0;
}
