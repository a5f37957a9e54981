/* The tables against their formulas and the reference's own, and reading them at every kind of place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/device/fixed/rows/lut.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/device/kernels/tables.h"

static const char *const names[] = {"sigmoid", "tanh", "expneg", "invsqrt"};
static const char *const libraries[] = {"", "mli2_0", "mli1_1"};

static bool exists(int function, int library)
{
	return !(function == LUT_INVSQRT && library == LUT_MLI1_1);
}

TEST(entries_are_their_formula)
{
	for (int function = 0; function < LUT_FUNCTIONS; function++)
		for (int library = 1; library <= LUT_LIBRARIES; library++) {
			if (!exists(function, library)) {
				ck_assert_ptr_null(lut_tables[function][library - 1].entries);
				continue;
			}
			const struct lut *lut = lut_find((enum lut_function)function, (enum lut_library)library);
			struct tables t = tables_of((enum tables_function)function, library);
			ck_assert_int_eq(lut->size, t.size);
			ck_assert_int_eq(lut->frac_bits, t.frac_bits);
			ck_assert_int_eq(lut->offset, t.offset);
			ck_assert_int_eq(lut->out_frac_bits, t.out_frac_bits);
			for (int64_t i = 0; i < t.size; i++)
				ck_assert_msg(lut->entries[i] == t.entries[i], "%s_%s[%d] is %d, not %d",
					      names[function], libraries[library], (int)i, lut->entries[i],
					      (int)t.entries[i]);
		}
}

static char *read_all(const char *path)
{
	FILE *file = fopen(path, "r");
	ck_assert_msg(file != NULL, "%s cannot be opened", path);
	enum { BYTES = 1 << 16 };
	char *text = malloc(BYTES);
	ck_assert_ptr_nonnull(text);
	size_t n = fread(text, 1, BYTES - 1, file);
	ck_assert_uint_lt(n, BYTES - 1);
	text[n] = 0;
	fclose(file);
	return text;
}

/* The number after "key": in what follows `at`. */
static long number_of(const char *at, const char *key)
{
	at = strstr(at, key);
	ck_assert_ptr_nonnull(at);
	at += strcspn(at, ":") + 1;
	return strtol(at, NULL, 10);
}

TEST(entries_are_the_references)
{
	char *text = read_all("tests/conformance/vectors/luts.json");
	for (int function = 0; function < LUT_FUNCTIONS; function++)
		for (int library = 1; library <= LUT_LIBRARIES; library++) {
			char name[40];
			if (!exists(function, library))
				continue;
			const struct lut *lut = lut_find((enum lut_function)function, (enum lut_library)library);
			snprintf(name, sizeof(name), "\"%s_%s\"", names[function], libraries[library]);
			const char *at = strstr(text, name);
			ck_assert_msg(at != NULL, "no table %s", name);
			ck_assert_int_eq(number_of(at, "\"size\""), lut->size);
			ck_assert_int_eq(number_of(at, "\"in_frac_bits\""), lut->frac_bits);
			ck_assert_int_eq(number_of(at, "\"out_frac_bits\""), lut->out_frac_bits);
			ck_assert_int_eq(number_of(at, "\"input_offset\""), lut->offset);
			at = strchr(strstr(at, "\"data\""), '[') + 1;
			for (int64_t i = 0; i < lut->size; i++) {
				char *end;
				ck_assert_int_eq(strtol(at, &end, 10), lut->entries[i]);
				ck_assert_ptr_ne(end, at);
				at = end + strspn(end, " \r\n\t,");
			}
			ck_assert_int_eq(*at, ']');
		}
	free(text);
}

/* Around every entry, and far past both ends, in a format coarser or finer than the table's. */
static void check_places(int function, int library, const struct tables *t, int64_t frac_bits, int mode)
{
	const struct lut *lut = lut_find((enum lut_function)function, (enum lut_library)library);
	struct lut_reader reader;
	lut_reader_init(&reader, lut, frac_bits, (enum npumem_rounding)mode);
	for (int64_t x = -65536; x <= 65536; x += x > -200 && x < 200 ? 1 : 211) {
		int64_t got = lut_read(&reader, x), want = tables_read(t, x, frac_bits, mode);
		ck_assert_msg(got == want, "%s_%s(%d in Q.%d) is %d, not %d", names[function], libraries[library],
			      (int)x, (int)frac_bits, (int)got, (int)want);
	}
}

TEST(every_kind_of_place)
{
	static const int64_t formats[] = {-1, 0, 2, 3, 4, 5, 6, 9, 15, 18, 19, 20, 21, 26, 35, 50, 127};
	for (int function = 0; function < LUT_FUNCTIONS; function++)
		for (int library = 1; library <= LUT_LIBRARIES; library++) {
			if (!exists(function, library))
				continue;
			struct tables t = tables_of((enum tables_function)function, library);
			for (unsigned f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
				check_places(function, library, &t, formats[f], (int)f % 3 + 1);
		}
}

TEST(narrow_results)
{
	struct lut_reader reader;
	int64_t saturated = 0;
	lut_reader_init(&reader, lut_find(LUT_TANH, LUT_MLI2_0), 4, NPUMEM_UP);
	ck_assert_int_eq(lut_result(&reader, 127, 1, &saturated), 127); /* 32767 is 127.996 in Q.7 */
	ck_assert_int_eq(saturated, 1);
	ck_assert_int_eq(lut_result(&reader, -128, 1, &saturated), -128);
	ck_assert_int_eq(lut_result(&reader, 0, 1, &saturated), 0);
	ck_assert_int_eq(lut_result(&reader, 127, 2, &saturated), 32767);
	ck_assert_int_eq(saturated, 1);
}

/* All words in one row, and shorter rows at its end, under each instruction set as the scalar one has them. */
static void check_words(const struct lut_reader *reader, const int16_t *in, int32_t minus, int16_t *want,
			int16_t *got)
{
	enum { WORDS = 65536 };
	int64_t saturated = 0, length = 1 + reader->right + 3 * reader->rounding;
	struct lut_row row = {.reader = reader, .in = in, .out = want, .bytes = 2, .minus = minus};
	lut_row(ISA_SCALAR, &row, WORDS, &saturated);
	for (int isa = isa_next(ISA_SCALAR); isa < ISA_N; isa = isa_next(isa)) {
		row.in = in;
		row.out = got;
		lut_row((enum isa)isa, &row, WORDS, &saturated);
		ck_assert_msg(!memcmp(got, want, WORDS * sizeof(*got)), "differs under %s", isa_name(isa));
		memset(got, 0x55, WORDS * sizeof(*got));
		row.in = in + WORDS - length;
		lut_row((enum isa)isa, &row, length, &saturated);
		ck_assert_mem_eq(got, want + WORDS - length, (size_t)length * sizeof(*got));
		ck_assert_int_eq(got[length], 0x5555);
	}
	ck_assert_int_eq(saturated, 0);
}

TEST(every_word)
{
	static int16_t in[65536], want[65536], got[65536];
	static const int64_t formats[] = {2, 5, 6, 8, 10, 12, 15, 18, 19, 21};
	for (int i = 0; i < 65536; i++)
		in[i] = (int16_t)(i - 32768);
	for (int function = 0; function < LUT_FUNCTIONS; function++)
		for (int library = 1; library <= LUT_LIBRARIES; library++)
			for (unsigned f = 0; f < sizeof(formats) / sizeof(formats[0]); f++) {
				struct lut_reader reader;
				if (!exists(function, library))
					continue;
				lut_reader_init(
					&reader, lut_find((enum lut_function)function, (enum lut_library)library),
					formats[f], (enum npumem_rounding)(1 + (f + (unsigned)function) % 3));
				check_words(&reader, in, 0, want, got);
				check_words(&reader, in, INT16_MAX, want, got);
			}
}
