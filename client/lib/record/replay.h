/* A replay with memory of one's own choice. */
#ifndef CLIENT_LIB_REPLAY_H
#define CLIENT_LIB_REPLAY_H

#include "client/lib/connection/memory.h"
#include <npumem/record.h>

/* As npumem_replay_open; `memory` outlives it. */
int replay_new(const struct memory *memory, const char *path, struct npumem_replay **out,
	       struct npumem_error *error);

struct record_file;
const struct record_file *replay_file(const struct npumem_replay *replay);

#endif
