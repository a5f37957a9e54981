/* Owns nothing beyond a call. A snapshot with one wrong bit is refused as a whole: it is unknown whose data is
 * wrong. */
#include "daemon/store/image/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <zlib.h>

#include "daemon/store/files/calls.h"

#define MANIFEST_MAGIC "npumem\2m"

enum { MANIFEST_VERSION = 1, MANIFEST_BYTES_MAX = 1 << 26 };

void manifest_seal(struct manifest *manifest, const uint8_t *state, uint32_t n_parts)
{
	memcpy(manifest->magic, MANIFEST_MAGIC, sizeof(manifest->magic));
	manifest->version = MANIFEST_VERSION;
	manifest->n_parts = n_parts;
	memcpy(manifest->state, state, sizeof(manifest->state));
}

static uint32_t checksum(const struct manifest *manifest, uint32_t n_parts)
{
	return (uint32_t)crc32_z(0, (const uint8_t *)manifest, manifest_bytes(n_parts) - sizeof(uint32_t));
}

void manifest_close(struct manifest *manifest)
{
	manifest_crcs(manifest)[manifest->n_parts] = checksum(manifest, manifest->n_parts);
}

static int refuse(const struct opening *opening, int status, const char *what)
{
	snprintf(opening->error, STORE_ERROR_BYTES, "%.200s/" MANIFEST_NAME ": %s", opening->options->directory,
		 what);
	return status;
}

static int judge(const struct opening *opening, enum store_verdict verdict, const char *what)
{
	opening->report->verdict = verdict;
	return refuse(opening, verdict_status(verdict), what);
}

/* ---- reading ---- */

static int check_part(const struct opening *opening, enum format_file file, uint64_t off, uint8_t *buffer,
		      uint32_t crc)
{
	uint64_t left = opening->bytes[file] - off, want = left < MANIFEST_PART_BYTES ? left : MANIFEST_PART_BYTES;
	int64_t n = calls_read(opening->options->hooks, opening->store->fds[file], buffer, want, off);

	if (n < 0)
		return opening_refuse(opening, file, (int)n, "cannot be read: %s", strerror((int)-n));
	if ((uint32_t)crc32_z(0, buffer, want) == crc)
		return 0;
	return opening_judge(opening, file, STORE_DAMAGED,
			      "is damaged: its bytes from %llu to %llu are not those of the snapshot",
			      (unsigned long long)off, (unsigned long long)(off + want - 1));
}

static int check_files(const struct opening *opening, const uint32_t *crcs)
{
	uint8_t *buffer = heap_alloc(opening->options->heap, MANIFEST_PART_BYTES);
	int status = buffer ? 0 : -ENOMEM;

	for (enum format_file file = 0; !status && file < FORMAT_FILES; file++)
		for (uint64_t off = 0; !status && off < opening->bytes[file]; off += MANIFEST_PART_BYTES)
			status = check_part(opening, file, off, buffer, *crcs++);
	heap_free(opening->options->heap, buffer);
	return status;
}

/* Checks the manifest, the lengths of the files, and their checksums. */
static int check_all(const struct opening *opening, struct manifest *manifest, uint64_t bytes)
{
	uint64_t n_parts = 0;

	if (bytes < manifest_bytes(0) || memcmp(manifest->magic, MANIFEST_MAGIC, sizeof(manifest->magic)))
		return judge(opening, STORE_DAMAGED, "is not the manifest of a snapshot");
	if (manifest->version != MANIFEST_VERSION)
		return judge(opening, STORE_NEWER_FORMAT, "is of another version");
	if (bytes != manifest_bytes(manifest->n_parts) ||
	    manifest_crcs(manifest)[manifest->n_parts] != checksum(manifest, manifest->n_parts))
		return judge(opening, STORE_DAMAGED, "is damaged");
	for (enum format_file file = 0; file < FORMAT_FILES; file++) {
		if (manifest->bytes[file] != opening->bytes[file])
			return opening_judge(opening, file, STORE_DAMAGED,
					      "has %llu bytes, not the %llu of the snapshot",
					      (unsigned long long)opening->bytes[file],
					      (unsigned long long)manifest->bytes[file]);
		n_parts += manifest_parts(manifest->bytes[file]);
	}
	if (n_parts != manifest->n_parts)
		return judge(opening, STORE_DAMAGED, "is damaged");
	return check_files(opening, manifest_crcs(manifest));
}

static int read_all(const struct opening *opening, int fd)
{
	const struct store_options *options = opening->options;
	struct statx stat;
	int status = calls_stat(options->hooks, fd, &stat);

	if (!status && (!S_ISREG(stat.stx_mode) || stat.stx_size > MANIFEST_BYTES_MAX))
		return judge(opening, STORE_DAMAGED, "is not the manifest of a snapshot");
	if (status)
		return refuse(opening, status, strerror(-status));
	struct manifest *manifest = heap_zalloc(options->heap, 1, stat.stx_size + manifest_bytes(0));
	if (!manifest)
		return -ENOMEM;
	int64_t n = calls_read(options->hooks, fd, manifest, stat.stx_size, 0);
	status = n < 0 ? refuse(opening, (int)n, strerror((int)-n)) : check_all(opening, manifest, (uint64_t)n);
	heap_free(options->heap, manifest);
	return status;
}

static int open_directory(const struct opening *opening)
{
	return calls_open(opening->options->hooks, AT_FDCWD, opening->options->directory, O_RDONLY | O_DIRECTORY);
}

int manifest_check(const struct opening *opening, bool *is_there)
{
	*is_there = false;
	if (!opening->options->directory)
		return 0;
	int directory = open_directory(opening);
	if (directory < 0)
		return directory;
	int fd = calls_open(opening->options->hooks, directory, MANIFEST_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	close(directory);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return refuse(opening, fd, strerror(-fd));
	*is_there = true;
	int status = read_all(opening, fd);
	close(fd);
	return status;
}

int manifest_remove(const struct opening *opening)
{
	int directory = open_directory(opening), status = directory < 0 ? directory : 0;

	if (!status)
		status = calls_remove(opening->options->hooks, directory, MANIFEST_NAME);
	if (!status)
		status = calls_sync(opening->options->hooks, directory);
	if (directory >= 0)
		close(directory);
	return status ? refuse(opening, status, strerror(-status)) : 0;
}
