/* grant: another uid may read or write a tensor, or no longer. */
#include <string.h>

#include "client/ctl/command.h"
#include "client/ctl/core/words/words.h"
#include "client/ctl/ctl.h"

static const char *const accesses[] = {
	[NPUMEM_ACCESS_NONE] = "none", [NPUMEM_ACCESS_READ] = "read", [NPUMEM_ACCESS_WRITE] = "write"};

static int parse_access(const char *text)
{
	for (int i = NPUMEM_ACCESS_NONE; i <= NPUMEM_ACCESS_WRITE; i++)
		if (!strcmp(text, accesses[i]))
			return i;
	return 0;
}

static bool parse_user(const char *text, int64_t *uid)
{
	if (numbers_integer(text, uid))
		return *uid >= 0 && *uid <= UINT32_MAX;
	return users_find(text, uid);
}

static int grant_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_tensor *tensor;
	int64_t uid;
	int access = parse_access(args->words[2]), code;
	if (!parse_user(args->words[1], &uid))
		return ctl_usage(ctl, "%.80s is neither a user's name nor a uid from 0 to 4294967295",
				 args->words[1]);
	if (!access)
		return ctl_usage(ctl, "access %s is not one of none, read, write", args->words[2]);
	code = ctl_open(ctl, args->words[0], &tensor);
	if (code)
		return code;
	if (npumem_grant(ctl->npumem, tensor->handle, (uint32_t)uid, access, &ctl->error))
		return CTL_FAILED;
	return ctl->json
		       ? ctl_print(ctl, json_pack("{s:I,s:s}", "uid", (json_int_t)uid, "access", accesses[access]))
		       : CTL_OK;
}

const struct command grant_command = {
	.least = 3,
	.most = 3,
	.run = grant_run,
	.notes = "A user is a uid or a name of this machine; the static npumemctl reads /etc/passwd only.",
};
