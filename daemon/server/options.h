/* npumemd's command line. */
#ifndef SERVER_OPTIONS_H
#define SERVER_OPTIONS_H

#include <sys/types.h>

#include "daemon/device/device.h"
#include "daemon/server/log.h"

enum { OPTIONS_PATH_BYTES = 108, OPTIONS_ERROR_BYTES = 256 };

struct options {
	char socket[OPTIONS_PATH_BYTES]; /* empty with `fd` */
	int fd;				 /* a connected socket to serve; -1: listen on `socket` */
	mode_t mode;			 /* of the socket file */
	struct device_options device;
	enum log_level log;
};

enum options_result { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_BAD };

/* Parses the command line. DONE: --help or --version was printed; BAD: `error` has one line. */
enum options_result options_parse(int argc, char **argv, struct options *options, char error[OPTIONS_ERROR_BYTES]);

#endif
