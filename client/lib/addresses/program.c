/* Where npumemd is: $NPUMEMD; else where this library was installed with it, wherever that is now; else in $PATH;
 * else where the build installs it. Of a program with more rights than its caller's the last one only. A static
 * npumemctl has its daemon inside. Looks only where the environment, the build or the place of this library say:
 * not beside the running program, which may lie in a folder where others can put one. */
#define _GNU_SOURCE /* dladdr, secure_getenv */
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <npumem/client.h>

#ifndef PROGRAM_INSTALLED /* where the build installs it */
#define PROGRAM_INSTALLED "/usr/bin/npumemd"
#endif
#ifndef PROGRAM_FROM_LIBRARY /* its folder, from that of the library */
#define PROGRAM_FROM_LIBRARY "../bin"
#endif
#ifndef PROGRAM_INSIDE /* whether this program is the daemon, too, where argv[0] says so */
#define PROGRAM_INSIDE 0
#endif

static bool set(struct npumem_program *program, const char *path)
{
	int n = snprintf(program->path, sizeof(program->path), "%s", path);
	return n > 0 && (size_t)n < sizeof(program->path);
}

static bool find_beside_library(struct npumem_program *program)
{
	static const char inside_library;
	char library[PATH_MAX], path[2 * PATH_MAX];
	Dl_info info;
	if (!dladdr(&inside_library, &info) || !info.dli_fname || !realpath(info.dli_fname, library))
		return false;
	*strrchr(library, '/') = 0;
	snprintf(path, sizeof(path), "%s/%s/npumemd", library, PROGRAM_FROM_LIBRARY);
	return !access(path, X_OK) && set(program, path);
}

static bool is_in_path(void)
{
	const char *path = secure_getenv("PATH");
	char file[PATH_MAX];
	while (path && *path) {
		int length = (int)strcspn(path, ":");
		int n = snprintf(file, sizeof(file), "%.*s/npumemd", length, path);
		if (length && n > 0 && (size_t)n < sizeof(file) && !access(file, X_OK))
			return true;
		path += length;
		path += *path == ':';
	}
	return false;
}

const char *npumem_program(struct npumem_program *program)
{
	const char *chosen = secure_getenv("NPUMEMD");
	/* The environment is set by the caller, which may have fewer rights than this program. */
	bool trusted = !getauxval(AT_SECURE);
	if (chosen && *chosen && set(program, chosen))
		return program->path;
	if (PROGRAM_INSIDE) {
		const char *self = "/proc/self/exe";
		set(program, access(self, X_OK) ? (const char *)getauxval(AT_EXECFN) : self);
		return "npumemd";
	}
	if (trusted && find_beside_library(program))
		return program->path;
	set(program, is_in_path() ? "npumemd" : PROGRAM_INSTALLED);
	return program->path;
}
