/* A record that is being taken until the user interrupts it. */
#ifndef CTL_RECORDING_H
#define CTL_RECORDING_H

#include "client/ctl/ctl.h"

/* Connects, and writes the record to `fd`, which stays open. CTL_OK with how many entries it has, or CTL_FAILED.
 */
int recording_take(struct ctl *ctl, int fd, uint64_t *entries);

#endif
