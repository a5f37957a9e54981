/* Ranges of bits in an array of 64-bit words: one bit for each byte of local memory.
 * Safe on several threads for disjoint ranges, but for bits_copy. */
#ifndef DEVICE_BITS_H
#define DEVICE_BITS_H

#include <stdbool.h>
#include <stdint.h>

/* All take [from, from + n), but for the series. */
void bits_set(uint64_t *words, uint64_t from, uint64_t n);
void bits_clear(uint64_t *words, uint64_t from, uint64_t n);
uint64_t bits_count(const uint64_t *words, uint64_t from, uint64_t n);
/* The same for n ranges of `bits` > 0, the first at `from`, `pitch` apart. */
void bits_set_series(uint64_t *words, uint64_t from, uint64_t bits, uint64_t n, uint64_t pitch);
void bits_clear_series(uint64_t *words, uint64_t from, uint64_t bits, uint64_t n, uint64_t pitch);
uint64_t bits_count_series(const uint64_t *words, uint64_t from, uint64_t bits, uint64_t n, uint64_t pitch);
/* The first bit of the range that is not `value`; from + n where all are. */
uint64_t bits_first_not(const uint64_t *words, bool value, uint64_t from, uint64_t n);

/* Of [from, from + n), those that are set in `words` and not in `but`. */
uint64_t bits_count_but(const uint64_t *words, const uint64_t *but, uint64_t from, uint64_t n);

/* Copies bits [from, from + n) of `source` to `to` on; each word is written once. The two ranges may overlap where
 * to < from. */
void bits_copy(uint64_t *words, uint64_t to, const uint64_t *source, uint64_t from, uint64_t n);

#endif
