/* What of an answer must be the same on every device: the data that was read, what an operation counted, how many
 * tensors went. Addresses, times, texts and handles are not in it. Made of numbers and CRC-32s, so that the daemon
 * can put it together where the parts are at hand, without looking at the whole answer again. */
#ifndef PROTO_DIGEST_H
#define PROTO_DIGEST_H

#include "proto/npumem.pb-c.h"

/* Of an answer that has nothing to compare. */
uint64_t digest_begin(void);
uint64_t digest_number(uint64_t digest, uint64_t number);
/* Of bytes one by one. */
uint64_t digest_bytes(uint64_t digest, const void *bytes, size_t n);
/* zlib's CRC-32; `crc` is that of what comes before, 0 at first. */
uint32_t digest_crc(uint32_t crc, const void *bytes, size_t n);

/* Of one operation; of done->data only the length is looked at. An answer's digest is digest_begin() and then, by
 * digest_number, each of its operations. */
uint64_t digest_done(const Npumem__V1__Done *done, uint32_t data_crc);

uint64_t digest_response(const Npumem__V1__Response *response);
/* The handles of new tensors in a response, in order; writes at most `most`, returns how many there are. */
size_t digest_handles(const Npumem__V1__Response *response, uint64_t *handles, size_t most);

#endif
