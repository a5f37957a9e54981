/* The .npy files that a network names. */
#ifndef CTL_CORE_NETWORK_FILES_H
#define CTL_CORE_NETWORK_FILES_H

#include "client/ctl/core/network/network.h"

/* Opens the file that an operation writes or expects, for an array at `place`; `rounding` is the device's. 0 or
 * INVALID, naming the file. */
int files_open(const struct network *network, const struct network_operation *operation,
	       const struct npumem_place *place, int rounding, struct stream *stream, struct npumem_error *error);
/* Opens what an operation expects; of a file of real numbers with several samples one of them. *n: how many it
 * has. As files_open. */
int files_open_expected(const struct network *network, const struct network_operation *operation,
			const struct npumem_place *place, int rounding, size_t sample, size_t *n,
			struct stream *stream, struct npumem_error *error);
/* Opens every file that is written or expected, and looks at type and shape. 0 or INVALID, naming the operation.
 */
int files_check(const struct network *network, struct npumem_error *error);

#endif
