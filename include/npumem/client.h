/* libnpumem: a connection to an npumem daemon. This header has the calls that wait, those of npumem/device.h and
 * npumem/operations.h included. npumem/async.h has each of them in a form that does not wait; npumem/record.h
 * records and replays. Requests of a connection take effect in the order sent. One thread at a time may use a
 * connection and its results; a process may have any number of connections.
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

#include <npumem/device.h>
#include <npumem/kernels.h>
#include <npumem/layout.h>
#include <npumem/numeric.h>
#include <npumem/operations.h>
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
	 * 300 if that is not set. NPUMEM_NO_SPIN: no polling, as with 0 and NPUMEM_SPIN_US=0. With one core a call
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

/* ---- anything else ---- */

/* The name of the i-th request of npumem.proto: "info", "stat", …; NULL after the last. */
const char *npumem_method_name(unsigned index);
/* Sends the request `method` with the message `json`, in protobuf's JSON mapping with the names of the .proto:
 * enumerations are names or numbers, bytes are base64, integers may be strings, and above 2^63 - 1 must be. *answer
 * is the Response in the same form, without id, status, message and fields: {"tensor": {…}}. A submit that was
 * refused after some operations has an answer, too. INVALID: also if `json` is not such a message; the field
 * "field" is the path of the wrong member, and "byte" the place in a text that is no JSON. UNAVAILABLE as the answer
 * to "resume": another connection still has that session; this connection can be used. */
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
