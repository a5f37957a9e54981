/* Runs a target over files, and the files of folders: the corpus, as an ordinary test. Ends by the finding, if
 * there is one; a folder without a file is none of a corpus, and fails. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

enum { PATH_BYTES = 4096 };

static unsigned n_run;

static void run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes;
	size_t n;
	struct stat stat;

	if (!file || fstat(fileno(file), &stat))
		fuzz_fail("%s cannot be read", path);
	/* Of its own size, so that a sanitizer sees a byte beyond it. */
	bytes = malloc(stat.st_size ? (size_t)stat.st_size : 1);
	if (!bytes)
		fuzz_fail("no memory for %s", path);
	n = fread(bytes, 1, (size_t)stat.st_size, file);
	fclose(file);
	if (getenv("NPUMEM_FUZZ_VERBOSE"))
		fprintf(stderr, "%s\n", path);
	LLVMFuzzerTestOneInput(bytes, n);
	free(bytes);
	n_run++;
}

static void run_path(const char *path)
{
	struct dirent **entries;
	struct stat stat_of;
	int n;

	if (stat(path, &stat_of))
		fuzz_fail("there is no %s", path);
	if (!S_ISDIR(stat_of.st_mode)) {
		run_file(path);
		return;
	}
	n = scandir(path, &entries, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char name[PATH_BYTES];

		snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.')
			run_file(name);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		run_path(argv[i]);
	printf("%u inputs\n", n_run);
	return !n_run;
}
