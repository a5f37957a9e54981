/* Rows of elements of 8 and 16 bits: loaded, computed with, rounded, saturated, limited, stored and counted in one
 * pass. What each row does is in rows.def.
 *
 * The scalar row of each is the definition, for any formats. Those of other instruction sets are written once, in
 * vectors/rows.c; they compute in 32 bits, so that they are for values that do not leave them. */
#ifndef DEVICE_ROWS_H
#define DEVICE_ROWS_H

#include "daemon/device/fixed/align.h"
#include "daemon/device/isa.h"

/* Of a quotient, beyond the result's: the first that falls off, and whether anything is below it. */
enum { ROW_GUARD_BITS = 2 };

/* One operand. */
struct row_source {
	const void *data;
	unsigned bytes; /* of an element: 1, 2 or (without a mask) 4; 0: `value` for all */
	int32_t mask;	/* what an element sign extended is cut to: -1, or 0xff or 0xffff where it has no sign */
	int32_t value;
};

struct row {
	struct row_source in1, in2, acc;
	void *out;
	int sign;	      /* of in2 in a sum: 1 or -1 */
	struct align align;   /* of sum: of in1 and in2; of mac: of acc and the product */
	struct requantize to; /* its shift is counted from the value, after the alignment */
	/* Of quotient: powers of two; the products are below 2^51. Zeros in in2 are counted. */
	int64_t in1_unit, in2_unit;
	int64_t *zeros;
	const struct rows *rows; /* set by row_init() */
	/* Likewise: powers of two. Of a mean, and of a product that needs more than 32 bits, else 0; so of a sum,
	 * where it is the coarser term's, and the finer one has its own beside a coarser one and without. */
	double scale, beside, alone;
	unsigned drop; /* likewise: low bits of mac's value that become one mark */
	int64_t most;  /* likewise: the largest magnitude of a value; INT64_MAX: any */
};

/* How to do a row in one instruction set: the first elements of n, as many as it can, all where it has masks.
 * Returns how many; adds to *saturated. */
typedef int64_t row_function(const struct row *row, int64_t n, int64_t *saturated);

struct rows {
#define ROW(name, value) row_function *name;
#include "daemon/device/fixed/rows/rows.def"
#undef ROW
};

/* Elements of an operand of `dtype`, which has 8 or 16 bits; the data comes later. */
struct row_source row_source(int dtype);
/* The largest magnitude of an element of such a type. */
int64_t row_magnitude(int dtype);

static inline int64_t row_get(const struct row_source *source, int64_t i)
{
	if (source->bytes == 0)
		return source->value;
	if (source->bytes == 4)
		return ((const int32_t *)source->data)[i];
	int32_t x = source->bytes == 1 ? ((const int8_t *)source->data)[i] : ((const int16_t *)source->data)[i];
	return x & source->mask;
}

static inline void row_source_skip(struct row_source *source, int64_t n)
{
	if (source->bytes)
		source->data = (const uint8_t *)source->data + n * source->bytes;
}

/* Elements from `done` on. */
static inline struct row row_after(const struct row *row, int64_t done)
{
	struct row rest = *row;
	row_source_skip(&rest.in1, done);
	row_source_skip(&rest.in2, done);
	row_source_skip(&rest.acc, done);
	rest.out = (uint8_t *)row->out + done * row->to.bytes;
	return rest;
}

/* Each chooses among the rows of `isa` and before, by `to`, `align` and magnitudes: of the value; of in1 and in2;
 * of acc and the product. */
void row_init(struct row *row, enum isa isa, int64_t value);
void row_init_real(struct row *row, enum isa isa);
void row_init_product(struct row *row, enum isa isa, int64_t value);
void row_init_mean(struct row *row, enum isa isa, int64_t value);
void row_init_sum(struct row *row, enum isa isa, int64_t in1, int64_t in2);
void row_init_mac(struct row *row, enum isa isa, int64_t acc, int64_t product);

/* n elements, at most 2^24. Adds to *saturated. */
#define ROW(name, value) void row_##name(const struct row *row, int64_t n, int64_t *saturated);
#include "daemon/device/fixed/rows/rows.def"
#undef ROW

#endif
