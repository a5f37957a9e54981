/* The frames that bench_rpc sends the daemon, and what the floor is sent instead. */
#ifndef BENCH_RPC_REQUESTS_H
#define BENCH_RPC_REQUESTS_H

#include "tests/bench/rpc/load.h"

/* Each appends one frame. Ids are 1, 2, ... within a batch. */
void requests_fill(struct batch *batch, uint64_t handle);
void requests_submit(struct batch *batch, const uint64_t *handles, unsigned n_handles, unsigned n_fills);
void requests_alloc(struct batch *batch, int64_t w); /* [1, 8, 1, w] of int8, unnamed */
void requests_free(struct batch *batch, uint64_t handle);
void requests_write(struct batch *batch, uint64_t handle, size_t n_bytes);
void requests_read(struct batch *batch, uint64_t handle, size_t n_bytes);
/* All of a tensor but its last element. */
void requests_view(struct batch *batch, uint64_t base, int64_t w);

/* Where `batch` has the handle; it must be in it. */
size_t requests_handle_off(const struct batch *batch, uint64_t handle);
/* Asks for a tensor (or, with a base, a view of its first w columns) and returns its handle. */
uint64_t requests_tensor(int fd, int64_t w, uint64_t base);

/* Makes the floor's load of the daemon's: the same frames, or flat ones of the same sizes; and tells it over
 * `floor_fd` the replies, which are what the daemon answers over `fd` to the first frame of each batch. */
void requests_floor(const struct load *load, int fd, bool flat, struct load *floor, int floor_fd);

#endif
