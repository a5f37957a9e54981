/* One memfd that /proc leads to, and links to it in a folder that goes with the process. */
#include "tests/fuzz/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

enum { PATH_BYTES = 128, LINKS_MAX = 8 };

static int fd = -1;
static char own[PATH_BYTES], folder[PATH_BYTES], links[LINKS_MAX][PATH_BYTES + 16];
static unsigned n_links;

static void clean(void)
{
	for (unsigned i = 0; i < n_links; i++)
		unlink(links[i]);
	if (folder[0])
		rmdir(folder);
}

const char *file_of(const uint8_t *bytes, size_t n)
{
	if (fd < 0) {
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
	}
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, bytes, n, 0) != (ssize_t)n)
		fuzz_fail("no file for the test itself");
	return own;
}

const char *file_named(const uint8_t *bytes, size_t n, const char *end)
{
	const char *temporary = getenv("TMPDIR");

	file_of(bytes, n);
	for (unsigned i = 0; i < n_links; i++)
		if (strcmp(links[i] + strlen(links[i]) - strlen(end), end) == 0)
			return links[i];
	if (!folder[0]) {
		snprintf(folder, sizeof(folder), "%s/npumem-fuzz-XXXXXX", temporary ? temporary : "/tmp");
		if (!mkdtemp(folder))
			fuzz_fail("no folder for the test itself");
		atexit(clean);
	}
	if (n_links == LINKS_MAX)
		fuzz_fail("more than %d names", LINKS_MAX);
	snprintf(links[n_links], sizeof(links[0]), "%s/x%s", folder, end);
	if (symlink(own, links[n_links]))
		fuzz_fail("no link for the test itself");
	return links[n_links++];
}
