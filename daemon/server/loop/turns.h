/* Who gets the loop next. What is ready only stands in line when the kernel tells of it; before the loop waits
 * again, the line is served for as long as a turn may take, and then what a turn ends with is done once for each:
 * a connection's replies go out together, however many requests were answered. */
#ifndef SERVER_TURNS_H
#define SERVER_TURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* Something that may stand in one line at a time. */
struct turns_entry {
	void (*run)(struct turns_entry *entry); /* when its turn has come; it is in no line then */
	struct turns_entry *next, *prev;	/* NULL: in no line */
};

struct turns {
	uv_prepare_t prepare;
	uv_idle_t more; /* runs while somebody is left over for another turn */
	struct turns_entry ready, last;
	uint64_t most_ns;    /* that a turn serves those who are ready */
	unsigned long n_run; /* entries that had their turn */
	uint64_t woken_ns;   /* when the turn began; 0: it has not */
	uint64_t latest_ns;  /* when the one began that has just ended; 0: there was nothing to do */
	uint64_t spun_ns;    /* that passed awake between turns, since somebody set it to 0 */
};

/* Keeps no loop alive but while somebody is ready. */
void turns_open(struct turns *turns, uv_loop_t *loop);
/* Nobody is in line any more. The loop must run once more before the struct may go. */
void turns_close(struct turns *turns);

/* Work begins: it is a turn from here on. Those that stand in line say so; for what is done at once. */
static inline void turns_wake(struct turns *turns)
{
	if (!turns->woken_ns)
		turns->woken_ns = uv_hrtime();
}

/* To the end of the line of those that want a part of the turn; nothing where it is in a line. */
void turns_add(struct turns *turns, struct turns_entry *entry);
/* To be run once, when the turn ends; nothing where it is in a line. */
void turns_add_last(struct turns *turns, struct turns_entry *entry);
/* Whether somebody else waits for a part of the turn. */
static inline bool turns_is_wanted(const struct turns *turns)
{
	return turns->ready.next != &turns->ready;
}
/* Nothing where it is in no line. */
void turns_remove(struct turns_entry *entry);

#endif
