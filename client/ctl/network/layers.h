/* What a network is expected to hold, compared on a device, in one placement after another. */
#ifndef CTL_NETWORK_LAYERS_H
#define CTL_NETWORK_LAYERS_H

#include "client/ctl/core/network/compare.h"
#include "client/ctl/network/execute.h"
#include "client/ctl/variants.h"

enum { LAYERS_REASON_BYTES = 640, LAYERS_PLACED_BYTES = 96 };

/* One comparison in one placement. */
struct layers_case {
	size_t operation;
	char placed[LAYERS_PLACED_BYTES];
	bool passed, compared; /* compared: the figures are there */
	struct compare compare;
	uint64_t ns;   /* of the operation, or group, that it belongs to */
	char *reason;  /* why it failed; NULL: it passed */
	char *picture; /* the file of the placement; NULL: none */
};

struct layers {
	struct ctl *ctl;
	struct execute execute;
	const struct variant *variant; /* NULL: as written */
	const char *pictures;	       /* folder; NULL: none are drawn */
	double least_snr;	       /* dB that are enough; infinite: all must be equal */
	struct layers_case *cases;
	size_t n, room, n_failed;
};

/* Runs the network in each placement (variants NULL: as written) and notes every comparison. CTL_OK, whatever came
 * of them; CTL_FAILED where the daemon is gone or there is no memory. */
int layers_run(struct layers *layers, struct ctl *ctl, const struct network *network,
	       const struct variants *variants);
void layers_deinit(struct layers *layers);

#endif
