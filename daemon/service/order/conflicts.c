#include "daemon/service/order/conflicts.h"

#include <string.h>

#include "daemon/device/tensors/meetings.h"
#include "daemon/service/tensors/record.h"

enum {
	COMPARED_MAX = 64, /* accesses that one is compared with in a queue, before it counts as not free */
};

static bool ranges_meet(const struct tensor_range *a, const struct tensor_range *b)
{
	return a->from.n < b->to.n && b->from.n < a->to.n && a->from.c < b->to.c && b->from.c < a->to.c &&
	       a->from.h < b->to.h && b->from.h < a->to.h && a->from.w < b->to.w && b->from.w < a->to.w;
}

bool conflicts_between(const struct scheduler_access *a, const struct scheduler_access *b)
{
	if (a->entry == b->entry)
		return false;
	if ((a->needs_tensor && b->frees) || (a->frees && b->needs_tensor))
		return true;
	return (a->writes || b->writes) && ranges_meet(&a->range, &b->range);
}

static bool is_whole(const struct scheduler_access *access)
{
	const struct tensor_range whole = tensor_range_whole(access->tensor);

	return !memcmp(&whole, &access->range, sizeof(whole));
}

/* Whether no access before it in its queue conflicts with it. */
static bool is_free_in_queue(struct scheduler_access *access)
{
	unsigned n = 0;

	/* However many reads of parts wait before it, for whatever else their entries wait. */
	if (!access->writes && !access->frees && !record_of(access->tensor)->n_changes)
		return true;
	for (const struct scheduler_access *before = access->prev; before; before = before->prev) {
		if (conflicts_between(before, access))
			return false;
		/* An earlier access that conflicts with `access` would also conflict with `before`, which is
		 * ready. An exception is `frees` with `needs_tensor`, which conflict without a common range. */
		if (before->is_ready && before->entry != access->entry && is_whole(before) && !access->frees &&
		    !access->needs_tensor)
			return true;
		if (++n == COMPARED_MAX) {
			access->is_due = true;
			return false;
		}
	}
	return true;
}

struct scheduler_access *conflicts_first_met(const struct meeting *meeting)
{
	return record_of(meeting->other) ? record_queue(meeting->other)->first : NULL;
}

bool conflicts_may_across(const struct scheduler_access *access, const struct meeting *meeting)
{
	const struct record *record = record_of(meeting->other);

	/* A root that is being placed has no record, and nothing accesses it. */
	return record && (access->footprint || record->queue.n_footprints);
}

/* Of two roots that meet, a kernel that writes the footprint of one conflicts with each access to the other. */
static bool is_free_of(struct scheduler_access *access, const struct meeting *meeting)
{
	unsigned n = 0;

	if (!conflicts_may_across(access, meeting))
		return true;
	for (const struct scheduler_access *before = conflicts_first_met(meeting); before; before = before->next) {
		if (before->entry != access->entry && (before->footprint || access->footprint) &&
		    (before->entry->arrival < access->entry->arrival || before->entry->is_started))
			return false;
		if (++n == COMPARED_MAX) {
			access->is_due = true;
			return false;
		}
	}
	return true;
}

bool conflicts_may_elsewhere(const struct scheduler_access *access)
{
	return access->footprint || record_of(access->tensor)->n_met_footprints;
}

bool conflicts_is_free(struct scheduler_access *access)
{
	const struct meeting *meeting;

	access->is_due = false;
	if (!is_free_in_queue(access))
		return false;
	if (!conflicts_may_elsewhere(access))
		return true;
	for (meeting = meetings_first(access->tensor); meeting; meeting = meeting->next)
		if (!is_free_of(access, meeting))
			return false;
	return true;
}

bool conflicts_writes_whole(const struct scheduler_access *access)
{
	return access->writes && is_whole(access);
}
