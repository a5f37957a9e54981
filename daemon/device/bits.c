/* Operations on disjoint bytes run on several threads, and their bits may share a word: every access is atomic,
 * and changes touch no bit outside their range. No order is needed: who reads bits that another thread wrote has
 * waited for that operation's end. */
#include "daemon/device/bits.h"

#include <stdatomic.h>

static uint64_t load(const uint64_t *word)
{
	return atomic_load_explicit((const _Atomic uint64_t *)word, memory_order_relaxed);
}

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
	for (uint64_t end = from + n, w = from / 64; w * 64 < end; w++) {
		uint64_t mask = mask_of(w, from, end);
		if (mask == UINT64_MAX)
			atomic_store_explicit((_Atomic uint64_t *)&words[w], mask, memory_order_relaxed);
		else if (~load(&words[w]) & mask)
			atomic_fetch_or_explicit((_Atomic uint64_t *)&words[w], mask, memory_order_relaxed);
	}
}

void bits_clear(uint64_t *words, uint64_t from, uint64_t n)
{
	for (uint64_t end = from + n, w = from / 64; w * 64 < end; w++) {
		uint64_t mask = mask_of(w, from, end);
		if (mask == UINT64_MAX)
			atomic_store_explicit((_Atomic uint64_t *)&words[w], 0, memory_order_relaxed);
		else if (load(&words[w]) & mask)
			atomic_fetch_and_explicit((_Atomic uint64_t *)&words[w], ~mask, memory_order_relaxed);
	}
}

uint64_t bits_count(const uint64_t *words, uint64_t from, uint64_t n)
{
	uint64_t count = 0;
	for (uint64_t end = from + n, w = from / 64; w * 64 < end; w++)
		count += (uint64_t)__builtin_popcountll(load(&words[w]) & mask_of(w, from, end));
	return count;
}

uint64_t bits_first_not(const uint64_t *words, bool value, uint64_t from, uint64_t n)
{
	uint64_t end = from + n;
	for (uint64_t w = from / 64; w * 64 < end; w++) {
		uint64_t odd = (value ? ~load(&words[w]) : load(&words[w])) & mask_of(w, from, end);
		if (odd)
			return w * 64 + (uint64_t)__builtin_ctzll(odd);
	}
	return end;
}

/* 64 bits (or `n`, if fewer) from any position. */
static uint64_t bits_get(const uint64_t *words, uint64_t at, uint64_t n)
{
	uint64_t shift = at % 64, value = words[at / 64] >> shift;
	if (shift && shift + n > 64)
		value |= words[at / 64 + 1] << (64 - shift);
	return n < 64 ? value & (UINT64_MAX >> (64 - n)) : value;
}

void bits_move_down(uint64_t *words, uint64_t to, uint64_t from, uint64_t n)
{
	while (n) {
		/* Whole words of the target, so that each is written once. */
		uint64_t room = 64 - to % 64, step = n < room ? n : room;
		uint64_t value = bits_get(words, from, step), mask = mask_of(to / 64, to, to + step);
		words[to / 64] = (words[to / 64] & ~mask) | value << to % 64;
		to += step;
		from += step;
		n -= step;
	}
}
