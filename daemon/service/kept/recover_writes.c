/* What was under way when the last process ended: nobody knows how far it came. */
#include "daemon/service/kept/recovery.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_MAX = 8 }; /* in a line */

static void lose(struct recovery *recovery, char *names, struct tensor *tensor, int64_t first, int64_t count)
{
	const struct record *record = tensor->owner ? record_of(tensor) : record_of(tensor_root(tensor));
	size_t used = strlen(names);

	device_lose(recovery->service->device, tensor, first, count);
	if (recovery->report->n_cut++ < NAMES_MAX)
		snprintf(names + used, RECOVERY_LINE_BYTES - used, "%s%.63s", used ? ", " : "",
			 record->name[0] ? record->name : "one without a name");
}

static void lose_all(struct recovery *recovery, const char *why)
{
	struct device *device = recovery->service->device;
	char names[RECOVERY_LINE_BYTES] = "";

	recovery->report->n_cut = 0;
	for (struct tensor *tensor = NULL; (tensor = device_next(device, tensor));)
		if (!tensor->base && tensor->owner)
			lose(recovery, names, tensor, 0, -1);
	if (recovery->report->n_cut)
		recovery_say(recovery, true, "lost: the data of all %" PRIu32 " tensors, as %s",
			     recovery->report->n_cut, why);
}

static void lose_cut_off(struct recovery *recovery)
{
	const struct recover_report *report = recovery->report;
	const struct store_found_write *writes;
	unsigned n = store_writes_found(recovery->store, &writes), n_unknown = 0;
	char names[RECOVERY_LINE_BYTES] = "";

	for (unsigned i = 0; i < n; i++) {
		struct tensor *tensor = device_find(recovery->service->device, writes[i].handle);

		n_unknown += !tensor;
		/* Also through a view that nobody has any more. */
		if (tensor && tensor_root(tensor)->owner)
			lose(recovery, names, tensor, writes[i].first, writes[i].count);
	}
	if (n_unknown && (report->n_damaged || report->n_refused))
		lose_all(recovery, "what was being written has no cell that can be read");
	else if (report->n_cut)
		recovery_say(recovery, true,
			     "lost: data of %" PRIu32 " tensors that were written when it ended: %s%s",
			     report->n_cut, names, report->n_cut > NAMES_MAX ? ", ..." : "");
}

void recover_writes(struct recovery *recovery, const char *why_all)
{
	if (why_all)
		lose_all(recovery, why_all);
	else
		lose_cut_off(recovery);
}
