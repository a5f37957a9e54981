/* Checksums of the device's contents: to compare two devices, or one device at two times. */
#ifndef SERVICE_CHECKSUM_H
#define SERVICE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

struct npumem_error;
struct service;
struct session;

/* Above this many bytes of local memory its own checksums are left out: they would take minutes. */
#define CHECKSUM_LOCAL_BYTES_MAX ((int64_t)4 << 30)

struct checksum {
	/* Of the data of all tensors, by name, type and shape: the same wherever they lie. */
	uint64_t hash;
	/* zlib's CRC-32 of each NPU's local memory, as `dump` has it. */
	uint32_t *local;
	size_t n_local;

	struct session *session;
};

/* About how long one takes, in the measure of op_cost. */
int64_t checksum_cost(const struct service *service);

/* 0; PERMISSION_DENIED, RESOURCE_EXHAUSTED: none is made. While it exists, no waiting allocation is granted. */
int checksum_new(struct session *session, struct checksum **out, struct npumem_error *error);
/* On any thread, in an exclusive entry (scheduler.h): nothing writes local memory meanwhile, and no tensor comes,
 * goes or moves. */
void checksum_run(void *checksum);
void checksum_free(struct checksum *checksum);

#endif
