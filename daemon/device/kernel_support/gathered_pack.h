/* A role's elements as they are gathered, kept as a pack: for weights that are read as they lie, so that they are
 * gathered once for each version of their tensor. The first two are for struct kernel's functions of that name.
 */
#ifndef DEVICE_GATHERED_PACK_H
#define DEVICE_GATHERED_PACK_H

#include "daemon/device/operations/kernel.h"

size_t gathered_pack_bytes(const struct kernel_call *call, unsigned role);
bool gathered_pack(const struct kernel_call *call, unsigned role, void *to);
/* During run(): the elements, wherever they are. */
const void *gathered_pack_data(const struct kernel_call *call, unsigned role);

#endif
