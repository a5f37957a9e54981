/* How the bits of an input divide into a place in the table and a place within a step. */
#include "daemon/device/fixed/lut.h"

#include <assert.h>

enum {
	LUT_WITHIN_MAX = 15, /* bits within a step: those of the libraries' 16-bit registers */
	LUT_DROP_MAX = 15,
};

const struct lut *lut_find(enum lut_function function, enum lut_library library)
{
	const struct lut *lut = &lut_tables[function][library - 1];
	assert(lut->entries);
	return lut;
}

void lut_reader_init(struct lut_reader *reader, const struct lut *lut, int64_t frac_bits,
		     enum npumem_rounding rounding)
{
	assert(frac_bits >= -1 && frac_bits <= NPUMEM_FRAC_BITS_MAX);
	int64_t finer = frac_bits - lut->frac_bits;
	int64_t drop = finer > LUT_WITHIN_MAX ? finer - LUT_WITHIN_MAX : 0;
	*reader = (struct lut_reader){
		.entries = lut->entries,
		.offset = lut->offset,
		.last = finer > 0 ? lut->size - 2 : lut->size - 1,
		.left = finer < 0 ? (unsigned)-finer : 0,
		.drop = drop > LUT_DROP_MAX ? LUT_DROP_MAX : (unsigned)drop,
		.right = finer <= 0		  ? 0
			 : finer > LUT_WITHIN_MAX ? LUT_WITHIN_MAX
						  : (unsigned)finer,
		.rounding = rounding,
	};
}
