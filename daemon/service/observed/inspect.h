/* Raw reads of the device's memory. */
#ifndef SERVICE_INSPECT_H
#define SERVICE_INSPECT_H

#include "daemon/service/tensors/access.h"

enum { INSPECT_DUMP_BYTES_MAX = 1 << 20 };

/* A dump of [offset, offset + bytes) of one NPU, in parts, between which tensors may come and go: the bytes of a
 * part are read before anything else happens. */
struct inspect_dump {
	const struct session *session;
	int64_t npu, offset, bytes;
	int64_t done_bytes; /* the caller's: of the parts that were read */
};

/* 0; INVALID: the range is outside of the device, or has more than INSPECT_DUMP_BYTES_MAX. */
int inspect_dump_begin(struct inspect_dump *dump, const struct session *session, int64_t npu, int64_t offset,
		       int64_t bytes, struct npumem_error *error);

/* Whether the session may read the next part: *part_bytes from done_bytes on: all that is left, or fewer if
 * footprints of very many tensors lie there (device_each_at). `found` (NULL: nothing) is called with each tensor
 * of the part; a result that is not 0 ends the check. 0; PERMISSION_DENIED: the session does not see one of them;
 * or what `found` returned. */
int inspect_dump_part(const struct inspect_dump *dump, int (*found)(void *ctx, struct tensor *tensor), void *ctx,
		      int64_t *part_bytes, struct npumem_error *error);

#endif
