/* out = f(in) by table, element by element: roles in and out of one type and shape, any frac_bits in, 7 or 15 out.
 */
#ifndef DEVICE_LUT_MAP_H
#define DEVICE_LUT_MAP_H

#include "daemon/device/fixed/rows/lut.h"
#include "daemon/device/operations/kernel.h"

enum { LUT_MAP_IN, LUT_MAP_OUT };
enum { LUT_MAP_BY_FEATURE = 1 << LUT_MAP_IN | 1 << LUT_MAP_OUT };

int lut_map_check(const struct kernel_call *call, struct npumem_error *error);
void lut_map_run(struct kernel_call *call, enum lut_function function);

#endif
