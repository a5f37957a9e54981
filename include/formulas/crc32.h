/* CRC-32 as Ethernet, gzip and zlib have it: both sides of the socket compare what a record says by it. */
#ifndef FORMULAS_CRC32_H
#define FORMULAS_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Of `n` more bytes; `crc` is that of what comes before them, 0 at first. On any thread. */
uint32_t crc32_add(uint32_t crc, const void *bytes, size_t n);

#endif
