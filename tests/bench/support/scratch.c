/* Killed daemons leave their sockets, so everything in the directory is removed. Processes that fork from the
 * bench do not end by exit(), or not as its owner. */
#include "tests/bench/support/scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/bench/support/peer.h"

static char directory[] = "/tmp/npumem-bench-XXXXXX";
static pid_t owner;

static char *path_of(const char *name, char path[SCRATCH_PATH_BYTES])
{
	snprintf(path, SCRATCH_PATH_BYTES, "%s/%.64s", directory, name);
	return path;
}

static void clean_up(void)
{
	char path[SCRATCH_PATH_BYTES];
	DIR *files = owner == getpid() ? opendir(directory) : NULL;
	for (struct dirent *file; files && (file = readdir(files));)
		if (file->d_name[0] != '.')
			unlink(path_of(file->d_name, path));
	if (!files)
		return;
	closedir(files);
	rmdir(directory);
}

char *scratch_path(const char *name, char path[SCRATCH_PATH_BYTES])
{
	if (!owner) {
		if (!mkdtemp(directory))
			peer_die("no directory");
		owner = getpid();
		atexit(clean_up);
	}
	return path_of(name, path);
}
