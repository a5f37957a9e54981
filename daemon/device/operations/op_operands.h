/* The tensors of a run as its kernel reaches them: where they lie in local memory, or as dense copies. */
#ifndef DEVICE_OP_OPERANDS_H
#define DEVICE_OP_OPERANDS_H

#include <stddef.h>

#include "daemon/device/operations/lockstep.h"
#include "daemon/device/operations/op_rule.h"
#include "daemon/device/operations/roles.h"

/* A run, planned by its shapes and parameters; op_check adds what it may destroy, and the pack. Operands are in
 * the order of roles, families by number. */
struct op_work {
	const struct kernel *kernel;
	struct kernel_call call;
	const struct roles *rows;
	unsigned n;
	struct lockstep_victims victims;
	struct pack *pack;		    /* that was kept, or is being made; NULL: none */
	size_t scratch_bytes, memory_bytes; /* the kernel's; with all arrays */
	size_t pack_bytes;		    /* what the kernel makes of its packed roles; 0: nothing */

	struct kernel_role roles[ROLES_MAX];
	struct kernel_operand operands[NPUMEM_OPERANDS_MAX];
	struct tensor *tensors[NPUMEM_OPERANDS_MAX];
	char names[NPUMEM_OPERANDS_MAX][NPUMEM_FIELD_KEY_BYTES];
	bool output[NPUMEM_OPERANDS_MAX];
	bool in_place[NPUMEM_OPERANDS_MAX]; /* the kernel reaches it where it lies */
	/* Input i is gathered as this one, which has the same bytes: i itself, or one before it. */
	unsigned gathered_as[NPUMEM_OPERANDS_MAX];
	_Alignas(max_align_t) uint8_t plan[KERNEL_PLAN_BYTES];
};

/* The operands that the kernel makes its pack of, PACKS_TENSORS at most; how many. */
unsigned op_operands_packed(const struct op_work *work, unsigned *packed);
/* Whether two tensors are the same elements in the same bytes. */
bool op_operands_are_same(const struct tensor *a, const struct tensor *b);
/* Decides which operands are copied and how much memory a run takes, and takes nothing. 0 or RESOURCE_EXHAUSTED.
 */
int op_operands_plan(struct op_work *work, const struct error_context *context);
/* Of the arrays and the scratch, once it is known whether there is a pack: work->memory_bytes, or less. */
size_t op_operands_bytes(const struct op_work *work);
/* Makes `memory` (op_operands_bytes) and local memory what the operands and the scratch lie in. */
void op_operands_spread(const struct device *device, struct op_work *work, void *memory);
/* Copies the inputs that are copied; not that which only a pack is made of, where there is one. False where it was
 * stopped. */
bool op_operands_gather(const struct device *device, const struct op_work *work);
/* Whether the kernel itself writes local memory. */
bool op_operands_are_direct(const struct op_work *work);
/* After the kernel: copies the outputs back that are copied, and marks all of them as written. */
void op_operands_scatter(struct device *device, const struct op_work *work);
/* After a kernel that was stopped: its outputs count as never written. */
void op_operands_tear(struct device *device, const struct op_work *work);

#endif
