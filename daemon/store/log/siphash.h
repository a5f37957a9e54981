/* SipHash-1-3, a checksum with a key: the faster form of SipHash-2-4 (Aumasson and Bernstein, 2012), which the
 * hash tables of Rust and Python use. A peer that knows neither the key nor any sum cannot choose two texts that
 * have the same one. */
#ifndef STORE_SIPHASH_H
#define STORE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t siphash(const uint64_t key[2], const void *bytes, size_t n);

#endif
