/* trace: a record as a timeline for a trace viewer. */
#include "client/ctl/command.h"
#include "client/ctl/core/report/report.h"
#include "client/ctl/records/records.h"

static int trace_run(struct ctl *ctl, const struct args *args)
{
	return rendering_run(ctl, args, trace_write);
}

const struct command trace_command = {
	.options = rendering_options,
	.least = 1,
	.most = 2,
	.run = trace_run,
	.notes =
		"RECORD is a file of npumemctl record. --live is for root and the daemon's uid. OUT may be -,\n"
		"for stdout. The trace events are Chrome's: ui.perfetto.dev opens the file, and sends it nowhere.",
};
