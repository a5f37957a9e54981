/* A kernel as its rows describe it: tensors with their shapes, parameters with what they take, rounding, source.
 */
#ifndef CTL_CORE_DESCRIBE_H
#define CTL_CORE_DESCRIBE_H

#include <jansson.h>
#include <stdio.h>

#include <npumem/kernels.h>

enum { DESCRIBE_SHAPE_BYTES = 48 };

/* Where the kernel rounds, and what its rule comes from; NULL where the row is missing, which is a defect. */
struct describe_provenance {
	const char *name, *rounding, *source;
};
const struct describe_provenance *describe_provenance(const struct npumem_kernel_row *row);

/* "[1,O,1,1]": the shape that the summary gives for a role (of a family its first name: "in" of "in*"), or "".
 * Returns `text`, DESCRIBE_SHAPE_BYTES long. */
const char *describe_shape(const struct npumem_kernel_row *row, const char *role, char *text);

/* A new object; NULL without memory. */
json_t *describe_object(const struct npumem_kernel_row *row);
/* Lines of at most `columns` (0: whatever it takes), words not broken. */
void describe_print(FILE *out, const struct npumem_kernel_row *row, unsigned columns);

/* `text` broken at blanks into lines of at most `columns`, each after the first indented; `at` columns of the
 * first line are taken already. */
void describe_wrap(FILE *out, const char *text, unsigned at, unsigned indent, unsigned columns);

#endif
