/* Invariant: the store has notes->n records of these notes exactly while have_begun is set. */
#include "daemon/service/kept/notes.h"

#include "daemon/device/operations/op_rule.h"
#include "daemon/device/tensors/meetings.h"
#include "daemon/service/tables.h"

static bool make_room(struct notes *notes, struct service *service)
{
	unsigned room = 4 * notes->room;
	struct store_note *all;

	if (notes->n < notes->room)
		return true;
	all = heap_alloc(service->heap, room * sizeof(*all));
	if (!all)
		return false;
	memcpy(all, notes->all, notes->n * sizeof(*all));
	if (notes->all != notes->few)
		heap_free(service->heap, notes->all);
	notes->all = all;
	notes->room = room;
	return true;
}

static void init(struct notes *notes, struct service *service)
{
	notes->store = service->persist.store;
	notes->have_begun = false;
	notes->all = notes->few;
	notes->n = 0;
	notes->room = NOTES_FEW;
}

static int note(struct notes *notes, struct service *service, const struct tensor *tensor, int64_t first,
		int64_t count, struct npumem_error *error)
{
	if (!make_room(notes, service))
		return heap_exhausted(error);
	notes->all[notes->n++] = (struct store_note){tensor->handle, first, count, NULL};
	return 0;
}

static int note_victims(struct notes *notes, struct service *service, const struct tensor *out,
			struct npumem_error *error)
{
	int status = 0;

	for (const struct meeting *m = meetings_first(out); m && !status; m = m->next)
		status = note(notes, service, m->other, 0, -1, error);
	return status;
}

static int note_all(struct notes *notes, struct service *service, const struct op *op, struct npumem_error *error)
{
	struct op_access accesses[OP_ACCESSES_MAX];
	unsigned n = op_accesses(op, accesses);
	bool is_part = op->kind == OP_WRITE, destroys = op->kind == OP_RUN;
	int status = 0;

	destroys = destroys && device_options(service->device)->allow_unchecked;
	for (unsigned i = 0; i < n && !status; i++) {
		const struct tensor *tensor = accesses[i].tensor;

		if (!accesses[i].writes)
			continue;
		status = note(notes, service, tensor, is_part ? op->first : 0, is_part ? op->count : -1, error);
		if (!status && destroys)
			status = note_victims(notes, service, tensor, error);
	}
	return status;
}

static int refuse(int status, struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
				"the state cannot tell of one write more that is under way: %s",
				strerror(-status));
}

/* op->begins: each part of an operation calls it, and the first call begins the notes. */
static int begin(void *ctx, struct npumem_error *error)
{
	struct notes *notes = ctx;
	int status = notes->have_begun ? 0 : store_writes_begin(notes->store, notes->all, notes->n);

	if (status)
		return refuse(status, error);
	notes->have_begun = true;
	return 0;
}

int notes_plan(struct notes *notes, struct service *service, struct op *op, struct npumem_error *error)
{
	int status;

	init(notes, service);
	if (!notes->store)
		return 0;
	status = note_all(notes, service, op, error);
	if (status)
		notes_end(notes, service);
	op->begins = notes->n ? begin : NULL;
	op->begins_ctx = notes;
	return status;
}

void notes_end(struct notes *notes, struct service *service)
{
	for (unsigned i = 0; i < notes->n && notes->have_begun; i++)
		store_write_end(notes->store, notes->all[i].write);
	if (notes->all != notes->few)
		heap_free(service->heap, notes->all);
	init(notes, service);
}
