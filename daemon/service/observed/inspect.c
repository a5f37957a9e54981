/* A dump shows the bytes of all tensors in its range, so it needs the right to read each of them. */
#include "daemon/service/observed/inspect.h"

#include <inttypes.h>

#include "daemon/service/tables.h"

static int check_range(const struct session *session, int64_t npu, int64_t offset, int64_t bytes,
		       struct npumem_error *error)
{
	const struct npumem_geometry *geometry = &device_options(session->service->device)->geometry;

	if (npu < 0 || npu >= geometry->n_npus)
		return npumem_error_set(error, NPUMEM_INVALID,
					"NPU %" PRId64 " is not one of the %" PRId64 " NPUs of this device", npu,
					geometry->n_npus);
	if (bytes < 1 || bytes > INSPECT_DUMP_BYTES_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "%" PRId64 " bytes to dump, which is not 1 to %d",
					bytes, INSPECT_DUMP_BYTES_MAX);
	if (offset < 0 || offset > geometry->npu_bytes || bytes > geometry->npu_bytes - offset)
		return npumem_error_set(error, NPUMEM_INVALID,
					"%" PRId64 " bytes from offset %" PRId64 " pass the %" PRId64
					" bytes of an NPU",
					bytes, offset, geometry->npu_bytes);
	return 0;
}

int inspect_dump_begin(struct inspect_dump *dump, const struct session *session, int64_t npu, int64_t offset,
		       int64_t bytes, struct npumem_error *error)
{
	*dump = (struct inspect_dump){
		.session = session, .npu = npu, .offset = offset, .bytes = bytes, .done_bytes = 0};
	return check_range(session, npu, offset, bytes, error);
}

static int refuse_hidden(const struct inspect_dump *dump, const struct tensor *hidden, struct npumem_error *error)
{
	char name[ERROR_CONTEXT_NAME_BYTES];
	int status;

	access_name(dump->session, hidden, name, sizeof(name));
	status = npumem_error_set(error, NPUMEM_PERMISSION_DENIED,
				  "offsets %" PRId64 " to %" PRId64 " of NPU %" PRId64
				  " hold bytes of %s, which uid %" PRIu32 " may not read",
				  dump->offset, dump->offset + dump->bytes - 1, dump->npu, name,
				  dump->session->uid);
	npumem_error_text(error, "tensor", name);
	return status;
}

struct part {
	const struct inspect_dump *dump;
	int (*found)(void *ctx, struct tensor *tensor);
	void *ctx;
	struct npumem_error *error;
	int status;
};

static bool check_one(void *ctx, struct tensor *tensor)
{
	struct part *part = ctx;

	/* A tensor that is being placed has no data yet. */
	if (!record_of(tensor))
		return true;
	if (!session_is_admin(part->dump->session) && !access_sees(part->dump->session, tensor))
		part->status = refuse_hidden(part->dump, tensor, part->error);
	else if (part->found)
		part->status = part->found(part->ctx, tensor);
	return !part->status;
}

int inspect_dump_part(const struct inspect_dump *dump, int (*found)(void *ctx, struct tensor *tensor), void *ctx,
		      int64_t *part_bytes, struct npumem_error *error)
{
	struct part part = {.dump = dump, .found = found, .ctx = ctx, .error = error};

	/* A footprint has the same offsets on every NPU. Views are not considered: a view of another user hides
	 * nothing of a base that the session may read, and a granted view does not open the rest of its base. */
	*part_bytes = dump->bytes - dump->done_bytes;
	device_each_at(dump->session->service->device, dump->offset + dump->done_bytes, part_bytes, check_one,
		       &part);
	return part.status;
}
