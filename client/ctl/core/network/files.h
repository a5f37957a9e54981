/* The .npy files that a network names. */
#ifndef CTL_CORE_NETWORK_FILES_H
#define CTL_CORE_NETWORK_FILES_H

#include "client/ctl/core/network/network.h"

/* Opens every file that is written or expected, and looks at type and shape. 0 or INVALID, naming the operation.
 */
int files_check(const struct network *network, struct npumem_error *error);

#endif
