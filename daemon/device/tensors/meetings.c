/* A pair is one piece of memory with a link for each of the two.
 * Invariant: a link of one tensor's list has its twin in the other's, and n_meetings is the list's length. */
#include "daemon/device/tensors/meetings.h"

#include <assert.h>
#include <errno.h>

struct pair {
	struct meeting ends[2]; /* ends[i] is in the list of ends[!i].other */
};

static void link_in(struct pair *pair, uint8_t end, struct tensor *tensor, struct tensor *other)
{
	struct meeting *meeting = &pair->ends[end];
	*meeting = (struct meeting){.other = other, .next = tensor->first_meeting, .end = end};
	if (tensor->first_meeting)
		tensor->first_meeting->prev = meeting;
	tensor->first_meeting = meeting;
	tensor->n_meetings++;
}

static void link_out(struct tensor *tensor, struct meeting *meeting)
{
	if (meeting->prev)
		meeting->prev->next = meeting->next;
	else
		tensor->first_meeting = meeting->next;
	if (meeting->next)
		meeting->next->prev = meeting->prev;
	tensor->n_meetings--;
}

int meetings_add(const struct heap *heap, struct tensor *later, struct tensor *other)
{
	assert(later->n_meetings < MEETINGS_MAX && other->n_meetings < MEETINGS_MAX);
	struct pair *pair = heap_alloc(heap, sizeof(*pair));
	if (!pair)
		return -ENOMEM;
	link_in(pair, 0, later, other);
	link_in(pair, 1, other, later);
	return 0;
}

void meetings_end(const struct heap *heap, struct tensor *tensor)
{
	while (tensor->first_meeting) {
		struct meeting *meeting = tensor->first_meeting;
		struct pair *pair = (struct pair *)(meeting - meeting->end);
		link_out(tensor, meeting);
		link_out(meeting->other, meetings_twin(meeting));
		heap_free(heap, pair);
	}
}
