/* seal: a tensor becomes read-only for good. */
#include "client/ctl/command.h"

static int seal_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_tensor *tensor;
	int code = ctl_open(ctl, args->words[0], &tensor);
	if (code)
		return code;
	if (npumem_seal(ctl->npumem, tensor->handle, &ctl->error))
		return CTL_FAILED;
	return ctl->json ? ctl_print(ctl, json_pack("{s:b}", "sealed", 1)) : CTL_OK;
}

const struct command seal_command = {.least = 1, .most = 1, .run = seal_run};
