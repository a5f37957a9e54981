/* Ranges of bits in an array of 64-bit words: one bit for each byte of local memory.
 * Safe on several threads for disjoint ranges, but for bits_move_down. */
#ifndef DEVICE_BITS_H
#define DEVICE_BITS_H

#include <stdbool.h>
#include <stdint.h>

/* All take [from, from + n). */
void bits_set(uint64_t *words, uint64_t from, uint64_t n);
void bits_clear(uint64_t *words, uint64_t from, uint64_t n);
uint64_t bits_count(const uint64_t *words, uint64_t from, uint64_t n);
/* The first bit of the range that is not `value`; from + n where all are. */
uint64_t bits_first_not(const uint64_t *words, bool value, uint64_t from, uint64_t n);

/* Copies n bits to lower positions (to < from); the ranges may overlap. */
void bits_move_down(uint64_t *words, uint64_t to, uint64_t from, uint64_t n);

#endif
