/* Every input in rows of many lengths, under every instruction set, against the formula of npumem-kernels(7). */
#include "daemon/device/fixed/rows/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

enum { WORDS = 65536, LENGTH_MAX = 70 };

static int16_t entries[WORDS + 1 + LOOKUP_PAD], in[WORDS], got[WORDS + 1];

/* Neighbours as far apart as they can be, then numbers of one byte or two. */
static void fill(unsigned out_bytes, int seed)
{
	int low = out_bytes == 1 ? INT8_MIN : INT16_MIN, high = -low - 1;
	srandom((unsigned)seed);
	for (int i = 0; i <= WORDS; i++)
		entries[i] =
			(int16_t)(i < 4 || seed % 2 ? (i % 2 ? high : low) : low + random() % (high - low + 1));
	for (int i = 0; i < WORDS; i++)
		in[i] = (int16_t)(i + INT16_MIN);
}

static int64_t floor_half(int64_t a, int64_t b, enum npumem_rounding rounding)
{
	int64_t whole = a / b - (a % b < 0), rest = 2 * (a - whole * b);
	bool up = rounding == NPUMEM_UP ? true : rounding == NPUMEM_NEAREST ? a >= 0 : whole % 2 != 0;
	return whole + (rest > b || (rest == b && up));
}

static int64_t formula(const struct lookup *lookup, int64_t x)
{
	int64_t u = x + (lookup->in_bytes == 1 ? 128 : 32768), step = 1 << lookup->within;
	int64_t i = u / step, t = u % step;
	if (lookup->within == 0)
		return lookup->entries[u];
	int64_t rise = lookup->entries[i + 1] - lookup->entries[i];
	return lookup->entries[i] + floor_half(rise * t, step, lookup->rounding);
}

static void check_row(enum isa isa, const struct lookup *lookup, int64_t first, int64_t n)
{
	const uint8_t *from = lookup->in_bytes == 1 ? (const uint8_t *)in + first : (const uint8_t *)(in + first);
	memset(got, 0x5a, sizeof(got));
	lookup_row(isa, lookup, from, n, got);
	for (int64_t i = 0; i < n; i++) {
		int64_t x = lookup->in_bytes == 1 ? ((const int8_t *)from)[i] : in[first + i];
		int64_t y = lookup->out_bytes == 1 ? ((const int8_t *)got)[i] : got[i];
		ck_assert_msg(y == formula(lookup, x), "%s, %u bits within: f(%d) is %d, not %d", isa_name(isa),
			      lookup->within, (int)x, (int)y, (int)formula(lookup, x));
	}
	ck_assert_int_eq(((const uint8_t *)got)[n * lookup->out_bytes], 0x5a);
}

TEST(every_input)
{
	for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa))
		for (unsigned within = 0; within <= 15; within++)
			for (int mode = NPUMEM_CONVERGENT; mode <= NPUMEM_NEAREST; mode++) {
				struct lookup lookup = {entries, 2, mode == NPUMEM_UP ? 1 : 2, within,
							(enum npumem_rounding)mode};
				fill(lookup.out_bytes, (int)within + mode);
				check_row((enum isa)isa, &lookup, 0, WORDS);
			}
}

TEST(every_length)
{
	for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa))
		for (unsigned kind = 0; kind < 4; kind++) {
			struct lookup lookup = {entries, 1 + kind % 2, 1 + kind / 2, kind % 2 ? 7 : 0, NPUMEM_UP};
			fill(lookup.out_bytes, (int)kind);
			for (int64_t n = 1; n <= LENGTH_MAX; n++)
				check_row((enum isa)isa, &lookup, n, n);
		}
}
