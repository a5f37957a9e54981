/* A record that is being taken until the user interrupts it. */
#ifndef CTL_RECORDING_H
#define CTL_RECORDING_H

#include <npumem/record.h>

#include "client/ctl/ctl.h"

/* Connects, and writes the record to `fd`, which stays open; of NPUMEM_RECORD_SNAPSHOT its snapshot into
 * `directory`, which is new or empty. CTL_OK with how many entries it has, CTL_FAILED, CTL_USAGE. */
int recording_take(struct ctl *ctl, int fd, enum npumem_record_from from, const char *directory,
		   uint64_t *entries);

#endif
