/* npumemd: owns the simulated local memory of an NPU array and serves it on a Unix socket.
 * Exit codes: 0; 1 cannot start; 2 the command line is wrong. */
#include <stdio.h>

#include "daemon/server/options.h"
#include "daemon/server/server.h"

int main(int argc, char **argv)
{
	struct options options;
	char error[OPTIONS_ERROR_BYTES];

	switch (options_parse(argc, argv, &options, error)) {
	case OPTIONS_DONE:
		return 0;
	case OPTIONS_BAD:
		fprintf(stderr, "npumemd: %s\n", error);
		return 2;
	case OPTIONS_RUN:
		break;
	}
	log_init(options.log);
	if (server_run(&options, error)) {
		log_line(LOG_LEVEL_ERROR, "%s", error);
		return 1;
	}
	return 0;
}
