/* libnpumem: recording all requests and answers of a daemon into a file, and replaying such a recording. */
#ifndef NPUMEM_RECORD_H
#define NPUMEM_RECORD_H

#include <npumem/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A recording that is being written, for root and the daemon's uid. npumem_record_start needs a device without
 * tensors. Each call writes to `fd` and may block on it. Each returns 0; NPUMEM_RESOURCE_EXHAUSTED, also if `fd`
 * cannot be written; or the daemon's refusal. */
struct npumem_record {
	int fd;
	unsigned taken;	  /* entries, by the last call */
	uint64_t entries; /* in all, as npumem_replay_each counts them */
	bool lost;	  /* it ends here, without what follows, because of: */
	char reason[128];
	uint64_t snapshot; /* the snapshot that it begins with; 0: none */
};
int npumem_record_start(struct npumem *npumem, int fd, const struct npumem_record **record,
			struct npumem_error *error);
/* The state at the beginning. EMPTY: a device without tensors, as above. SNAPSHOT: a snapshot of the same
 * moment, from which it is replayed. WATCH: any device; such a recording is for reports and cannot be replayed. */
enum npumem_record_from { NPUMEM_RECORD_EMPTY, NPUMEM_RECORD_SNAPSHOT, NPUMEM_RECORD_WATCH };
int npumem_record_start_from(struct npumem *npumem, int fd, enum npumem_record_from from,
			     const struct npumem_record **record, struct npumem_error *error);
/* The next piece of its snapshot (npumem_snapshot). All pieces must be taken before npumem_record_stop. Call
 * npumem_record_take between pieces, too. */
int npumem_record_piece(struct npumem *npumem, const struct npumem_record *record,
			const struct npumem_piece **piece, struct npumem_error *error);
/* Writes the entries since the last call. Call it often: the daemon keeps 256 MiB. */
int npumem_record_take(struct npumem *npumem, const struct npumem_record *record, struct npumem_error *error);
/* Writes the rest and ends the recording. NPUMEM_INVALID: pieces of its snapshot were not taken. */
int npumem_record_stop(struct npumem *npumem, const struct npumem_record *record, struct npumem_error *error);

/* Opens a recording. Its results are valid until npumem_replay_close. INVALID: it is not a recording, or it is
 * damaged; the message has the reason and the entry. RESOURCE_EXHAUSTED. */
struct npumem_replay;
int npumem_replay_open(const char *path, struct npumem_replay **out, struct npumem_error *error);
void npumem_replay_close(struct npumem_replay *replay);
/* 0: the recording has its end. Else its recorder was killed, or lost the daemon: the bytes of the file up to the
 * last whole entry. Only these entries are used, and a replay does not compare the tensors' data at the end.
 * *entries: how many entries there are, in either case. */
uint64_t npumem_replay_cut(const struct npumem_replay *replay, uint64_t *entries);
/* The daemon that it was recorded on. */
const struct npumem_info *npumem_replay_info(const struct npumem_replay *replay);
/* Whether it begins with a snapshot; of one that was cut, whether it begins with tensors. To replay it, start a
 * daemon from a copy of the snapshot, with --replay. */
bool npumem_replay_has_snapshot(const struct npumem_replay *replay);
/* Checks that a directory has the snapshot of this recording; of one that was cut, that it has a snapshot. 0;
 * INVALID, with the reason; RESOURCE_EXHAUSTED. The daemon verifies the contents of the files. */
int npumem_replay_check_snapshot(const struct npumem_replay *replay, const char *directory,
				 struct npumem_error *error);

/* Calls `each` for each request, in the order of the answers, with one JSON object: proto3's mapping of
 * RecordEntry in npumem.proto, with `request` and `answer` as objects, fixed64 numbers as hexadecimal strings,
 * and for bytes their number. If `each` returns other than 0, this ends and returns it. RESOURCE_EXHAUSTED. */
int npumem_replay_each(const struct npumem_replay *replay, int (*each)(void *ctx, const char *json), void *ctx,
		       struct npumem_error *error);

struct npumem_replay_result {
	uint64_t requests, skipped; /* skipped: cancelled, malformed, or not about tensors */
	uint64_t differences;
	uint64_t first;	  /* request of the first difference; 0: none, or only the tensors at the end */
	uint64_t session; /* the session of that request */
	uint32_t uid, pid;
	bool same_geometry; /* local memory was compared, too: that of each NPU by its CRC-32 */
	int64_t npu;	    /* the first NPU whose memory differs at the end; -1: none, or not compared */
	char what[256];
};
/* Sends all requests again, one after the other. `open` makes a connection for each session, with its uid. The
 * device must have no tensors, or start from the snapshot. Compares statuses, read data and counts, and at the
 * end the data of all tensors, over a connection that `open` makes for the uid `admin`. It waits, and always
 * sets *result. 0; INVALID: the recording began with tensors and without a snapshot; or the status that ended
 * the replay. */
int npumem_replay_run(struct npumem_replay *replay, uint32_t admin,
		      int (*open)(void *ctx, uint32_t uid, struct npumem **out, struct npumem_error *error),
		      void *ctx, const struct npumem_replay_result **result, struct npumem_error *error);

#ifdef __cplusplus
}
#endif
#endif
