#include "daemon/service/order/conflicts.h"

#include <string.h>

#include "daemon/device/tensors/meetings.h"
#include "daemon/service/tensors/record.h"

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

static enum conflicts_found find_in_queue(const struct scheduler_access *access, struct scheduler_access **at,
					  unsigned *most)
{
	/* However many reads of parts wait before it, for whatever else their entries wait. */
	if (!access->writes && !access->frees && !record_queue(access->tensor)->n_changes)
		return CONFLICTS_NONE;
	for (const struct scheduler_access *before; (before = *at); *at = before->prev) {
		if (!*most)
			return CONFLICTS_UNKNOWN;
		--*most;
		if (conflicts_between(before, access))
			return CONFLICTS_FOUND;
		/* An earlier access that conflicts with `access` would also conflict with `before`, which is
		 * ready. An exception is `frees` with `needs_tensor`, which conflict without a common range. */
		if (before->is_ready && before->entry != access->entry && is_whole(before) && !access->frees &&
		    !access->needs_tensor)
			return CONFLICTS_NONE;
	}
	return CONFLICTS_NONE;
}

struct scheduler_access *conflicts_first_met(const struct meeting *meeting)
{
	return record_of(meeting->other) ? record_queue(meeting->other)->first : NULL;
}

bool conflicts_may_across(const struct scheduler_access *access, const struct meeting *meeting)
{
	const struct record *record = record_of(meeting->other);

	/* A root that is being placed has no record, and nothing accesses it. */
	return record && (access->footprint || record->n_footprints);
}

static bool goes_before(const struct scheduler_access *before, const struct scheduler_access *access)
{
	return before && before->entry->arrival < access->entry->arrival;
}

/* Of two roots that meet, a kernel that writes the footprint of one conflicts with each access to the other,
 * whatever their ranges. So none starts before an earlier one of the other root's queue has left, and the first of
 * that queue is the earliest. */
static bool is_free_of(const struct scheduler_access *access, const struct meeting *meeting)
{
	return !conflicts_may_across(access, meeting) ||
	       !goes_before(access->footprint ? conflicts_first_met(meeting)
					      : record_queue(meeting->other)->footprints,
			    access);
}

bool conflicts_may_elsewhere(const struct scheduler_access *access)
{
	return access->footprint || record_of(access->tensor)->n_met_footprints;
}

enum conflicts_found conflicts_find(const struct scheduler_access *access, struct scheduler_access **at,
				    unsigned *most)
{
	enum conflicts_found found = find_in_queue(access, at, most);

	if (found != CONFLICTS_NONE || !conflicts_may_elsewhere(access))
		return found;
	for (const struct meeting *meeting = meetings_first(access->tensor); meeting; meeting = meeting->next)
		if (!is_free_of(access, meeting))
			return CONFLICTS_FOUND;
	return CONFLICTS_NONE;
}

bool conflicts_holds_up_all(const struct scheduler_access *access)
{
	return access->writes && is_whole(access) && !record_queue(access->tensor)->n_needs_tensor;
}
