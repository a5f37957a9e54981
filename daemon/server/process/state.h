/* The memory that the device lives in: of this process alone, or of a state directory. */
#ifndef SERVER_STATE_H
#define SERVER_STATE_H

#include <stddef.h>

#include "daemon/rpc/rpc.h"
#include "daemon/server/process/notify.h"
#include "daemon/server/process/options.h"

/* Instead of a directory: memory that systemd keeps for the unit's next process. */
#define STATE_SYSTEMD "systemd:"

struct state {
	void *memory;
	size_t bytes; /* mapped here; 0: the store's memory */
	struct store *store;
	struct store_report *found; /* until state_recover */
	const struct heap *heap;
	const struct notify *notify;
	const char *directory;
};

/* Of a zeroed state. `notify` outlives it. 0; -errno with one line of at most `bytes` in `error`. */
int state_open(struct state *state, const struct options *options, const struct notify *notify,
	       const struct heap *heap, char *error, size_t bytes);
/* Restores the service, which has no tensors yet, and logs the result. 0; -errno with `error`. */
int state_recover(struct state *state, const struct options *options, struct rpc *rpc, char *error, size_t bytes);
/* After the device has ended. `clean`: all operations have ended. 0; -errno: the state could not be closed, and
 * looks to the next process as after a kill. */
int state_close(struct state *state, bool clean);

#endif
