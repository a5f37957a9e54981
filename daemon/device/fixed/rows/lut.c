/* How the bits of an input divide into a place in the table and a place within a step. */
#include "daemon/device/fixed/rows/lut.h"

#include <assert.h>
#include <string.h>

#include "daemon/device/fixed/container.h"
#include "daemon/device/implementations.h"

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
	assert(lut->size <= LUT_SIZE_MAX);
	memcpy(reader->padded, lut->entries, (size_t)lut->size * sizeof(*lut->entries));
}

static void scalar(const struct lut_row *row, int64_t first, int64_t n, int64_t *saturated)
{
	for (int64_t i = first; i < n; i++) {
		int64_t x = (container_get(row->in, row->bytes, i) >> row->halved) - row->minus;
		container_put(row->out, row->bytes, i, lut_result(row->reader, x, row->bytes, saturated));
	}
}

/* Words as they are, between two entries each, whose differences have 16 bits. */
static bool is_words(const struct lut_row *row)
{
	const struct lut_reader *reader = row->reader;
	return row->bytes == 2 && row->halved == 0 && reader->drop == 0 && reader->right > 0;
}

void lut_row(enum isa isa, const struct lut_row *row, int64_t n, int64_t *saturated)
{
	const struct implementations *of = &implementations[isa];
	if (of->lut_words && is_words(row))
		of->lut_words(row, n);
	else
		scalar(row, of->lut ? of->lut(row, n, saturated) : 0, n, saturated);
}
