/* Tables read in rows. */
#include "daemon/device/fixed/rows/lut.h"

#include "daemon/device/fixed/rows/vectors/vector.h"
#include "daemon/device/fixed/rows/vectors/vector_rounding.h"

struct lut_vectors {
	struct vector_table table;
	struct rounding within, result;
	vector left, drop, right, offset, last, mask, halved, minus;
};

VECTOR struct lut_vectors lut_vectors_of(const struct lut_row *row)
{
	const struct lut_reader *reader = row->reader;
	bool bytes = row->bytes == 1;
	const struct requantize within = {.shift = reader->right, .rounding = reader->rounding};
	const struct requantize result = {.shift = bytes ? 8 : 0,
					  .rounding = reader->rounding,
					  .low = bytes ? INT8_MIN : INT16_MIN,
					  .high = bytes ? INT8_MAX : INT16_MAX};
	return (struct lut_vectors){
		.table = vector_table_load(reader->padded),
		.within = rounding_of(&within, 0),
		.result = rounding_of(&result, 0),
		.left = vector_set(reader->right ? 0 : (int32_t)reader->left),
		.drop = vector_set((int32_t)reader->drop),
		.right = vector_set((int32_t)reader->right),
		.offset = vector_set((int32_t)reader->offset),
		.last = vector_set((int32_t)reader->last),
		.mask = vector_set((1 << reader->right) - 1),
		.halved = vector_set((int32_t)row->halved),
		.minus = vector_set(row->minus),
	};
}

/* The interpolation, whose differences of neighbours have 12 bits; without one `mask` is 0. */
VECTOR vector lut_value(const struct lut_vectors *v, vector x)
{
	vector zero = vector_set(0), word = vector_set(16);
	x = vector_right(vector_left(x, v->left), v->drop);
	vector at = vector_add(vector_right(x, v->right), v->offset);
	vector pairs = vector_table_pairs(&v->table, vector_min(vector_max(at, zero), v->last));
	vector here = vector_right(vector_left(pairs, word), word), next = vector_right(pairs, word);
	vector part = vector_mul(vector_sub(here, next), vector_and(x, v->mask));
	return vector_sub(here, rounded_right(&v->within, part));
}

VECTOR vector lut_element(const struct lut_row *row, const struct lut_vectors *v, int64_t i, int64_t n,
			  vector counts)
{
	vector x = vector_load_containers(row->in, row->bytes, i, n);
	x = rounded_right(&v->result, lut_value(v, vector_sub(vector_right(x, v->halved), v->minus)));
	vector_store_containers(row->out, row->bytes, i, vector_min(vector_max(x, v->result.low), v->result.high),
				n);
	return vector_count_outside(counts, x, v->result.low, v->result.high, n);
}

int64_t VECTOR_NAME(lut)(const struct lut_row *row, int64_t n, int64_t *saturated)
{
	const struct lut_row copy = *row;
	const struct lut_vectors vectors = lut_vectors_of(row);
	vector counts = vector_set(0);
	int64_t i = 0;
	for (; i + VECTOR_N <= n; i += VECTOR_N)
		counts = lut_element(&copy, &vectors, i, VECTOR_N, counts);
	if (VECTOR_TAILS && i < n) {
		counts = lut_element(&copy, &vectors, i, n - i, counts);
		i = n;
	}
	*saturated += vector_total(counts);
	return i;
}
