/* Functions by table: sigmoid, tanh, exp of what is not positive, 1/sqrt, with linear interpolation where the
 * input is finer than the table's steps. Two sets of tables, those of the libraries mli 2.0 and mli 1.1; a table
 * is data, never computed here. An input past the ends of a table takes the end's entry, but keeps its place
 * between two entries: that is how the libraries do it. */
#ifndef DEVICE_LUT_H
#define DEVICE_LUT_H

#include "daemon/device/fixed/round.h"
#include "daemon/device/isa.h"

enum lut_function { LUT_SIGMOID, LUT_TANH, LUT_EXP, LUT_INVSQRT, LUT_FUNCTIONS };
/* By the numbers of lut='s choices. */
enum lut_library { LUT_MLI2_0 = 1, LUT_MLI1_1, LUT_LIBRARIES = LUT_MLI1_1 };

/* Entry i is f((i - offset) / 2^frac_bits) * 2^out_frac_bits, rounded and kept in 16 bits. */
struct lut {
	const int16_t *entries; /* NULL: the library has no such table */
	int64_t size, frac_bits, offset, out_frac_bits;
};
extern const struct lut lut_tables[LUT_FUNCTIONS][LUT_LIBRARIES];

/* The table, which exists: only mli 1.1 lacks one, 1/sqrt. */
const struct lut *lut_find(enum lut_function function, enum lut_library library);

enum { LUT_SIZE_MAX = 383 };

/* A table read with inputs of one format. */
struct lut_reader {
	const int16_t *entries;
	int64_t offset, last; /* last: where the last step begins */
	unsigned left;	      /* inputs coarser than the steps: shifted to them */
	unsigned drop, right; /* finer ones: bits that are not looked at, then those within a step */
	enum npumem_rounding rounding;
	int16_t padded[LUT_SIZE_MAX + 2]; /* the entries again, for vectors */
};

/* Inputs have `frac_bits`, -1 to NPUMEM_FRAC_BITS_MAX. */
void lut_reader_init(struct lut_reader *reader, const struct lut *lut, int64_t frac_bits,
		     enum npumem_rounding rounding);

/* f(x), |x| < 2^32, in the table's format. */
static inline int64_t lut_read(const struct lut_reader *reader, int64_t x)
{
	if (reader->right == 0)
		x *= (int64_t)1 << reader->left;
	x >>= reader->drop;
	int64_t at = (x >> reader->right) + reader->offset;
	at = at < 0 ? 0 : at > reader->last ? reader->last : at;
	if (reader->right == 0)
		return reader->entries[at];
	int64_t within = x & (((int64_t)1 << reader->right) - 1);
	int64_t down = reader->entries[at] - reader->entries[at + 1];
	return reader->entries[at] - round_right(down * within, reader->right, reader->rounding);
}

/* f(x) of a table of Q.15 in a container of `bytes`: Q.15 in two, rounded once more to Q.7 in one. */
static inline int64_t lut_result(const struct lut_reader *reader, int64_t x, unsigned bytes, int64_t *saturated)
{
	int64_t y = lut_read(reader, x);
	return bytes == 2 ? y : round_clamp(y, 8, reader->rounding, INT8_MIN, INT8_MAX, saturated);
}

/* out[i] = lut_result(in[i] / 2^halved, rounded down, less `minus`), in rows. */
struct lut_row {
	const struct lut_reader *reader;
	const void *in;
	void *out;
	unsigned bytes;	 /* of an element of in and out: 1 or 2, signed */
	unsigned halved; /* 0 or 1 */
	int32_t minus;	 /* 0, or no less than any in[i] / 2^halved */
};

/* n elements. Adds to *saturated. */
void lut_row(enum isa isa, const struct lut_row *row, int64_t n, int64_t *saturated);

#endif
