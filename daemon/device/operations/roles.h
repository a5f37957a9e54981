/* The roles of a kernel row ("in weights bias? >out"), parsed. */
#ifndef DEVICE_ROLES_H
#define DEVICE_ROLES_H

#include <npumem/kernels.h>

enum { ROLES_MAX = 16 };

struct role {
	char name[NPUMEM_FIELD_KEY_BYTES];
	bool output, optional, numbered;
};

/* Returns how many. The rows are ours, so a row that does not parse is a defect (asserted). */
unsigned roles_parse(const char *text, struct role roles[ROLES_MAX]);

/* The role that an operand's name is of ("in1" is number 1 of "in*"); -1 where there is none. */
int roles_find(const struct role *roles, unsigned n, const char *operand, unsigned *number);

#endif
