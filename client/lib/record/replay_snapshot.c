/* Which snapshot a directory has. Reads the manifest alone, in which each file's checksums are. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/lib/messages/request.h"
#include "client/lib/record/record.h"
#include "proto/digest.h"

enum { READ_BYTES = 1 << 16 };

static int refuse(struct npumem_error *error, const char *directory, const char *why)
{
	return npumem_error_set(error, NPUMEM_INVALID, "%.200s: %s", directory, why);
}

static int sum_up(int fd, const char *directory, uint64_t *digest, struct npumem_error *error)
{
	uint8_t bytes[READ_BYTES];
	ssize_t n;
	*digest = digest_begin();
	while ((n = read(fd, bytes, sizeof(bytes))) > 0 || (n < 0 && errno == EINTR))
		*digest = n > 0 ? digest_bytes(*digest, bytes, (size_t)n) : *digest;
	return n ? refuse(error, directory, strerror(errno)) : 0;
}

int npumem_replay_check_snapshot(const struct npumem_replay *replay, const char *directory,
				 struct npumem_error *error)
{
	char path[4096];
	struct stat stat;
	uint64_t digest = 0;
	request_clear(error);
	if ((size_t)snprintf(path, sizeof(path), "%s/" RECORD_MANIFEST, directory) >= sizeof(path))
		return refuse(error, directory, "its name is too long");
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return refuse(error, directory,
			      errno == ENOENT
				      ? "it is not a snapshot, or none any more, as a daemon has started from it"
				      : strerror(errno));
	int status = fstat(fd, &stat) || !S_ISREG(stat.st_mode)
			     ? refuse(error, directory, "its manifest is not a file")
			     : sum_up(fd, directory, &digest, error);
	close(fd);
	if (!status && !replay_file(replay)->cut_at && digest != replay_file(replay)->snapshot)
		status = refuse(error, directory,
				"it is another snapshot than the one that the recording begins with");
	return status;
}
