/* Golden vectors on a device. */
#ifndef CTL_CONFORM_CONFORM_H
#define CTL_CONFORM_CONFORM_H

#include <npumem/async.h>

#include "client/ctl/core/sweep/sweep.h"
#include "client/ctl/core/vectors/vectors.h"
#include "client/ctl/core/words/words.h"
#include "client/ctl/ctl.h"

/* vector_files.c. The files of golden vectors that a command line names, and their cases as the items of a sweep.
 */

struct vector_file {
	char *path;
	json_t *root;	 /* of a pipe, which can be read once; else NULL */
	size_t first, n; /* of its items; one, where it cannot be read */
};

struct vector_files {
	struct vector_file *list;
	size_t n;
};

/* Finds the files, in the order of the words and within folders of their names, and adds each case to the sweep,
 * named by the file within its folder and by itself. CTL_OK or CTL_FAILED. */
int vector_files_find(struct ctl *ctl, const char *const *words, unsigned n_words, struct sweep *sweep,
		      struct vector_files *files);
/* Reads a file again, as vectors_load does. */
int vector_files_load(const struct vector_file *file, json_t **root, const json_t **cases,
		      struct npumem_error *error);

/* variants.c. The placements that conform and check try, from the command line. */

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

/* sweeping.c. A command that runs a shard of a sweep: its options, its clock, its report. */

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

/* trial.c. One golden vector, placed in one way: written, run, read back, compared. */

/* 0 where every integer was right; else why not. UNAVAILABLE: the connection is over. */
int trial_run(struct npumem *npumem, const struct npumem_geometry *geometry, const struct vectors_case *one,
	      const struct npumem_kernel_row *row, const struct variant *variant, struct npumem_error *error);

/* golden_run.c. A kernel run on named tensors, kept as a golden vector. */

/* Runs the words KERNEL role=NAME... param=value... and adds a case to <directory>/<KERNEL>.json, which stays as
 * it is where anything fails. CTL_OK, CTL_FAILED or CTL_USAGE. */
int golden_run_record(struct ctl *ctl, const char *directory, const struct args *args);

#endif
