/* A root's record knows what the request that is being looked at does with it, by the request's stamp. Bytes are
 * not compared: a root of which one part is read and another one changed counts as changed. */
#include "daemon/rpc/resume/repeat.h"

#include "daemon/device/operations/op_rule.h"
#include "daemon/service/record.h"

void repeat_begin(struct repeat *repeat, const struct session *session)
{
	static uint64_t stamps;

	*repeat = (struct repeat){.stamp = session->has_token ? ++stamps : 0, .first_final = SIZE_MAX};
}

/* All that there is of it then is the request's own. */
static bool is_whole(const struct op *op, const struct op_access *access)
{
	const struct tensor *tensor = access->tensor;

	if (tensor->base)
		return false;
	return op->kind != OP_WRITE ||
	       (op->first == 0 && (op->count < 0 || op->count == npumem_place_elements(&tensor->place)));
}

static void look_at_write(struct repeat *repeat, const struct op *op, const struct op_access *access)
{
	struct record *record = record_of(tensor_root(access->tensor));
	bool is_known = record->repeat_stamp == repeat->stamp;

	if (is_known && record->repeat_reads) {
		if (repeat_is_safe(repeat))
			repeat->first_final = repeat->n;
	} else if (!is_known && is_whole(op, access)) {
		record->repeat_stamp = repeat->stamp;
		record->repeat_reads = false;
	}
}

void repeat_look(struct repeat *repeat, const struct op *op)
{
	struct op_access accesses[OP_ACCESSES_MAX];
	unsigned n;

	if (!repeat->stamp)
		return;
	n = op_accesses(op, accesses);
	for (unsigned i = 0; i < n; i++) {
		struct record *record = record_of(tensor_root(accesses[i].tensor));

		if (accesses[i].writes || record->repeat_stamp == repeat->stamp)
			continue;
		record->repeat_stamp = repeat->stamp;
		record->repeat_reads = true;
	}
	for (unsigned i = 0; i < n; i++)
		if (accesses[i].writes)
			look_at_write(repeat, op, &accesses[i]);
	repeat->n++;
}
