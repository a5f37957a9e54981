/* Files of recorded vectors. Only what was recorded is ever added to: a file whose outputs come from a library
 * keeps its source. The new file is written beside the old one and renamed over it, under a lock on the folder. */
#include "client/ctl/core/vectors/vectors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char recorded_file_source[] = "recorded by npumemctl";
static const char recorded_file_layout[] =
	"data lists are row-major over \"dims\": feature maps N,C,H,W; conv weights "
	"O,I,H,W (I = input channels per group); fully connected / recurrent weights "
	"[.., M outputs, N inputs]";

static int trouble(const struct recorded_file *recorded, const char *why, struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_INVALID, "%.300s: %.160s", recorded->path, why);
}

static bool text_is(const json_t *root, const char *key, const char *text)
{
	const char *is = json_string_value(json_object_get(root, key));
	return is && !strcmp(is, text);
}

static int check(const struct recorded_file *recorded, struct npumem_error *error)
{
	const json_t *root = recorded->root;
	char why[128];
	snprintf(why, sizeof(why), "its family is not \"%s\"", recorded->kernel);
	if (!text_is(root, "family", recorded->kernel))
		return trouble(recorded, why, error);
	if (json_integer_value(json_object_get(root, "format")) != 1)
		return trouble(recorded, "its format is not 1", error);
	snprintf(why, sizeof(why), "its source is not \"%s\"", recorded_file_source);
	if (!text_is(root, "source", recorded_file_source))
		return trouble(recorded, why, error);
	if (!json_is_array(json_object_get(root, "cases")))
		return trouble(recorded, "it has no list of cases", error);
	return 0;
}

/* The file that is there. */
static int load(struct recorded_file *recorded, int fd, struct npumem_error *error)
{
	struct stat status;
	json_error_t why;
	FILE *file;
	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || !(file = fdopen(fd, "r"))) {
		close(fd);
		return trouble(recorded, "it is not a regular file", error);
	}
	recorded->root = json_loadf(file, 0, &why);
	fclose(file);
	if (!recorded->root)
		return npumem_error_set(error, NPUMEM_INVALID, "%.200s: line %d: %.200s", recorded->path, why.line,
					why.text);
	return check(recorded, error);
}

static int load_or_start(struct recorded_file *recorded, struct npumem_error *error)
{
	char name[sizeof(recorded->kernel) + 8];
	snprintf(name, sizeof(name), "%s.json", recorded->kernel);
	/* A link would be replaced by a file; a FIFO must not make us wait. */
	int fd = openat(recorded->directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0)
		return load(recorded, fd, error);
	if (errno != ENOENT)
		return trouble(recorded, errno == ELOOP ? "it is a symbolic link" : strerror(errno), error);
	recorded->root =
		json_pack("{s:s, s:i, s:s, s:s, s:i, s:[]}", "family", recorded->kernel, "format", 1, "source",
			  recorded_file_source, "layout", recorded_file_layout, "case_count", 0, "cases");
	return 0;
}

int recorded_file_open(struct recorded_file *recorded, const char *directory, const char *kernel,
		       struct npumem_error *error)
{
	*recorded = (struct recorded_file){.directory = -1};
	snprintf(recorded->kernel, sizeof(recorded->kernel), "%s", kernel);
	int length = snprintf(recorded->path, sizeof(recorded->path), "%s/%s.json", directory, kernel);
	if (length < 0 || (size_t)length >= sizeof(recorded->path))
		return npumem_error_set(error, NPUMEM_INVALID, "%.60s…: the path has more than %zu bytes",
					directory, sizeof(recorded->path) - 1);
	recorded->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (recorded->directory < 0)
		return npumem_error_set(error, NPUMEM_INVALID, "%.300s: %s", directory, strerror(errno));
	int code = flock(recorded->directory, LOCK_EX) ? trouble(recorded, strerror(errno), error)
						       : load_or_start(recorded, error);
	if (code)
		close(recorded->directory);
	return code;
}

unsigned recorded_file_next(const struct recorded_file *recorded)
{
	const json_t *cases = json_object_get(recorded->root, "cases");
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
		good = !json_dumpf(json_string(json_object_iter_key(at)), file, flags) && putc(':', file) != EOF &&
		       !json_dumpf(json_object_iter_value(at), file, flags) && putc(',', file) != EOF;
	}
	good = good && fputs("\"cases\":[\n", file) != EOF;
	for (size_t i = 0; i < json_array_size(cases) && good; i++)
		good = !json_dumpf(json_array_get(cases, i), file, flags) &&
		       fputs(i + 1 < json_array_size(cases) ? ",\n" : "\n", file) != EOF;
	return good && fputs("]}\n", file) != EOF && !fflush(file) && !fsync(fileno(file));
}

static int replace(const struct recorded_file *recorded, struct npumem_error *error)
{
	char name[sizeof(recorded->kernel) + 16], fresh[sizeof(recorded->kernel) + 16];
	snprintf(name, sizeof(name), "%s.json", recorded->kernel);
	snprintf(fresh, sizeof(fresh), ".%s.json.new", recorded->kernel);
	/* Ours under the lock: what lies there was left by a recorder that was killed. */
	unlinkat(recorded->directory, fresh, 0);
	int fd = openat(recorded->directory, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return trouble(recorded, strerror(errno), error);
	FILE *file = fdopen(fd, "w");
	if (!file)
		close(fd);
	errno = 0;
	bool good = file && write_root(recorded->root, file);
	int why = errno;
	if (file && fclose(file) && good) {
		good = false;
		why = errno;
	}
	if (good && renameat(recorded->directory, fresh, recorded->directory, name)) {
		good = false;
		why = errno;
	}
	if (good)
		return 0;
	unlinkat(recorded->directory, fresh, 0);
	return trouble(recorded, why ? strerror(why) : "it cannot be written", error);
}

int recorded_file_append(struct recorded_file *recorded, json_t *one, struct npumem_error *error)
{
	json_t *cases = json_object_get(recorded->root, "cases");
	json_array_append(cases, one);
	json_object_set_new(recorded->root, "case_count", json_integer((json_int_t)json_array_size(cases)));
	return replace(recorded, error);
}

void recorded_file_close(struct recorded_file *recorded)
{
	close(recorded->directory);
}
