/* The NPUs on which a place looks the same, as sets: meet_class() asked of all NPUs at once. */
#ifndef DEVICE_CLASSES_H
#define DEVICE_CLASSES_H

#include "daemon/device/geometry/meet.h"

enum { CLASSES_WORDS_MAX = NPUMEM_NPUS_MAX / 64 };

struct classes {
	unsigned n_words;				/* of a set: NPU q is bit q % 64 of word q / 64 */
	int64_t first[MEET_CLASSES];			/* its lowest NPU; -1: it is empty */
	uint64_t npus[MEET_CLASSES][CLASSES_WORDS_MAX]; /* only n_words are set */
};

/* O(NPUs / 64). */
void classes_of(const struct npumem_geometry *geometry, const struct npumem_place *place, struct classes *classes);

/* How many NPUs are in a class. */
int64_t classes_count(const struct classes *classes, unsigned class);

/* The NPUs on which a place has any element: n_words words. */
void classes_with_data(const struct npumem_geometry *geometry, const struct npumem_place *place, uint64_t *npus);

#endif
