/* Level 0 has one bit for each integer, every further level one for each word of the level before it that is not
 * zero. The top level is a single word, and not the lowest. Behind each level is one more word, which stays zero.
 */
#include "daemon/device/arena/block_bitmap.h"

#include <assert.h>
#include <errno.h>

int block_bitmap_init(struct block_bitmap *bitmap, const struct heap *heap, uint64_t limit)
{
	uint64_t n_words[BLOCK_BITMAP_LEVELS_MAX], total = 0, n = limit;
	assert(limit > 0 && limit <= UINT64_C(1) << 32);
	*bitmap = (struct block_bitmap){.n_levels = 0};
	do {
		n = (n + 63) / 64;
		n_words[bitmap->n_levels++] = n + 1;
		total += n + 1;
	} while (n > 1 || bitmap->n_levels < 2);
	bitmap->words = heap_zalloc(heap, total, sizeof(uint64_t));
	if (!bitmap->words)
		return -ENOMEM;
	uint64_t *next = bitmap->words;
	for (unsigned k = 0; k < bitmap->n_levels; k++) {
		bitmap->level[k] = next;
		next += n_words[k];
	}
	return 0;
}

void block_bitmap_deinit(struct block_bitmap *bitmap, const struct heap *heap)
{
	heap_free(heap, bitmap->words);
}

void block_bitmap_climb_add(struct block_bitmap *bitmap, uint64_t member)
{
	for (unsigned k = 2; k < bitmap->n_levels; k++) {
		bitmap->level[k][member / 64] |= UINT64_C(1) << member % 64;
		member /= 64;
	}
}

void block_bitmap_climb_remove(struct block_bitmap *bitmap, uint64_t member)
{
	for (unsigned k = 2; k < bitmap->n_levels; k++) {
		uint64_t *word = &bitmap->level[k][member / 64];
		*word &= ~(UINT64_C(1) << member % 64);
		if (*word)
			return;
		member /= 64;
	}
}

uint64_t block_bitmap_climb_ceil(const struct block_bitmap *bitmap, uint64_t x)
{
	for (unsigned k = 1; k < bitmap->n_levels; k++) {
		uint64_t word = bitmap->level[k][x / 64] >> x % 64;
		if (word) {
			x += (uint64_t)__builtin_ctzll(word);
			while (k-- > 0)
				x = x * 64 + (uint64_t)__builtin_ctzll(bitmap->level[k][x]);
			return x;
		}
		x = x / 64 + 1;
	}
	return BLOCK_BITMAP_NONE;
}

static uint64_t highest_bit(uint64_t word)
{
	return 63 - (uint64_t)__builtin_clzll(word);
}

uint64_t block_bitmap_floor(const struct block_bitmap *bitmap, uint64_t x)
{
	for (unsigned k = 0; k < bitmap->n_levels; k++) {
		uint64_t word = bitmap->level[k][x / 64] & (UINT64_MAX >> (63 - x % 64));
		if (word) {
			x = x / 64 * 64 + highest_bit(word);
			while (k-- > 0)
				x = x * 64 + highest_bit(bitmap->level[k][x]);
			return x;
		}
		if (x / 64 == 0)
			break;
		x = x / 64 - 1;
	}
	return BLOCK_BITMAP_NONE;
}
