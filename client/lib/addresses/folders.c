/* Invariant of a walk: `at` is the path of a folder, without links, and `rest` is what is left to follow from
 * there. All folders of `at` were found safe, so only root, the caller and the peer can change what a step finds
 * by `at`. */
#define _GNU_SOURCE
#include "client/lib/addresses/address.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 40 /* of one path, as the kernel allows */ };

struct walk {
	uid_t peer;
	unsigned n_links;
	struct stat last; /* the entry that was found last */
	char *at;	  /* PATH_MAX */
	char rest[PATH_MAX];
};

static int begin(struct walk *walk, const char *path)
{
	char here[PATH_MAX] = "";
	if (*path != '/' && !getcwd(here, sizeof(here)))
		return -errno;
	if ((size_t)snprintf(walk->rest, sizeof(walk->rest), "%s/%s", here, path) >= sizeof(walk->rest))
		return -ENAMETOOLONG;
	strcpy(walk->at, "/");
	return 0;
}

/* Takes the first component out of `rest`. False: there is none. */
static bool next_component(struct walk *walk, char component[NAME_MAX + 1], int *status)
{
	char *start = walk->rest + strspn(walk->rest, "/");
	size_t n = strcspn(start, "/");
	*status = n > NAME_MAX ? -ENAMETOOLONG : 0;
	if (!n || *status)
		return false;
	memcpy(component, start, n);
	component[n] = 0;
	memmove(walk->rest, start + n, strlen(start + n) + 1);
	return true;
}

static bool is_ours(uid_t uid)
{
	return !uid || uid == geteuid();
}

static bool is_safe(const struct walk *walk, const struct stat *folder)
{
	if (!is_ours(folder->st_uid) && folder->st_uid != walk->peer)
		return false;
	if (!(folder->st_mode & (S_IWGRP | S_IWOTH)))
		return true;
	return (folder->st_mode & S_ISVTX) && is_ours(walk->last.st_uid);
}

/* Puts the target of the link at `path` in front of the rest. */
static int follow(struct walk *walk, const char *path)
{
	char target[PATH_MAX], rest[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target));
	if (n < 0)
		return -errno;
	if (++walk->n_links > LINKS_MAX)
		return -ELOOP;
	if ((size_t)snprintf(rest, sizeof(rest), "%.*s%s", (int)n, target, walk->rest) >= sizeof(rest))
		return -ENAMETOOLONG;
	strcpy(walk->rest, rest);
	if (*target == '/')
		strcpy(walk->at, "/");
	return 0;
}

/* 0, 1 or -errno, as folders_check. */
static int step_down(struct walk *walk, const char *component)
{
	struct stat folder;
	char path[PATH_MAX];
	if ((size_t)snprintf(path, sizeof(path), "%s%s%s", walk->at, walk->at[1] ? "/" : "", component) >=
	    sizeof(path))
		return -ENAMETOOLONG;
	if (stat(walk->at, &folder) || lstat(path, &walk->last))
		return -errno;
	if (!is_safe(walk, &folder))
		return 1;
	if (S_ISLNK(walk->last.st_mode))
		return follow(walk, path);
	if (S_ISDIR(walk->last.st_mode))
		strcpy(walk->at, path);
	else if (walk->rest[0])
		return -ENOTDIR;
	return 0;
}

static int step(struct walk *walk, const char *component)
{
	char *slash = strrchr(walk->at, '/');
	if (!strcmp(component, "."))
		return 0;
	if (strcmp(component, "..") != 0)
		return step_down(walk, component);
	slash[slash == walk->at] = 0;
	return 0;
}

/* The kernel follows the links of /proc to an object and not by their text: such a path led elsewhere. */
static int check_end(const struct walk *walk, const char *path)
{
	struct stat end;
	if (stat(path, &end))
		return -errno;
	return end.st_dev != walk->last.st_dev || end.st_ino != walk->last.st_ino;
}

int folders_check(const char *path, uid_t peer, char folder[PATH_MAX])
{
	struct walk walk = {.peer = peer, .at = folder};
	char component[NAME_MAX + 1];
	int status = begin(&walk, path);
	while (!status && next_component(&walk, component, &status))
		status = step(&walk, component);
	return status ? status : check_end(&walk, path);
}
