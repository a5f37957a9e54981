/* proto/asserts.c proves that each row has its enum value; here, that no enum value is without a row. */
#include <npumem/kernels.h>

#include "proto/npumem.pb-c.h"
#include "tests/support/test.h"

enum {
	N_STATUSES = 0
#define STATUS(...) +1
#include <npumem/status.def>
#undef STATUS
	,
	N_DTYPES = 0
#define DTYPE(...) +1
#include <npumem/dtypes.def>
#undef DTYPE
	,
	N_LAYOUTS = 0
#define LAYOUT(...) +1
#include <npumem/layouts.def>
#undef LAYOUT
	,
	N_MODES = 0
#define MODE(...) +1
#include <npumem/modes.def>
#undef MODE
	,
	N_KERNELS = 0
#define KERNEL(...) +1
#include <npumem/kernels.def>
#undef KERNEL
	,
	N_PARAMS = 0
#define PARAM(...) +1
#include <npumem/params.def>
#undef PARAM
};

TEST(every_value_of_the_wire_has_a_row)
{
	ck_assert_uint_eq(npumem__v1__status__descriptor.n_values, N_STATUSES); /* OK is a row */
	ck_assert_uint_eq(npumem__v1__dtype__descriptor.n_values, N_DTYPES + 1);
	ck_assert_uint_eq(npumem__v1__layout__descriptor.n_values, N_LAYOUTS + 1);
	ck_assert_uint_eq(npumem__v1__mode__descriptor.n_values, N_MODES + 1);
	ck_assert_uint_eq(npumem__v1__kernel__descriptor.n_values, N_KERNELS + 1);
	ck_assert_uint_eq(npumem__v1__param_key__descriptor.n_values, N_PARAMS + 1);
	ck_assert_uint_eq(npumem__v1__rounding__descriptor.n_values, 3 + 1);
	ck_assert_uint_eq(npumem__v1__reuse__descriptor.n_values, 3 + 1);
	ck_assert_uint_eq(npumem__v1__uninitialized__descriptor.n_values, 3 + 1);
}

TEST(numbers_are_where_the_tables_expect_them)
{
#define PARAM(NAME, name, number, least, most, choices, fallback)                                                 \
	ck_assert_int_gt(number, 0);                                                                              \
	ck_assert_int_lt(number, NPUMEM_PARAMS_MAX);                                                              \
	ck_assert_int_le(least, most);                                                                            \
	ck_assert_int_le(most, NPUMEM_PARAM_VALUES_MAX);
#include <npumem/params.def>

#undef PARAM
}
