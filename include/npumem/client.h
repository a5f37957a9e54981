/* libnpumem: a connection to an npumem daemon.
 *
 * Blocking calls, and for each of them a form that does not wait: pass a callback, and it is called from
 * npumem_process (or from a later blocking call on the same connection) with the answer. Requests take effect on a
 * tensor in the order sent. One thread per connection; any number of connections.
 *
 * Every blocking call returns 0, or a status > 0 that `error` explains (error may be NULL). After
 * NPUMEM_UNAVAILABLE the connection is over and can only be closed; after any other status it is as good as
 * before, and nothing has changed on the device unless the call says otherwise. */
#ifndef NPUMEM_CLIENT_H
#define NPUMEM_CLIENT_H

#include <npumem/kernels.h>
#include <npumem/layout.h>
#include <npumem/numeric.h>
#include <npumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct npumem; /* a connection */

/* ---- connections ---- */

/* Connects to `address`: a socket's path, "unix:PATH", "spawn:" or "spawn:OPTIONS" (starts a private daemon that
 * dies with this connection; OPTIONS are npumemd's, separated by spaces; the program is $NPUMEMD, or npumemd in
 * $PATH; its stderr is kept, to be quoted where it does not start, or goes to the file $NPUMEM_SPAWN_LOG), or
 * NULL: $NPUMEM_SOCKET, else $XDG_RUNTIME_DIR/npumem.sock if it exists, else /run/npumem/npumem.sock.
 * 0 or NPUMEM_UNAVAILABLE, NPUMEM_INVALID. */
int npumem_open(const char *address, struct npumem **out, struct npumem_error *error);

/* The same over a connected socket, which it takes over in any case. 0 or NPUMEM_UNAVAILABLE. */
int npumem_open_fd(int fd, struct npumem **out, struct npumem_error *error);

/* Closes. The session's unnamed tensors are freed by the daemon. Callbacks still waiting are called with
 * NPUMEM_CANCELLED. NULL is allowed. */
void npumem_close(struct npumem *npumem);

/* For an event loop: wait until this fd is readable (or writable, where npumem_wants_write), then call
 * npumem_process, which reads and writes what it can without blocking and calls the callbacks whose answers
 * arrived. 0 or NPUMEM_UNAVAILABLE. */
int npumem_fd(const struct npumem *npumem);
bool npumem_wants_write(const struct npumem *npumem);
int npumem_process(struct npumem *npumem, struct npumem_error *error);

/* Requests sent and not yet answered. */
unsigned npumem_in_flight(const struct npumem *npumem);
/* Blocks until all of them are answered. */
int npumem_flush(struct npumem *npumem, struct npumem_error *error);

/* ---- answers ---- */

struct npumem_info {
	char version[32];
	uint64_t features;
	struct npumem_geometry geometry;
	int rounding, uninitialized;
	bool unchecked_reuse;
	int64_t frame_bytes_max;
	uint32_t uid, pid;
	uint64_t session;
};

struct npumem_stat {
	int64_t total, data, dummy, padding, empty, free; /* bytes; they add up to total */
	int64_t lent;         /* one tensor's empty block and another's data, dummies not counted */
	int64_t largest_free; /* per NPU */
	int64_t tensors, views, sessions;
};

/* What a session or a uid asked for and holds. All but in_flight, device_bytes and tensors only rise. */
struct npumem_usage {
	uint32_t uid, pid;
	uint64_t session; /* 0: of a uid, or of all */
	uint64_t requests, errors, bytes_in, bytes_out, in_flight;
	int64_t device_bytes, tensors;
	uint64_t sessions; /* of a uid, now; of all, ever */
};

enum { NPUMEM_STATUSES = 16, NPUMEM_BUCKETS = 26 };

/* The answers to one kind of request, by status and by the time they took: below 1 us, 2 us, 4 us, ... 2^24 us, and
 * the rest. */
struct npumem_call_stat {
	char call[24];
	uint64_t statuses[NPUMEM_STATUSES], buckets[NPUMEM_BUCKETS], total_ns;
};

/* What the device did since the daemon started. */
struct npumem_activity {
	uint64_t dma_bytes, kernels, macs, saturated, wrapped, destroyed_bytes;
};

/* The turns of the daemon's loop: all that it does between two waits for input. What comes meanwhile waits. */
struct npumem_loop_stat {
	uint64_t turns, buckets[NPUMEM_BUCKETS], total_ns;
	uint64_t longest_ns, longest_cpu_ns; /* of one turn since the last reset; of processor time */
};

/* The arrays lie behind it: one free() for all of it. Of uids and clients there are the rows that the caller may
 * see: all for root and the daemon's uid, else those of its own uid. */
struct npumem_details {
	struct npumem_stat stat;
	struct npumem_activity activity;
	struct npumem_loop_stat loop;
	struct npumem_usage all;
	uint64_t now_ns; /* the daemon's clock, for rates */
	unsigned n_npus, n_uids, n_clients, n_calls;
	int64_t *npu_data; /* bytes of data and dummies, for each NPU */
	struct npumem_usage *uids, *clients;
	struct npumem_call_stat *calls;
};

/* What another uid may do with a tensor. */
enum npumem_access { NPUMEM_ACCESS_NONE = 1, NPUMEM_ACCESS_READ, NPUMEM_ACCESS_WRITE };

enum { NPUMEM_GRANTS_MAX = 16 };

struct npumem_grant {
	uint32_t uid;
	int access; /* enum npumem_access */
};

struct npumem_tensor {
	uint64_t handle;
	char name[NPUMEM_NAME_BYTES_MAX + 1]; /* empty: anonymous */
	uint32_t uid;
	struct npumem_place place;
	bool sealed, dma_only, pinned, lends, borrows;
	uint64_t base; /* handle of a view's base, else 0 */
	char base_name[NPUMEM_NAME_BYTES_MAX + 16];
	char state[16]; /* ok, unwritten, partly written, damaged */
	int64_t unwritten_bytes, damaged_bytes;
	int reuse;
	unsigned n_grants; /* told to its owner */
	struct npumem_grant grants[NPUMEM_GRANTS_MAX];
};

struct npumem_destroyed {
	uint64_t handle;
	char name[NPUMEM_FIELD_TEXT_BYTES];
	int64_t npu, offset, bytes; /* the first range */
	int64_t total_bytes;        /* of data, dummies not counted */
};

enum { NPUMEM_DESTROYED_MAX = 16 };

/* What an operation did. */
struct npumem_done {
	int64_t saturated, wrapped, divided_by_zero, macs;
	unsigned n_destroyed;
	struct npumem_destroyed destroyed[NPUMEM_DESTROYED_MAX];
	char warning[256];
};

struct npumem_move {
	uint64_t handle;
	char name[NPUMEM_FIELD_TEXT_BYTES];
	int64_t from_address, to_address, bytes_per_npu;
};

/* ---- the device ---- */

int npumem_info(struct npumem *npumem, struct npumem_info *info, struct npumem_error *error);
int npumem_stat(struct npumem *npumem, struct npumem_stat *stat, struct npumem_error *error);
/* All of it; `details` receives what free() takes. */
int npumem_stat_details(struct npumem *npumem, struct npumem_details **details, struct npumem_error *error);
/* The same, and the loop's longest turns so far are forgotten: for root and the daemon's uid, else
 * NPUMEM_PERMISSION_DENIED. */
int npumem_stat_reset(struct npumem *npumem, struct npumem_details **details, struct npumem_error *error);
/* Up to 1 MiB of one NPU's raw bytes. */
int npumem_dump(struct npumem *npumem, int64_t npu, int64_t offset, int64_t bytes, void *to,
		struct npumem_error *error);
/* `moves` receives an array to free(); NULL where there are none. */
int npumem_compact(struct npumem *npumem, bool dry_run, struct npumem_move **moves, unsigned *n_moves,
		   struct npumem_error *error);

/* ---- records ---- */

/* A record of all that the daemon answers to anybody, in a file: for root and the daemon's uid, on a device without
 * tensors. Each: 0; NPUMEM_RESOURCE_EXHAUSTED also where `fd` cannot be written to; else what the daemon says. */
struct npumem_record {
	int fd;
	uint64_t entries;
	bool lost; /* it is not whole, and cannot be replayed: */
	char reason[128];
};
int npumem_record_start(struct npumem *npumem, int fd, struct npumem_record *record, struct npumem_error *error);
/* Writes what was answered since; `*n` entries. To be called often: the daemon keeps 256 MiB. */
int npumem_record_take(struct npumem *npumem, struct npumem_record *record, unsigned *n, struct npumem_error *error);
/* The rest, and the end. */
int npumem_record_stop(struct npumem *npumem, struct npumem_record *record, struct npumem_error *error);

/* Reads a file, and tells what it was recorded on. INVALID: it is no whole record, why, and at which entry;
 * RESOURCE_EXHAUSTED. */
struct npumem_replay;
int npumem_replay_open(const char *path, struct npumem_replay **out, struct npumem_info *info,
		       struct npumem_error *error);
void npumem_replay_close(struct npumem_replay *replay);

struct npumem_replay_result {
	uint64_t requests, skipped; /* skipped: what was cancelled or malformed, or is no call about tensors */
	uint64_t differences;
	uint64_t first; /* request of the first difference; 0: none, or only what is there in the end differs */
	uint64_t session; /* whose request that was */
	uint32_t uid, pid;
	bool same_geometry; /* so that local memory was compared, too, each NPU's by its CRC-32 */
	int64_t npu;	    /* the first whose local memory differs in the end; -1: none, or not compared */
	char what[256];
};
/* Sends all requests again, one after the other, each session's over a connection of its own that `open` makes for
 * its uid; the device has no tensors at first. Compares statuses, read data and counts, and in the end the data of
 * all tensors, which `open` is asked for with the uid `admin`. 0, or why it could not go on. */
int npumem_replay_run(struct npumem_replay *replay, uint32_t admin,
		      int (*open)(void *ctx, uint32_t uid, struct npumem **out, struct npumem_error *error), void *ctx,
		      struct npumem_replay_result *result, struct npumem_error *error);

/* ---- tensors ---- */

/* A tensor to allocate. Start from npumem_spec_init; zero means the default for the rest. */
struct npumem_allocation {
	struct npumem_spec spec;
	const char *name; /* NULL: anonymous, freed with the session */
	int reuse;        /* enum npumem_reuse */
	bool dma_only, pinned;
};

/* Layout questions without allocating, on the daemon's geometry. */
int npumem_plan_remote(struct npumem *npumem, const struct npumem_spec *spec, struct npumem_plan *plan,
		       struct npumem_error *error);
/* Numeric questions answered by the daemon instead of npumem_numeric. */
int npumem_numeric_remote(struct npumem *npumem, const struct npumem_numeric *question,
			  struct npumem_numeric_answer *answer, struct npumem_error *error);
/* All n or none. */
int npumem_alloc(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
		 struct npumem_tensor *tensors, struct npumem_error *error);
/* The same, but where there is no room it stands in line for up to `wait_ms` milliseconds, and then answers
 * NPUMEM_DEADLINE_EXCEEDED with what was missing. What could never fit is refused at once. */
int npumem_alloc_wait(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
		      uint32_t wait_ms, struct npumem_tensor *tensors, struct npumem_error *error);
/* A slice [from, to) of `base`. `name` NULL: anonymous. */
int npumem_view(struct npumem *npumem, uint64_t base, const char *name, const struct npumem_dims *from,
		const struct npumem_dims *to, struct npumem_tensor *view, struct npumem_error *error);
int npumem_reshape(struct npumem *npumem, uint64_t base, const char *name, const struct npumem_dims *shape,
		   struct npumem_tensor *view, struct npumem_error *error);
/* All n or none, n <= 256; views go with their base. */
int npumem_free(struct npumem *npumem, const uint64_t *handles, unsigned n, struct npumem_error *error);
/* Makes a tensor read-only for good. */
int npumem_seal(struct npumem *npumem, uint64_t handle, struct npumem_error *error);
/* Lets another uid read or write (and read) a named tensor of one's own, or takes that back. */
int npumem_grant(struct npumem *npumem, uint64_t handle, uint32_t uid, int access, struct npumem_error *error);
/* Finds a named tensor: "NAME" of one's own uid or "UID:NAME". */
int npumem_open_tensor(struct npumem *npumem, const char *name, struct npumem_tensor *tensor,
		       struct npumem_error *error);
/* The present state of a tensor. */
int npumem_show(struct npumem *npumem, uint64_t handle, struct npumem_tensor *tensor, struct npumem_error *error);
/* `tensors` receives an array to free(), NULL where `n` is 0. The tensors are asked for in pages: those that come and
 * go meanwhile are told or not, those that are there throughout once. */
int npumem_list(struct npumem *npumem, struct npumem_tensor **tensors, unsigned *n, struct npumem_error *error);

/* ---- operations ---- */

/* Host arrays are dense, row-major over N,C,H,W (a matrix: rows, cols), in the tensor's container type, `bytes`
 * long, which must be the tensor's whole size. Sent in as many frames as needed; a failure between two of them
 * leaves the earlier part written. `done` may be NULL. */
int npumem_write(struct npumem *npumem, const struct npumem_tensor *tensor, const void *data, size_t bytes,
		 struct npumem_error *error);
int npumem_read(struct npumem *npumem, const struct npumem_tensor *tensor, void *data, size_t bytes,
		struct npumem_done *done, struct npumem_error *error);
int npumem_fill(struct npumem *npumem, uint64_t handle, int64_t value, struct npumem_error *error);
int npumem_fill_float(struct npumem *npumem, uint64_t handle, double value, struct npumem_error *error);
int npumem_copy(struct npumem *npumem, uint64_t destination, uint64_t source, struct npumem_done *done,
		struct npumem_error *error);

struct npumem_operand {
	const char *role; /* "in", "weights", … */
	uint64_t handle;
};
/* Runs a kernel by name. */
int npumem_run(struct npumem *npumem, const char *kernel, const struct npumem_operand *operands,
	       unsigned n_operands, const struct npumem_param *params, unsigned n_params, struct npumem_done *done,
	       struct npumem_error *error);

/* One operation of a list. */
enum npumem_operation_kind { NPUMEM_OP_WRITE = 1, NPUMEM_OP_READ, NPUMEM_OP_FILL, NPUMEM_OP_COPY, NPUMEM_OP_RUN };
struct npumem_operation {
	enum npumem_operation_kind kind;
	unsigned group;  /* > 0, same as its neighbours': runs in parallel with them */
	uint64_t handle; /* written, read, filled; the destination of a copy */
	uint64_t source; /* of a copy */
	void *data;      /* write, read: the whole tensor, dense; or instead of it: */
	size_t bytes;
	const struct npumem_segment *segment; /* the whole tensor from or to a segment */
	uint64_t segment_offset;
	const struct npumem_dims *segment_stride; /* NULL: continuous */
	int64_t value; /* fill */
	const char *kernel;
	const struct npumem_operand *operands;
	unsigned n_operands;
	const struct npumem_param *params;
	unsigned n_params;
};
/* Runs a list of at most 1024 in order, in one message (16 MiB and 16384 fields in all, as npumem.proto counts them).
 * On a refusal `*n_ran` operations have run. `done`, n of them, may be NULL. */
int npumem_submit(struct npumem *npumem, const struct npumem_operation *operations, unsigned n,
		  struct npumem_done *done, unsigned *n_ran, struct npumem_error *error);

/* ---- system memory ---- */

/* Memory that the daemon maps, too: DMA moves between it and local memory, and no payload byte crosses the socket. */
struct npumem_segment {
	uint64_t id;
	void *base; /* mapped in this process, readable and writable */
	size_t bytes;
};

/* Allocates (a sealed memfd), maps and shares `bytes` of zeroed memory. Its whole size is charged to the session. */
int npumem_segment_create(struct npumem *npumem, size_t bytes, struct npumem_segment *segment,
			  struct npumem_error *error);
/* Takes it back from the daemon, after all that was asked of it before, and unmaps it here, also on an error. */
int npumem_segment_close(struct npumem *npumem, struct npumem_segment *segment, struct npumem_error *error);

/* Elements [first, first + count) (count 0: all from `first`) between a tensor and a segment, where element `first`
 * is at byte `offset`. `stride`: of the segment, in elements, for whole tensors only; NULL: continuous, row-major. */
int npumem_write_segment(struct npumem *npumem, uint64_t handle, const struct npumem_segment *segment, uint64_t offset,
			 const struct npumem_dims *stride, int64_t first, int64_t count, struct npumem_error *error);
int npumem_read_segment(struct npumem *npumem, uint64_t handle, const struct npumem_segment *segment, uint64_t offset,
			const struct npumem_dims *stride, int64_t first, int64_t count, struct npumem_done *done,
			struct npumem_error *error);

/* ---- the form that does not wait ---- */

/* One answer. `status` is 0 or what `error` explains; the results are set where the call has them. All of it
 * belongs to the library and is gone when the callback returns. Callbacks may send, not close. */
struct npumem_answer {
	int status;
	const struct npumem_error *error;
	const struct npumem_tensor *tensors; /* alloc, view, open: n_tensors of them */
	unsigned n_tensors;
	const struct npumem_done *done;      /* write, read, fill, copy, run */
	const void *data;                    /* read */
	size_t bytes;
};
typedef void npumem_callback(void *context, const struct npumem_answer *answer);

/* 0: sent or queued, the callback will be called once; else a status, and it will not. */
int npumem_alloc_send(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
		      npumem_callback *callback, void *context, struct npumem_error *error);
int npumem_alloc_wait_send(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
			   uint32_t wait_ms, npumem_callback *callback, void *context,
			   struct npumem_error *error);
int npumem_free_send(struct npumem *npumem, const uint64_t *handles, unsigned n, npumem_callback *callback,
		     void *context, struct npumem_error *error);
int npumem_open_tensor_send(struct npumem *npumem, const char *name, npumem_callback *callback, void *context,
			    struct npumem_error *error);
/* Elements from `first` on; what fits one frame. */
int npumem_write_send(struct npumem *npumem, uint64_t handle, int64_t first, const void *data, size_t bytes,
		      npumem_callback *callback, void *context, struct npumem_error *error);
int npumem_read_send(struct npumem *npumem, uint64_t handle, int64_t first, int64_t count,
		     npumem_callback *callback, void *context, struct npumem_error *error);
int npumem_run_send(struct npumem *npumem, const char *kernel, const struct npumem_operand *operands,
		    unsigned n_operands, const struct npumem_param *params, unsigned n_params,
		    npumem_callback *callback, void *context, struct npumem_error *error);

/* Something that happened on the device. Of what this uid may not use only kind, uid and bytes are told. */
struct npumem_event {
	char kind[24]; /* allocated, freed, sealed, moved, damaged, refused, low-space, client-gone, progress */
	uint64_t handle;
	char name[NPUMEM_FIELD_TEXT_BYTES];
	uint32_t uid; /* whose tensor, or who asked */
	uint32_t pid; /* who did it */
	uint64_t session;
	uint64_t bytes;	  /* per NPU: of the tensor; damaged: in all; low-space: still free */
	uint64_t time_ns; /* by the daemon's monotonic clock */
	uint64_t lost;	  /* events before this one that were not read in time */
	uint64_t request, done, total; /* progress of what this connection asked for, in parts of about equal time */
	int status;		       /* refused */
	char message[256];
};
/* May send, not wait. */
typedef void npumem_event_callback(void *context, const struct npumem_event *event);

/* From now on events of n kinds (0: none any more) are told to the callback, from npumem_process or a blocking call.
 * Replaces what was subscribed before. 0; NPUMEM_INVALID where the daemon does not know a kind. */
int npumem_subscribe(struct npumem *npumem, const char *const *kinds, unsigned n, npumem_event_callback *callback,
		     void *context, struct npumem_error *error);

/* The number of the request that was sent last; 0 before the first. */
uint64_t npumem_last_request(const struct npumem *npumem);
/* Takes back a request of this connection: what waits is dropped, a running kernel is stopped before it has written
 * anything, and its callback is told NPUMEM_CANCELLED. What can no longer be stopped is answered as ever. `found`
 * (may be NULL): it was not yet answered. May be called from within a callback, which then is not told `found`. */
int npumem_cancel(struct npumem *npumem, uint64_t request, bool *found, struct npumem_error *error);

#ifdef __cplusplus
}
#endif
#endif
