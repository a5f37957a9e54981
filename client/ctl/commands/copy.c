/* copy: the elements of one tensor into another. */
#include "client/ctl/command.h"

#include "client/ctl/core/output/output.h"
#include "client/ctl/ctl.h"

static int copy_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_tensor *destination, *source;
	struct bar bar;
	const struct npumem_done *done;
	int code = ctl_open(ctl, args->words[0], &destination);
	if (!code)
		code = ctl_open(ctl, args->words[1], &source);
	if (code)
		return code;
	bar_follow(ctl, &bar);
	int status = npumem_copy(ctl->npumem, destination->handle, source->handle, &done, &ctl->error);
	bar_end(&bar);
	if (status)
		return CTL_FAILED;
	ctl_warn(ctl, done->warning);
	if (!ctl->json)
		return CTL_OK;
	return ctl_print(ctl, json_pack("{s:o}", "warning", jsons_text(done->warning)));
}

const struct command copy_command = {.least = 2, .most = 2, .run = copy_run};
