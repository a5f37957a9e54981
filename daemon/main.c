/* npumemd: owns the simulated local memory of an NPU array and serves it on a Unix socket.
 * Exit codes: 0; 1 cannot start; 2 the command line is wrong. */
#include <stdio.h>
#include <string.h>

#include "daemon/server/process/describe.h"
#include "daemon/server/process/background.h"
#include "daemon/server/process/options.h"
#include "daemon/server/process/set_limits.h"
#include "daemon/server/process/signals.h"
#include "daemon/server/server.h"
#include "daemon/server/process/tiles.h"

int main(int argc, char **argv)
{
	struct options options;
	char error[ADDRESS_ERROR_BYTES];
	int status;

	tiles_request();
	switch (options_parse(argc, argv, &options, error)) {
	case OPTIONS_DONE:
		return 0;
	case OPTIONS_BAD:
		fprintf(stderr, "npumemd: %s (see npumemd --help)\n", error);
		return 2;
	case OPTIONS_RUN:
		break;
	}
	if (options.describe_state)
		return describe_state(options.describe_state);
	status = options.background ? background_begin() : 0;
	if (status) {
		fprintf(stderr, "npumemd: cannot go to the background: %s\n", strerror(-status));
		return 1;
	}
	set_limits_of_process();
	signals_hold();
	status = log_open((enum log_level)options.log);
	if (status) {
		fprintf(stderr, "npumemd: no log: %s\n", strerror(-status));
		return 1;
	}
	status = server_run(&options, error);
	if (status)
		log_line(LOG_LEVEL_ERROR, "%s", error);
	log_close();
	return status ? 1 : 0;
}
