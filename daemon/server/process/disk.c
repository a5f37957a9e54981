/* Owns the thread and the loop's handle for it. Does not decide what is written: store/log/rounds.c. */
#include "daemon/server/process/disk.h"

static void wake(void *ctx)
{
	uv_async_send(&((struct disk *)ctx)->async);
}

static void run(void *arg)
{
	struct disk *disk = arg;
	while (store_wait(disk->store) && !store_write_out(disk->store, wake, disk))
		;
	if (store_failed(disk->store))
		wake(disk);
}

static void on_async(uv_async_t *async)
{
	struct disk *disk = async->data;

	disk->synced(disk->ctx);
}

int disk_open(struct disk *disk, uv_loop_t *loop, struct store *store, void (*synced)(void *ctx), void *ctx)
{
	if (!store || !store_is_durable(store))
		return 0;
	disk->store = store;
	disk->synced = synced;
	disk->ctx = ctx;
	disk->async.data = disk;
	int status = uv_async_init(loop, &disk->async, on_async);
	if (status)
		return status;
	uv_unref((uv_handle_t *)&disk->async);
	store_attach(store);
	status = uv_thread_create(&disk->thread, run, disk);
	disk->is_open = !status;
	if (status) {
		store_detach(store);
		uv_close((uv_handle_t *)&disk->async, NULL);
	}
	return status;
}

void disk_close(struct disk *disk)
{
	if (!disk->is_open)
		return;
	store_stop_waiting(disk->store);
	uv_thread_join(&disk->thread);
	store_detach(disk->store);
	uv_close((uv_handle_t *)&disk->async, NULL);
	disk->is_open = false;
}
