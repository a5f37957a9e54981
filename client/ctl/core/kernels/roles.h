/* The words of `run`: which are tensors by role, which are parameters, by the kernel's row. */
#ifndef CTL_CORE_ROLES_H
#define CTL_CORE_ROLES_H

#include <npumem/kernels.h>

/* True where `role` is one of the row's, or of one of its numbered families ("in*": in0, in1, …). */
bool roles_has(const struct npumem_kernel_row *row, const char *role);
bool roles_is_output(const struct npumem_kernel_row *row, const char *role);
/* True where the kernel takes the parameter; all take rounding. */
bool roles_has_param(const struct npumem_kernel_row *row, const char *name);

/* Finds a kernel by name. 0, or INVALID, which says whether one is called nearly so. */
int roles_kernel(const char *name, const struct npumem_kernel_row **row, struct npumem_error *error);

struct roles_word {
	char key[NPUMEM_FIELD_KEY_BYTES];
	const char *value; /* the tensor's name or the parameter's text */
	bool is_role;
};
/* Parses "key=value". 0, or INVALID: what the kernel takes instead. */
int roles_word(const struct npumem_kernel_row *row, const char *text, struct roles_word *word,
	       struct npumem_error *error);

#endif
