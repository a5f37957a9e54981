/* Networks on a device. */
#ifndef CTL_NETWORK_NETWORKS_H
#define CTL_NETWORK_NETWORKS_H

#include <npumem/client.h>

#include "client/ctl/conform/conform.h"
#include "client/ctl/core/arrays/values.h"
#include "client/ctl/core/network/network.h"
#include "client/ctl/core/network/planning/planning.h"
#include "client/ctl/core/vectors/vectors.h"
#include "client/ctl/ctl.h"

/* execute.c. A network on a device: its operations in order, in as few messages as they fit. */

#define EXECUTE_NONE SIZE_MAX /* no operation */
enum { EXECUTE_FREES = 256 };

/* What one operation did. */
struct execute_result {
	bool ran;
	uint64_t ns; /* that it took on the device; of a bulk array, here */
	int64_t saturated, wrapped, divided_by_zero, macs, destroyed;
	int64_t quantized; /* real numbers that were saturated on their way in */
};

/* samples.c has what is done with it. */
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

/* A dry run of a network: its tensors are on a device for as long as it takes, and the daemon checks each
 * operation as if it ran. */

struct dry {
	bool is_checked;	    /* else `why` says why not */
	struct npumem_error why;    /* the first refusal; status 0: there is none */
	struct npumem_costs *costs; /* by operation, from the daemon; npus 0: it sent none */
};

/* On the daemon that ctl is connected to, beside what is there. Files are neither read nor written. */
void dry_run(struct ctl *ctl, const struct network *network, struct dry *dry);
/* On a private daemon of this geometry, which nothing else is on: not of a network that opens tensors of a device.
 */
void dry_run_alone(const struct ctl *ctl, const struct network *network, const struct npumem_geometry *geometry,
		   struct dry *dry);

/* Operations of a network that go to the daemon in one message; their arrays lie in one segment. */

enum { BATCH_OPERATIONS = 1024, BATCH_FIELDS = 16384, BATCH_SEGMENT_BYTES = 4 << 20 };

struct batch {
	struct npumem *npumem;
	struct npumem_operation operations[BATCH_OPERATIONS];
	size_t sources[BATCH_OPERATIONS]; /* which operation of the network each is */
	unsigned n;
	struct npumem_operand operands[BATCH_FIELDS / 4];
	size_t n_operands;
	unsigned n_fields;		      /* of the message, at most */
	const struct npumem_segment *segment; /* NULL: none yet */
	size_t used;
};

/* The fields that a run with so many operands and these parameters is in a message, at most. */
unsigned batch_run_fields(unsigned n_operands, const struct npumem_param *params, unsigned n_params);
/* True where so many operations more, with these fields and operands and `bytes` of arrays, fit. */
bool batch_fits(const struct batch *batch, unsigned n, unsigned n_fields, size_t n_operands, size_t bytes);
/* Makes room for `bytes` of arrays in an empty batch. 0 or what creating a segment returns. */
int batch_reserve(struct batch *batch, size_t bytes, struct npumem_error *error);
/* Room for an array in the segment, which batch_reserve has made; its offset. */
size_t batch_take(struct batch *batch, size_t bytes);
/* What one array takes of the segment. */
size_t batch_array_bytes(size_t bytes);
/* One more operation; what it points to stays until the batch is sent. */
struct npumem_operation *batch_add(struct batch *batch, size_t source, unsigned n_fields);
/* Forgets what was sent; the segment stays. */
void batch_empty(struct batch *batch);

/* samples.c. A network on many samples, one after the other: real numbers in place of the files that it quantizes.
 */

/* Runs it on all, or on the first `most` (0: all). `text` is FILE, or TENSOR=FILE,… where it quantizes several
 * files. CTL_OK or an error of ctl->error. */
int samples_run(struct execute *execute, const char *text, size_t most);

/* Opens the sample that operation i, a write that quantizes, takes now. 0 or INVALID. */
int samples_open(const struct execute *execute, size_t i, struct stream *stream, struct npumem_error *why);

/* layers.c. What a network is expected to hold, compared on a device, in one placement after another. */

enum { LAYERS_REASON_BYTES = 640, LAYERS_PLACED_BYTES = 96 };

/* One comparison in one placement. */
struct layers_case {
	size_t operation, item; /* item: layers->item, when it was noted */
	char placed[LAYERS_PLACED_BYTES];
	bool passed, compared; /* compared: the figures are there */
	bool is_real;	       /* real numbers are expected: `compare` has their S/N */
	struct compare compare;
	int64_t saturated, wrapped; /* of what ran since the comparison before it */
	uint64_t ns;		    /* of the operation, or group, that it belongs to */
	char *reason;		    /* why it failed; NULL: it passed */
	char *picture;		    /* the file of the placement; NULL: none */
};

struct layers {
	struct ctl *ctl;
	struct execute execute;
	bool is_ready;		       /* execute is */
	const struct variant *variant; /* NULL: as written */
	size_t item;		       /* the caller's number of a placement of this network */
	const char *samples;	       /* files of the inputs, as samples_run has them; NULL: the network's own */
	size_t n_samples;	       /* that were run */
	const char *pictures;	       /* folder; NULL: none are drawn */
	double least_snr;	       /* dB that are enough; infinite: all must be equal */
	struct layers_case *cases;
	size_t n, n_failed;
};

/* Sets up to run a network, whose options (samples, pictures, least_snr) are set. CTL_OK or CTL_FAILED; layers_end
 * in any case. */
int layers_init(struct layers *layers, struct ctl *ctl, const struct network *network);
/* Runs it in one placement (variant NULL: as written) and notes every comparison. CTL_OK, whatever came of them;
 * CTL_FAILED where the daemon is gone. */
int layers_run(struct layers *layers, const struct variant *variant);
/* No more runs: keeps only the outcomes. */
void layers_end(struct layers *layers);

/* checked.c. Networks that npumemctl check has run, and how it reports what they gave. */

/* One network of the command line. */
struct checked {
	const char *path;
	struct network network;
	struct layers layers;
};

struct check {
	struct ctl *ctl;
	struct variants variants;
	bool is_placed; /* by the variants; else as the networks say */
	struct checked *list;
	unsigned n;
	struct sweep sweep; /* an item is a network in a placement */
	size_t n_cases, n_failed;
};

static inline unsigned checked_placements(const struct check *check)
{
	return check->is_placed ? check->variants.n : 1;
}

/* Of a path what is the same on every host. */
const char *checked_base(const char *path);

/* Prints what the layers gave, and writes --junit. CTL_FAILED if a comparison failed. */
int checked_report(struct check *check, const struct args *args);

/* costing.c. Costs of a network, as text and as JSON: for plan and for submit --dry-run. */

/* Computes them all. NULL: ctl->error says why not. The tensors fit the geometry.
 * Costs that cannot be computed here are the daemon's, from the dry run. */
struct costs_operation *costing_compute(struct ctl *ctl, const struct network *network,
					const struct npumem_geometry *geometry, const struct rates *rates,
					const struct dry *dry, struct costs_operation *sum);
/* Prints the table, the sums, and the formula where rates are declared. */
void costing_print(const struct network *network, const struct rates *rates, const struct costs_operation *costs,
		   const struct costs_operation *sum);
/* {"operations": […], "sums": {…}}, and with rates "cost". */
json_t *costing_object(const struct network *network, const struct rates *rates,
		       const struct costs_operation *costs, const struct costs_operation *sum);

/* lifetimes.c. Prints what a network needs of a device: for plan and for submit --dry-run. */

/* Prints the tensors with their lives, the peak, whether it fits, and what each operation costs (cycles only with
 * `rates`, which may be NULL); draws the lives into the file `svg`, where it is not NULL. CTL_OK; CTL_FAILED where
 * it does not fit, or the dry run was refused or could not be made; all is printed first. */
int lifetimes_print(struct ctl *ctl, const struct network *network, const struct npumem_geometry *geometry,
		    const struct rates *rates, const char *svg, const struct dry *dry);
/* Before ctl_connect: a --spawn without options gets NPUs in which the network fits, if the usual ones are too
 * small. */
void lifetimes_spawn(struct ctl *ctl, const struct network *network);
/* Adds to ctl->error the --npu-bytes with which the network fits, if there are such. */
void lifetimes_say_room(struct ctl *ctl, const struct network *network, const struct npumem_geometry *geometry);

#endif
