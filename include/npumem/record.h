/* libnpumem: a record of all that a daemon answers to anybody, in a file, and asking it all again. */
#ifndef NPUMEM_RECORD_H
#define NPUMEM_RECORD_H

#include <npumem/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A record that is being written: for root and the daemon's uid, from a device without tensors on. Each call: 0;
 * NPUMEM_RESOURCE_EXHAUSTED also where `fd` cannot be written to, which is done without further ado; else what the
 * daemon says. */
struct npumem_record {
	int fd;
	unsigned taken; /* entries, by the last call */
	uint64_t entries;
	bool lost; /* it is not whole, and cannot be replayed: */
	char reason[128];
	uint64_t snapshot; /* that it begins with; 0: with none */
};
int npumem_record_start(struct npumem *npumem, int fd, const struct npumem_record **record,
			struct npumem_error *error);
/* What it begins with, and tells of: nothing, as above; a snapshot of the same moment, from which it is replayed;
 * or whatever there is, for a report, and it cannot be replayed. */
enum npumem_record_from { NPUMEM_RECORD_EMPTY, NPUMEM_RECORD_SNAPSHOT, NPUMEM_RECORD_WATCH };
int npumem_record_start_from(struct npumem *npumem, int fd, enum npumem_record_from from,
			     const struct npumem_record **record, struct npumem_error *error);
/* The next piece of its snapshot (npumem_snapshot), until the last, which must have come before
 * npumem_record_stop; meanwhile what is answered is to be taken, too. */
int npumem_record_piece(struct npumem *npumem, const struct npumem_record *record,
			const struct npumem_piece **piece, struct npumem_error *error);
/* Writes what was answered since. To be called often: the daemon keeps 256 MiB. */
int npumem_record_take(struct npumem *npumem, const struct npumem_record *record, struct npumem_error *error);
/* The rest, and the end. NPUMEM_INVALID: not all of its snapshot was asked for. */
int npumem_record_stop(struct npumem *npumem, const struct npumem_record *record, struct npumem_error *error);

/* A file that was read, until npumem_replay_close, with all it hands out. INVALID: it is no whole record, why, and
 * at which entry; RESOURCE_EXHAUSTED. */
struct npumem_replay;
int npumem_replay_open(const char *path, struct npumem_replay **out, struct npumem_error *error);
void npumem_replay_close(struct npumem_replay *replay);
/* What it was recorded on. */
const struct npumem_info *npumem_replay_info(const struct npumem_replay *replay);
/* Whether it begins with a snapshot: it is replayed on a daemon that starts from a copy of that, with --replay. */
bool npumem_replay_has_snapshot(const struct npumem_replay *replay);
/* Whether that is what is in a directory. 0; INVALID: it is not, and why; RESOURCE_EXHAUSTED. What the files hold
 * is for the daemon to verify. */
int npumem_replay_check_snapshot(const struct npumem_replay *replay, const char *directory,
				 struct npumem_error *error);

/* Tells each request in the order of the answers, as one JSON object (proto3's mapping of RecordEntry in
 * npumem.proto, with `request` and `answer` as the objects that they are; fixed64 numbers are hexadecimal strings;
 * of bytes there is only how many). What `each` returns ends it, unless 0, and is returned. RESOURCE_EXHAUSTED. */
int npumem_replay_each(const struct npumem_replay *replay, int (*each)(void *ctx, const char *json), void *ctx,
		       struct npumem_error *error);

struct npumem_replay_result {
	uint64_t requests, skipped; /* skipped: what was cancelled or malformed, or is no call about tensors */
	uint64_t differences;
	uint64_t first;	  /* request of the first difference; 0: none, or only what is there in the end differs */
	uint64_t session; /* whose request that was */
	uint32_t uid, pid;
	bool same_geometry; /* so that local memory was compared, too, each NPU's by its CRC-32 */
	int64_t npu;	    /* the first whose local memory differs in the end; -1: none, or not compared */
	char what[256];
};
/* Sends all requests again, one after the other, each session's over a connection of its own that `open` makes for
 * its uid; the device has no tensors at first, or is that of the snapshot. Compares statuses, read data and
 * counts, and in the end the data of all tensors, which `open` is asked for with the uid `admin`. Waits; of
 * `result` there is always one. 0; INVALID: it began with tensors, and without a snapshot; or why it could not go
 * on. */
int npumem_replay_run(struct npumem_replay *replay, uint32_t admin,
		      int (*open)(void *ctx, uint32_t uid, struct npumem **out, struct npumem_error *error),
		      void *ctx, const struct npumem_replay_result **result, struct npumem_error *error);

#ifdef __cplusplus
}
#endif
#endif
