/* The manifest of a snapshot: the lengths of its files, and a checksum of every MiB of them. */
#ifndef STORE_MANIFEST_H
#define STORE_MANIFEST_H

#include "daemon/store/opening.h"

enum { MANIFEST_PART_BYTES = 1 << 20 };

#define MANIFEST_NAME "manifest"

/* n_parts checksums (crc32) follow, file by file, and then one of all bytes before it. */
struct manifest {
	char magic[8];
	uint32_t version, n_parts;
	uint8_t state[FORMAT_ID_BYTES];
	uint64_t bytes[FORMAT_FILES];
};
static_assert(sizeof(struct manifest) % 8 == 0, "");

static inline uint64_t manifest_parts(uint64_t file_bytes)
{
	return (file_bytes + MANIFEST_PART_BYTES - 1) / MANIFEST_PART_BYTES;
}

/* Sets all but `bytes` and the checksums of parts. */
void manifest_seal(struct manifest *manifest, const uint8_t *state, uint32_t n_parts);
static inline uint32_t *manifest_crcs(struct manifest *manifest)
{
	return (uint32_t *)(void *)(manifest + 1);
}
static inline uint64_t manifest_bytes(uint64_t n_parts)
{
	return sizeof(struct manifest) + (n_parts + 1) * sizeof(uint32_t);
}
/* Sets the last checksum, after all others. */
void manifest_close(struct manifest *manifest);

/* Checks all files if there is a manifest (*is_there). 0; -EINVAL: they differ from the snapshot; -errno. */
int manifest_check(const struct opening *opening, bool *is_there);
/* Removes the manifest before the state changes. 0 or -errno. */
int manifest_remove(const struct opening *opening);

#endif
