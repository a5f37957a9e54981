/* The device as a whole: what it is, how it is used, and for its administrator compaction, snapshots and the end.
 * Part of npumem/client.h, which says what holds for all calls. */
#ifndef NPUMEM_DEVICE_H
#define NPUMEM_DEVICE_H

#include <npumem/layout.h>
#include <npumem/numeric.h>
#include <npumem/types.h>

struct npumem;

#ifdef __cplusplus
extern "C" {
#endif

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
	bool uncounted;	  /* tensors over one another: padding and lent are 0, and empty has the padding, too */
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

#ifdef __cplusplus
}
#endif
#endif
