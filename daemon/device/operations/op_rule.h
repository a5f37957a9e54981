/* What each kind of operation is made of: one row a kind. */
#ifndef DEVICE_OP_RULE_H
#define DEVICE_OP_RULE_H

#include "daemon/device/geometry/intersect.h"
#include "daemon/device/internal.h"
#include "daemon/device/operations/op.h"
#include "daemon/device/tensors/written.h"

/* Bytes that an operation touches of one tensor: `kinds` of its place (intersect.h). */
struct op_access {
	struct tensor *tensor;
	bool writes;
	unsigned kinds;
};

enum { OP_ACCESSES_MAX = NPUMEM_OPERANDS_MAX };

struct op_rule {
	const char *name;
	enum op_queue queue; /* of a parallel group */
	int (*check)(struct device *device, struct op *op, const struct error_context *context);
	/* What takes time in proportion to its tensors, at the start of op_run: what was written of the bytes that
	 * it reads, and whether its tensors share bytes. NULL: it reads none. */
	int (*look)(const struct device *device, struct op *op, const struct error_context *context);
	int (*run)(struct device *device, struct op *op, const struct error_context *context);
	unsigned (*accesses)(const struct op *op, struct op_access *accesses);
	void (*deinit)(struct device *device, struct op *op); /* NULL: nothing to do */
};

extern const struct op_rule op_rule_write, op_rule_read, op_rule_fill, op_rule_copy, op_rule_run;

const char *op_name(const struct op *op);
unsigned op_accesses(const struct op *op, struct op_access *accesses);

/* The last that can refuse it: 0, or what op->begins says. A kernel's run asks itself. */
int op_begins(const struct op *op, const struct error_context *context);

/* Whether the operation is still wanted, for the looks at what it reads. */
struct written_watch op_watch(const struct op *op);

/* Of a run: how many element steps its kernel takes, with the pack that may have to be made first, as is assumed
 * of a run that was not checked; and the tensor that is not reached as its pack was kept, or NULL. */
int64_t op_kernel_steps(struct device *device, const struct op *op, const struct tensor **packed);

/* In op_cost's unit. Of two tensors of one root it is looked at whether they share bytes. Where the offsets of
 * both begin to meet, that takes up to two steps of a walk for each stretch (geometry/intersect.h), 60 ns as
 * measured. */
int64_t op_alias_cost(const struct tensor *a, const struct tensor *b);

/* Checks that many kinds share. */
/* Whether data of the two lie on one byte, and where the first ones do; CANCELLED, without a message, where the
 * operation is no longer wanted. */
int op_look_shared(const struct device *device, const struct op *op, const struct tensor *a,
		   const struct tensor *b, bool *shares, struct intersect_range *first);
int op_check_writable(const struct tensor *tensor, const struct error_context *context);
/* Damage and unwritten bytes of what DMA reads: the policy decides; sets op->warning where it only warns. */
int op_look_readable(const struct device *device, struct op *op, struct tensor *tensor, int64_t first,
		     int64_t count, const struct error_context *context);
void op_warn(struct op *op, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
