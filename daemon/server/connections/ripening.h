/* The replies of a connection that may be sent: with a durable state a reply waits until the disk has the changes
 * of its request. Replies are sent in order, so two steps suffice: replies that wait for the current round, and
 * all later ones. */
#ifndef SERVER_RIPENING_H
#define SERVER_RIPENING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RIPENING_STEPS = 2 };

/* Bytes are counted from the connection's first reply on. Zero at first. */
struct ripening {
	uint64_t sent, ripe; /* bytes that were sent, and that may be sent */
	struct ripening_step {
		uint64_t end, position; /* bytes before `end` may be sent when the disk has all changes up to
					   `position` */
	} steps[RIPENING_STEPS];
	unsigned n;
};

/* All replies so far have `end` bytes; the last one needs `position`; the disk has `synced`. */
static inline void ripening_add(struct ripening *ripening, uint64_t end, uint64_t position, uint64_t synced)
{
	struct ripening_step *last = ripening->n ? &ripening->steps[ripening->n - 1] : NULL;

	if (!last && position <= synced) {
		ripening->ripe = end;
		return;
	}
	if (!last || (position > last->position && ripening->n < RIPENING_STEPS)) {
		ripening->steps[ripening->n++] = (struct ripening_step){end, position};
		return;
	}
	last->end = end;
	last->position = position > last->position ? position : last->position;
}

/* The disk has more. Returns whether more may be sent. */
static inline bool ripening_advance(struct ripening *ripening, uint64_t synced)
{
	unsigned n = 0;

	while (n < ripening->n && ripening->steps[n].position <= synced)
		ripening->ripe = ripening->steps[n++].end;
	for (unsigned i = n; i < ripening->n; i++)
		ripening->steps[i - n] = ripening->steps[i];
	ripening->n -= n;
	return n > 0;
}

#endif
