/* A map has lines of three numbers: the first uid inside, the first outside, and how many. All uids but the last,
 * which is none, are covered by the map of the first namespace and of any that was given as much. */
#include "daemon/server/connections/identity.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_OVERFLOW_UID = 65534, TEXT_BYTES = 4096 };

/* False where there is none. */
static bool next_number(const char **at, uint64_t *number)
{
	char *end;

	*number = strtoull(*at, &end, 10);
	if (end == *at)
		return false;
	*at = end;
	return true;
}

static uint64_t covered(const char *map)
{
	uint64_t sum = 0, inside, outside, count;

	while (next_number(&map, &inside) && next_number(&map, &outside) && next_number(&map, &count))
		sum += count;
	return sum;
}

void identity_parse(struct identity *identity, const char *uid_map, const char *overflow_uid)
{
	identity->is_partial = !uid_map || covered(uid_map) < UINT32_MAX;
	identity->overflow_uid = DEFAULT_OVERFLOW_UID;
	if (overflow_uid && *overflow_uid >= '0' && *overflow_uid <= '9')
		identity->overflow_uid = (uint32_t)strtoul(overflow_uid, NULL, 10);
}

static const char *read_text(const char *path, char text[TEXT_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return NULL;
	n = read(fd, text, TEXT_BYTES - 1);
	close(fd);
	if (n < 0)
		return NULL;
	text[n] = 0;
	return text;
}

void identity_init(struct identity *identity)
{
	char map_text[TEXT_BYTES], uid_text[TEXT_BYTES];
	const char *map = read_text("/proc/self/uid_map", map_text);

	identity_parse(identity, map, NULL);
	/* Hidden from a unit with ProcSubset=pid. */
	if (identity->is_partial)
		identity_parse(identity, map, read_text("/proc/sys/kernel/overflowuid", uid_text));
}
