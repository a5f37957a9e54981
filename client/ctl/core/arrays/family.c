/* Files of recorded vectors. Only what was recorded is ever added to: a file whose outputs come from a library
 * keeps its source. The new file is written beside the old one and renamed over it, under a lock on the folder. */
#include "client/ctl/core/arrays/family.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char family_source[] = "recorded by npumemctl";
static const char family_layout[] = "data lists are row-major over \"dims\": feature maps N,C,H,W; conv weights "
				    "O,I,H,W (I = input channels per group); fully connected / recurrent weights "
				    "[.., M outputs, N inputs]";

static int trouble(const struct family *family, const char *why, struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_INVALID, "%.300s: %.160s", family->path, why);
}

static int no_memory(struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory for the recorded case");
}

static bool text_is(const json_t *root, const char *key, const char *text)
{
	const char *is = json_string_value(json_object_get(root, key));
	return is && !strcmp(is, text);
}

static int check(const struct family *family, struct npumem_error *error)
{
	const json_t *root = family->root;
	char why[128];
	snprintf(why, sizeof(why), "its family is not \"%s\"", family->kernel);
	if (!text_is(root, "family", family->kernel))
		return trouble(family, why, error);
	if (json_integer_value(json_object_get(root, "format")) != 1)
		return trouble(family, "its format is not 1", error);
	snprintf(why, sizeof(why), "its source is not \"%s\"", family_source);
	if (!text_is(root, "source", family_source))
		return trouble(family, why, error);
	if (!json_is_array(json_object_get(root, "cases")))
		return trouble(family, "it has no list of cases", error);
	return 0;
}

/* The file that is there. */
static int load(struct family *family, int fd, struct npumem_error *error)
{
	struct stat status;
	json_error_t why;
	FILE *file;
	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || !(file = fdopen(fd, "r"))) {
		close(fd);
		return trouble(family, "it is no regular file", error);
	}
	family->root = json_loadf(file, 0, &why);
	fclose(file);
	if (!family->root)
		return npumem_error_set(error, NPUMEM_INVALID, "%.200s: line %d: %.200s", family->path, why.line,
					why.text);
	int code = check(family, error);
	if (code)
		json_decref(family->root);
	return code;
}

static int load_or_start(struct family *family, struct npumem_error *error)
{
	char name[sizeof(family->kernel) + 8];
	snprintf(name, sizeof(name), "%s.json", family->kernel);
	/* A link would be replaced by a file; a FIFO must not make us wait. */
	int fd = openat(family->directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0)
		return load(family, fd, error);
	if (errno != ENOENT)
		return trouble(family, errno == ELOOP ? "it is a symbolic link" : strerror(errno), error);
	family->root = json_pack("{s:s, s:i, s:s, s:s, s:i, s:[]}", "family", family->kernel, "format", 1,
				 "source", family_source, "layout", family_layout, "case_count", 0, "cases");
	return family->root ? 0 : no_memory(error);
}

int family_open(struct family *family, const char *directory, const char *kernel, struct npumem_error *error)
{
	*family = (struct family){.directory = -1};
	snprintf(family->kernel, sizeof(family->kernel), "%s", kernel);
	int length = snprintf(family->path, sizeof(family->path), "%s/%s.json", directory, kernel);
	if (length < 0 || (size_t)length >= sizeof(family->path))
		return npumem_error_set(error, NPUMEM_INVALID, "%.60s…: the path has more than %zu bytes",
					directory, sizeof(family->path) - 1);
	family->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (family->directory < 0)
		return npumem_error_set(error, NPUMEM_INVALID, "%.300s: %s", directory, strerror(errno));
	int code = flock(family->directory, LOCK_EX) ? trouble(family, strerror(errno), error)
						     : load_or_start(family, error);
	if (code)
		close(family->directory);
	return code;
}

unsigned family_next(const struct family *family)
{
	const json_t *cases = json_object_get(family->root, "cases");
	unsigned next = 1;
	for (size_t i = 0; i < json_array_size(cases); i++) {
		const char *name = json_string_value(json_object_get(json_array_get(cases, i), "name"));
		const char *at = name ? strstr(name, "/recorded") : NULL;
		unsigned long number = at ? strtoul(at + strlen("/recorded"), NULL, 10) : 0;
		if (number >= next && number < 1000000000)
			next = (unsigned)number + 1;
	}
	return next;
}

/* A case a line, as the other vectors lie. */
static bool write_root(const json_t *root, FILE *file)
{
	const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY;
	const json_t *cases = json_object_get(root, "cases");
	json_t *object = (json_t *)(uintptr_t)root;
	bool good = putc('{', file) != EOF;
	for (void *at = json_object_iter(object); at && good; at = json_object_iter_next(object, at)) {
		if (!strcmp(json_object_iter_key(at), "cases"))
			continue;
		json_t *key = json_string(json_object_iter_key(at));
		good = key && !json_dumpf(key, file, flags) && putc(':', file) != EOF &&
		       !json_dumpf(json_object_iter_value(at), file, flags) && putc(',', file) != EOF;
		json_decref(key);
	}
	good = good && fputs("\"cases\":[\n", file) != EOF;
	for (size_t i = 0; i < json_array_size(cases) && good; i++)
		good = !json_dumpf(json_array_get(cases, i), file, flags) &&
		       fputs(i + 1 < json_array_size(cases) ? ",\n" : "\n", file) != EOF;
	return good && fputs("]}\n", file) != EOF && !fflush(file) && !fsync(fileno(file));
}

static int replace(const struct family *family, struct npumem_error *error)
{
	char name[sizeof(family->kernel) + 16], fresh[sizeof(family->kernel) + 16];
	snprintf(name, sizeof(name), "%s.json", family->kernel);
	snprintf(fresh, sizeof(fresh), ".%s.json.new", family->kernel);
	/* Ours under the lock: what lies there was left by a recorder that was killed. */
	unlinkat(family->directory, fresh, 0);
	int fd = openat(family->directory, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return trouble(family, strerror(errno), error);
	FILE *file = fdopen(fd, "w");
	if (!file)
		close(fd);
	errno = 0;
	bool good = file && write_root(family->root, file);
	int why = errno;
	if (file && fclose(file) && good) {
		good = false;
		why = errno;
	}
	if (good && renameat(family->directory, fresh, family->directory, name)) {
		good = false;
		why = errno;
	}
	if (good)
		return 0;
	unlinkat(family->directory, fresh, 0);
	return trouble(family, why ? strerror(why) : "it cannot be written", error);
}

int family_append(struct family *family, json_t *one, struct npumem_error *error)
{
	json_t *cases = json_object_get(family->root, "cases");
	if (json_array_append_new(cases, one) ||
	    json_object_set_new(family->root, "case_count", json_integer((json_int_t)json_array_size(cases))))
		return no_memory(error);
	return replace(family, error);
}

void family_close(struct family *family)
{
	json_decref(family->root);
	close(family->directory);
}
