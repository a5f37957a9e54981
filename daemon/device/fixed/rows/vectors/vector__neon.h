/* The functions of vector.h for NEON that are longer than one expression (vector.def). Only vector.h includes it. */
#ifndef DEVICE_VECTOR_NEON_H
#define DEVICE_VECTOR_NEON_H

VECTOR int8x8_t vector_four_bytes(const void *from)
{
	int8x8_t bytes = vcreate_s8(0);
	memcpy(&bytes, from, VECTOR_N);
	return bytes;
}

VECTOR void vector_store_four_bytes(void *to, vector x)
{
	int16x4_t words = vmovn_s32(x);
	int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
	memcpy(to, &bytes, VECTOR_N);
}

VECTOR vector vector_gather_one_by_one(const void *from, vector at, int64_t bytes)
{
	vector x = {0};
	for (int i = 0; i < VECTOR_N; i++) {
		int32_t element;
		memcpy(&element, (const uint8_t *)from + at[i] * bytes, sizeof(element));
		x[i] = element;
	}
	return x;
}

VECTOR vector vector_products(vector a, vector b)
{
	int16x8_t x = (int16x8_t)a, y = (int16x8_t)b;
	return vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
}

/* 256 bytes are four tables of 64, of which a lookup reads one and leaves what it has for an index past it. */
struct vector_bytes_table {
	uint8x16x4_t tables[4];
};

VECTOR struct vector_bytes_table vector_bytes_table_load(const uint8_t *bytes)
{
	return (struct vector_bytes_table){
		{vld1q_u8_x4(bytes), vld1q_u8_x4(bytes + 64), vld1q_u8_x4(bytes + 128), vld1q_u8_x4(bytes + 192)}};
}

VECTOR vector vector_bytes_table_read(const struct vector_bytes_table *table, vector index)
{
	uint8x16_t at = (uint8x16_t)index, result = vqtbl4q_u8(table->tables[0], at);
	for (int i = 1; i < 4; i++)
		result = vqtbx4q_u8(result, table->tables[i], vsubq_u8(at, vdupq_n_u8((uint8_t)(i * 64))));
	return (vector)result;
}

VECTOR vector vector_sum_each(const vector *x)
{
	return vpaddq_s32(vpaddq_s32(x[0], x[1]), vpaddq_s32(x[2], x[3]));
}

VECTOR struct vector_pair vector_pair_load16(const int16_t *from)
{
	return (struct vector_pair){(vector)vld1q_s16(from), (vector)vld1q_s16(from + VECTOR_WORDS)};
}

VECTOR void vector_pair_store16(int16_t *to, struct vector_pair x)
{
	vst1q_s16(to, (int16x8_t)x.low);
	vst1q_s16(to + VECTOR_WORDS, (int16x8_t)x.high);
}

VECTOR int64_t vector_pair_outside(struct vector_pair x, int32_t low, int32_t high)
{
	vector_words from = (int16_t)low - (vector_words){0}, to = (int16_t)high - (vector_words){0};
	vector_words a = (vector_words)x.low, b = (vector_words)x.high;
	return -vaddvq_s16(((a < from) | (a > to)) + ((b < from) | (b > to)));
}

VECTOR vector vector_add_containers(vector to, vector x, unsigned bytes)
{
#ifdef __ARM_FEATURE_DOTPROD
	if (bytes == 1)
		return vdotq_s32(to, (int8x16_t)x, vdupq_n_s8(1));
#endif
	return vpadalq_s16(to, bytes == 1 ? vpaddlq_s8((int8x16_t)x) : (int16x8_t)x);
}

VECTOR vector vector_even_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1 ? (vector)vuzp1q_s8((int8x16_t)a, (int8x16_t)b)
			  : (vector)vuzp1q_s16((int16x8_t)a, (int16x8_t)b);
}

#endif
