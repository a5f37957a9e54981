/* NEON's part of vector.h, which includes it. Elements beyond n are as many as a whole vector has. */
#ifndef DEVICE_VECTOR_NEON_H
#define DEVICE_VECTOR_NEON_H

VECTOR vector vector_select(vector mask, vector a, vector b)
{
	return vbslq_s32((uint32x4_t)mask, a, b);
}

VECTOR vector vector_load8(const void *from, int64_t n)
{
	int8x8_t bytes = vcreate_s8(0);
	(void)n;
	memcpy(&bytes, from, VECTOR_N);
	return vmovl_s16(vget_low_s16(vmovl_s8(bytes)));
}

VECTOR vector vector_load16(const void *from, int64_t n)
{
	(void)n;
	return vmovl_s16(vld1_s16(from));
}

VECTOR vector vector_load32(const void *from, int64_t n)
{
	(void)n;
	return vld1q_s32(from);
}

VECTOR vector vector_load_raw(const void *from, int64_t n)
{
	(void)n;
	return (vector)vld1q_s8(from);
}

VECTOR void vector_store_raw(void *to, vector x, int64_t n)
{
	(void)n;
	vst1q_s8(to, (int8x16_t)x);
}

VECTOR void vector_store32(void *to, vector x, int64_t n)
{
	(void)n;
	vst1q_s32(to, x);
}

VECTOR void vector_store8(void *to, vector x, int64_t n)
{
	int16x4_t words = vmovn_s32(x);
	int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
	(void)n;
	memcpy(to, &bytes, VECTOR_N);
}

VECTOR void vector_store16(void *to, vector x, int64_t n)
{
	(void)n;
	vst1_s16(to, vmovn_s32(x));
}

VECTOR vector vector_load_words8(const void *from, int64_t n)
{
	(void)n;
	return (vector)vmovl_s8(vld1_s8(from));
}

VECTOR vector vector_load_words16(const void *from, int64_t n)
{
	(void)n;
	return (vector)vld1q_s16(from);
}

VECTOR vector vector_gather_pairs(const int16_t *words, vector at)
{
	vector pairs = {0};
	for (int i = 0; i < VECTOR_N; i++) {
		int32_t pair;
		memcpy(&pair, words + at[i], sizeof(pair));
		pairs[i] = pair;
	}
	return pairs;
}

VECTOR vector vector_load_pairs(const int16_t *from, int64_t stride)
{
	return vector_gather_pairs(from, vector_set((int32_t)stride) * (vector){0, 1, 2, 3});
}

VECTOR vector vector_add_pairs(vector sums, vector a, vector b)
{
	int16x8_t x = (int16x8_t)a, y = (int16x8_t)b;
	return sums + vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
}

VECTOR vector vector_words_first(vector lower, vector upper)
{
	(void)upper;
	return lower;
}

VECTOR vector vector_words_second(vector lower, vector upper)
{
	(void)lower;
	return upper;
}

VECTOR vector vector_sum_each(const vector *x)
{
	return vpaddq_s32(vpaddq_s32(x[0], x[1]), vpaddq_s32(x[2], x[3]));
}

VECTOR vector vector_upper_half(vector x)
{
	return vextq_s32(x, x, 2);
}

VECTOR void vector_add_wide_half(int64_t *sums, int32x2_t low, int32x2_t high)
{
	vst1q_s64(sums, vaddq_s64(vld1q_s64(sums), vaddw_s32(vshlq_n_s64(vmovl_s32(high), 8), low)));
}

/* n is VECTOR_N / 2 or VECTOR_N at least. */
VECTOR void vector_add_wide(int64_t *sums, vector low, vector high, int64_t n)
{
	vector_add_wide_half(sums, vget_low_s32(low), vget_low_s32(high));
	if (n > VECTOR_N / 2)
		vector_add_wide_half(sums + VECTOR_N / 2, vget_high_s32(low), vget_high_s32(high));
}

VECTOR struct vector_pair vector_pair_load8(const void *from, bool is_unsigned)
{
	int8x16_t x = vld1q_s8(from);
	if (is_unsigned)
		return (struct vector_pair){(vector)vmovl_u8(vget_low_u8((uint8x16_t)x)),
					    (vector)vmovl_high_u8((uint8x16_t)x)};
	return (struct vector_pair){(vector)vmovl_s8(vget_low_s8(x)), (vector)vmovl_high_s8(x)};
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

VECTOR vector vector_pair_pack(struct vector_pair x)
{
	return (vector)vqmovn_high_s16(vqmovn_s16((int16x8_t)x.low), (int16x8_t)x.high);
}

VECTOR vector vector_pair_pack_unsigned(struct vector_pair x)
{
	return (vector)vqmovun_high_s16(vqmovun_s16((int16x8_t)x.low), (int16x8_t)x.high);
}

VECTOR vector_words vector_words_outside(vector_words x, int16_t low, int16_t high)
{
	return (x < low) | (x > high);
}

VECTOR int64_t vector_pair_outside(struct vector_pair x, int32_t low, int32_t high)
{
	return -vaddvq_s16(vector_words_outside((vector_words)x.low, (int16_t)low, (int16_t)high) +
			   vector_words_outside((vector_words)x.high, (int16_t)low, (int16_t)high));
}

VECTOR vector vector_words_if_same(vector a, vector b, vector x)
{
	return (vector)((vector_words)a == (vector_words)b) & x;
}

VECTOR int64_t vector_count_other_raw(vector a, vector b, unsigned bytes, int64_t n)
{
	(void)n;
	return bytes == 1 ? -vaddvq_s8((vector_bytes)a != (vector_bytes)b)
			  : -vaddvq_s16((vector_words)a != (vector_words)b);
}

VECTOR vector vector_sum_raw(vector to, vector x, unsigned bytes)
{
#ifdef __ARM_FEATURE_DOTPROD
	if (bytes == 1)
		return vdotq_s32(to, (int8x16_t)x, vdupq_n_s8(1));
#endif
	return vpadalq_s16(to, bytes == 1 ? vpaddlq_s8((int8x16_t)x) : (int16x8_t)x);
}

VECTOR vector vector_rotate(vector x, int by)
{
	return by == 1 ? vextq_s32(x, x, 1) : vextq_s32(x, x, 2);
}

VECTOR vector vector_even_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1 ? (vector)vuzp1q_s8((int8x16_t)a, (int8x16_t)b)
			  : (vector)vuzp1q_s16((int16x8_t)a, (int16x8_t)b);
}

VECTOR vector vector_first(int64_t n, vector a, vector b)
{
	(void)n, (void)b;
	return a;
}

VECTOR vector vector_left(vector a, vector count)
{
	return vshlq_s32(a, count);
}

VECTOR vector vector_right(vector a, vector count)
{
	return vshlq_s32(a, -count);
}

VECTOR vector vector_count_outside(vector counts, vector x, vector low, vector high, int64_t n)
{
	(void)n;
	return counts - ((x < low) | (x > high));
}

VECTOR int64_t vector_total(vector counts)
{
	return vaddvq_s32(counts);
}

VECTOR vector_half vector_low_half(vector x)
{
	return vget_low_s32(x);
}

VECTOR vector_half vector_high_half(vector x)
{
	return vget_high_s32(x);
}

VECTOR vector vector_of_halves(vector_half low, vector_half high)
{
	return vcombine_s32(low, high);
}

VECTOR vector_doubles vector_half_doubles(vector_half x)
{
	return vcvtq_f64_s64(vmovl_s32(x));
}

VECTOR vector_half vector_doubles_floor(vector_doubles x)
{
	return vmovn_s64(vcvtmq_s64_f64(x));
}

VECTOR vector_half vector_doubles_ceil(vector_doubles x)
{
	return vmovn_s64(vcvtpq_s64_f64(x));
}

VECTOR vector_half vector_doubles_even(vector_doubles x)
{
	return vmovn_s64(vcvtnq_s64_f64(x));
}

VECTOR vector_doubles vector_doubles_if_zero(vector_doubles x, vector_doubles a, vector_doubles b)
{
	return vbslq_f64(vceqzq_f64(x), a, b);
}

VECTOR vector vector_reals_floor(vector_reals x)
{
	return vcvtmq_s32_f32(x);
}

VECTOR vector vector_reals_ceil(vector_reals x)
{
	return vcvtpq_s32_f32(x);
}

VECTOR vector vector_reals_even(vector_reals x)
{
	return vcvtnq_s32_f32(x);
}

#endif
