/* The placements that conform and check try, from the command line. */
#ifndef CTL_VARIANTS_H
#define CTL_VARIANTS_H

#include "client/ctl/core/vectors/variant.h"
#include "client/ctl/core/words/args.h"
#include "client/ctl/ctl.h"

enum { VARIANTS_STARTS_MAX = 64, VARIANTS_MAX = 4 * 4 * VARIANTS_STARTS_MAX };

/* Rows for the tables of options. */
#define VARIANTS_OPTIONS                                                                                          \
	{"--layouts", "L,L...", "aligned (default), compact, strided, matrix, or all", false},                    \
		{"--start-npu", "Q,Q...", "start NPUs, 0 if left out", false},                                    \
	{                                                                                                         \
		"--mode", "M,M...", "storage modes: plain (default), 4n, 2n", false                               \
	}

struct variants {
	struct variant list[VARIANTS_MAX];
	unsigned n;
};

/* Every combination of what the options say. CTL_OK or CTL_USAGE. */
int variants_parse(struct ctl *ctl, const struct args *args, struct variants *variants);
/* CTL_OK; CTL_FAILED where a start NPU is not one of this device. */
int variants_check(struct ctl *ctl, const struct variants *variants, const struct npumem_geometry *geometry);

#endif
