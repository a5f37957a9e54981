/* The calls of npumem/client.h in a form that does not wait, with a callback for the answer.
 *
 * npumem_X_async sends the request, or queues it if the socket is full, and returns 0. If it returns a status,
 * the callback is not called. The callback (which may be NULL) is called once: from npumem_process, npumem_flush
 * or a call that waits, never from within npumem_X_async. A callback may send, cancel and let go of requests and
 * close the connection; it may not wait or process.
 *
 * If npumem_X_async returns 0, *request (the pointer may be NULL) is set. It can be cancelled or let go until
 * its callback has returned. The arguments are needed only until npumem_X_async returns. Exception: the data of
 * a write or read must stay unchanged until the callback, because they are sent again if the daemon restarts.
 * npumem_let_go copies the data of a write that may still be sent. */
#ifndef NPUMEM_ASYNC_H
#define NPUMEM_ASYNC_H

#include <npumem/client.h>
#include <npumem/record.h>

#ifdef __cplusplus
extern "C" {
#endif

struct npumem_request; /* a request without an answer */

/* One answer. It and its result belong to the library and are valid until the callback returns. npumem_keep keeps
 * the result for longer. */
struct npumem_answer {
	int status; /* 0, or a status that `error` explains */
	const struct npumem_error *error;
	union { /* NULL on a refusal (except submitted), and if the call has no result */
		const void *result;
		const struct npumem_info *info;
		const struct npumem_stat *stat;
		const struct npumem_details *details;
		const struct npumem_compacted *compacted;
		const struct npumem_plan *plan;
		const struct npumem_numeric_answer *numeric;
		const struct npumem_tensors *tensors; /* alloc, list */
		const struct npumem_tensor *tensor;   /* view, reshape, seal, rename, grant, open, show */
		const struct npumem_done *done;	      /* write, read, fill, copy, run */
		const struct npumem_submitted *submitted;
		const struct npumem_kept *kept;
		const struct npumem_segment *segment;
		const struct npumem_record *record;
		const char *json;		  /* call */
		const struct npumem_piece *piece; /* snapshot */
	};
};
typedef void npumem_callback(void *context, const struct npumem_answer *answer);

/* ---- in any event loop ---- */

/* Wait until this fd is readable (or writable, if npumem_wants_write), for at most npumem_timeout milliseconds
 * (-1: forever), then call npumem_process. It reads and writes without blocking, and calls the callbacks of
 * requests that are answered or timed out. Requests that are still queued are written then. 0;
 * NPUMEM_UNAVAILABLE; NPUMEM_CANCELLED: a callback has closed the connection. The fd is the same for the whole
 * life of the connection, also after a restart of the daemon. It may be an epoll fd in place of the socket, so
 * use it only to wait. While no daemon is there, it becomes readable when the next attempt to reconnect is due. */
int npumem_fd(const struct npumem *npumem);
bool npumem_wants_write(const struct npumem *npumem);
int npumem_timeout(const struct npumem *npumem);
int npumem_process(struct npumem *npumem, struct npumem_error *error);

/* The number of requests that were sent, and neither answered nor let go. */
unsigned npumem_in_flight(const struct npumem *npumem);
/* Blocks until all of them are answered. */
int npumem_flush(struct npumem *npumem, struct npumem_error *error);

/* Cancels a request: a waiting request is dropped, and a running operation is stopped. The callback gets
 * NPUMEM_CANCELLED. Bytes that the operation had written count as never written; so do all outputs of a kernel that had
 * begun to write them. A request that can no longer be stopped gets its usual answer. */
void npumem_cancel(struct npumem_request *request);
/* The callback is not called, and the data are not used after this returns. The request is not cancelled. */
void npumem_let_go(struct npumem_request *request);
/* The request's number, as in npumem_event.request. If it was sent in several parts, that of the latest part. */
uint64_t npumem_request_id(const struct npumem_request *request);

/* ---- the calls ---- */

/* The last parameters of all calls below. */
#define NPUMEM_ASYNC                                                                                              \
	npumem_callback *callback, void *context, struct npumem_request **request, struct npumem_error *error

int npumem_info_async(struct npumem *npumem, NPUMEM_ASYNC);
int npumem_stat_async(struct npumem *npumem, NPUMEM_ASYNC);
int npumem_stat_details_async(struct npumem *npumem, bool reset, NPUMEM_ASYNC);
int npumem_dump_async(struct npumem *npumem, int64_t npu, int64_t offset, int64_t bytes, void *to, NPUMEM_ASYNC);
int npumem_compact_async(struct npumem *npumem, bool dry_run, NPUMEM_ASYNC);
int npumem_plan_remote_async(struct npumem *npumem, const struct npumem_spec *spec, NPUMEM_ASYNC);
int npumem_call_async(struct npumem *npumem, const char *method, const char *json, NPUMEM_ASYNC);
int npumem_shutdown_async(struct npumem *npumem, NPUMEM_ASYNC);
int npumem_snapshot_async(struct npumem *npumem, uint64_t snapshot, NPUMEM_ASYNC);
int npumem_numeric_remote_async(struct npumem *npumem, const struct npumem_numeric *question, NPUMEM_ASYNC);

int npumem_alloc_async(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
		       NPUMEM_ASYNC);
int npumem_alloc_wait_async(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
			    uint32_t wait_ms, NPUMEM_ASYNC);
int npumem_view_async(struct npumem *npumem, uint64_t base, const char *name, const struct npumem_dims *from,
		      const struct npumem_dims *to, NPUMEM_ASYNC);
int npumem_reshape_async(struct npumem *npumem, uint64_t base, const char *name, const struct npumem_dims *shape,
			 NPUMEM_ASYNC);
int npumem_view_format_async(struct npumem *npumem, uint64_t base, const char *name, int64_t frac_bits,
			     NPUMEM_ASYNC);
int npumem_free_async(struct npumem *npumem, const uint64_t *handles, unsigned n, NPUMEM_ASYNC);
int npumem_seal_async(struct npumem *npumem, uint64_t handle, NPUMEM_ASYNC);
int npumem_rename_async(struct npumem *npumem, uint64_t handle, const char *name, NPUMEM_ASYNC);
int npumem_grant_async(struct npumem *npumem, uint64_t handle, uint32_t uid, int access, NPUMEM_ASYNC);
int npumem_open_tensor_async(struct npumem *npumem, const char *name, NPUMEM_ASYNC);
int npumem_show_async(struct npumem *npumem, uint64_t handle, NPUMEM_ASYNC);
int npumem_list_async(struct npumem *npumem, NPUMEM_ASYNC);

int npumem_write_async(struct npumem *npumem, const struct npumem_tensor *tensor, const void *data, size_t bytes,
		       NPUMEM_ASYNC);
int npumem_read_async(struct npumem *npumem, const struct npumem_tensor *tensor, void *data, size_t bytes,
		      NPUMEM_ASYNC);
int npumem_write_part_async(struct npumem *npumem, uint64_t handle, int64_t first, const void *data, size_t bytes,
			    NPUMEM_ASYNC);
int npumem_read_part_async(struct npumem *npumem, uint64_t handle, int64_t first, int64_t count, void *data,
			   size_t bytes, NPUMEM_ASYNC);
int npumem_fill_async(struct npumem *npumem, uint64_t handle, int64_t value, NPUMEM_ASYNC);
int npumem_fill_float_async(struct npumem *npumem, uint64_t handle, double value, NPUMEM_ASYNC);
int npumem_copy_async(struct npumem *npumem, uint64_t destination, uint64_t source, NPUMEM_ASYNC);
int npumem_run_async(struct npumem *npumem, const char *kernel, const struct npumem_operand *operands,
		     unsigned n_operands, const struct npumem_param *params, unsigned n_params, NPUMEM_ASYNC);
/* Reads deliver into the `data` of their operations, which must stay until the answer. */
int npumem_submit_async(struct npumem *npumem, const struct npumem_operation *operations, unsigned n,
			NPUMEM_ASYNC);
int npumem_dry_run_async(struct npumem *npumem, const struct npumem_operation *operations, unsigned n,
			 NPUMEM_ASYNC);
int npumem_keep_list_async(struct npumem *npumem, const struct npumem_operation *operations, unsigned n,
			   NPUMEM_ASYNC);
/* Reads deliver into the `data` of the operations that the list was made of. `kept` is needed only until this
 * returns. */
int npumem_run_list_async(struct npumem *npumem, const struct npumem_kept *kept,
			  const struct npumem_change *changes, unsigned n, NPUMEM_ASYNC);
int npumem_drop_list_async(struct npumem *npumem, const struct npumem_kept *kept, NPUMEM_ASYNC);

int npumem_segment_create_async(struct npumem *npumem, size_t bytes, NPUMEM_ASYNC);
int npumem_segment_close_async(struct npumem *npumem, const struct npumem_segment *segment, NPUMEM_ASYNC);
int npumem_write_segment_async(struct npumem *npumem, uint64_t handle, const struct npumem_segment *segment,
			       uint64_t offset, const struct npumem_dims *stride, int64_t first, int64_t count,
			       NPUMEM_ASYNC);
int npumem_read_segment_async(struct npumem *npumem, uint64_t handle, const struct npumem_segment *segment,
			      uint64_t offset, const struct npumem_dims *stride, int64_t first, int64_t count,
			      NPUMEM_ASYNC);

int npumem_subscribe_async(struct npumem *npumem, const char *const *kinds, unsigned n,
			   npumem_event_callback *on_event, void *event_context, NPUMEM_ASYNC);

int npumem_record_start_async(struct npumem *npumem, int fd, NPUMEM_ASYNC);
int npumem_record_start_from_async(struct npumem *npumem, int fd, enum npumem_record_from from, NPUMEM_ASYNC);
int npumem_record_piece_async(struct npumem *npumem, const struct npumem_record *record, NPUMEM_ASYNC);
int npumem_record_take_async(struct npumem *npumem, const struct npumem_record *record, NPUMEM_ASYNC);
int npumem_record_stop_async(struct npumem *npumem, const struct npumem_record *record, NPUMEM_ASYNC);

#ifdef __cplusplus
}
#endif
#endif
