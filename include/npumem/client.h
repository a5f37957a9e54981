/* libnpumem: a connection to an npumem daemon. This header has the calls that wait. npumem/async.h has each of
 * them in a form that does not wait; npumem/record.h records and replays. Requests of a connection take effect
 * in the order sent. One thread at a time may use a connection and its results; a process may have any number of
 * connections.
 *
 * Every call returns 0, or a status > 0 that `error` explains (`error` may be NULL). After any status but
 * NPUMEM_UNAVAILABLE the connection can be used as before, and nothing has changed on the device unless the call
 * says otherwise. In particular:
 *   NPUMEM_UNAVAILABLE        The connection is over and can only be closed. (One exception: see npumem_call.)
 *   NPUMEM_DEADLINE_EXCEEDED  The call took longer than its timeout. It was cancelled, and may have taken effect.
 *                             An allocation that waited for room until its deadline gets it, too, without effect.
 *   NPUMEM_CANCELLED          A callback has closed the connection during the call; or npumem_interrupt was
 *                             called.
 *
 * If the daemon keeps sessions (npumemd --state-dir), its restart is a pause. The connection reconnects to the
 * next daemon at its address and continues the session with its unnamed tensors, segments and subscription. It
 * sends unanswered requests again. Allocations, views, seals, grants, renames, frees, and data operations that
 * change their own input take effect once; other data operations may run twice, in the order sent. Further
 * statuses:
 *   NPUMEM_ABORTED            The request ran, in whole or in part (field "done": operations). Its answer is lost,
 *                             and a second run would give another result. Or the daemon died twice while the
 *                             request ran (field "deaths"). Its effect stays.
 *   NPUMEM_DATA_LOST          The request was overwriting its own input (field "tensor") when the daemon ended.
 *   NPUMEM_UNAVAILABLE        No daemon came in time, or the daemon does not have the session. A session expires
 *                             if no call and no npumem_process ran for the time that the daemon keeps it.
 * Events of the pause are lost.
 *
 * Results belong to the library and may get more members in later versions: use them in place, do not copy them.
 * A result of a call is valid until npumem_release or the end of the connection; a result in a callback, until the
 * callback returns (npumem_keep). If a call fails, its results are NULL. The pointer for a result may be NULL.
 *
 * npumem_options, npumem_allocation, npumem_operation and npumem_change begin with a member `size`: set it to the
 * sizeof the struct, or use the INIT macro. So later versions can add members. All other structs that the caller
 * fills (npumem_spec, dims, operand, param, terms, …) and npumem_error do not change in later versions. */
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

#define NPUMEM_NO_SPIN UINT32_MAX
#define NPUMEM_FOREVER UINT32_MAX
#define NPUMEM_NO_RESUME UINT64_MAX

/* A member that is 0 has its default. */
struct npumem_options {
	size_t size;
	uint32_t connect_ms; /* of npumem_open, with a private daemon's start; 0: 30000; or NPUMEM_FOREVER */
	uint32_t call_ms;    /* as npumem_set_timeout; 0: no limit */
	/* How long a waiting call polls before it sleeps, in microseconds, at most 1000. 0: $NPUMEM_SPIN_US, or
	 * 300 if that is not set. Never: NPUMEM_NO_SPIN, or 0 here and NPUMEM_SPIN_US=0. With one core a call
	 * never polls; while polling does not pay, it pauses. */
	uint32_t spin_us;
	/* For how many milliseconds a lost connection tries to reconnect and to continue its session. 0: as long
	 * as the next daemon keeps sessions (npumemd --resume-seconds). NPUMEM_NO_RESUME: never. It holds for an
	 * address, not for a private daemon or an fd. */
	uint64_t resume_ms;
};
#define NPUMEM_OPTIONS_INIT                                                                                       \
	{                                                                                                         \
		sizeof(struct npumem_options), 0, 0, 0, 0                                                         \
	}

/* Connects to `address`:
 *   PATH or "unix:PATH"           a socket
 *   "ssh:[USER@]HOST[:/SOCKET]"   a daemon on another host, see below
 *   "spawn:" or "spawn:OPTIONS"   a private daemon. It ends with this connection, not with the thread that opened
 *                                 it. OPTIONS are those of npumemd, separated by spaces. The program is $NPUMEMD,
 *                                 else the npumemd installed with this library, else npumemd in $PATH. Its stderr
 *                                 goes to the file $NPUMEM_SPAWN_LOG, else into the message if it does not start.
 *   NULL                          $NPUMEM_SOCKET, else $XDG_RUNTIME_DIR/npumem.sock if it exists, else
 *                                 /run/npumem/npumem.sock
 * A program with more rights than its caller (secure_getenv) ignores the environment and starts the npumemd that
 * was installed with the library.
 *
 * "ssh:" runs $NPUMEM_SSH, else ssh, with `npumemctl dial` on the host, which connects to SOCKET or to that
 * host's default socket. On the host the client has the uid of the account that it logs in to. ssh ends with the
 * connection and ignores ^C. All calls are the same, but segments are local to this process: DMA with a segment
 * is sent in chunks, as npumem_write does. Its tensor must be one that a call of this connection has returned. In
 * a list, the segment's data are copied into the message. A write with strides copies its elements at the call;
 * without strides they are sent from the segment, and must not change until the answer. If the daemon keeps
 * sessions and the connection is lost, the session continues over another ssh.
 *
 * A daemon at a path is accepted if its uid is root's, the caller's or $NPUMEM_SERVER_UID, or if only root, the
 * caller and the daemon's uid can write the folders on the path; in a sticky folder, as /tmp, the next name must
 * belong to root or the caller. Any other is NPUMEM_PERMISSION_DENIED, with the field "uid".
 *
 * `options` NULL: the defaults. 0 or NPUMEM_UNAVAILABLE, NPUMEM_INVALID, NPUMEM_PERMISSION_DENIED,
 * NPUMEM_DEADLINE_EXCEEDED (connect_ms); then *out is NULL, which npumem_close takes. */
int npumem_open(const char *address, const struct npumem_options *options, struct npumem **out,
		struct npumem_error *error);

/* Connects a socket to the daemon at `address`, a path or NULL as in npumem_open, and sends nothing. *fd is the
 * socket; the caller closes it. Of `options` only connect_ms is used. 0 or NPUMEM_UNAVAILABLE, NPUMEM_INVALID
 * (ssh:, spawn:), NPUMEM_PERMISSION_DENIED, NPUMEM_DEADLINE_EXCEEDED. */
int npumem_dial(const char *address, const struct npumem_options *options, int *fd, struct npumem_error *error);

/* As npumem_open over a connected socket. The library owns `fd` from then on, also on an error. 0 or
 * NPUMEM_UNAVAILABLE, NPUMEM_INVALID. */
int npumem_open_fd(int fd, const struct npumem_options *options, struct npumem **out, struct npumem_error *error);

/* Starts a daemon on a new socket `path` with the options `words` of npumemd (NULL: none), for several
 * connections and processes. It is ready when the call returns. It ends by npumem_spawn_end, which waits for it
 * and removes the socket, or with this process. *pid is its process id. connect_ms of `options` limits the
 * start. 0 or NPUMEM_UNAVAILABLE (with the daemon's message), NPUMEM_INVALID, NPUMEM_DEADLINE_EXCEEDED,
 * NPUMEM_RESOURCE_EXHAUSTED. */
int npumem_spawn(const char *path, const char *words, const struct npumem_options *options, int *pid,
		 struct npumem_error *error);
void npumem_spawn_end(const char *path, int pid);

/* The program that npumem_open starts as a private daemon: a file, or a name in $PATH. It is for callers that
 * start a daemon by themselves. Returns the program's argv[0], which is valid as long as `program`. */
struct npumem_program {
	char path[4096];
};
const char *npumem_program(struct npumem_program *program);

/* Closes the connection. The daemon frees the session's unnamed tensors; all results are released. Callbacks of
 * unanswered requests are called with NPUMEM_CANCELLED. If a callback calls this, all of it happens after the
 * callback has returned, and the call that ran the callback returns NPUMEM_CANCELLED. NULL is allowed. */
void npumem_close(struct npumem *npumem);

/* The timeout of all later calls, also asynchronous ones, in milliseconds; 0: none. */
void npumem_set_timeout(struct npumem *npumem, uint32_t call_ms);

/* `on` true: a call that is waiting cancels all requests of the connection and returns NPUMEM_CANCELLED, or its
 * usual answer if its request could not be stopped; later calls that wait return NPUMEM_CANCELLED at once. `on`
 * false: calls wait again. May be called by a signal handler on the thread that waits; the signal ends the wait,
 * with SA_RESTART and without it. */
void npumem_interrupt(struct npumem *npumem, bool on);

/* Keeps a result of a callback (npumem_answer) after the callback has returned. Each npumem_keep needs one
 * npumem_release. */
void npumem_keep(const void *result);
/* Releases a result of a call, or one that was kept. NULL is allowed. */
void npumem_release(const void *result);

/* ---- the device ---- */

/* A limit of the caller's uid. */
struct npumem_limit {
	char key[24];	    /* as in npumemd --limit */
	uint64_t most, now; /* the limit, and what the uid uses of it */
};

enum { NPUMEM_LIMITS_MAX = 16 };

struct npumem_info {
	char version[32];
	uint64_t features;
	struct npumem_geometry geometry;
	int rounding, uninitialized;
	bool unchecked_reuse;
	int64_t frame_bytes_max;
	uint32_t uid, pid;
	uint64_t session;
	char isa[32]; /* the widest instruction set of the kernels; empty: not known */
	uint64_t uptime_ns;
	char socket[112]; /* on which the daemon listens; empty for a private daemon */
	unsigned n_limits;
	struct npumem_limit limits[NPUMEM_LIMITS_MAX];
	bool remote; /* the daemon is on another host (ssh:): system memory is copied and sent */
};

struct npumem_stat {
	int64_t total, data, dummy, padding, empty, free; /* bytes; they add up to total */
	int64_t lent;	      /* bytes that are in an empty block of one tensor and data of another */
	int64_t largest_free; /* per NPU */
	int64_t tensors, views;
	int64_t sessions; /* that the caller may see */
	int64_t packs;	  /* bytes of host memory for packed weights of the tensors of these uids */
};

/* The requests and holdings of a session, of a uid, or of all. All members but in_flight, device_bytes, tensors,
 * packs and a uid's sessions only rise. */
struct npumem_usage {
	uint32_t uid, pid;
	uint64_t session; /* 0: of a uid, or of all */
	uint64_t requests, errors, bytes_in, bytes_out, in_flight;
	int64_t device_bytes, tensors;
	uint64_t sessions; /* of a uid: now; of all: since the start */
	int64_t packs;	   /* of a uid, or of all: bytes of host memory for packed weights of its tensors */
};

enum { NPUMEM_STATUSES = 16, NPUMEM_BUCKETS = 26 };

/* The answers to one kind of request, by status and by the time they took: below 1 us, 2 us, 4 us, ... 2^24 us,
 * and the rest. */
struct npumem_call_stat {
	char call[24];
	uint64_t statuses[NPUMEM_STATUSES], buckets[NPUMEM_BUCKETS], total_ns;
};

/* Sums over all operations since the daemon's start, of the uids that the caller may see. */
struct npumem_activity {
	uint64_t dma_bytes, kernels, macs, saturated, wrapped, destroyed_bytes;
};

/* The turns of the daemon's loop. A turn is all work between two waits for input; other input waits for its end.
 * All 0 for a caller that is neither root nor the daemon's uid. */
struct npumem_loop_stat {
	uint64_t turns, buckets[NPUMEM_BUCKETS], total_ns;
	uint64_t longest_ns, longest_cpu_ns; /* the longest turn since the last reset: elapsed, processor time */
	uint64_t longest_wait_ns;	     /* the longest sleep within a turn, at least */
};

/* A request that has begun and has no answer yet. */
struct npumem_running {
	uint64_t session, request;
	uint32_t uid, pid;
	char call[24];
	char what[448];	      /* its operation, for people: "conv2d in=x weights=w out=y" */
	uint64_t since_ns;    /* when it was received, by the clock of now_ns */
	uint64_t done, total; /* its progress; total 0: not known */
	bool waits;	      /* it waits for room */
};

/* Root and the daemon's uid see all members. Any other caller sees the use of the device (stat), and in all other
 * members only its own uid. */
struct npumem_details {
	const struct npumem_stat *stat;
	const struct npumem_activity *activity;
	const struct npumem_loop_stat *loop;
	const struct npumem_usage *all;
	uint64_t now_ns; /* the daemon's clock, for rates */
	unsigned n_npus, n_uids, n_clients, n_calls;
	const int64_t *npu_data; /* bytes of data and dummies of the tensors of these uids, for each NPU */
	const struct npumem_usage *const *uids, *const *clients;
	const struct npumem_call_stat *const *calls;
	unsigned n_running; /* the first 64 requests under way, this one left out */
	const struct npumem_running *const *running;
};

struct npumem_move {
	uint64_t handle;
	char name[NPUMEM_FIELD_TEXT_BYTES];
	int64_t from_address, to_address, bytes_per_npu;
};

struct npumem_compacted {
	int64_t largest_free_before, largest_free_after; /* per NPU */
	unsigned n_moves;
	const struct npumem_move *const *moves;
	bool cut; /* there are more moves than `moves` has room for */
};

int npumem_info(struct npumem *npumem, const struct npumem_info **info, struct npumem_error *error);
int npumem_stat(struct npumem *npumem, const struct npumem_stat **stat, struct npumem_error *error);
/* `reset` sets the loop's longest times to 0; it is for root and the daemon's uid, else
 * NPUMEM_PERMISSION_DENIED. */
int npumem_stat_details(struct npumem *npumem, bool reset, const struct npumem_details **details,
			struct npumem_error *error);
/* Up to 1 MiB of one NPU's raw bytes. NPUMEM_PERMISSION_DENIED: bytes there are of a tensor that the caller may
 * not read. */
int npumem_dump(struct npumem *npumem, int64_t npu, int64_t offset, int64_t bytes, void *to,
		struct npumem_error *error);
int npumem_compact(struct npumem *npumem, bool dry_run, const struct npumem_compacted **compacted,
		   struct npumem_error *error);
/* As npumem_plan, on the daemon's geometry. */
int npumem_plan_remote(struct npumem *npumem, const struct npumem_spec *spec, const struct npumem_plan **plan,
		       struct npumem_error *error);
/* For root and the daemon's uid: the daemon answers the requests that it has, then ends, and this connection
 * with it. 0 or NPUMEM_PERMISSION_DENIED. */
int npumem_shutdown(struct npumem *npumem, struct npumem_error *error);
/* A piece of a snapshot: a copy of the daemon's state directory at one moment, taken while the daemon runs. All
 * pieces together are the files of a directory from which a daemon can start. For root and the daemon's uid. */
struct npumem_piece {
	uint64_t snapshot;
	const char *file; /* a name in that directory; each file comes at least once */
	uint64_t file_bytes, offset;
	const void *data; /* the file's bytes at `offset`; bytes that no piece has are zero */
	size_t bytes;
	bool last;
};
/* `snapshot` 0 begins a snapshot; the piece has its number and no file. Call it again with this number until
 * `last`. NPUMEM_PERMISSION_DENIED; NPUMEM_FAILED_PRECONDITION: there is no state directory, or another snapshot
 * is being taken; NPUMEM_NOT_FOUND: the snapshot has ended. */
int npumem_snapshot(struct npumem *npumem, uint64_t snapshot, const struct npumem_piece **piece,
		    struct npumem_error *error);
/* As npumem_numeric; the daemon answers. */
int npumem_numeric_remote(struct npumem *npumem, const struct npumem_numeric *question,
			  const struct npumem_numeric_answer **answer, struct npumem_error *error);

/* ---- tensors ---- */

/* A tensor to allocate. 0 is the default of each member that NPUMEM_ALLOCATION_INIT sets to 0. The elements of
 * an array have the same `size`. */
struct npumem_allocation {
	size_t size;
	struct npumem_spec spec;
	const char *name; /* NULL: anonymous, freed with the session */
	int reuse;	  /* enum npumem_reuse */
	bool dma_only, pinned;
	/* Names an unnamed tensor in refusals, events and pictures; or NULL. At most NPUMEM_NAME_BYTES_MAX bytes
	 * of printable ASCII; it need not be unique. */
	const char *label;
};
/* With the spec of npumem_spec_init. */
#define NPUMEM_ALLOCATION_INIT                                                                                    \
	{                                                                                                         \
		sizeof(struct npumem_allocation),                                                                 \
			{0, NPUMEM_ANY, 0, 0, {0, 0, 0, 0}, 0, 0, 0, {0, 0, 0, 0}, NPUMEM_ANY, NPUMEM_ANY}, NULL, \
			0, false, false, NULL                                                                     \
	}

/* The access of another uid to a tensor. */
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
	/* lends: its empty blocks hold data of another tensor; borrows: its data lie in another's empty blocks. */
	bool sealed, dma_only, pinned, lends, borrows;
	uint64_t base; /* handle of a view's base, else 0 */
	char base_name[NPUMEM_NAME_BYTES_MAX + 16];
	char state[16]; /* ok, unwritten, partly written, damaged, lost; empty: the caller may not read it */
	int64_t unwritten_bytes, damaged_bytes;
	int reuse;
	unsigned n_grants; /* 0 unless the caller is its owner */
	struct npumem_grant grants[NPUMEM_GRANTS_MAX];
	char label[NPUMEM_NAME_BYTES_MAX + 1]; /* of an anonymous tensor; or empty */
};

struct npumem_tensors {
	unsigned n;
	const struct npumem_tensor *const *list;
};

/* All n or none. `tensors`: n results, or NULL. */
int npumem_alloc(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
		 const struct npumem_tensor **tensors, struct npumem_error *error);
/* The same, but without room it waits for up to `wait_ms` milliseconds, and then returns
 * NPUMEM_DEADLINE_EXCEEDED with the missing room. An allocation that cannot fit on the empty device is refused
 * at once. */
int npumem_alloc_wait(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
		      uint32_t wait_ms, const struct npumem_tensor **tensors, struct npumem_error *error);
/* A slice [from, to) of `base`. `name` NULL: anonymous. */
int npumem_view(struct npumem *npumem, uint64_t base, const char *name, const struct npumem_dims *from,
		const struct npumem_dims *to, const struct npumem_tensor **view, struct npumem_error *error);
int npumem_reshape(struct npumem *npumem, uint64_t base, const char *name, const struct npumem_dims *shape,
		   const struct npumem_tensor **view, struct npumem_error *error);
/* A view of the same elements with other frac_bits (0 to 127). An element that is the real number x in base is
 * x * 2^(base's frac_bits - frac_bits) in the view. */
int npumem_view_format(struct npumem *npumem, uint64_t base, const char *name, int64_t frac_bits,
		       const struct npumem_tensor **view, struct npumem_error *error);
/* Frees all n tensors or none, n <= 256. Views are freed with their base. */
int npumem_free(struct npumem *npumem, const uint64_t *handles, unsigned n, struct npumem_error *error);
/* Makes a tensor read-only until it is freed. */
int npumem_seal(struct npumem *npumem, uint64_t handle, struct npumem_error *error);
/* Renames a named tensor of the caller's uid; its handle stays. NPUMEM_ALREADY_EXISTS: the name is taken. */
int npumem_rename(struct npumem *npumem, uint64_t handle, const char *name, struct npumem_error *error);
/* Sets the access of another uid to a named tensor of the caller's uid. WRITE includes READ. */
int npumem_grant(struct npumem *npumem, uint64_t handle, uint32_t uid, int access, struct npumem_error *error);
/* Finds a named tensor: "NAME" of the caller's uid, or "UID:NAME". */
int npumem_open_tensor(struct npumem *npumem, const char *name, const struct npumem_tensor **tensor,
		       struct npumem_error *error);
/* The present state of a tensor. */
int npumem_show(struct npumem *npumem, uint64_t handle, const struct npumem_tensor **tensor,
		struct npumem_error *error);
/* Lists all tensors that the caller may know of. The list is read in pages. A tensor that exists throughout
 * appears once; a tensor that is allocated or freed meanwhile may or may not appear. */
int npumem_list(struct npumem *npumem, const struct npumem_tensors **tensors, struct npumem_error *error);

/* ---- operations ---- */

/* Data of another tensor that a kernel destroyed: they lay in an empty block of its output (NPUMEM_UNCHECKED). */
struct npumem_destroyed {
	uint64_t handle;
	char name[NPUMEM_FIELD_TEXT_BYTES];
	int64_t npu, offset, bytes; /* the first range */
	int64_t total_bytes;	    /* bytes of data, without dummies */
};

/* The result of an operation. */
struct npumem_done {
	int64_t saturated, wrapped, divided_by_zero, macs;
	unsigned n_destroyed;
	const struct npumem_destroyed *const *destroyed;
	const char *warning;		  /* "": none */
	uint64_t start_ns, end_ns;	  /* of its run, by the daemon's monotonic clock */
	unsigned operation;		  /* its index in a list */
	const struct npumem_costs *costs; /* of a dry run, which has no counts; else NULL */
};

/* Write or read a whole tensor. The host array is dense, row-major over N,C,H,W (a matrix: rows, cols), in the
 * tensor's container type; `bytes` must be its size. It travels in as many frames as needed; a failure between
 * two frames leaves a part written. The data are not copied: they are sent from `data` and received into it.
 * After a failed read its content is undefined. */
int npumem_write(struct npumem *npumem, const struct npumem_tensor *tensor, const void *data, size_t bytes,
		 struct npumem_error *error);
int npumem_read(struct npumem *npumem, const struct npumem_tensor *tensor, void *data, size_t bytes,
		const struct npumem_done **done, struct npumem_error *error);
/* Write or read elements from `first` on, within one frame: as many as `bytes` holds (of a read `count` must be
 * that number). */
int npumem_write_part(struct npumem *npumem, uint64_t handle, int64_t first, const void *data, size_t bytes,
		      struct npumem_error *error);
int npumem_read_part(struct npumem *npumem, uint64_t handle, int64_t first, int64_t count, void *data,
		     size_t bytes, const struct npumem_done **done, struct npumem_error *error);
/* Sets each element: to the container's integer, or for fp32 to an integer that fp32 holds exactly. */
int npumem_fill(struct npumem *npumem, uint64_t handle, int64_t value, struct npumem_error *error);
/* Sets each element of an fp32 tensor. */
int npumem_fill_float(struct npumem *npumem, uint64_t handle, double value, struct npumem_error *error);
/* Copies a tensor into another of its type, frac_bits and shape; layout, mode and start NPU may differ. */
int npumem_copy(struct npumem *npumem, uint64_t destination, uint64_t source, const struct npumem_done **done,
		struct npumem_error *error);

struct npumem_operand {
	const char *role; /* "in", "weights", … */
	uint64_t handle;
};
/* Runs a kernel by name. */
int npumem_run(struct npumem *npumem, const char *kernel, const struct npumem_operand *operands,
	       unsigned n_operands, const struct npumem_param *params, unsigned n_params,
	       const struct npumem_done **done, struct npumem_error *error);

/* One operation of a list. The elements of an array have the same `size`. */
enum npumem_operation_kind { NPUMEM_OP_WRITE = 1, NPUMEM_OP_READ, NPUMEM_OP_FILL, NPUMEM_OP_COPY, NPUMEM_OP_RUN };
struct npumem_operation {
	size_t size; /* sizeof(struct npumem_operation) */
	enum npumem_operation_kind kind;
	unsigned group;	 /* neighbours with the same number > 0 run in parallel */
	uint64_t handle; /* written, read, filled; the destination of a copy */
	uint64_t source; /* of a copy */
	void *data;	 /* write, read: the whole tensor, dense; or instead of it: */
	size_t bytes;
	const struct npumem_segment *segment; /* the whole tensor from or to a segment */
	uint64_t segment_offset;
	const struct npumem_dims *segment_stride; /* NULL: continuous */
	int64_t value;				  /* fill */
	const char *kernel;
	const struct npumem_operand *operands;
	unsigned n_operands;
	const struct npumem_param *params;
	unsigned n_params;
	bool is_real; /* fill: with `real`, for fp32 */
	double real;
	const char *label; /* as npumem_allocation.label, for refusals, events and statistics; or NULL */
};

struct npumem_submitted {
	unsigned n_ran;
	const struct npumem_done *const *done; /* one for each operation that ran */
};
/* Runs a list of at most 1024 operations in order, in one message of at most 16 MiB and 12288 fields, as
 * npumem.proto counts them. Data of writes without a segment are copied into it. After a refusal `submitted` has
 * the operations that ran. */
int npumem_submit(struct npumem *npumem, const struct npumem_operation *operations, unsigned n,
		  const struct npumem_submitted **submitted, struct npumem_error *error);

/* Checks a list as npumem_submit would, and runs nothing. `submitted` has the costs of each operation, up to the
 * first that would be refused; the refusal is that of the run. Only a run finds what depends on bytes: bytes
 * that were never written, values that a kernel refuses. The tensors must exist. UNIMPLEMENTED: the daemon is
 * older. */
int npumem_dry_run(struct npumem *npumem, const struct npumem_operation *operations, unsigned n,
		   const struct npumem_submitted **submitted, struct npumem_error *error);

/* A list that the daemon keeps: sent once, run by its id, charged to the user's list_bytes. */
struct npumem_kept {
	uint64_t id;
	unsigned n;	/* operations */
	uint64_t bytes; /* its charge */
};
/* Replaces a tensor, or an offset in a segment, in one operation of a kept list. The elements of an array have
 * the same `size`. */
struct npumem_change {
	size_t size; /* sizeof(struct npumem_change) */
	unsigned operation;
	const char *role; /* of a run: the operand's; of a copy: "source", "destination"; else NULL */
	uint64_t handle;  /* the other tensor; 0: no change */
	const struct npumem_segment *segment; /* for a write or read that has a segment; NULL: no change */
	uint64_t segment_offset;
};
/* Keeps a list as npumem_submit takes it, at most 64 in a connection. At each run, reads without a segment
 * deliver into the `data` of their operations. Over ssh the operations must not have segments. A run is refused
 * if a tensor was freed (NOT_FOUND) or a right was withdrawn (PERMISSION_DENIED); then no operation has run. */
int npumem_keep_list(struct npumem *npumem, const struct npumem_operation *operations, unsigned n,
		     const struct npumem_kept **kept, struct npumem_error *error);
/* Runs a kept list as npumem_submit does, with n changes for this run only. */
int npumem_run_list(struct npumem *npumem, const struct npumem_kept *kept, const struct npumem_change *changes,
		    unsigned n, const struct npumem_submitted **submitted, struct npumem_error *error);
/* Removes a kept list and releases it, also on an error. Runs that were sent before are not affected. */
int npumem_drop_list(struct npumem *npumem, const struct npumem_kept *kept, struct npumem_error *error);

/* ---- system memory ---- */

/* Memory that the daemon maps, too: DMA copies between it and local memory, and no payload byte crosses the
 * socket. It is unmapped by npumem_release, npumem_segment_close or npumem_close. */
struct npumem_segment {
	uint64_t id;
	void *base; /* mapped in this process, readable and writable */
	size_t bytes;
};

/* Creates a sealed memfd of `bytes` zero bytes, maps it here and shares it with the daemon. All its pages are
 * allocated at once, by this process. Its whole size counts against the user's segment_bytes. If the daemon keeps
 * sessions, this process keeps the memfd's descriptor open until npumem_segment_close, to share it with the next
 * daemon. */
int npumem_segment_create(struct npumem *npumem, size_t bytes, const struct npumem_segment **segment,
			  struct npumem_error *error);
/* Ends the sharing with the daemon, after all earlier requests, and releases the segment, also on an error. */
int npumem_segment_close(struct npumem *npumem, const struct npumem_segment *segment, struct npumem_error *error);

/* Copies elements [first, first + count) between a tensor and a segment; count 0: all from `first`. Element
 * `first` is at byte `offset` of the segment. `stride` is the segment's, in elements, for whole tensors only;
 * NULL: continuous, row-major. */
int npumem_write_segment(struct npumem *npumem, uint64_t handle, const struct npumem_segment *segment,
			 uint64_t offset, const struct npumem_dims *stride, int64_t first, int64_t count,
			 struct npumem_error *error);
int npumem_read_segment(struct npumem *npumem, uint64_t handle, const struct npumem_segment *segment,
			uint64_t offset, const struct npumem_dims *stride, int64_t first, int64_t count,
			const struct npumem_done **done, struct npumem_error *error);

/* ---- anything else ---- */

/* The name of the i-th request of npumem.proto: "info", "stat", …; NULL after the last. */
const char *npumem_method_name(unsigned index);
/* Sends the request `method` with the message `json`, in protobuf's JSON mapping with the names of the .proto:
 * enumerations are names or numbers, bytes are base64, numbers of 64 bits may be strings. *answer is the Response
 * in the same form, without id, status, message and fields: {"tensor": {…}}. A submit that was refused after some
 * operations has an answer, too. INVALID: also if `json` is not such a message; the field "field" is the path of
 * the wrong member, "byte" its place in `json`. UNAVAILABLE as the answer to "resume": another connection still
 * has that session; this connection can be used. */
int npumem_call(struct npumem *npumem, const char *method, const char *json, const char **answer,
		struct npumem_error *error);

/* ---- events ---- */

/* An event of a tensor that this uid may use, or of a client or request of this uid. For an unnamed tensor of
 * another connection of this uid it has only kind, uid and bytes. */
struct npumem_event {
	char kind[24]; /* allocated, freed, sealed, renamed, moved, damaged, refused, low-space, client-gone,
			  progress */
	uint64_t handle;
	char name[NPUMEM_FIELD_TEXT_BYTES];
	uint32_t uid; /* the tensor's owner, or the client of the request */
	uint32_t pid; /* the process that caused it */
	uint64_t session;
	uint64_t bytes;		       /* of the tensor, per NPU; damaged: in all; low-space: free, per NPU */
	uint64_t time_ns;	       /* by the daemon's monotonic clock */
	uint64_t lost;		       /* the number of events before this one that were not read in time */
	uint64_t request, done, total; /* progress of a request of `session` (npumem_info has the caller's), in
					  parts of about equal time */
	int status;		       /* refused */
	char message[256];
};
/* As npumem_callback: it may send, cancel and close, not wait. The event is valid until it returns. */
typedef void npumem_event_callback(void *context, const struct npumem_event *event);

/* Subscribes to events of n kinds (0: none), in place of the former kinds. npumem_process and calls that wait
 * run the callback. 0; NPUMEM_INVALID: the daemon does not know a kind. */
int npumem_subscribe(struct npumem *npumem, const char *const *kinds, unsigned n, npumem_event_callback *callback,
		     void *context, struct npumem_error *error);

#ifdef __cplusplus
}
#endif
#endif
