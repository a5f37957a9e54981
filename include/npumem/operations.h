/* Operations on tensors, one by one and in lists, and the system memory that they copy from and to. Part of
 * npumem/client.h, which says what holds for all calls. */
#ifndef NPUMEM_OPERATIONS_H
#define NPUMEM_OPERATIONS_H

#include <npumem/kernels.h>
#include <npumem/layout.h>
#include <npumem/types.h>

struct npumem;
struct npumem_tensor;
struct npumem_segment;
struct npumem_costs;

#ifdef __cplusplus
extern "C" {
#endif

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
 * two frames leaves a part written. An array of 4 KiB or more is not copied: it is sent from `data`, or received into it.
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

#ifdef __cplusplus
}
#endif
#endif
