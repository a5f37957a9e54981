/* What an empty device would say: what not even that one takes need not be waited for. */
#ifndef DEVICE_FITS_EMPTY_H
#define DEVICE_FITS_EMPTY_H

#include "daemon/device/device.h"

enum { FITS_EMPTY_NPU_BYTES_MAX = 64 << 20 };

/* Whether a device of the same kind without any tensors would take the n requests, except for those that may lie
 * in others' empty blocks. Its tables are as large as an NPU, so above
 * FITS_EMPTY_NPU_BYTES_MAX bytes it is asked for the sum of their bytes alone. True also where there is no host
 * memory to try. */
bool fits_empty_fits(const struct device *device, const struct device_request *requests, unsigned n);

#endif
