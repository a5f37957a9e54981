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
	size_t bytes; /* that are mapped here; 0: it is the store's */
	struct store *store;
	struct store_report *found; /* until state_recover */
	const struct heap *heap;
	const struct notify *notify;
	const char *directory;
};

/* Of a zeroed state. `notify` outlives it. 0; -errno with one line of at most `bytes` in `error`. */
int state_open(struct state *state, const struct options *options, const struct notify *notify,
	       const struct heap *heap, char *error, size_t bytes);
/* Has the service, which has no tensors yet, as it was left, and logs that. 0; -errno with `error`. */
int state_recover(struct state *state, const struct options *options, struct rpc *rpc, char *error, size_t bytes);
/* The device is gone. `clean`: all that was begun has ended. 0; -errno where the state was to be closed and was not: the
 * next process takes it for one that was killed. */
int state_close(struct state *state, bool clean);

#endif
