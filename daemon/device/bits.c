#include "daemon/device/bits.h"

/* The bits of word `w` that lie in [from, end). */
static uint64_t mask_of(uint64_t w, uint64_t from, uint64_t end)
{
	uint64_t mask = UINT64_MAX;
	if (from > w * 64)
		mask <<= from - w * 64;
	if (end < (w + 1) * 64)
		mask &= UINT64_MAX >> ((w + 1) * 64 - end);
	return mask;
}

void bits_set(uint64_t *words, uint64_t from, uint64_t n)
{
	for (uint64_t end = from + n, w = from / 64; w * 64 < end; w++)
		words[w] |= mask_of(w, from, end);
}

void bits_clear(uint64_t *words, uint64_t from, uint64_t n)
{
	for (uint64_t end = from + n, w = from / 64; w * 64 < end; w++)
		words[w] &= ~mask_of(w, from, end);
}

uint64_t bits_count(const uint64_t *words, uint64_t from, uint64_t n)
{
	uint64_t count = 0;
	for (uint64_t end = from + n, w = from / 64; w * 64 < end; w++)
		count += (uint64_t)__builtin_popcountll(words[w] & mask_of(w, from, end));
	return count;
}

uint64_t bits_first_not(const uint64_t *words, bool value, uint64_t from, uint64_t n)
{
	uint64_t end = from + n;
	for (uint64_t w = from / 64; w * 64 < end; w++) {
		uint64_t odd = (value ? ~words[w] : words[w]) & mask_of(w, from, end);
		if (odd)
			return w * 64 + (uint64_t)__builtin_ctzll(odd);
	}
	return end;
}
