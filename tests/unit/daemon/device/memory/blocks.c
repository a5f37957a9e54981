/* Copies, transposes and fills of blocks of every size and number, byte by byte, with every path of this
 * processor: what is no block's stays as it was, and nothing is read or written outside an array that ends where
 * they do. */
#include "daemon/device/memory/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/oracle.h"
#include "tests/support/test.h"

enum { BYTES_MAX = 700000 };

/* Bytes from the first block's first to the last one's last. */
static int64_t span(const struct blocks *b, const int64_t *pitch)
{
	return (b->n[0] - 1) * pitch[0] + (b->n[1] - 1) * pitch[1] + b->bytes;
}

/* Exactly as long as the blocks, so that a sanitizer sees what is beyond. */
static uint8_t *noise(uint64_t *random, int64_t bytes)
{
	uint8_t *array = malloc((size_t)bytes);
	ck_assert_ptr_nonnull(array);
	for (int64_t i = 0; i < bytes; i++)
		array[i] = (uint8_t)oracle_random(random);
	return array;
}

enum what { COPY, TRANSPOSE, FILL };

static void model(uint8_t *to, const uint8_t *from, const struct blocks *b, const uint8_t *pattern)
{
	for (int64_t j = 0; j < b->n[1]; j++)
		for (int64_t i = 0; i < b->n[0]; i++)
			for (int64_t k = 0; k < b->bytes; k++)
				to[i * b->to_pitch[0] + j * b->to_pitch[1] + k] =
					pattern ? pattern[k % 16]
						: from[i * b->from_pitch[0] + j * b->from_pitch[1] + k];
}

static void check(uint64_t *random, const struct blocks *b, enum what what, int64_t size, enum isa isa)
{
	const struct blocks_paths *paths = blocks_paths(isa);
	int64_t to_bytes = span(b, b->to_pitch), from_bytes = span(b, b->from_pitch);
	uint8_t pattern[16];
	ck_assert_int_le(to_bytes, BYTES_MAX);
	ck_assert_int_le(from_bytes, BYTES_MAX);
	uint8_t *from = noise(random, from_bytes), *to = noise(random, to_bytes),
		*expected = noise(random, to_bytes);
	memcpy(expected, to, (size_t)to_bytes);
	for (int64_t i = 0; i < 16; i++)
		pattern[i] = i < size ? (uint8_t)oracle_random(random) : pattern[i % size];
	model(expected, from, b, what == FILL ? pattern : NULL);
	if (what == FILL)
		paths->fill(to, b, pattern);
	else
		(what == COPY ? paths->copy : paths->transpose)(to, from, b);
	for (int64_t i = 0; i < to_bytes; i++)
		if (to[i] != expected[i])
			ck_abort_msg("%s: byte %ld of %ldx%ld blocks of %ld, pitches %ld,%ld from %ld,%ld",
				     isa_name(isa), (long)i, (long)b->n[0], (long)b->n[1], (long)b->bytes,
				     (long)b->to_pitch[0], (long)b->to_pitch[1], (long)b->from_pitch[0],
				     (long)b->from_pitch[1]);
	free(from);
	free(to);
	free(expected);
}

/* Pitches at which no two blocks share a byte, touching or not, the inner loop's smaller or the outer one's. */
static void choose_pitches(uint64_t *random, const struct blocks *b, int64_t *pitch)
{
	int inner = (int)oracle_between(random, 0, 1);
	pitch[inner] = b->bytes + (oracle_between(random, 0, 1) ? 0 : oracle_between(random, 0, 20));
	pitch[1 - inner] =
		b->n[inner] * pitch[inner] + (oracle_between(random, 0, 1) ? 0 : oracle_between(random, 0, 70));
}

TEST(copies_and_fills)
{
	uint64_t random = 1;
	for (int64_t bytes = 1; bytes <= 320; bytes++)
		for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa)) {
			int64_t few = bytes < 20 ? 70 : 9;
			struct blocks b = {.bytes = bytes};
			b.n[0] = oracle_between(&random, 1, few);
			b.n[1] = oracle_between(&random, 1, 7);
			choose_pitches(&random, &b, b.to_pitch);
			choose_pitches(&random, &b, b.from_pitch);
			check(&random, &b, COPY, 1, (enum isa)isa);
			check(&random, &b, FILL, bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1, (enum isa)isa);
		}
}

/* Elements that stand apart on one side, in every distance and number. */
TEST(elements_apart)
{
	uint64_t random = 2;
	for (int64_t bytes = 1; bytes <= 8; bytes++)
		for (int64_t pitch = bytes; pitch <= 20; pitch++)
			for (int64_t n = 1; n <= 140; n += oracle_between(&random, 1, 9)) {
				struct blocks b = {.bytes = bytes, .n = {n, 2}};
				b.to_pitch[0] = pitch;
				b.to_pitch[1] = n * pitch + 3;
				b.from_pitch[0] = bytes;
				b.from_pitch[1] = n * bytes;
				for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa))
					check(&random, &b, COPY, 1, (enum isa)isa);
				struct blocks back = {.bytes = bytes, .n = {n, 2}};
				memcpy(back.to_pitch, b.from_pitch, sizeof(back.to_pitch));
				memcpy(back.from_pitch, b.to_pitch, sizeof(back.from_pitch));
				for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa))
					check(&random, &back, COPY, 1, (enum isa)isa);
			}
}

TEST(long_blocks)
{
	uint64_t random = 3;
	static const int64_t sizes[] = {1023, 2047, 2048, 2049, 3136, 16384, 100001};
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa)) {
			struct blocks b = {.bytes = sizes[i], .n = {2, 2}};
			choose_pitches(&random, &b, b.to_pitch);
			choose_pitches(&random, &b, b.from_pitch);
			check(&random, &b, COPY, 1, (enum isa)isa);
			check(&random, &b, FILL, 1, (enum isa)isa);
		}
}

/* Every tail in both directions, and the words of packed modes, touching or not. */
TEST(transposes)
{
	uint64_t random = 4;
	for (int64_t bytes = 1; bytes <= BLOCKS_TRANSPOSE_BYTES_MAX; bytes *= 2)
		for (int64_t n = 1; n <= 37; n++)
			for (int64_t m = 1; m <= 37; m++) {
				struct blocks b = {.bytes = bytes, .n = {n, m}};
				b.to_pitch[0] = bytes;
				b.to_pitch[1] = n * bytes + (oracle_random(&random) % 2 ? 0 : 5);
				b.from_pitch[1] = bytes;
				b.from_pitch[0] = m * bytes + (oracle_random(&random) % 2 ? 0 : 3);
				check(&random, &b, TRANSPOSE, 1, isa_best());
				if (n <= 4 || m <= 4)
					check(&random, &b, TRANSPOSE, 1, ISA_SCALAR);
			}
}

/* Words go through a buffer where they do not touch. */
TEST(many_words)
{
	uint64_t random = 5;
	for (int64_t bytes = 1; bytes <= 4; bytes *= 2)
		for (int64_t lanes = 2; lanes <= 4; lanes += 2) {
			struct blocks b = {.bytes = bytes, .n = {lanes, 5001}};
			b.to_pitch[0] = bytes;
			b.to_pitch[1] = lanes * bytes + 8;
			b.from_pitch[1] = bytes;
			b.from_pitch[0] = 5001 * bytes;
			check(&random, &b, TRANSPOSE, 1, isa_best());
			struct blocks back = {.bytes = bytes, .n = {5001, lanes}};
			back.to_pitch[0] = bytes;
			back.to_pitch[1] = 5001 * bytes;
			back.from_pitch[1] = bytes;
			back.from_pitch[0] = lanes * bytes + 8;
			check(&random, &back, TRANSPOSE, 1, isa_best());
		}
}
