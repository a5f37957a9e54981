/* The roles and parameters of the kernels' rows ("in weights bias? >out", "stride padding"), parsed once. */
#ifndef DEVICE_ROLES_H
#define DEVICE_ROLES_H

#include <npumem/kernels.h>

enum { ROLES_MAX = 16 };

struct role {
	const char *name;
	uint8_t name_bytes;
	bool output, optional, numbered;
};

struct roles {
	const struct npumem_kernel_row *row; /* NULL: there is no such kernel */
	const struct role *all;
	unsigned n;
	uint64_t params, needed_params; /* bits by number: that it takes; those of them that must be given */
};

/* Parses all rows, unless that was done: before roles_of. The rows are ours, so one that does not parse is a
 * defect (asserted). On any thread. */
void roles_prepare(void);
/* Without any for a number that is no kernel's. */
const struct roles *roles_of(int kernel);

/* The role that an operand's name is of ("in1" is number 1 of "in*"); -1 where there is none. */
int roles_find(const struct roles *roles, const char *operand, unsigned *number);

#endif
