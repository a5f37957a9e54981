/* npumemd's command line. */
#ifndef SERVER_OPTIONS_H
#define SERVER_OPTIONS_H

#include <sys/types.h>

#include "daemon/device/device.h"
#include "daemon/server/process/log.h"
#include "daemon/service/limits.h"

enum { OPTIONS_PATH_BYTES = 108, OPTIONS_ERROR_BYTES = 256, OPTIONS_OWN_LIMITS_MAX = 64 };

/* A limit of one uid. */
struct options_own_limit {
	uint32_t uid;
	int key;
	uint64_t most;
};

struct options {
	char socket[OPTIONS_PATH_BYTES]; /* empty with `fd` */
	int64_t fd;			 /* a connected socket to serve; -1: listen on `socket` */
	int64_t mode;			 /* of the socket file */
	bool background;		 /* go there once the socket listens */
	struct device_options device;
	int log; /* enum log_level */
	/* For a client to send a frame, for it to read its replies, and for requests to end after a signal. */
	int64_t frame_seconds, drain_seconds, stop_seconds;
	const char *state_dir;	/* of the state, on the command line; NULL: no state is kept */
	const char *describe_state; /* only describe this state directory; NULL: run the daemon */
	int64_t set_aside; /* unusable states that are set aside at most; 0: the daemon refuses to start on one */
	const char *subuid;	/* the file with the subordinate uids */
	const char *users;	/* group of the socket file; NULL: the daemon's */
	const char *boot_id;	/* of the machine; NULL: it can be read */
	bool durable;		/* the state survives a loss of power */
	bool replay;		/* for npumemctl replay: a session waits under its number */
	int64_t resume_seconds; /* that a session waits for its client */
	int64_t spin_us;	/* for which the loop polls before it sleeps */
	uint64_t limits[LIMITS_N]; /* of every uid; 0: as limits_init has it */
	bool refuse_holes;	   /* in memory that is shared, also where no cgroup limits the daemon's */
	bool allow_any_pins;	   /* they need not leave a place for each user (places.h) */
	int64_t compact_percent;   /* of the time that a uid may stop others by compactions, and by mappings */
	bool share_device;	   /* a uid gets no more than half of the device that the others have left */
	struct options_own_limit own_limits[OPTIONS_OWN_LIMITS_MAX];
	unsigned n_own_limits;
};

enum options_result { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_BAD };

/* Parses the command line. DONE: --help or --version was printed; BAD: `error` has one line. */
enum options_result options_parse(int argc, char **argv, struct options *options, char error[OPTIONS_ERROR_BYTES]);

#endif
