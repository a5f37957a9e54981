/* Transposes in vectors of 16 bytes. One round of interleaving the first half of n vectors with the second half
 * turns the index of every element (vector, place in it) by one bit; log2(rows) rounds are the transpose. Rows of
 * 2 or 4 elements, which are the words of packed modes, go through a buffer in which they touch.
 *
 * Nothing is read or written beyond the blocks: at the edges vectors are loaded and stored in part. */
#include "daemon/device/memory/blocks.h"

#include <string.h>

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint16_t halves8 __attribute__((vector_size(16)));
typedef uint32_t words4 __attribute__((vector_size(16)));
typedef uint64_t longs2 __attribute__((vector_size(16)));

enum { VECTOR_BYTES = 16 };

static inline __attribute__((always_inline)) bytes16 low_halves(bytes16 a, bytes16 b, int size)
{
	if (size == 1)
		return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
	if (size == 2)
		return (bytes16)__builtin_shufflevector((halves8)a, (halves8)b, 0, 8, 1, 9, 2, 10, 3, 11);
	if (size == 4)
		return (bytes16)__builtin_shufflevector((words4)a, (words4)b, 0, 4, 1, 5);
	return (bytes16)__builtin_shufflevector((longs2)a, (longs2)b, 0, 2);
}

static inline __attribute__((always_inline)) bytes16 high_halves(bytes16 a, bytes16 b, int size)
{
	if (size == 1)
		return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
	if (size == 2)
		return (bytes16)__builtin_shufflevector((halves8)a, (halves8)b, 4, 12, 5, 13, 6, 14, 7, 15);
	if (size == 4)
		return (bytes16)__builtin_shufflevector((words4)a, (words4)b, 2, 6, 3, 7);
	return (bytes16)__builtin_shufflevector((longs2)a, (longs2)b, 1, 3);
}

/* All arguments but v are constants. */
static inline __attribute__((always_inline)) void interleave(bytes16 *v, int n, int rounds, int size)
{
	bytes16 next[16];
#pragma GCC unroll 4
	for (int round = 0; round < rounds; round++) {
#pragma GCC unroll 8
		for (int k = 0; k < n / 2; k++) {
			next[2 * k] = low_halves(v[k], v[k + n / 2], size);
			next[2 * k + 1] = high_halves(v[k], v[k + n / 2], size);
		}
#pragma GCC unroll 16
		for (int k = 0; k < n; k++)
			v[k] = next[k];
	}
}

static inline __attribute__((always_inline)) int log2_of(int n)
{
	return n == 16 ? 4 : n == 8 ? 3 : n == 4 ? 2 : 1;
}

/* n <= 16 bytes. */
static inline void copy_part(uint8_t *to, const uint8_t *from, int64_t n)
{
	struct blocks one = {n, {1, 1}, {0, 0}, {0, 0}};
	if (n == VECTOR_BYTES)
		memcpy(to, from, VECTOR_BYTES);
	else
		blocks_copy(to, from, &one);
}

/* A whole square of 16 bytes. */
static inline __attribute__((always_inline)) void square(uint8_t *to, int64_t to_pitch, const uint8_t *from,
							 int64_t from_pitch, int size)
{
	const int n = VECTOR_BYTES / size;
	bytes16 v[16];
#pragma GCC unroll 16
	for (int i = 0; i < n; i++)
		memcpy(&v[i], from + i * from_pitch, VECTOR_BYTES);
	interleave(v, n, log2_of(n), size);
#pragma GCC unroll 16
	for (int i = 0; i < n; i++)
		memcpy(to + i * to_pitch, &v[i], VECTOR_BYTES);
}

/* One at an edge: n_i rows of n_j elements of `from`. */
static inline __attribute__((always_inline)) void part(uint8_t *to, int64_t to_pitch, const uint8_t *from,
						       int64_t from_pitch, int64_t n_i, int64_t n_j, int size)
{
	const int n = VECTOR_BYTES / size;
	bytes16 v[16] = {{0}};
	for (int64_t i = 0; i < n_i; i++)
		copy_part((uint8_t *)&v[i], from + i * from_pitch, n_j * size);
	interleave(v, n, log2_of(n), size);
	for (int64_t j = 0; j < n_j; j++)
		copy_part(to + j * to_pitch, (const uint8_t *)&v[j], n_i * size);
}

static inline __attribute__((always_inline)) void squares(uint8_t *to, const uint8_t *from,
							  const struct blocks *blocks, int size)
{
	const int64_t n = VECTOR_BYTES / size, to_pitch = blocks->to_pitch[1], from_pitch = blocks->from_pitch[0];
	for (int64_t j = 0; j < blocks->n[1]; j += n) {
		int64_t n_j = blocks->n[1] - j < n ? blocks->n[1] - j : n;
		for (int64_t i = 0; i < blocks->n[0]; i += n) {
			int64_t n_i = blocks->n[0] - i < n ? blocks->n[0] - i : n;
			uint8_t *t = to + j * to_pitch + i * size;
			const uint8_t *f = from + i * from_pitch + j * size;
			if (n_i == n && n_j == n)
				square(t, to_pitch, f, from_pitch, size);
			else
				part(t, to_pitch, f, from_pitch, n_i, n_j, size);
		}
	}
}

/* ---- words of 2 or 4 elements ---- */

enum { BUFFER_BYTES = 4096 };

/* n arrays at `from`, from_pitch apart, to words that touch: of each `count` elements. */
static inline __attribute__((always_inline)) void words_of(uint8_t *to, const uint8_t *from, int64_t from_pitch,
							   int64_t count, int n, int size)
{
	int64_t at = 0, step = VECTOR_BYTES / size;
	bytes16 v[4];
	for (; at + step <= count; at += step) {
#pragma GCC unroll 4
		for (int i = 0; i < n; i++)
			memcpy(&v[i], from + i * from_pitch + at * size, VECTOR_BYTES);
		interleave(v, n, log2_of(n), size);
#pragma GCC unroll 4
		for (int i = 0; i < n; i++)
			memcpy(to + at * n * size + i * VECTOR_BYTES, &v[i], VECTOR_BYTES);
	}
	for (; at < count; at++)
		for (int i = 0; i < n; i++)
			memcpy(to + (at * n + i) * size, from + i * from_pitch + at * size, (size_t)size);
}

/* The way back. */
static inline __attribute__((always_inline)) void arrays_of(uint8_t *to, int64_t to_pitch, const uint8_t *from,
							    int64_t count, int n, int size)
{
	int64_t at = 0, step = VECTOR_BYTES / size;
	bytes16 v[4];
	for (; at + step <= count; at += step) {
#pragma GCC unroll 4
		for (int i = 0; i < n; i++)
			memcpy(&v[i], from + at * n * size + i * VECTOR_BYTES, VECTOR_BYTES);
		interleave(v, n, log2_of(VECTOR_BYTES / size), size);
#pragma GCC unroll 4
		for (int i = 0; i < n; i++)
			memcpy(to + i * to_pitch + at * size, &v[i], VECTOR_BYTES);
	}
	for (; at < count; at++)
		for (int i = 0; i < n; i++)
			memcpy(to + i * to_pitch + at * size, from + (at * n + i) * size, (size_t)size);
}

/* Words along i at `to`, of which n[1] need not touch. */
static inline __attribute__((always_inline)) void to_words(uint8_t *to, const uint8_t *from,
							   const struct blocks *blocks, int n, int size)
{
	uint8_t buffer[BUFFER_BYTES];
	int64_t word = n * size, pitch = blocks->to_pitch[1], most = BUFFER_BYTES / word;
	if (pitch == word) {
		words_of(to, from, blocks->from_pitch[0], blocks->n[1], n, size);
		return;
	}
	for (int64_t j = 0; j < blocks->n[1]; j += most) {
		int64_t count = blocks->n[1] - j < most ? blocks->n[1] - j : most;
		words_of(buffer, from + j * size, blocks->from_pitch[0], count, n, size);
		blocks_copy(to + j * pitch, buffer, &(struct blocks){word, {count, 1}, {pitch, 0}, {word, 0}});
	}
}

/* Words along j at `from`. */
static inline __attribute__((always_inline)) void from_words(uint8_t *to, const uint8_t *from,
							     const struct blocks *blocks, int n, int size)
{
	uint8_t buffer[BUFFER_BYTES];
	int64_t word = n * size, pitch = blocks->from_pitch[0], most = BUFFER_BYTES / word;
	if (pitch == word) {
		arrays_of(to, blocks->to_pitch[1], from, blocks->n[0], n, size);
		return;
	}
	for (int64_t i = 0; i < blocks->n[0]; i += most) {
		int64_t count = blocks->n[0] - i < most ? blocks->n[0] - i : most;
		blocks_copy(buffer, from + i * pitch, &(struct blocks){word, {count, 1}, {word, 0}, {pitch, 0}});
		arrays_of(to + i * size, blocks->to_pitch[1], buffer, count, n, size);
	}
}

static inline __attribute__((always_inline)) void transpose(uint8_t *to, const uint8_t *from,
							    const struct blocks *blocks, int size)
{
	/* Fewer are a matter of an edge. */
	enum { LEAST = 4 };
	int64_t n_i = blocks->n[0], n_j = blocks->n[1];
	if (n_i == 4 && n_j >= LEAST && size <= 2)
		to_words(to, from, blocks, 4, size);
	else if (n_i == 2 && n_j >= LEAST && size <= 4)
		to_words(to, from, blocks, 2, size);
	else if (n_j == 4 && n_i >= LEAST && size <= 2)
		from_words(to, from, blocks, 4, size);
	else if (n_j == 2 && n_i >= LEAST && size <= 4)
		from_words(to, from, blocks, 2, size);
	else
		squares(to, from, blocks, size);
}

void blocks_transpose(uint8_t *to, const uint8_t *from, const struct blocks *blocks)
{
	if (blocks->bytes == 1)
		transpose(to, from, blocks, 1);
	else if (blocks->bytes == 2)
		transpose(to, from, blocks, 2);
	else if (blocks->bytes == 4)
		transpose(to, from, blocks, 4);
	else
		transpose(to, from, blocks, 8);
}
