/* npumemctl with the daemon inside: one file without a library, which starts itself as npumemd. Both are here
 * whole, each with its own symbols; by which name it was called says which of them it is. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

/* Of libuv's functions about users, which nobody here calls. glibc's own wants its shared libraries as it runs. */
int getpwuid_r(uid_t uid, struct passwd *user, char *buffer, size_t bytes, struct passwd **found)
{
	(void)uid;
	(void)user;
	(void)buffer;
	(void)bytes;
	*found = NULL;
	return ENOSYS;
}

/* npumemd --users asks for a group: what /etc/group says. */
struct group *getgrnam(const char *name)
{
	struct group *group = NULL;
	FILE *file = fopen("/etc/group", "re");

	while (file && (group = fgetgrent(file)) && strcmp(group->gr_name, name))
		;
	if (file)
		fclose(file);
	return group;
}

int npumemctl_main(int argc, char **argv);
int npumemd_main(int argc, char **argv);

int main(int argc, char **argv)
{
	const char *name = argc > 0 ? argv[0] : "";
	const char *slash = strrchr(name, '/');
	if (!strcmp(slash ? slash + 1 : name, "npumemd"))
		return npumemd_main(argc, argv);
	return npumemctl_main(argc, argv);
}
