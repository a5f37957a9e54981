/* A dump shows everybody's bytes as they lie, so it is allowed by offsets and not by tensors. */
#include "daemon/service/observed/inspect.h"

#include <inttypes.h>

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

struct look {
	const struct session *session;
	const struct tensor *hidden;
};

static bool is_seen(void *ctx, struct tensor *tensor)
{
	struct look *look = ctx;

	/* In one that is being placed there is nothing yet. */
	if (!record_of(tensor) || access_sees(look->session, tensor))
		return true;
	look->hidden = tensor;
	return false;
}

int inspect_dump_check(const struct session *session, int64_t npu, int64_t offset, int64_t bytes,
		       struct npumem_error *error)
{
	struct look look = {.session = session};
	char name[ERROR_CONTEXT_NAME_BYTES];
	int status = check_range(session, npu, offset, bytes, error);

	if (status || session_is_admin(session))
		return status;
	/* A footprint takes its offsets on every NPU, whatever lies there. Views have no bytes of their own:
	 * others' over what one may read hide nothing, and one that was granted does not open what lies around it
	 * in its base. */
	if (device_each_at(session->service->device, offset, bytes, is_seen, &look))
		return 0;
	access_name(session, look.hidden, name, sizeof(name));
	status = npumem_error_set(error, NPUMEM_PERMISSION_DENIED,
				  "offsets %" PRId64 " to %" PRId64 " of NPU %" PRId64
				  " hold bytes of %s, which uid %" PRIu32 " may not read",
				  offset, offset + bytes - 1, npu, name, session->uid);
	npumem_error_text(error, "tensor", name);
	return status;
}
