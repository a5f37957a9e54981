/* A command that runs a shard of a sweep: its options, its clock, its report. */
#ifndef CTL_SWEEPING_H
#define CTL_SWEEPING_H

#include "client/ctl/conform/variants.h"
#include "client/ctl/core/sweep/sweep.h"
#include "client/ctl/core/words/args.h"
#include "client/ctl/ctl.h"

/* Rows for the tables of options. */
#define SWEEPING_OPTIONS                                                                                          \
	{"--shard", "I/N", "runs the I-th of N shares; merge adds up their --json reports", false},               \
	{                                                                                                         \
		"--costs", "REPORT", "makes the shares equal by the seconds in this --json report", false         \
	}

/* For the notes of a command. */
#define SWEEPING_NOTES                                                                                            \
	"--shard: each case is in exactly one share, the same on every host. Cases are divided one after the "    \
	"other, the\n"                                                                                            \
	"longest first (by the seconds of --costs; without it all are the same), each to the share with the "     \
	"least work."

/* Reads the options; then items are added. CTL_OK or CTL_USAGE. */
int sweeping_begin(struct ctl *ctl, const struct args *args, const char *command, struct sweep *sweep);
/* Mixes in what the outcomes depend on beside the items. `variants` NULL: none. */
void sweeping_mix(struct sweep *sweep, const struct npumem_info *info, const struct variants *variants);
/* Shares the items out. CTL_OK or CTL_FAILED. */
int sweeping_share(struct ctl *ctl, const struct args *args, struct sweep *sweep);

/* The item has run since `since`, by ctl_now. */
void sweeping_ran(struct sweep *sweep, size_t item, double since);

/* A line about the share, for people, where there is one. */
void sweeping_tell(const struct sweep *sweep, const char *items);
/* Adds what the report is of, prints it, and gives it up. `report` NULL: a text in it is no UTF-8. */
int sweeping_print(struct ctl *ctl, const struct sweep *sweep, const struct sweep_part *part, json_t *report);

#endif
