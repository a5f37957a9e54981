/* --cost: how many cycles the user says that work takes. */
#ifndef CTL_CORE_NETWORK_RATES_H
#define CTL_CORE_NETWORK_RATES_H

#include <npumem/types.h>

struct rates {
	int64_t macs_per_cycle;	     /* of one NPU; from 1 on */
	int64_t dma_bytes_per_cycle; /* of the device; from 1 on */
	int64_t overhead;	     /* cycles of each operation; from 0 on */
};

enum { RATES_TEXT_BYTES = 320 };

/* Reads "macs_per_cycle=M,dma_bytes_per_cycle=D[,overhead=O]"; a text without '=' is the path of a file that has
 * these keys, separated by commas or lines, '#' begins a comment. 0, or INVALID: which key is wrong, and why. */
int rates_parse(const char *text, struct rates *rates, struct npumem_error *error);
/* The formula of a cycle, with the rates. Returns `text`. */
const char *rates_formula(const struct rates *rates, char text[RATES_TEXT_BYTES]);

#endif
