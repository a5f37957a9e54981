/* What a session may read of the device raw. */
#ifndef SERVICE_INSPECT_H
#define SERVICE_INSPECT_H

#include "daemon/service/access.h"

enum { INSPECT_DUMP_BYTES_MAX = 1 << 20 };

/* Whether the session may read [offset, offset + bytes) of one NPU: 0; INVALID outside of the device or above
 * INSPECT_DUMP_BYTES_MAX; PERMISSION_DENIED where a footprint there is not for its eyes. */
int inspect_dump_check(const struct session *session, int64_t npu, int64_t offset, int64_t bytes,
		       struct npumem_error *error);

#endif
