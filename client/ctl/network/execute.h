/* A network on a device: its operations in order, in as few messages as they fit. */
#ifndef CTL_NETWORK_EXECUTE_H
#define CTL_NETWORK_EXECUTE_H

#include "client/ctl/bar.h"
#include "client/ctl/core/network/outputs.h"
#include "client/ctl/core/vectors/variant.h"
#include "client/ctl/network/batch.h"

#define EXECUTE_NONE SIZE_MAX /* no operation */
enum { EXECUTE_FREES = 256 };

/* What one operation did. */
struct execute_result {
	bool ran;
	uint64_t ns; /* that it took on the device; of a bulk array, here */
	int64_t saturated, wrapped, divided_by_zero, macs, destroyed;
	int64_t quantized; /* real numbers that were saturated on their way in */
};

/* See samples.h. */
struct samples {
	const char *text; /* their files */
	unsigned n_inputs;
	size_t n, at; /* n 0: none was opened yet */
	size_t most;  /* samples of a file that are taken; 0: all */
};

struct execute {
	struct ctl *ctl;
	const struct network *network;
	const struct npumem_info *info;
	const struct outputs *outputs; /* for what is read; NULL: nothing is read */
	struct samples *samples;       /* NULL: the network's own files */
	bool *once;	/* by operation: done for the first sample alone, or, of a free, after the last */
	bool holds_all; /* with `once`: all tensors stay */
	const struct npumem_kept *list; /* the batch, where the daemon keeps it: it stays, and all is in it */
	bool is_split, is_whole; /* of a run: a part of it was sent; all of it is in the batch, and sent now */
	const struct variant *variant; /* how the tensors are placed; NULL: as the network says */
	/* What to do where a tensor is expected to hold something; NULL: nothing. 0, or an error of `ctl`. Where
	 * it is set no tensor is kept. */
	int (*expect)(void *context, size_t operation);
	void *context;
	struct npumem_costs *dry_costs;	      /* of a dry run, by operation; NULL: it runs */
	const struct npumem_tensor **tensors; /* by their index; NULL: not there */
	struct execute_result *results;	      /* by operation */
	size_t failed;			      /* the operation that an error is about */
	struct batch *batch;
	int frees[EXECUTE_FREES]; /* tensors that go when the batch is sent */
	unsigned n_frees;
	size_t group_end; /* of the parallel group that room was made for */
	struct bar bar;
};

/* 0 or an error of ctl->error. The connection is open. */
int execute_init(struct execute *execute, struct ctl *ctl, const struct network *network);
/* Runs all. CTL_OK, or CTL_FAILED with ctl->error set, naming the operation, and execute->failed. */
int execute_run(struct execute *execute);
/* Frees what the network has left on the device, and forgets its results, for another run. */
int execute_reset(struct execute *execute);
/* Frees what stayed for the next sample. CTL_OK or CTL_FAILED. */
int execute_let_go(struct execute *execute);
void execute_deinit(struct execute *execute);

/* ---- between the files of this room ---- */

/* Whether it can be sent as a label as it is. */
bool execute_is_label(const char *name);

/* Sets ctl->error to what is wrong with operation i; of several errors the first counts. CTL_FAILED. */
int execute_failed(struct execute *execute, size_t i, const struct npumem_error *why);
/* enqueue.c: puts operation i into the batch, or executes it where it does not fit one. */
int enqueue(struct execute *execute, size_t i);
/* Once more all of a batch that is kept, with the arrays of another sample. */
int enqueue_again(struct execute *execute);
/* Sends the batch, then what is to be freed. */
int enqueue_flush(struct execute *execute);
/* transfer.c: the array of operation i (write, read), a segment's size at a time. Nothing waits in the batch. */
int transfer(struct execute *execute, size_t i);
/* Opens the array that operation i (write) takes: a sample, where it is the input. 0 or INVALID. */
int transfer_open(const struct execute *execute, size_t i, struct stream *stream, struct npumem_error *why);
/* Begins the file that operation i (read) writes, or goes on with it behind the first sample. 0 or INVALID. */
int transfer_create(const struct execute *execute, size_t i, struct stream *stream, struct npumem_error *why);

#endif
