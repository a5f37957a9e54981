/* state: everything at once, for programs: what the daemon is, how its bytes are used, all tensors. */
#include "client/ctl/command.h"

#include "client/ctl/core/facts.h"
#include "client/ctl/core/metrics.h"
#include "client/ctl/core/present.h"

static int state_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_details *details;
	const struct npumem_tensors *tensors;
	const struct npumem_info *info;
	(void)args;
	int code = ctl_connect(ctl);
	if (code)
		return code;
	if (npumem_info(ctl->npumem, &info, &ctl->error) ||
	    npumem_stat_details(ctl->npumem, false, &details, &ctl->error) ||
	    npumem_list(ctl->npumem, &tensors, &ctl->error))
		return CTL_FAILED;
	return ctl_print(ctl,
			 json_pack("{s:o, s:o, s:o}", "info", facts_object(info), "stat", metrics_json(details),
				   "tensors", present_tensors(tensors->list, tensors->n)));
}

const struct command state_command = {
	.run = state_run,
	.notes = "One JSON object, with or without --json: info, stat and tensors, each as those commands (ls) "
		 "print "
		 "it.",
};
