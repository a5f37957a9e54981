/* The rules of access.h; the only file that knows them. Invariant: a message about a tensor that the session does
 * not see depends only on its uid and its size. */
#include "daemon/service/tensors/access.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/device/device.h"
#include "daemon/service/tables.h"

/* The right of a uid to a tensor, as owner or by a grant. */
static unsigned right_of_uid(const struct service *service, uint32_t uid, const struct record *record)
{
	const struct record_grants *grants = record_grants(record);

	if (record->uid == uid || uid == 0 || uid == service->uid)
		return ACCESS_OWN;
	for (unsigned i = 0; grants && i < grants->n; i++)
		if (grants->to[i].uid == uid)
			return grants->to[i].access;
	return RECORD_NONE;
}

static unsigned right_of(const struct session *session, const struct record *record)
{
	if (!record->name[0])
		return record->session_id == session->id ? ACCESS_OWN : RECORD_NONE;
	return right_of_uid(session->service, session->uid, record);
}

/* The right of a view's owner to its base; ACCESS_OWN for a root. */
static unsigned right_behind(const struct session *session, const struct tensor *tensor)
{
	const struct record *record = record_of(tensor);

	if (!tensor->base || record->uid == record_of(tensor->base)->uid)
		return ACCESS_OWN;
	return right_of_uid(session->service, record->uid, record_of(tensor->base));
}

int access_check(const struct session *session, const struct tensor *tensor, enum access_need need,
		 struct npumem_error *error)
{
	unsigned right = right_of(session, record_of(tensor));
	char name[ERROR_CONTEXT_NAME_BYTES];

	/* A view may be freed without a right to its base. */
	if (need != ACCESS_OWN && right > right_behind(session, tensor))
		right = right_behind(session, tensor);
	if (right >= (unsigned)need)
		return 0;
	if (!right_of(session, record_of(tensor)))
		return npumem_error_set(error, NPUMEM_NOT_FOUND,
					"a tensor that was found is not granted to uid %" PRIu32 " any more",
					session->uid);
	access_name(session, tensor, name, sizeof(name));
	npumem_error_set(error, NPUMEM_PERMISSION_DENIED, "uid %" PRIu32 " may %s %s, and not %s it", session->uid,
			 right == ACCESS_WRITE	? "write"
			 : right == ACCESS_READ ? "read"
						: "name",
			 name,
			 need == ACCESS_OWN	? "seal, free, rename or grant"
			 : need == ACCESS_WRITE ? "write"
						: "read");
	npumem_error_text(error, "tensor", name);
	return NPUMEM_PERMISSION_DENIED;
}

int access_check_base(const struct session *session, const struct tensor *base, struct npumem_error *error)
{
	const struct tensor *root = tensor_root(base);
	char name[ERROR_CONTEXT_NAME_BYTES], of_root[ERROR_CONTEXT_NAME_BYTES];

	if (right_of_uid(session->service, session->uid, record_of(root)) >= ACCESS_READ)
		return 0;
	access_name(session, base, name, sizeof(name));
	access_name(session, root, of_root, sizeof(of_root));
	npumem_error_set(error, NPUMEM_PERMISSION_DENIED,
			 "uid %" PRIu32 " may use %s, and not its base, %s: it could not read a view of its own",
			 session->uid, name, of_root);
	npumem_error_text(error, "tensor", name);
	return NPUMEM_PERMISSION_DENIED;
}

/* Splits "UID:NAME". False where what is before the colon is no uid. */
static bool split_uid(const char *text, uint32_t *uid, const char **name)
{
	uint64_t value = 0;
	const char *c = text;

	for (; *c >= '0' && *c <= '9'; c++) {
		value = value * 10 + (uint64_t)(*c - '0');
		if (value > UINT32_MAX)
			return false;
	}
	if (c == text || *c != ':')
		return false;
	*uid = (uint32_t)value;
	*name = c + 1;
	return true;
}

static struct record *find_named(const struct session *session, const char *text)
{
	uint32_t uid = session->uid;
	const char *name = text;

	if (strchr(text, ':') && !split_uid(text, &uid, &name))
		return NULL;
	return names_find(&session->service->names, uid, name);
}

static struct record *find_handle(const struct session *session, uint64_t handle)
{
	struct tensor *tensor = device_find(session->service->device, handle);

	return tensor && !record_is_gone(record_of(tensor)) ? record_of(tensor) : NULL;
}

int access_find(const struct session *session, const struct access_ref *ref, enum access_need need,
		struct tensor **out, struct npumem_error *error)
{
	struct record *record;

	*out = NULL;
	if (!ref->handle && !ref->name[0])
		return npumem_error_set(error, NPUMEM_INVALID, "a tensor with neither handle nor name");
	record = ref->handle ? find_handle(session, ref->handle) : find_named(session, ref->name);
	if (record && right_of(session, record))
		*out = record_tensor(record);
	if (*out && !record_is_going(record))
		return access_check(session, *out, need, error);
	if (ref->handle)
		return npumem_error_set(error, NPUMEM_NOT_FOUND, "there is no tensor with handle %" PRIu64,
					ref->handle);
	return npumem_error_set(error, NPUMEM_NOT_FOUND, "there is no tensor %.80s", ref->name);
}

bool access_sees(const struct session *session, const struct tensor *tensor)
{
	return session_is_admin(session) || right_of(session, record_of(tensor));
}

/* For any thread: reads only members that do not change while an operation uses the tensor, unlike its grants. */
static void name_in_full(const struct session *session, const struct tensor *tensor, char *buffer, size_t bytes)
{
	const struct record *record = record_of(tensor);

	char label[NPUMEM_NAME_BYTES_MAX + 1];

	if (!record->name[0] && record_label(record, label))
		snprintf(buffer, bytes, "%s #%" PRIu64, label, tensor->handle);
	else if (!record->name[0])
		snprintf(buffer, bytes, "tensor #%" PRIu64, tensor->handle);
	else if (record->uid != session->uid)
		snprintf(buffer, bytes, "%" PRIu32 ":%s", record->uid, record->name);
	else
		snprintf(buffer, bytes, "%s", record->name);
}

void access_name(const struct session *session, const struct tensor *tensor, char *buffer, size_t bytes)
{
	const struct record *record = record_of(tensor);

	/* In the middle of an allocation its tensors have no record yet. */
	if (!record)
		snprintf(buffer, bytes, "a tensor that is being placed (%" PRId64 " bytes per NPU)",
			 tensor_bytes_per_npu(tensor));
	else if (!access_sees(session, tensor))
		snprintf(buffer, bytes, "a tensor of uid %" PRIu32 " (%" PRId64 " bytes per NPU)", record->uid,
			 tensor_bytes_per_npu(tensor));
	else
		name_in_full(session, tensor, buffer, bytes);
}

static void name_for_session(void *ctx, const struct tensor *tensor, char *buffer, size_t bytes)
{
	access_name(ctx, tensor, buffer, bytes);
}

struct error_context access_context(const struct session *session, struct npumem_error *error)
{
	return (struct error_context){.error = error, .name = name_for_session, .ctx = (void *)session};
}

static void name_own(void *ctx, const struct tensor *tensor, char *buffer, size_t bytes)
{
	name_in_full(ctx, tensor, buffer, bytes);
}

struct error_context access_context_of_own(const struct session *session, struct npumem_error *error)
{
	return (struct error_context){.error = error, .name = name_own, .ctx = (void *)session};
}
