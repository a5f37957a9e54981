/* trace: a record as a timeline for a trace viewer. */
#include "client/ctl/command.h"
#include "client/ctl/core/report/trace.h"
#include "client/ctl/rendering.h"

static int trace_run(struct ctl *ctl, const struct args *args)
{
	return rendering_run(ctl, args, trace_write);
}

const struct command trace_command = {
	.options = rendering_options,
	.least = 1,
	.most = 2,
	.run = trace_run,
	.notes = "RECORD is a file of npumemctl record; --live is for whom that is for; - is stdout. Trace events "
		 "as "
		 "Chrome\nhas them: ui.perfetto.dev opens the file, without sending it anywhere",
};
