/* What writing and replaying a record share. */
#ifndef CLIENT_LIB_RECORD_H
#define CLIENT_LIB_RECORD_H

#include <npumem/client.h>

#define RECORD_MAGIC "npumem record 1\n"
enum { RECORD_MAGIC_BYTES = 16 };

/* The hash of all tensors' data. 0 or a status. */
int record_hash(struct npumem *npumem, uint64_t *hash, struct npumem_error *error);

#endif
