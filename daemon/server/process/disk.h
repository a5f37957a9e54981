/* The thread that syncs the disk for a durable state, so that the loop never does. One round serves the replies of all
 * connections whose changes it has. */
#ifndef SERVER_DISK_H
#define SERVER_DISK_H

#include <stdbool.h>

#include <uv.h>

#include "daemon/store/store.h"

struct disk {
	struct store *store;
	uv_thread_t thread;
	uv_async_t async;
	void (*synced)(void *ctx); /* on the loop: store_synced has risen, or the disk has failed */
	void *ctx;
	bool is_open;
};

/* Of a zeroed disk, after recovery; the calling thread is the loop's. Nothing to do where the store is not durable. 0
 * or -errno: nothing is open. */
int disk_open(struct disk *disk, uv_loop_t *loop, struct store *store, void (*synced)(void *ctx), void *ctx);
/* When no other thread changes anything any more, before the loop runs for the last time. What has changed since the
 * last round is left for store_close. */
void disk_close(struct disk *disk);

#endif
