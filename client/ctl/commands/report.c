/* report: a record as a page for a browser. */
#include "client/ctl/command.h"
#include "client/ctl/core/report/report.h"
#include "client/ctl/records/records.h"

static int report_run(struct ctl *ctl, const struct args *args)
{
	return rendering_run(ctl, args, page_write);
}

const struct command report_command = {
	.options = rendering_options,
	.least = 1,
	.most = 2,
	.run = report_run,
	.notes = "RECORD is a file of npumemctl record. --live is for root and the daemon's uid. OUT may be -,\n"
		 "for stdout. The page is one file, which a browser opens without a server or a network.",
};
