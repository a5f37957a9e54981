/* The options that say what a tensor is to be, shared by plan and alloc. */
#ifndef CTL_CORE_SPEC_H
#define CTL_CORE_SPEC_H

#include <npumem/layout.h>

#include "client/ctl/core/words/args.h"

/* Rows for the tables of options. */
#define SPEC_OPTIONS                                                                                              \
	{"--shape", "N,C,H,W", "extents", false},                                                                 \
		{"--dtype", "T", "int8, uint8, int16, uint16, int32, uint32, fp32, fx8, fx16", false},            \
		{"--frac-bits", "F", "fractional bits of fx8 and fx16, 0..127", false},                           \
		{"--layout", "L", "aligned, compact, matrix, strided", false},                                    \
		{"--mode", "M", "storage mode: plain, 4n, 2n, 2ic", false},                                       \
		{"--stride", "N,C,H,W", "strides of the strided layout, in elements or packed elements", false},  \
		{"--start-npu", "Q", "the NPU of channel 0", false}, {"--rows", "R", "rows of a matrix", false},  \
		{"--cols", "M", "columns of a matrix", false},                                                    \
		{"--w", "W", "columns of a matrix per channel; left out: those with the least storage", false},   \
	{                                                                                                         \
		"--address", "A", "NPU * bytes per NPU + offset", false                                           \
	}

/* The value of an option that is a name, by its parser; left as it is where the option is not given. 0, or
 * INVALID, which says whether one is called nearly so. */
int spec_name(const struct args *args, const char *option, const char *what, int (*parse)(const char *),
	      const char *(*name)(int), int *value, struct npumem_error *error);
/* The same of a count (numbers.h). */
int spec_count(const struct args *args, const char *option, int64_t *value, struct npumem_error *error);
/* --frac-bits is "auto". */
bool spec_is_auto(const struct args *args);
/* All that is given, without asking for a shape. 0 or INVALID. */
int spec_read(const struct args *args, struct npumem_spec *spec, struct npumem_error *error);
/* 0 or INVALID (an option that is wrong whatever the device: usage). */
int spec_parse(const struct args *args, struct npumem_spec *spec, struct npumem_error *error);

#endif
