/* The numbers of include/npumem/ are the numbers of the wire: each row of a .def file has an enum value of the
 * .proto by its own name, equal to its own number. That no enum value lacks a row is checked by the tests. */
#include <npumem/kernels.h>
#include <npumem/types.h>

#include "proto/npumem.pb-c.h"

#define SAME(ours, wire) _Static_assert((int)(ours) == (int)(wire), #ours " has another number on the wire")

#define STATUS(NAME, number, meaning) SAME(NPUMEM_##NAME, NPUMEM__V1__STATUS__##NAME);
#include <npumem/status.def>
#undef STATUS

#define DTYPE(NAME, name, number, bytes, low, high, fixed) SAME(NPUMEM_##NAME, NPUMEM__V1__DTYPE__##NAME);
#include <npumem/dtypes.def>
#undef DTYPE

#define LAYOUT(NAME, name, number) SAME(NPUMEM_##NAME, NPUMEM__V1__LAYOUT__##NAME);
#include <npumem/layouts.def>
#undef LAYOUT

/* An enum value cannot start with a digit, so the others carry the prefix and this one need not. */
#define NPUMEM__V1__MODE__MODE_PLAIN NPUMEM__V1__MODE__PLAIN
#define MODE(NAME, name, number, lanes, bytes, fp32) SAME(NPUMEM_MODE_##NAME, NPUMEM__V1__MODE__MODE_##NAME);
#include <npumem/modes.def>
#undef MODE

#define KERNEL(name, NAME, number, roles, parameters, types, summary)                                             \
	SAME(NPUMEM_KERNEL_##NAME, NPUMEM__V1__KERNEL__##NAME);
#include <npumem/kernels.def>
#undef KERNEL

#define PARAM(NAME, name, number, least, most, choices, fallback)                                                 \
	SAME(NPUMEM_PARAM_##NAME, NPUMEM__V1__PARAM_KEY__PARAM_##NAME);
#include <npumem/params.def>
#undef PARAM

SAME(NPUMEM_CONVERGENT, NPUMEM__V1__ROUNDING__CONVERGENT);
SAME(NPUMEM_UP, NPUMEM__V1__ROUNDING__UP);
SAME(NPUMEM_NEAREST, NPUMEM__V1__ROUNDING__NEAREST);
SAME(NPUMEM_NEVER, NPUMEM__V1__REUSE__NEVER);
SAME(NPUMEM_IF_SAFE, NPUMEM__V1__REUSE__IF_SAFE);
SAME(NPUMEM_UNCHECKED, NPUMEM__V1__REUSE__UNCHECKED);
SAME(NPUMEM_REFUSE, NPUMEM__V1__UNINITIALIZED__REFUSE);
SAME(NPUMEM_WARN, NPUMEM__V1__UNINITIALIZED__WARN);
SAME(NPUMEM_ALLOW, NPUMEM__V1__UNINITIALIZED__ALLOW);
