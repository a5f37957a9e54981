/* rename: a tensor gets another name. */
#include "client/ctl/command.h"

static int rename_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_tensor *tensor;
	int code = ctl_open(ctl, args->words[0], &tensor);
	if (code)
		return code;
	if (npumem_rename(ctl->npumem, tensor->handle, args->words[1], &ctl->error))
		return CTL_FAILED;
	return ctl->json ? ctl_print(ctl, json_pack("{s:s}", "name", args->words[1])) : CTL_OK;
}

const struct command rename_command = {.least = 2, .most = 2, .run = rename_run};
