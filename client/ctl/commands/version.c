/* version: of this program, and of the daemon where one answers. */
#include "client/ctl/command.h"

#include <stdio.h>

static int version_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_info *info = NULL;
	(void)args;
	if (!ctl_connect(ctl))
		npumem_info(ctl->npumem, &info, NULL);
	npumem_error_clear(&ctl->error);
	if (ctl->json)
		return ctl_print(ctl, json_pack("{s:s, s:s?}", "npumemctl", NPUMEM_VERSION, "npumemd",
						info ? info->version : NULL));
	printf("npumemctl %s\n", NPUMEM_VERSION);
	if (info)
		printf("npumemd %s\n", info->version);
	else
		printf("no daemon answers\n");
	return CTL_OK;
}

const struct command version_command = {.run = version_run};
