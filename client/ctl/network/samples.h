/* A network on many samples, one after the other: real numbers in place of the files that it quantizes. */
#ifndef CTL_NETWORK_SAMPLES_H
#define CTL_NETWORK_SAMPLES_H

#include "client/ctl/network/execute.h"

/* Runs it on all, or on the first `most` (0: all). `text` is FILE, or TENSOR=FILE,… where it quantizes several
 * files. CTL_OK or an error of ctl->error. */
int samples_run(struct execute *execute, const char *text, size_t most);

/* Opens the sample that operation i, a write that quantizes, takes now. 0 or INVALID. */
int samples_open(const struct execute *execute, size_t i, struct stream *stream, struct npumem_error *why);

#endif
