/* A walk over files and folders. */
#include "client/ctl/conform/conform.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/vectors/vectors.h"

enum { FILES_DEPTH_MAX = 16, FILES_PATH_BYTES = 4096 };

struct walk {
	struct ctl *ctl;
	struct sweep *sweep;
	struct vector_files *files;
	size_t prefix; /* of the paths: what is not the same on every host */
};

/* ---- one file ---- */

/* `named`: by the caller, and not found in a folder. */
static void add_cases(const struct walk *walk, const char *path, const json_t *cases, bool named)
{
	char name[FILES_PATH_BYTES + 256];
	const json_t *one;
	size_t i;
	json_array_foreach(cases, i, one)
	{
		const char *own = json_string_value(json_object_get(one, "name"));
		snprintf(name, sizeof(name), "%s:%.200s", path + walk->prefix, own ? own : "");
		sweep_add(walk->sweep, name);
	}
	if (!cases && named && !walk->ctl->json)
		printf("no cases in %s\n", path);
}

static bool is_regular(const char *path)
{
	struct stat status;
	return !stat(path, &status) && S_ISREG(status.st_mode);
}

static int add_file(const struct walk *walk, const char *path, bool named)
{
	struct vector_files *files = walk->files;
	const json_t *cases;
	json_t *root;
	int code = CTL_OK;
	struct vector_file *file = memory_grow(&files->list, files->n++, sizeof(*file));
	*file = (struct vector_file){.path = memory_text("%s", path), .first = walk->sweep->n};
	/* A file that cannot be read counts as one case, which fails when it runs. */
	if (vectors_load(path, &root, &cases, NULL)) {
		sweep_add(walk->sweep, path + walk->prefix);
	} else {
		add_cases(walk, path, cases, named);
		if (cases && sweep_mix_file(walk->sweep, path, &walk->ctl->error))
			code = CTL_FAILED;
		if (is_regular(path))
			json_decref(root);
		else
			file->root = root;
	}
	file->n = walk->sweep->n - file->first;
	return code;
}

/* ---- folders ---- */

static int is_vectors(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);
	return entry->d_name[0] != '.' &&
	       (!strchr(entry->d_name, '.') || (length > 5 && !strcmp(entry->d_name + length - 5, ".json")));
}

static int add_path(const struct walk *walk, const char *path, unsigned depth);

static int add_directory(const struct walk *walk, const char *path, unsigned depth)
{
	struct dirent **entries;
	int code = CTL_OK, n = scandir(path, &entries, is_vectors, alphasort);
	if (n < 0)
		return ctl_fail(walk->ctl, "%.200s: %s", path, strerror(errno));
	for (int i = 0; i < n; i++) {
		char inside[FILES_PATH_BYTES];
		struct stat status;
		int length = snprintf(inside, sizeof(inside), "%s/%s", path, entries[i]->d_name);
		bool json = strchr(entries[i]->d_name, '.');
		if (!code && length > 0 && (size_t)length < sizeof(inside) &&
		    (json || (!stat(inside, &status) && S_ISDIR(status.st_mode))))
			code = add_path(walk, inside, depth + 1);
		free(entries[i]);
	}
	free(entries);
	return code;
}

static int add_path(const struct walk *walk, const char *path, unsigned depth)
{
	struct stat status;
	if (stat(path, &status))
		return ctl_fail(walk->ctl, "%.200s: %s", path, strerror(errno));
	if (!S_ISDIR(status.st_mode))
		return add_file(walk, path, !depth);
	if (depth > FILES_DEPTH_MAX)
		return ctl_fail(walk->ctl, "%.200s: more than %d folders deep", path, FILES_DEPTH_MAX);
	return add_directory(walk, path, depth);
}

int vector_files_find(struct ctl *ctl, const char *const *words, unsigned n_words, struct sweep *sweep,
		      struct vector_files *files)
{
	struct walk walk = {.ctl = ctl, .sweep = sweep, .files = files};
	int code = CTL_OK;
	*files = (struct vector_files){.n = 0};
	for (unsigned i = 0; i < n_words && !code; i++) {
		struct stat status;
		const char *slash = strrchr(words[i], '/');
		bool is_folder = !stat(words[i], &status) && S_ISDIR(status.st_mode);
		walk.prefix = is_folder ? strlen(words[i]) + 1 : slash ? (size_t)(slash + 1 - words[i]) : 0;
		code = add_path(&walk, words[i], 0);
	}
	return code;
}

int vector_files_load(const struct vector_file *file, json_t **root, const json_t **cases,
		      struct npumem_error *error)
{
	if (!file->root)
		return vectors_load(file->path, root, cases, error);
	*root = json_incref(file->root);
	*cases = json_object_get(file->root, "cases");
	return 0;
}
