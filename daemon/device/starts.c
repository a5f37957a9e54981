/* Level 0 has a bit for each member; a bit of level k + 1 says that a word of level k is not 0.
 * Words are only written when a bit changes, so that an arena's hot path stays in one cache line a level. */
#include "daemon/device/starts.h"

#include <assert.h>
#include <errno.h>

int starts_init(struct starts *starts, const struct heap *heap, uint64_t limit)
{
	uint64_t n_words[STARTS_LEVELS_MAX], total = 0, n = limit;
	assert(limit > 0 && limit <= UINT64_C(1) << 32);
	memset(starts, 0, sizeof(*starts));
	starts->heap = heap;
	do {
		n = (n + 63) / 64;
		n_words[starts->n_levels++] = n;
		total += n;
	} while (n > 1);
	starts->words = heap_zalloc(heap, total, sizeof(uint64_t));
	if (!starts->words)
		return -ENOMEM;
	uint64_t *next = starts->words;
	for (unsigned k = 0; k < starts->n_levels; k++) {
		starts->level[k] = next;
		next += n_words[k];
	}
	return 0;
}

void starts_deinit(struct starts *starts)
{
	heap_free(starts->heap, starts->words);
}

void starts_add(struct starts *starts, uint64_t member)
{
	for (unsigned k = 0; k < starts->n_levels; k++) {
		uint64_t *word = &starts->level[k][member / 64];
		bool was_empty = *word == 0;
		*word |= UINT64_C(1) << member % 64;
		if (!was_empty)
			return;
		member /= 64;
	}
}

void starts_remove(struct starts *starts, uint64_t member)
{
	for (unsigned k = 0; k < starts->n_levels; k++) {
		uint64_t *word = &starts->level[k][member / 64];
		*word &= ~(UINT64_C(1) << member % 64);
		if (*word)
			return;
		member /= 64;
	}
}

bool starts_has(const struct starts *starts, uint64_t member)
{
	return starts->level[0][member / 64] >> member % 64 & 1;
}

static uint64_t highest_bit(uint64_t word)
{
	return 63 - (uint64_t)__builtin_clzll(word);
}

uint64_t starts_floor(const struct starts *starts, uint64_t x)
{
	for (unsigned k = 0; k < starts->n_levels; k++) {
		uint64_t word = starts->level[k][x / 64] & (UINT64_MAX >> (63 - x % 64));
		if (word) {
			x = x / 64 * 64 + highest_bit(word);
			while (k-- > 0)
				x = x * 64 + highest_bit(starts->level[k][x]);
			return x;
		}
		if (x / 64 == 0)
			break;
		x = x / 64 - 1;
	}
	assert(!"starts_floor: no member below");
	return 0;
}
