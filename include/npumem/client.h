/* libnpumem: a connection to an npumem daemon. The calls that wait; npumem/async.h has each of them in the form
 * that does not, npumem/record.h records and replays. A connection's requests take effect in the order sent. One
 * thread at a time for a connection and all that it handed out; any number of connections.
 *
 * Every call returns 0, or a status > 0 that `error` explains (error may be NULL). After NPUMEM_UNAVAILABLE the
 * connection is over and can only be closed (but where npumem_call asks for a session that another connection
 * has); after any other status it is as good as before, and nothing has
 * changed on the device unless the call says otherwise. NPUMEM_DEADLINE_EXCEEDED: the time of a call is over. It
 * is taken back then, and whether it was done is unknown. (An allocation that stood in line for long enough is
 * answered so, too, and was not.) NPUMEM_CANCELLED: a callback has closed the connection meanwhile, which is gone.
 *
 * Where the daemon keeps sessions (npumemd --state-dir), its restart is a pause: the connection looks for the next
 * one at its address, goes on with the session (unnamed tensors, segments and the subscription as they were) and
 * sends again what was not answered. Allocations, views, seals, grants, renames and frees are done once, and so
 * are data operations that change what they read; others may be done twice, in the order sent. NPUMEM_ABORTED: it
 * was done, or a part of it ("done" of its operations), and must not be again. NPUMEM_DATA_LOST: it was cut off
 * while it overwrote what it reads ("tensor"). NPUMEM_UNAVAILABLE:
 * no daemon came in time, or it is one without this session, as also where nobody called or processed meanwhile
 * for longer than the daemon keeps it. Events of the time between are not told.
 *
 * What a call hands out belongs to the library and may grow members in later versions: use it where it is, do not
 * copy it. It is there until npumem_release, and at the latest until the connection is closed. Where a call fails,
 * its results are NULL. A pointer to put a result at may be NULL where that is not wanted.
 *
 * A struct that the caller fills has its size as first member; begin with its INIT. Others (npumem_error, dims,
 * spec, place, plan, operand, param, format, …) are as they are for good. */
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

/* 0: the default. */
struct npumem_options {
	size_t size;
	uint32_t connect_ms; /* for npumem_open, a private daemon's start included; 30000; or NPUMEM_FOREVER */
	uint32_t call_ms;    /* as npumem_set_timeout; 0: no limit */
	/* How long a call that waits looks again and again before it sleeps, in microseconds up to 1000; 300, or
	 * $NPUMEM_SPIN_US; or NPUMEM_NO_SPIN. Not done where this process has one core only, and given up for a
	 * while where answers take longer. */
	uint32_t spin_us;
	/* For how many milliseconds a daemon is looked for that goes on with the session when the connection ends;
	 * as many as the next daemon, once it is there, waits for its clients (npumemd --resume-seconds); or
	 * NPUMEM_NO_RESUME. Of an address alone, not of a private daemon or an fd. */
	uint64_t resume_ms;
};
#define NPUMEM_OPTIONS_INIT                                                                                       \
	{                                                                                                         \
		sizeof(struct npumem_options), 0, 0, 0, 0                                                         \
	}

/* Connects to `address`: a socket's path, "unix:PATH", "ssh:[USER@]HOST[:/SOCKET]" (below), "spawn:" or
 * "spawn:OPTIONS" (starts a private daemon that ends with this connection, whichever thread opened it; OPTIONS are
 * npumemd's, separated by spaces; the program is $NPUMEMD, else npumemd where it is installed with this library,
 * else in $PATH; its stderr is kept, to be quoted where it does not start, or goes to the file $NPUMEM_SPAWN_LOG),
 * or NULL: $NPUMEM_SOCKET, else $XDG_RUNTIME_DIR/npumem.sock if it exists, else /run/npumem/npumem.sock. A program
 * that runs with more rights than its caller's (secure_getenv) does not look at the environment, and starts the
 * npumemd that was installed with the library.
 *
 * "ssh:" starts $NPUMEM_SSH, else ssh, on that host `npumemctl dial`, to the daemon at SOCKET or where it is usual
 * there; one is there who ssh lets in. ssh ends with the connection, and ignores a ^C. All calls are the same.
 * Segments are this process's alone: DMA with them is sent in chunks as npumem_write's, needs a tensor that this
 * connection was told of, and in a list is part of its message; a write takes its elements when it is asked for,
 * unless they are continuous. Where the daemon keeps sessions, one that is lost on the way goes on over another
 * ssh.
 *
 * At a path, the daemon is root's, the caller's own or of uid $NPUMEM_SERVER_UID, or only root, the caller and the
 * daemon's uid can change a folder of the path. Any other is NPUMEM_PERMISSION_DENIED, with the field "uid".
 *
 * `options` NULL: the defaults. 0 or NPUMEM_UNAVAILABLE, NPUMEM_INVALID, NPUMEM_PERMISSION_DENIED,
 * NPUMEM_DEADLINE_EXCEEDED (connect_ms). */
int npumem_open(const char *address, const struct npumem_options *options, struct npumem **out,
		struct npumem_error *error);

/* A connected socket to the daemon at `address`, a path or NULL as npumem_open has them, in *fd, and nothing sent.
 * connect_ms alone of `options` counts. 0 or NPUMEM_UNAVAILABLE, NPUMEM_INVALID (ssh:, spawn:),
 * NPUMEM_PERMISSION_DENIED, NPUMEM_DEADLINE_EXCEEDED. */
int npumem_dial(const char *address, const struct npumem_options *options, int *fd, struct npumem_error *error);

/* As npumem_open over a connected socket, which it takes over in any case. 0 or NPUMEM_UNAVAILABLE,
 * NPUMEM_INVALID. */
int npumem_open_fd(int fd, const struct npumem_options *options, struct npumem **out, struct npumem_error *error);

/* Starts a daemon at the socket `path`, where nothing may be, with npumemd's `words` (NULL: none), for this
 * process and those that it tells. It answers when this returns, and ends by npumem_spawn_end, which waits for it
 * and removes the socket, or with the thread's process. *pid is its process. `options`: how long the start may
 * take. 0 or NPUMEM_UNAVAILABLE (with what the daemon said), NPUMEM_INVALID, NPUMEM_DEADLINE_EXCEEDED,
 * NPUMEM_RESOURCE_EXHAUSTED. */
int npumem_spawn(const char *path, const char *words, const struct npumem_options *options, int *pid,
		 struct npumem_error *error);
void npumem_spawn_end(const char *path, int pid);

/* Which program is started as a private daemon, for who starts one in another way: a file, or a name to be looked
 * for in $PATH. Returns what its argv[0] has to be, which lives as long as `program`. */
struct npumem_program {
	char path[4096];
};
const char *npumem_program(struct npumem_program *program);

/* Closes. The session's unnamed tensors are freed by the daemon, all that was handed out is released. Callbacks
 * still waiting are called with NPUMEM_CANCELLED. From within a callback that and the end come when it has
 * returned, and the call that it was called from returns NPUMEM_CANCELLED. NULL is allowed. */
void npumem_close(struct npumem *npumem);

/* What calls from now on may take, with or without waiting, in milliseconds; 0: as long as it takes. */
void npumem_set_timeout(struct npumem *npumem, uint32_t call_ms);

/* Takes back what calls wait for, now and until `on` is false again: they return NPUMEM_CANCELLED, unless what
 * they had asked for is done all the same. May be called by a signal handler on the thread that calls; the call
 * sees it when its wait is interrupted (no SA_RESTART is needed). */
void npumem_interrupt(struct npumem *npumem, bool on);

/* Another reference to a result, for one that would be gone (npumem_answer): released as often as it was got. */
void npumem_keep(const void *result);
/* Gives a result back. NULL is allowed. */
void npumem_release(const void *result);

/* ---- the device ---- */

/* What this uid may have, and has. */
struct npumem_limit {
	char key[24]; /* as npumemd --limit has it */
	uint64_t most, now;
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
	char isa[32]; /* the widest instructions that kernels use; empty where the daemon does not say */
	uint64_t uptime_ns;
	char socket[112]; /* where the daemon listens; empty of a private one */
	unsigned n_limits;
	struct npumem_limit limits[NPUMEM_LIMITS_MAX];
	bool remote; /* it is on another host (ssh:): system memory is staged and sent */
};

struct npumem_stat {
	int64_t total, data, dummy, padding, empty, free; /* bytes; they add up to total */
	int64_t lent;
	int64_t largest_free; /* per NPU */
	int64_t tensors, views;
	int64_t sessions; /* that the caller may see */
	int64_t packs;	  /* bytes of host memory for packed weights of the tensors of these uids */
};

/* What a session or a uid asked for and holds. All but in_flight, device_bytes and tensors only rise. */
struct npumem_usage {
	uint32_t uid, pid;
	uint64_t session; /* 0: of a uid, or of all */
	uint64_t requests, errors, bytes_in, bytes_out, in_flight;
	int64_t device_bytes, tensors;
	uint64_t sessions; /* of a uid, now; of all, ever */
	int64_t packs;	   /* of a uid, or of all: host memory for packed weights of its tensors */
};

enum { NPUMEM_STATUSES = 16, NPUMEM_BUCKETS = 26 };

/* The answers to one kind of request, by status and by the time they took: below 1 us, 2 us, 4 us, ... 2^24 us,
 * and the rest. */
struct npumem_call_stat {
	char call[24];
	uint64_t statuses[NPUMEM_STATUSES], buckets[NPUMEM_BUCKETS], total_ns;
};

/* What operations did since the daemon started: those of the uids that the caller may see. */
struct npumem_activity {
	uint64_t dma_bytes, kernels, macs, saturated, wrapped, destroyed_bytes;
};

/* The turns of the daemon's loop: all that it does between two waits for input. What comes meanwhile waits. Zeros
 * for a caller that is neither root nor the daemon's uid. */
struct npumem_loop_stat {
	uint64_t turns, buckets[NPUMEM_BUCKETS], total_ns;
	uint64_t longest_ns, longest_cpu_ns; /* of one turn since the last reset; of processor time */
	uint64_t longest_wait_ns;	     /* that the loop slept within one turn; at least so long */
};

/* A request that is under way, and has begun. */
struct npumem_running {
	uint64_t session, request;
	uint32_t uid, pid;
	char call[24];
	char what[448];	      /* of an operation, for people: "conv2d in=x weights=w out=y" */
	uint64_t since_ns;    /* when it came, by now_ns */
	uint64_t done, total; /* how far it is; total 0: not known */
	bool waits;	      /* for room */
};

/* Root and the daemon's uid see all of it. Any other caller sees how full the device is (stat), and otherwise only
 * what belongs to its own uid: rows, sums, calls, activity, data on each NPU. */
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
	bool cut; /* more moved, or would move, than `moves` has room for */
};

int npumem_info(struct npumem *npumem, const struct npumem_info **info, struct npumem_error *error);
int npumem_stat(struct npumem *npumem, const struct npumem_stat **stat, struct npumem_error *error);
/* All of it. `reset`: the loop's longest turns so far are forgotten, for root and the daemon's uid, else
 * NPUMEM_PERMISSION_DENIED. */
int npumem_stat_details(struct npumem *npumem, bool reset, const struct npumem_details **details,
			struct npumem_error *error);
/* Up to 1 MiB of one NPU's raw bytes. */
int npumem_dump(struct npumem *npumem, int64_t npu, int64_t offset, int64_t bytes, void *to,
		struct npumem_error *error);
int npumem_compact(struct npumem *npumem, bool dry_run, const struct npumem_compacted **compacted,
		   struct npumem_error *error);
/* Layout questions without allocating, on the daemon's geometry. */
int npumem_plan_remote(struct npumem *npumem, const struct npumem_spec *spec, const struct npumem_plan **plan,
		       struct npumem_error *error);
/* For root and the daemon's uid: the daemon answers what it was asked, and ends; this connection ends when it
 * does. 0 or NPUMEM_PERMISSION_DENIED. */
int npumem_shutdown(struct npumem *npumem, struct npumem_error *error);
/* A copy of a daemon's state directory as it is at one moment, while the daemon goes on, in pieces that make the
 * files of a directory that a daemon starts from. For root and the daemon's uid. */
struct npumem_piece {
	uint64_t snapshot;
	const char *file; /* a name in that directory; each file comes at least once */
	uint64_t file_bytes, offset;
	const void *data; /* what no piece has is zero */
	size_t bytes;
	bool last;
};
/* 0 begins one, of this moment, and hands out its number with a piece of no file; then its number, until `last`.
 * NPUMEM_PERMISSION_DENIED, NPUMEM_FAILED_PRECONDITION (there is no state directory, or another one is being
 * taken), NPUMEM_NOT_FOUND (it has ended). */
int npumem_snapshot(struct npumem *npumem, uint64_t snapshot, const struct npumem_piece **piece,
		    struct npumem_error *error);
/* Numeric questions answered by the daemon instead of npumem_numeric. */
int npumem_numeric_remote(struct npumem *npumem, const struct npumem_numeric *question,
			  const struct npumem_numeric_answer **answer, struct npumem_error *error);

/* ---- tensors ---- */

/* A tensor to allocate. Zero means the default for what NPUMEM_ALLOCATION_INIT leaves zero; of an array all have
 * the same size. */
struct npumem_allocation {
	size_t size;
	struct npumem_spec spec;
	const char *name; /* NULL: anonymous, freed with the session */
	int reuse;	  /* enum npumem_reuse */
	bool dma_only, pinned;
	/* Of one without a name, or NULL: what refusals, events and pictures call it. At most
	 * NPUMEM_NAME_BYTES_MAX bytes of printable ASCII; it need not be unique. */
	const char *label;
};
/* With the spec of npumem_spec_init. */
#define NPUMEM_ALLOCATION_INIT                                                                                    \
	{                                                                                                         \
		sizeof(struct npumem_allocation),                                                                 \
			{0, NPUMEM_ANY, 0, 0, {0, 0, 0, 0}, 0, 0, 0, {0, 0, 0, 0}, NPUMEM_ANY, NPUMEM_ANY}, NULL, \
			0, false, false, NULL                                                                     \
	}

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
	char state[16]; /* ok, unwritten, partly written, damaged, lost */
	int64_t unwritten_bytes, damaged_bytes;
	int reuse;
	unsigned n_grants; /* told to its owner */
	struct npumem_grant grants[NPUMEM_GRANTS_MAX];
	char label[NPUMEM_NAME_BYTES_MAX + 1]; /* of an anonymous one; or empty */
};

struct npumem_tensors {
	unsigned n;
	const struct npumem_tensor *const *list;
};

/* All n or none. `tensors`: n results, or NULL. */
int npumem_alloc(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
		 const struct npumem_tensor **tensors, struct npumem_error *error);
/* The same, but where there is no room it stands in line for up to `wait_ms` milliseconds, and then answers
 * NPUMEM_DEADLINE_EXCEEDED with what was missing. What could never fit is refused at once. */
int npumem_alloc_wait(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
		      uint32_t wait_ms, const struct npumem_tensor **tensors, struct npumem_error *error);
/* A slice [from, to) of `base`. `name` NULL: anonymous. */
int npumem_view(struct npumem *npumem, uint64_t base, const char *name, const struct npumem_dims *from,
		const struct npumem_dims *to, const struct npumem_tensor **view, struct npumem_error *error);
int npumem_reshape(struct npumem *npumem, uint64_t base, const char *name, const struct npumem_dims *shape,
		   const struct npumem_tensor **view, struct npumem_error *error);
/* The same elements with other frac_bits (0 to 127): a number x is x * 2^(base's frac_bits - these). */
int npumem_view_format(struct npumem *npumem, uint64_t base, const char *name, int64_t frac_bits,
		       const struct npumem_tensor **view, struct npumem_error *error);
/* All n or none, n <= 256; views go with their base. */
int npumem_free(struct npumem *npumem, const uint64_t *handles, unsigned n, struct npumem_error *error);
/* Makes a tensor read-only for good. */
int npumem_seal(struct npumem *npumem, uint64_t handle, struct npumem_error *error);
/* Another name for a named tensor of one's own: NPUMEM_ALREADY_EXISTS where one has it. Handles stay. */
int npumem_rename(struct npumem *npumem, uint64_t handle, const char *name, struct npumem_error *error);
/* Lets another uid read or write (and read) a named tensor of one's own, or takes that back. */
int npumem_grant(struct npumem *npumem, uint64_t handle, uint32_t uid, int access, struct npumem_error *error);
/* Finds a named tensor: "NAME" of one's own uid or "UID:NAME". */
int npumem_open_tensor(struct npumem *npumem, const char *name, const struct npumem_tensor **tensor,
		       struct npumem_error *error);
/* The present state of a tensor. */
int npumem_show(struct npumem *npumem, uint64_t handle, const struct npumem_tensor **tensor,
		struct npumem_error *error);
/* All that one may know of. They are asked for in pages: those that come and go meanwhile are told or not, those
 * that are there throughout once. */
int npumem_list(struct npumem *npumem, const struct npumem_tensors **tensors, struct npumem_error *error);

/* ---- operations ---- */

struct npumem_destroyed {
	uint64_t handle;
	char name[NPUMEM_FIELD_TEXT_BYTES];
	int64_t npu, offset, bytes; /* the first range */
	int64_t total_bytes;	    /* of data, dummies not counted */
};

/* What an operation did. */
struct npumem_done {
	int64_t saturated, wrapped, divided_by_zero, macs;
	unsigned n_destroyed;
	const struct npumem_destroyed *const *destroyed;
	const char *warning;		  /* "": none */
	uint64_t start_ns, end_ns;	  /* when it ran, by the daemon's monotonic clock */
	unsigned operation;		  /* of a list: its place in that */
	const struct npumem_costs *costs; /* of a dry run, which has no counts; else NULL */
};

/* Host arrays are dense, row-major over N,C,H,W (a matrix: rows, cols), in the tensor's container type, `bytes`
 * long, which must be the tensor's whole size. Sent in as many frames as needed; a failure between two of them
 * leaves a part written. The data are written from where they are, and read to where they belong, whose content is
 * undefined on a failure. */
int npumem_write(struct npumem *npumem, const struct npumem_tensor *tensor, const void *data, size_t bytes,
		 struct npumem_error *error);
int npumem_read(struct npumem *npumem, const struct npumem_tensor *tensor, void *data, size_t bytes,
		const struct npumem_done **done, struct npumem_error *error);
/* Elements from `first` on, as many as `bytes` are (of a read: `count`, which must be that); what fits one frame.
 */
int npumem_write_part(struct npumem *npumem, uint64_t handle, int64_t first, const void *data, size_t bytes,
		      struct npumem_error *error);
int npumem_read_part(struct npumem *npumem, uint64_t handle, int64_t first, int64_t count, void *data,
		     size_t bytes, const struct npumem_done **done, struct npumem_error *error);
int npumem_fill(struct npumem *npumem, uint64_t handle, int64_t value, struct npumem_error *error);
int npumem_fill_float(struct npumem *npumem, uint64_t handle, double value, struct npumem_error *error);
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

/* One operation of a list; of an array all have the same size. */
enum npumem_operation_kind { NPUMEM_OP_WRITE = 1, NPUMEM_OP_READ, NPUMEM_OP_FILL, NPUMEM_OP_COPY, NPUMEM_OP_RUN };
struct npumem_operation {
	size_t size; /* sizeof(struct npumem_operation) */
	enum npumem_operation_kind kind;
	unsigned group;	 /* > 0, same as its neighbours': runs in parallel with them */
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
	const char *label; /* what refusals, events and npumem_stat call it, as npumem_allocation.label; or NULL */
};

struct npumem_submitted {
	unsigned n_ran;
	const struct npumem_done *const *done; /* of those that ran */
};
/* Runs a list of at most 1024 in order, in one message (16 MiB and 12288 fields in all, as npumem.proto counts
 * them; data of its own are copied). On a refusal `submitted` tells those that have run. */
int npumem_submit(struct npumem *npumem, const struct npumem_operation *operations, unsigned n,
		  const struct npumem_submitted **submitted, struct npumem_error *error);

/* Checks a list as npumem_submit would run it, and runs nothing: `submitted` tells what each operation would cost,
 * up to the first that would be refused, whose refusal is the run's. What depends on bytes only the run checks:
 * bytes never written, values that a kernel refuses. The tensors have to be there. UNIMPLEMENTED of an older
 * daemon. */
int npumem_dry_run(struct npumem *npumem, const struct npumem_operation *operations, unsigned n,
		   const struct npumem_submitted **submitted, struct npumem_error *error);

/* A list that the daemon keeps: sent once, run by its id, charged to the user's list_bytes. */
struct npumem_kept {
	uint64_t id;
	unsigned n;	/* operations */
	uint64_t bytes; /* that are charged for it */
};
/* Another tensor, or another place in a segment, in one operation of a kept list; of an array all have the same
 * size.
 */
struct npumem_change {
	size_t size; /* sizeof(struct npumem_change) */
	unsigned operation;
	const char *role; /* of a run: the operand's; of a copy: "source", "destination"; else NULL */
	uint64_t handle;  /* 0: the list's */
	const struct npumem_segment *segment; /* of a write or read that has one; NULL: the list's */
	uint64_t segment_offset;
};
/* Keeps a list of npumem_submit's form, at most 64 in a connection. What its reads deliver without a segment goes,
 * at each run, to where the operations say. Over ssh its operations have no segments. Runs of it are refused
 * NOT_FOUND where a tensor is gone, and PERMISSION_DENIED where a right is; then nothing of the run has run. */
int npumem_keep_list(struct npumem *npumem, const struct npumem_operation *operations, unsigned n,
		     const struct npumem_kept **kept, struct npumem_error *error);
/* Runs it, with n changes for this run alone; else as npumem_submit. */
int npumem_run_list(struct npumem *npumem, const struct npumem_kept *kept, const struct npumem_change *changes,
		    unsigned n, const struct npumem_submitted **submitted, struct npumem_error *error);
/* Gives it back, and releases it, also on an error; runs that were sent before are not affected. */
int npumem_drop_list(struct npumem *npumem, const struct npumem_kept *kept, struct npumem_error *error);

/* ---- system memory ---- */

/* Memory that the daemon maps, too: DMA moves between it and local memory, and no payload byte crosses the socket.
 * It is unmapped when it is released, or the connection closed. */
struct npumem_segment {
	uint64_t id;
	void *base; /* mapped in this process, readable and writable */
	size_t bytes;
};

/* Allocates (a sealed memfd), maps and shares `bytes` of zeroed memory: all its pages, at once, to this process.
 * Its whole size counts against the user's segment_bytes. Where the daemon keeps sessions its fd stays open until
 * it is closed, to be shared again. */
int npumem_segment_create(struct npumem *npumem, size_t bytes, const struct npumem_segment **segment,
			  struct npumem_error *error);
/* Takes it back from the daemon, after all that was asked of it before, and releases it, also on an error. */
int npumem_segment_close(struct npumem *npumem, const struct npumem_segment *segment, struct npumem_error *error);

/* Elements [first, first + count) (count 0: all from `first`) between a tensor and a segment, where element
 * `first` is at byte `offset`. `stride`: of the segment, in elements, for whole tensors only; NULL: continuous,
 * row-major. */
int npumem_write_segment(struct npumem *npumem, uint64_t handle, const struct npumem_segment *segment,
			 uint64_t offset, const struct npumem_dims *stride, int64_t first, int64_t count,
			 struct npumem_error *error);
int npumem_read_segment(struct npumem *npumem, uint64_t handle, const struct npumem_segment *segment,
			uint64_t offset, const struct npumem_dims *stride, int64_t first, int64_t count,
			const struct npumem_done **done, struct npumem_error *error);

/* ---- anything else ---- */

/* The i-th request of npumem.proto: "info", "stat", …; NULL behind the last. */
const char *npumem_method_name(unsigned index);
/* Sends that request with the message that `json` is: by protobuf's JSON mapping, with the names of the .proto;
 * enumerations are names or numbers, bytes base64, numbers of 64 bits also strings. *answer is the Response in the
 * same form, without id, status, message and fields: {"tensor": {…}}; also of a submit that was refused on the
 * way, where that has one. INVALID also where `json` is no such message: the field "field" is the member's path,
 * "byte" how far it was read. */
int npumem_call(struct npumem *npumem, const char *method, const char *json, const char **answer,
		struct npumem_error *error);

/* ---- events ---- */

/* Something that happened: to a tensor that this uid may use, to its clients, or to its requests. Of an unnamed
 * tensor of another connection of this uid an event has kind, uid and bytes only. */
struct npumem_event {
	char kind[24]; /* allocated, freed, sealed, renamed, moved, damaged, refused, low-space, client-gone,
			  progress */
	uint64_t handle;
	char name[NPUMEM_FIELD_TEXT_BYTES];
	uint32_t uid; /* whose tensor, or who asked */
	uint32_t pid; /* who did it */
	uint64_t session;
	uint64_t bytes;		       /* per NPU: of the tensor; damaged: in all; low-space: still free */
	uint64_t time_ns;	       /* by the daemon's monotonic clock */
	uint64_t lost;		       /* events before this one that were not read in time */
	uint64_t request, done, total; /* progress of a request of `session` (npumem_info tells one's own), in
					  parts of about equal time */
	int status;		       /* refused */
	char message[256];
};
/* As npumem_callback: may send, cancel and close, not wait. The event is gone when it returns. */
typedef void npumem_event_callback(void *context, const struct npumem_event *event);

/* From now on events of n kinds (0: none any more) are told to the callback, from npumem_process or a call that
 * waits. Replaces what was subscribed before. 0; NPUMEM_INVALID where the daemon does not know a kind. */
int npumem_subscribe(struct npumem *npumem, const char *const *kinds, unsigned n, npumem_event_callback *callback,
		     void *context, struct npumem_error *error);

#ifdef __cplusplus
}
#endif
#endif
