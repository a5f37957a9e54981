/* The calls that wait: each the form that does not, and waiting for its answer. */
#include <npumem/record.h>

#include "client/lib/connection/connection.h"
#include "client/lib/messages/result.h"

#define ASYNC call_answered, &call, NULL, error

/* The body of a call whose result goes to *to. */
#define WAIT(to, send)                                                                                            \
	struct call call;                                                                                         \
	int status = call_begin(npumem, &call, error);                                                            \
	if (!status)                                                                                              \
		status = send;                                                                                    \
	status = call_wait(&call, status);                                                                        \
	if (to)                                                                                                   \
		*(to) = call.result;                                                                              \
	else                                                                                                      \
		result_release(call.result);                                                                      \
	return status

#define WAIT_ONLY(send)                                                                                           \
	const void **nobody = NULL;                                                                               \
	WAIT(nobody, send)

/* ---- the device ---- */

int npumem_info(struct npumem *npumem, const struct npumem_info **info, struct npumem_error *error)
{
	WAIT(info, npumem_info_async(npumem, ASYNC));
}

int npumem_stat(struct npumem *npumem, const struct npumem_stat **stat, struct npumem_error *error)
{
	WAIT(stat, npumem_stat_async(npumem, ASYNC));
}

int npumem_stat_details(struct npumem *npumem, bool reset, const struct npumem_details **details,
			struct npumem_error *error)
{
	WAIT(details, npumem_stat_details_async(npumem, reset, ASYNC));
}

int npumem_dump(struct npumem *npumem, int64_t npu, int64_t offset, int64_t bytes, void *to,
		struct npumem_error *error)
{
	WAIT_ONLY(npumem_dump_async(npumem, npu, offset, bytes, to, ASYNC));
}

int npumem_compact(struct npumem *npumem, bool dry_run, const struct npumem_compacted **compacted,
		   struct npumem_error *error)
{
	WAIT(compacted, npumem_compact_async(npumem, dry_run, ASYNC));
}

int npumem_plan_remote(struct npumem *npumem, const struct npumem_spec *spec, const struct npumem_plan **plan,
		       struct npumem_error *error)
{
	WAIT(plan, npumem_plan_remote_async(npumem, spec, ASYNC));
}

int npumem_shutdown(struct npumem *npumem, struct npumem_error *error)
{
	WAIT_ONLY(npumem_shutdown_async(npumem, ASYNC));
}

int npumem_snapshot(struct npumem *npumem, uint64_t snapshot, const struct npumem_piece **piece,
		    struct npumem_error *error)
{
	WAIT(piece, npumem_snapshot_async(npumem, snapshot, ASYNC));
}

int npumem_numeric_remote(struct npumem *npumem, const struct npumem_numeric *question,
			  const struct npumem_numeric_answer **answer, struct npumem_error *error)
{
	WAIT(answer, npumem_numeric_remote_async(npumem, question, ASYNC));
}

/* ---- tensors ---- */

int npumem_alloc_wait(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
		      uint32_t wait_ms, const struct npumem_tensor **tensors, struct npumem_error *error)
{
	struct call call;
	int status = call_begin(npumem, &call, error);
	if (!status)
		status = npumem_alloc_wait_async(npumem, allocations, n, wait_ms, ASYNC);
	status = call_wait(&call, status);
	const struct npumem_tensors *all = call.result;
	for (unsigned i = 0; i < n && tensors; i++) {
		tensors[i] = all ? all->list[i] : NULL;
		if (all)
			result_keep(all);
	}
	result_release(all);
	return status;
}

int npumem_alloc(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
		 const struct npumem_tensor **tensors, struct npumem_error *error)
{
	return npumem_alloc_wait(npumem, allocations, n, 0, tensors, error);
}

int npumem_view(struct npumem *npumem, uint64_t base, const char *name, const struct npumem_dims *from,
		const struct npumem_dims *to, const struct npumem_tensor **view, struct npumem_error *error)
{
	WAIT(view, npumem_view_async(npumem, base, name, from, to, ASYNC));
}

int npumem_reshape(struct npumem *npumem, uint64_t base, const char *name, const struct npumem_dims *shape,
		   const struct npumem_tensor **view, struct npumem_error *error)
{
	WAIT(view, npumem_reshape_async(npumem, base, name, shape, ASYNC));
}

int npumem_view_format(struct npumem *npumem, uint64_t base, const char *name, int64_t frac_bits,
		       const struct npumem_tensor **view, struct npumem_error *error)
{
	WAIT(view, npumem_view_format_async(npumem, base, name, frac_bits, ASYNC));
}

int npumem_free(struct npumem *npumem, const uint64_t *handles, unsigned n, struct npumem_error *error)
{
	WAIT_ONLY(npumem_free_async(npumem, handles, n, ASYNC));
}

int npumem_seal(struct npumem *npumem, uint64_t handle, struct npumem_error *error)
{
	WAIT_ONLY(npumem_seal_async(npumem, handle, ASYNC));
}

int npumem_rename(struct npumem *npumem, uint64_t handle, const char *name, struct npumem_error *error)
{
	WAIT_ONLY(npumem_rename_async(npumem, handle, name, ASYNC));
}

int npumem_grant(struct npumem *npumem, uint64_t handle, uint32_t uid, int access, struct npumem_error *error)
{
	WAIT_ONLY(npumem_grant_async(npumem, handle, uid, access, ASYNC));
}

int npumem_open_tensor(struct npumem *npumem, const char *name, const struct npumem_tensor **tensor,
		       struct npumem_error *error)
{
	WAIT(tensor, npumem_open_tensor_async(npumem, name, ASYNC));
}

int npumem_show(struct npumem *npumem, uint64_t handle, const struct npumem_tensor **tensor,
		struct npumem_error *error)
{
	WAIT(tensor, npumem_show_async(npumem, handle, ASYNC));
}

int npumem_list(struct npumem *npumem, const struct npumem_tensors **tensors, struct npumem_error *error)
{
	WAIT(tensors, npumem_list_async(npumem, ASYNC));
}

int npumem_call(struct npumem *npumem, const char *method, const char *json, const char **answer,
		struct npumem_error *error)
{
	WAIT(answer, npumem_call_async(npumem, method, json, ASYNC));
}

/* ---- operations ---- */

int npumem_write(struct npumem *npumem, const struct npumem_tensor *tensor, const void *data, size_t bytes,
		 struct npumem_error *error)
{
	WAIT_ONLY(npumem_write_async(npumem, tensor, data, bytes, ASYNC));
}

int npumem_read(struct npumem *npumem, const struct npumem_tensor *tensor, void *data, size_t bytes,
		const struct npumem_done **done, struct npumem_error *error)
{
	WAIT(done, npumem_read_async(npumem, tensor, data, bytes, ASYNC));
}

int npumem_write_part(struct npumem *npumem, uint64_t handle, int64_t first, const void *data, size_t bytes,
		      struct npumem_error *error)
{
	WAIT_ONLY(npumem_write_part_async(npumem, handle, first, data, bytes, ASYNC));
}

int npumem_read_part(struct npumem *npumem, uint64_t handle, int64_t first, int64_t count, void *data,
		     size_t bytes, const struct npumem_done **done, struct npumem_error *error)
{
	WAIT(done, npumem_read_part_async(npumem, handle, first, count, data, bytes, ASYNC));
}

int npumem_fill(struct npumem *npumem, uint64_t handle, int64_t value, struct npumem_error *error)
{
	WAIT_ONLY(npumem_fill_async(npumem, handle, value, ASYNC));
}

int npumem_fill_float(struct npumem *npumem, uint64_t handle, double value, struct npumem_error *error)
{
	WAIT_ONLY(npumem_fill_float_async(npumem, handle, value, ASYNC));
}

int npumem_copy(struct npumem *npumem, uint64_t destination, uint64_t source, const struct npumem_done **done,
		struct npumem_error *error)
{
	WAIT(done, npumem_copy_async(npumem, destination, source, ASYNC));
}

int npumem_run(struct npumem *npumem, const char *kernel, const struct npumem_operand *operands,
	       unsigned n_operands, const struct npumem_param *params, unsigned n_params,
	       const struct npumem_done **done, struct npumem_error *error)
{
	WAIT(done, npumem_run_async(npumem, kernel, operands, n_operands, params, n_params, ASYNC));
}

int npumem_submit(struct npumem *npumem, const struct npumem_operation *operations, unsigned n,
		  const struct npumem_submitted **submitted, struct npumem_error *error)
{
	WAIT(submitted, npumem_submit_async(npumem, operations, n, ASYNC));
}

int npumem_dry_run(struct npumem *npumem, const struct npumem_operation *operations, unsigned n,
		   const struct npumem_submitted **submitted, struct npumem_error *error)
{
	WAIT(submitted, npumem_dry_run_async(npumem, operations, n, ASYNC));
}

int npumem_keep_list(struct npumem *npumem, const struct npumem_operation *operations, unsigned n,
		     const struct npumem_kept **kept, struct npumem_error *error)
{
	WAIT(kept, npumem_keep_list_async(npumem, operations, n, ASYNC));
}

int npumem_run_list(struct npumem *npumem, const struct npumem_kept *kept, const struct npumem_change *changes,
		    unsigned n, const struct npumem_submitted **submitted, struct npumem_error *error)
{
	WAIT(submitted, npumem_run_list_async(npumem, kept, changes, n, ASYNC));
}

int npumem_drop_list(struct npumem *npumem, const struct npumem_kept *kept, struct npumem_error *error)
{
	WAIT_ONLY(npumem_drop_list_async(npumem, kept, ASYNC));
}

/* ---- system memory ---- */

int npumem_segment_create(struct npumem *npumem, size_t bytes, const struct npumem_segment **segment,
			  struct npumem_error *error)
{
	WAIT(segment, npumem_segment_create_async(npumem, bytes, ASYNC));
}

int npumem_segment_close(struct npumem *npumem, const struct npumem_segment *segment, struct npumem_error *error)
{
	WAIT_ONLY(npumem_segment_close_async(npumem, segment, ASYNC));
}

int npumem_write_segment(struct npumem *npumem, uint64_t handle, const struct npumem_segment *segment,
			 uint64_t offset, const struct npumem_dims *stride, int64_t first, int64_t count,
			 struct npumem_error *error)
{
	WAIT_ONLY(npumem_write_segment_async(npumem, handle, segment, offset, stride, first, count, ASYNC));
}

int npumem_read_segment(struct npumem *npumem, uint64_t handle, const struct npumem_segment *segment,
			uint64_t offset, const struct npumem_dims *stride, int64_t first, int64_t count,
			const struct npumem_done **done, struct npumem_error *error)
{
	WAIT(done, npumem_read_segment_async(npumem, handle, segment, offset, stride, first, count, ASYNC));
}

/* ---- events and records ---- */

int npumem_subscribe(struct npumem *npumem, const char *const *kinds, unsigned n, npumem_event_callback *callback,
		     void *context, struct npumem_error *error)
{
	WAIT_ONLY(npumem_subscribe_async(npumem, kinds, n, callback, context, ASYNC));
}

int npumem_record_start(struct npumem *npumem, int fd, const struct npumem_record **record,
			struct npumem_error *error)
{
	WAIT(record, npumem_record_start_async(npumem, fd, ASYNC));
}

int npumem_record_start_from(struct npumem *npumem, int fd, enum npumem_record_from from,
			     const struct npumem_record **record, struct npumem_error *error)
{
	WAIT(record, npumem_record_start_from_async(npumem, fd, from, ASYNC));
}

int npumem_record_piece(struct npumem *npumem, const struct npumem_record *record,
			const struct npumem_piece **piece, struct npumem_error *error)
{
	WAIT(piece, npumem_record_piece_async(npumem, record, ASYNC));
}

int npumem_record_take(struct npumem *npumem, const struct npumem_record *record, struct npumem_error *error)
{
	WAIT_ONLY(npumem_record_take_async(npumem, record, ASYNC));
}

int npumem_record_stop(struct npumem *npumem, const struct npumem_record *record, struct npumem_error *error)
{
	WAIT_ONLY(npumem_record_stop_async(npumem, record, ASYNC));
}
