/* Kinds as bytes, for drawing: a byte for each bit of the kind masks. */
#include "include/formulas/boxes/kind_mask.h"

/* Ors a kind into kinds[i] wherever bit i is set, for i < n; runs of bits at a time. */
static void paint_kind(const uint64_t *bits, int64_t n, uint8_t kind, uint8_t *kinds)
{
	for (int64_t w = 0; 64 * w < n; w++) {
		uint64_t left = n - 64 * w < 64 ? bits[w] & ~(UINT64_MAX << (n - 64 * w)) : bits[w];
		while (left) {
			int first = __builtin_ctzll(left);
			uint64_t others = ~(left >> first);
			int length = others ? __builtin_ctzll(others) : 64;
			for (int i = first; i < first + length; i++)
				kinds[64 * w + i] |= kind;
			left = first + length < 64 ? left & (UINT64_MAX << (first + length)) : 0;
		}
	}
}

void npumem_place_paint(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu,
			int64_t from, int64_t to, uint8_t *kinds)
{
	int64_t end = to < place->bytes_per_npu ? to : place->bytes_per_npu;
	struct kind_mask mask;
	struct kind_mask_split split;
	kind_mask_init(&mask, geometry, place, 0, npu, KIND_MASK_EACH);
	for (int64_t at = from, n; at < end; at += n) {
		n = end - at < 64 * KIND_MASK_WORDS ? end - at : 64 * KIND_MASK_WORDS;
		kind_mask_split(&mask, at, (unsigned)((n + 63) / 64), &split);
		paint_kind(split.data, n, NPUMEM_BYTE_DATA, kinds + (at - from));
		paint_kind(split.dummy, n, NPUMEM_BYTE_DUMMY, kinds + (at - from));
		paint_kind(split.padding, n, NPUMEM_BYTE_PADDING, kinds + (at - from));
		paint_kind(split.empty, n, NPUMEM_BYTE_EMPTY, kinds + (at - from));
	}
}
