#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/lib/addresses/address.h"
#include "tests/support/test.h"

enum { PEER = 12001, THIRD = 12003 };

/* A tree of root's, in a folder of root's that only root can change. Without root there is nothing to compare. */
static char base[PATH_MAX];

static const char *in_base(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned next;
	char *path = paths[next++ % 4];
	snprintf(path, PATH_MAX, "%.100s/%s", base, name);
	return path;
}

static void set_up(void)
{
	strcpy(base, "/run/npumem-folders-XXXXXX");
	if (geteuid() || !mkdtemp(base)) {
		base[0] = 0;
		return;
	}
	ck_assert_int_eq(chmod(base, 0755), 0);
	ck_assert_int_eq(mkdir(in_base("end"), 0755), 0);
	fclose(fopen(in_base("end/s"), "w"));
	ck_assert_int_eq(chown(in_base("end"), PEER, PEER) + chown(in_base("end/s"), PEER, PEER), 0);
}

static void tear_down(void)
{
	char command[64];
	if (!base[0])
		return;
	snprintf(command, sizeof(command), "rm -r %.40s", base);
	ck_assert_int_eq(system(command), 0);
}

static void make(const char *name, mode_t mode, uid_t owner)
{
	ck_assert_int_eq(mkdir(in_base(name), 0700), 0);
	ck_assert_int_eq(chmod(in_base(name), mode), 0);
	ck_assert_int_eq(chown(in_base(name), owner, owner), 0);
}

static void make_link(const char *name, const char *target, uid_t owner)
{
	ck_assert_int_eq(symlink(target, in_base(name)), 0);
	ck_assert_int_eq(lchown(in_base(name), owner, owner), 0);
}

static int check(const char *name, char folder[PATH_MAX])
{
	return folders_check(in_base(name), PEER, folder);
}

static void assert_safe(const char *name)
{
	char folder[PATH_MAX];
	ck_assert_msg(!check(name, folder), "%s: %s", name, folder);
}

static void assert_unsafe(const char *name, const char *expected)
{
	char folder[PATH_MAX];
	ck_assert_msg(check(name, folder) == 1, "%s", name);
	ck_assert_str_eq(folder, in_base(expected));
}

TEST(owners_and_modes)
{
	if (!base[0])
		return;
	assert_safe("end/s");
	assert_safe("end/../end/./s");
	ck_assert_int_eq(chown(in_base("end"), THIRD, THIRD), 0);
	assert_unsafe("end/s", "end");
	ck_assert_int_eq(chown(in_base("end"), PEER, PEER) + chmod(in_base("end"), 0775), 0);
	assert_unsafe("end/s", "end");
	ck_assert_int_eq(chmod(in_base("end"), 01777), 0);
	assert_unsafe("end/s", "end");
	ck_assert_int_eq(chown(in_base("end/s"), 0, 0), 0);
	assert_safe("end/s");
}

TEST(chains)
{
	if (!base[0])
		return;
	make("safe", 0755, 0);
	make("open", 0777, 0);
	make("sticky", 01777, 0);
	make("third", 0755, THIRD);
	make_link("open/on", "../end", 0);
	make_link("sticky/roots", "../end", 0);
	make_link("sticky/others", "../end", PEER);
	make_link("third/on", "../end", 0);
	make_link("safe/a", "b", 0);
	make_link("safe/b", "../open/on", 0);
	make_link("safe/c", "../sticky/roots", 0);
	make_link("safe/d", "../sticky/others", 0);
	make_link("safe/e", "../third/on", 0);
	make_link("safe/f", in_base("open/../safe/../end//"), 0);
	make_link("safe/g", "f/s", 0);
	assert_unsafe("safe/a/s", "open");
	assert_safe("safe/c/s");
	assert_unsafe("safe/d/s", "sticky");
	assert_unsafe("safe/e/s", "third");
	/* Nothing of the folder that `..` leaves again is read. */
	assert_safe("safe/g");
}

TEST(ends)
{
	char folder[PATH_MAX], name[] = "00";
	if (!base[0])
		return;
	ck_assert_int_eq(check("nothing", folder), -ENOENT);
	ck_assert_int_eq(check("end/s/s", folder), -ENOTDIR);
	make_link("loop", "loop", 0);
	ck_assert_int_eq(check("loop", folder), -ELOOP);
	make_link("00", "end", 0);
	for (int i = 1; i < 41; i++) {
		char target[3];
		strcpy(target, name);
		snprintf(name, sizeof(name), "%02u", (unsigned)i % 100u);
		make_link(name, target, 0);
	}
	assert_safe("39/s");
	ck_assert_int_eq(check("40/s", folder), -ELOOP);
}

TEST(links_of_proc)
{
	char path[PATH_MAX], folder[PATH_MAX];
	/* Its text is a path that leads elsewhere. */
	FILE *file = fopen("/run/npumem-folders-here", "w+");
	if (!file)
		return;
	unlink("/run/npumem-folders-here");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(file));
	ck_assert_int_ne(folders_check(path, PEER, folder), 0);
	fclose(file);
}

FIXTURE(set_up, tear_down)
