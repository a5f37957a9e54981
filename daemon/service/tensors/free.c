/* A free hides its tensors in one commit; their room and charges are given back after that, in bounded steps. */
#include <inttypes.h>

#include "daemon/service/kept/results.h"
#include "daemon/service/observed/recorder.h"
#include "daemon/service/service.h"
#include "daemon/service/tables.h"
#include "daemon/service/tensors/tensors.h"

int tensors_free_check(struct session *session, struct tensor *const *tensors, size_t n,
		       struct npumem_error *error)
{
	char name[ERROR_CONTEXT_NAME_BYTES];
	size_t i = 0;

	if (n > TENSORS_FREE_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "%zu tensors to free, and at most %d are possible",
					n, TENSORS_FREE_MAX);
	for (; i < n && !record_of(tensors[i])->marked; i++)
		record_of(tensors[i])->marked = true;
	for (size_t j = 0; j < i; j++)
		record_of(tensors[j])->marked = false;
	if (i == n)
		return 0;
	access_name(session, tensors[i], name, sizeof(name));
	npumem_error_set(error, NPUMEM_INVALID, "%s is to be freed twice", name);
	npumem_error_number(error, "tensor_index", (int64_t)i);
	return NPUMEM_INVALID;
}

void tensors_mark_going(struct service *service, struct tensor **tensors, size_t n)
{
	size_t n_views = 0;

	for (size_t i = 0; i < n; i++) {
		struct tensor *tensor = tensors[i];

		service_mark_going(service, tensor);
		if (!tensor->base)
			continue;
		tensors[i] = tensors[n_views];
		tensors[n_views++] = tensor;
	}
}

/* Hides a tensor and its views, and keeps the result of the request that made it. Returns how many it has
 * hidden. */
static uint64_t hide(struct service *service, struct tensor *tensor)
{
	uint64_t n = 1 + record_of(tensor)->n_views;

	results_gone(service, tensor);
	service_hide(service, tensor);
	return n;
}

void tensors_hide(struct session *session, struct tensor *const *tensors, size_t n)
{
	enum { RESULT_CHANGES = 4 }; /* the result, and the drop of the oldest one */
	struct service *service = session->service;
	uint64_t n_freed = 0;

	for (size_t i = 0; i < n; i++)
		n_freed += hide(service, tensors[i]);
	/* One commit from here on. Recovery frees the other views with their bases. */
	persist_make_room(service, (uint32_t)n + RESULT_CHANGES);
	for (size_t i = 0; i < n; i++)
		persist_disown(service, tensors[i]);
	results_put(session, (struct results_cell){.kind = RESULTS_FREED, .number = n_freed});
	persist_commit(&service->persist);
}

void tensors_free_begin(struct tensors_free *free, struct tensor *const *tensors, size_t n)
{
	*free = (struct tensors_free){.tensors = tensors, .n = n};
	while (free->next_root < n && tensors[free->next_root]->base)
		free->next_root++;
	free->first_root = free->next_root;
}

enum { STEPS = 256 }; /* of a microsecond or less, without subscribers to events */

/* Releases the views of the list, then the views of its bases. */
static unsigned free_views(struct service *service, struct tensors_free *free)
{
	unsigned steps = 0;

	for (; free->at < free->n && steps < STEPS; steps++) {
		struct tensor *tensor = free->tensors[free->at];

		if (tensor->base || tensor_views(tensor))
			free->n_freed += service_release(service, tensor->base ? tensor : tensor_views(tensor));
		if (free->at < free->first_root || !tensor_views(tensor))
			free->at++;
	}
	return steps;
}

/* The steps of one root: for its room, and for each meeting to leave the other root's list and to be counted
 * anew. */
static unsigned root_steps(const struct tensor *root)
{
	enum { ROOT_STEPS = 4, MEETINGS_PER_STEP = 2 };

	return ROOT_STEPS + root->n_meetings / MEETINGS_PER_STEP;
}

bool tensors_free_step(struct session *session, struct tensors_free *free)
{
	struct service *service = session->service;
	/* A recording has the free as one entry: an allocation that took a part of its room would come before
	 * it. */
	bool is_at_once = recorder_is_on(&service->recorder);
	unsigned steps;

	service->events.actor = session;
	steps = free_views(service, free);
	while (free->at == free->n && free->next_root < free->n && (is_at_once || steps < STEPS)) {
		struct tensor *root = free->tensors[free->next_root++];

		steps += root_steps(root);
		free->n_freed += service_release(service, root);
	}
	service->events.actor = NULL;
	persist_commit(&service->persist);
	return free->next_root == free->n && free->at == free->n;
}
