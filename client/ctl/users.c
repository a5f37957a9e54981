/* A static program has no name services, which are shared libraries: it reads /etc/passwd only. */
#include "client/ctl/ctl.h"

#include <inttypes.h>
#include <pwd.h>
#include <string.h>

#ifdef PROGRAM_INSIDE
/* By the name, or without one by the uid. */
static const struct passwd *find(const char *name, uint32_t uid)
{
	const struct passwd *user = NULL;
	FILE *file = fopen("/etc/passwd", "re");
	while (file && (user = fgetpwent(file)) && (name ? strcmp(user->pw_name, name) : user->pw_uid != uid))
		;
	if (file)
		fclose(file);
	return user;
}
#else
static const struct passwd *find(const char *name, uint32_t uid)
{
	return name ? getpwnam(name) : getpwuid(uid);
}
#endif

bool users_find(const char *name, int64_t *uid)
{
	const struct passwd *user = find(name, 0);
	if (user)
		*uid = user->pw_uid;
	return user != NULL;
}

const char *users_text(const struct ctl *ctl, uint32_t uid, char *text)
{
	/* The last one that was found: a stream of events has few uids, and each search reads a file or asks a
	 * server.
	 */
	static struct {
		bool is_set;
		uint32_t uid;
		char text[USERS_TEXT_BYTES];
	} last;
	if (ctl_is_remote(ctl)) {
		snprintf(text, USERS_TEXT_BYTES, "%" PRIu32, uid);
		return text;
	}
	if (!last.is_set || last.uid != uid) {
		const struct passwd *user = find(NULL, uid);
		snprintf(last.text, sizeof(last.text), user ? "%" PRIu32 " (%.32s)" : "%" PRIu32, uid,
			 user ? user->pw_name : "");
		last.is_set = true;
		last.uid = uid;
	}
	return memcpy(text, last.text, sizeof(last.text));
}
