/* Operations on disjoint bytes run on several threads, and their bits may share a word: every access is atomic,
 * and changes touch no bit outside their range. No memory order is needed: a thread that reads bits of another
 * thread has waited for the end of that operation. */
#include "daemon/device/memory/bits.h"

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

/* The ranges of a series from the i-th on that lie in one word as a whole; of one that does not, no mask. */
struct some {
	uint64_t word, mask;
};

static inline struct some some_of(uint64_t from, uint64_t bits, uint64_t n, uint64_t pitch, uint64_t *i)
{
	uint64_t at = from + *i * pitch, ones = UINT64_MAX >> (64 - (bits < 64 ? bits : 64));
	struct some some = {at / 64, 0};
	for (; *i < n && at / 64 == some.word && at % 64 + bits <= 64; ++*i, at += pitch)
		some.mask |= ones << at % 64;
	return some;
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

void bits_set_series(uint64_t *words, uint64_t from, uint64_t bits, uint64_t n, uint64_t pitch)
{
	for (uint64_t i = 0; i < n;) {
		struct some some = some_of(from, bits, n, pitch, &i);
		if (!some.mask)
			bits_set(words, from + i++ * pitch, bits);
		else if (~load(&words[some.word]) & some.mask)
			atomic_fetch_or_explicit((_Atomic uint64_t *)&words[some.word], some.mask,
						 memory_order_relaxed);
	}
}

void bits_clear_series(uint64_t *words, uint64_t from, uint64_t bits, uint64_t n, uint64_t pitch)
{
	for (uint64_t i = 0; i < n;) {
		struct some some = some_of(from, bits, n, pitch, &i);
		if (!some.mask)
			bits_clear(words, from + i++ * pitch, bits);
		else if (load(&words[some.word]) & some.mask)
			atomic_fetch_and_explicit((_Atomic uint64_t *)&words[some.word], ~some.mask,
						  memory_order_relaxed);
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

/* Bits of one word, by sums of pairs, fours and bytes: without an instruction for it the compiler's own is a call
 * and a table. */
static uint64_t count_word(uint64_t word)
{
	word -= word >> 1 & UINT64_C(0x5555555555555555);
	word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
	word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return word * UINT64_C(0x0101010101010101) >> 56;
}

/* Mostly all is written and nothing damaged, so whole words are looked at four at a time. */
enum { STEP = 4 };

static uint64_t count_step(const uint64_t *words)
{
	uint64_t a = load(&words[0]), b = load(&words[1]), c = load(&words[2]), d = load(&words[3]);
	if ((a & b & c & d) == UINT64_MAX)
		return STEP * 64;
	if ((a | b | c | d) == 0)
		return 0;
	return count_word(a) + count_word(b) + count_word(c) + count_word(d);
}

static bool step_is(const uint64_t *words, uint64_t value)
{
	uint64_t a = load(&words[0]), b = load(&words[1]), c = load(&words[2]), d = load(&words[3]);
	return ((a ^ value) | (b ^ value) | (c ^ value) | (d ^ value)) == 0;
}

uint64_t bits_count(const uint64_t *words, uint64_t from, uint64_t n)
{
	uint64_t count = 0, end = from + n, w = from / 64;
	/* An element of a strided tensor, mostly. */
	if (n && from % 64 + n <= 64)
		return count_word(load(&words[w]) >> from % 64 << (64 - n));
	for (; w * 64 < end && (w * 64 < from || (w + 1) * 64 > end); w++)
		count += count_word(load(&words[w]) & mask_of(w, from, end));
	for (; (w + STEP) * 64 <= end; w += STEP)
		count += count_step(&words[w]);
	for (; w * 64 < end; w++)
		count += count_word(load(&words[w]) & mask_of(w, from, end));
	return count;
}

uint64_t bits_count_series(const uint64_t *words, uint64_t from, uint64_t bits, uint64_t n, uint64_t pitch)
{
	uint64_t count = 0;
	for (uint64_t i = 0; i < n;) {
		struct some some = some_of(from, bits, n, pitch, &i);
		if (!some.mask)
			count += bits_count(words, from + i++ * pitch, bits);
		else
			count += count_word(load(&words[some.word]) & some.mask);
	}
	return count;
}

uint64_t bits_count_but(const uint64_t *words, const uint64_t *but, uint64_t from, uint64_t n)
{
	uint64_t count = 0, end = from + n;
	for (uint64_t w = from / 64; w * 64 < end; w++)
		count += count_word(load(&words[w]) & ~load(&but[w]) & mask_of(w, from, end));
	return count;
}

uint64_t bits_first_not(const uint64_t *words, bool value, uint64_t from, uint64_t n)
{
	uint64_t end = from + n, all = value ? UINT64_MAX : 0;
	for (uint64_t w = from / 64; w * 64 < end; w++) {
		while (w * 64 >= from && (w + STEP) * 64 <= end && step_is(&words[w], all))
			w += STEP;
		if (w * 64 >= end)
			break;
		uint64_t odd = (load(&words[w]) ^ all) & mask_of(w, from, end);
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

/* Of one word of the target. */
static void copy_some(uint64_t *words, uint64_t to, const uint64_t *source, uint64_t from, uint64_t n)
{
	uint64_t mask = mask_of(to / 64, to, to + n);
	uint64_t value = (words[to / 64] & ~mask) | bits_get(source, from, n) << to % 64;
	atomic_store_explicit((_Atomic uint64_t *)&words[to / 64], value, memory_order_relaxed);
}

/* Whole words; `shift` is where in a word of the source the first one begins. */
static void copy_words(uint64_t *words, const uint64_t *source, uint64_t shift, uint64_t n_words)
{
	for (uint64_t i = 0; i < n_words; i++) {
		uint64_t value = source[i] >> shift;
		if (shift)
			value |= source[i + 1] << (64 - shift);
		atomic_store_explicit((_Atomic uint64_t *)&words[i], value, memory_order_relaxed);
	}
}

void bits_copy(uint64_t *words, uint64_t to, const uint64_t *source, uint64_t from, uint64_t n)
{
	uint64_t head = (64 - to % 64) % 64, n_words;
	if (head > n)
		head = n;
	if (head)
		copy_some(words, to, source, from, head);
	n_words = (n - head) / 64;
	copy_words(&words[(to + head) / 64], &source[(from + head) / 64], (from + head) % 64, n_words);
	head += 64 * n_words;
	if (head < n)
		copy_some(words, to + head, source, from + head, n - head);
}
