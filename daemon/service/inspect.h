/* What a session may know of the device as a whole, and what it may tidy up. */
#ifndef SERVICE_INSPECT_H
#define SERVICE_INSPECT_H

#include "daemon/service/access.h"

enum { INSPECT_DUMP_BYTES_MAX = 1 << 20 };

struct inspect_stat {
	struct device_counts device;
	uint64_t sessions;
};
void inspect_stat(const struct session *session, struct inspect_stat *stat);

/* Whether the session may read [offset, offset + bytes) of one NPU raw: 0; INVALID outside of the device or above
 * INSPECT_DUMP_BYTES_MAX; PERMISSION_DENIED where a footprint there is not for its eyes. */
int inspect_dump_check(const struct session *session, int64_t npu, int64_t offset, int64_t bytes,
		       struct npumem_error *error);
/* Copies what inspect_dump_check allowed. */
void inspect_dump(const struct session *session, int64_t npu, int64_t offset, int64_t bytes, uint8_t *to);

/* Layout questions, on the device's geometry. 0 or INVALID. */
int inspect_plan(const struct session *session, const struct npumem_spec *spec, struct npumem_plan *plan,
		 struct npumem_error *error);

/* A compaction in steps: device_compact_step with the session's errors, which keeps those that wait for room out
 * of it until it is done, or inspect_compact_end. 0 or RESOURCE_EXHAUSTED. */
int inspect_compact_step(struct session *session, struct device_compaction *compaction, bool dry_run,
			 struct device_move *moves, unsigned most, unsigned *n, struct npumem_error *error);
/* Tells who follows events of moves whose bytes are there. */
void inspect_compact_tell(struct session *session, const struct device_move *moves, unsigned n);
void inspect_compact_end(struct session *session, bool dry_run);

#endif
