/* What of an answer must be the same on every device: the data that was read, what an operation counted, how many
 * tensors went. Addresses, times, texts and handles are not in it. */
#ifndef PROTO_DIGEST_H
#define PROTO_DIGEST_H

#include "proto/npumem.pb-c.h"

uint64_t digest_response(const Npumem__V1__Response *response);
/* The handles of new tensors in a response, in order; writes at most `most`, returns how many there are. */
size_t digest_handles(const Npumem__V1__Response *response, uint64_t *handles, size_t most);

#endif
