/* What a network is expected to hold, compared on a device, in one placement after another. */
#ifndef CTL_NETWORK_LAYERS_H
#define CTL_NETWORK_LAYERS_H

#include "client/ctl/core/arrays/compare.h"
#include "client/ctl/network/execute.h"

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

#endif
