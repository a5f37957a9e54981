/* Names first, so that what the device did last need not be undone.
 * Does not know where anything lies, nor who may use what. */
#include "daemon/service/tensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "daemon/service/kept/results.h"

static int check_free_name(const struct session *session, const char *name, struct npumem_error *error)
{
	int status;

	if (!name[0])
		return 0;
	status = names_check(name, error);
	if (status)
		return status;
	if (names_find(&session->service->names, session->uid, name)) {
		status = npumem_error_set(error, NPUMEM_ALREADY_EXISTS, "there is a tensor %s already", name);
		npumem_error_text(error, "tensor", name);
	}
	return status;
}

static int check_free_names(const struct session *session, const char *const *names, unsigned n,
			    struct npumem_error *error)
{
	for (unsigned i = 0; i < n; i++) {
		int status = check_free_name(session, names[i], error);

		for (unsigned j = 0; !status && names[i][0] && j < i; j++)
			if (strcmp(names[i], names[j]) == 0)
				status = npumem_error_set(error, NPUMEM_INVALID,
							  "two tensors of one request are named %s", names[i]);
		if (status) {
			npumem_error_number(error, "tensor_index", i);
			return status;
		}
	}
	return 0;
}

/* Views have no storage. */
static uint64_t charge_of(const struct service *service, const struct tensor *tensor)
{
	const struct npumem_geometry *geometry = &device_options(service->device)->geometry;

	return tensor->base ? 0 : (uint64_t)(tensor->place.bytes_per_npu * geometry->n_npus);
}

/* What was just allocated goes again. */
static void take_back(struct service *service, struct tensor *const *tensors, unsigned n)
{
	while (n-- > 0)
		device_release(service->device, tensors[n], NULL, NULL);
}

/* What was just allocated, against what the uid may have; where it is too much it goes again. */
static int check_charges(struct session *session, struct tensor *const *tensors, unsigned n,
			 struct npumem_error *error)
{
	uint64_t bytes = 0;
	int status;

	for (unsigned i = 0; i < n; i++)
		bytes += charge_of(session->service, tensors[i]);
	status = limits_check(&session->service->limits, session->user, LIMITS_DEVICE_BYTES, bytes, error);
	if (status)
		take_back(session->service, tensors, n);
	return status;
}

/* The same against the room that the state has. */
static int check_room_to_keep(struct service *service, struct tensor *const *tensors, unsigned n,
			      struct npumem_error *error)
{
	int status = persist_prepare_new(service, tensors, n, error);

	if (status)
		take_back(service, tensors, n);
	return status;
}

static void charge(struct service *service, struct tensor *tensor, struct limits_user *user)
{
	struct record *record = tensor_owner_room(tensor);

	record->uid = user->uid;
	record->user = user;
	record->charge = charge_of(service, tensor);
	tensor->account = &user->packs;
	limits_charge(&service->limits, user, LIMITS_TENSORS, 1);
	limits_charge(&service->limits, user, LIMITS_DEVICE_BYTES, record->charge);
}

int tensors_readopt(struct service *service, struct session *session, uint32_t uid, struct tensor *tensor)
{
	struct limits_user *user = limits_take(&service->limits, uid);

	if (!user)
		return -ENOMEM;
	charge(service, tensor, user);
	service_adopt(service, session, tensor);
	return 0;
}

/* `index`: among those of the request. */
static void adopt(struct session *session, const char *name, unsigned index, struct tensor *tensor)
{
	struct record *record = tensor_owner_room(tensor);

	record->session_id = session->id;
	if (results_are_kept(session)) {
		record->request = session->request;
		record->request_index = index;
		record->maker_cell = session->cell;
	}
	/* Its session has the user, so this takes no memory. */
	charge(session->service, tensor, limits_take(&session->service->limits, session->uid));
	memcpy(record->name, name, strlen(name)); /* checked: it fits, and the rest is zero */
	service_adopt(session->service, session, tensor);
	if (record->request)
		results_add_made(session, record);
	persist_put(session->service, tensor);
	events_tensor(session->service, EVENTS_ALLOCATED, tensor, session, -1);
}

static bool in_the_way_of(const struct waiter *claimant, struct tensor *const *tensors, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct npumem_place *place = &tensors[i]->place;

		if (place->offset < claimant->to && claimant->from < place->offset + place->bytes_per_npu)
			return true;
	}
	return false;
}

/* What was just allocated goes back where it is not its turn to take that. `largest`: free before it was. */
static int check_turn(struct service *service, struct tensor **tensors, unsigned n, enum tensors_turn turn,
		      int64_t largest, struct npumem_error *error)
{
	const struct waiter *claimant = waiting_claimant(service);
	int64_t free_bytes, left, asked = tensors[0]->place.bytes_per_npu;

	device_room(service->device, &free_bytes, &left);
	if (!claimant || turn == TENSORS_HEAD ||
	    (turn == TENSORS_AT_ONCE && left >= largest && !in_the_way_of(claimant, tensors, n)))
		return 0;
	take_back(service, tensors, n);
	npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
			 turn == TENSORS_LAST
				 ? "%u allocations wait for room before this one"
				 : "what is free here is kept for the %u allocations that wait for room",
			 service->waiting.n);
	npumem_error_number(error, "asked_bytes_per_npu", asked);
	npumem_error_number(error, "waiting", service->waiting.n);
	return NPUMEM_RESOURCE_EXHAUSTED;
}

bool tensors_lacked_room(const struct npumem_error *error)
{
	return error->status == NPUMEM_RESOURCE_EXHAUSTED &&
	       npumem_error_find(error, "asked_bytes_per_npu", -1) >= 0;
}

int tensors_alloc(struct session *session, const struct device_request *requests, const char *const *names,
		  unsigned n, struct tensor **tensors, struct npumem_error *error)
{
	struct tensors_alloc alloc = {.session = session,
				      .requests = requests,
				      .names = names,
				      .n = n,
				      .tensors = tensors,
				      .turn = TENSORS_AT_ONCE};
	int64_t steps = INT64_MAX;
	int status = tensors_alloc_begin(&alloc, error);

	return status ? status : tensors_alloc_step(&alloc, &steps, error);
}

static int check(const struct tensors_alloc *alloc, struct npumem_error *error)
{
	struct session *session = alloc->session;
	int status = check_free_names(session, alloc->names, alloc->n, error);

	return status ? status
		      : limits_check(&session->service->limits, session->user, LIMITS_TENSORS, alloc->n, error);
}

int tensors_alloc_begin(struct tensors_alloc *alloc, struct npumem_error *error)
{
	struct service *service = alloc->session->service;
	int64_t free_bytes;
	int status;

	if (alloc->n < 1 || alloc->n > TENSORS_ALLOC_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "%u tensors to allocate, which is not 1 to %d",
					alloc->n, TENSORS_ALLOC_MAX);
	status = check(alloc, error);
	if (status)
		return status;
	device_room(service->device, &free_bytes, &alloc->largest);
	device_alloc_begin(&alloc->device, service->device, alloc->requests, alloc->n, alloc->tensors);
	return 0;
}

/* What others did meanwhile counts: names, and what the uid may have. */
static int check_again(struct tensors_alloc *alloc, struct npumem_error *error)
{
	struct service *service = alloc->session->service;
	int status = check(alloc, error);

	if (status)
		take_back(service, alloc->tensors, alloc->n);
	if (!status)
		status = check_charges(alloc->session, alloc->tensors, alloc->n, error);
	if (!status)
		status = check_turn(service, alloc->tensors, alloc->n, alloc->turn, alloc->largest, error);
	if (!status)
		status = check_room_to_keep(service, alloc->tensors, alloc->n, error);
	return status;
}

static void give_back_search(struct tensors_alloc *alloc)
{
	limits_give_back(&alloc->session->service->limits, alloc->session->user, LIMITS_REQUEST_BYTES,
			 alloc->search_bytes);
	alloc->search_bytes = 0;
}

/* -EAGAIN; or it may not hold what it holds, and gives up. */
static int charge_search(struct tensors_alloc *alloc, struct npumem_error *error)
{
	struct limits_table *limits = &alloc->session->service->limits;
	size_t bytes = device_alloc_host_bytes(&alloc->device);
	int status = limits_check(limits, alloc->session->user, LIMITS_REQUEST_BYTES, bytes, error);

	if (status) {
		device_alloc_cancel(&alloc->device);
		return status;
	}
	limits_charge(limits, alloc->session->user, LIMITS_REQUEST_BYTES, bytes);
	alloc->search_bytes = bytes;
	return -EAGAIN;
}

int tensors_alloc_step(struct tensors_alloc *alloc, int64_t *steps, struct npumem_error *error)
{
	struct session *session = alloc->session;
	struct error_context context = access_context(session, error);
	int status;

	give_back_search(alloc);
	status = device_alloc_step(&alloc->device, steps, &context);
	if (status == -EAGAIN)
		status = charge_search(alloc, error);
	if (!status)
		status = check_again(alloc, error);
	if (status)
		return status;
	for (unsigned i = 0; i < alloc->n; i++)
		adopt(session, alloc->names[i], i, alloc->tensors[i]);
	persist_commit(&session->service->persist);
	events_room(session->service);
	return 0;
}

void tensors_alloc_cancel(struct tensors_alloc *alloc)
{
	give_back_search(alloc);
	device_alloc_cancel(&alloc->device);
}

int tensors_view(struct session *session, struct tensor *base, const char *name, const struct device_slice *slice,
		 const struct npumem_dims *shape, struct tensor **view, struct npumem_error *error)
{
	struct service *service = session->service;
	struct error_context context = access_context(session, error);
	int status = check_free_name(session, name, error);

	if (!status)
		status = limits_check(&service->limits, session->user, LIMITS_TENSORS, 1, error);
	if (!status)
		status = shape ? device_view_reshape(service->device, base, shape, view, &context)
			       : device_view_slice(service->device, base, slice, view, &context);
	if (!status)
		status = check_room_to_keep(service, view, 1, error);
	if (status)
		return status;
	adopt(session, name, 0, *view);
	persist_commit(&service->persist);
	return 0;
}

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

void tensors_mark_going(struct tensor **tensors, size_t n, struct scheduler_entry *by)
{
	size_t n_views = 0;

	for (size_t i = 0; i < n; i++) {
		struct tensor *tensor = tensors[i];

		service_mark_going(tensor, by);
		if (!tensor->base)
			continue;
		tensors[i] = tensors[n_views];
		tensors[n_views++] = tensor;
	}
}

/* A tensor and those views of it that are not hidden yet. What made them is told while they are there. */
static uint64_t hide(struct service *service, struct tensor *tensor)
{
	uint64_t n = 1;

	results_gone(service, tensor);
	for (struct tensor *view = tensor->base ? NULL : tensor->views; view; view = view->next_view) {
		n += !record_of(view)->is_gone;
		results_gone(service, view);
	}
	service_hide(service, tensor);
	return n;
}

void tensors_hide(struct session *session, struct tensor *const *tensors, size_t n)
{
	enum { RESULT_CHANGES = 4 }; /* and the oldest one may go */
	struct service *service = session->service;
	uint64_t n_freed = 0;

	for (size_t i = 0; i < n; i++)
		n_freed += hide(service, tensors[i]);
	/* From here on in one commit: views that are not named go with their bases. */
	persist_make_room(service, (uint32_t)n + RESULT_CHANGES);
	for (size_t i = 0; i < n; i++)
		persist_disown(service, tensors[i]);
	results_put(session, (struct results_cell){.kind = RESULTS_FREED, .number = n_freed});
	persist_commit(&service->persist);
}

uint64_t tensors_free(struct session *session, struct tensor *const *tensors, size_t n)
{
	struct service *service = session->service;
	uint64_t n_freed = 0;

	service->events.actor = session;
	for (size_t i = 0; i < n; i++)
		n_freed += service_release(service, tensors[i]);
	service->events.actor = NULL;
	persist_commit(&service->persist);
	return n_freed;
}

/* Prepared, with a result. */
static void keep_change(struct session *session, const struct tensor *tensor)
{
	persist_put(session->service, tensor);
	results_put(session, (struct results_cell){.kind = RESULTS_CHANGED, .handle = tensor->handle});
	persist_commit(&session->service->persist);
}

int tensors_seal(struct session *session, struct tensor *tensor, struct npumem_error *error)
{
	struct error_context context = access_context(session, error);
	int status = results_prepare(session, 1, error);

	if (!status)
		status = device_seal(session->service->device, tensor, &context);
	if (status)
		return status;
	keep_change(session, tensor);
	events_tensor(session->service, EVENTS_SEALED, tensor, session, -1);
	return 0;
}

/* Whether the record may have this name instead of its own. */
static int check_new_name(struct session *session, const struct record *record, const char *name,
			  struct npumem_error *error)
{
	const struct record *other;
	int status;

	if (!record->name[0])
		return npumem_error_set(error, NPUMEM_INVALID,
					"a tensor without a name dies with its session and cannot be renamed");
	status = names_check(name, error);
	if (status)
		return status;
	other = names_find(&session->service->names, record->uid, name);
	if (!other || other == record)
		return 0;
	npumem_error_set(error, NPUMEM_ALREADY_EXISTS, "there is a tensor %s already", name);
	npumem_error_text(error, "tensor", name);
	return NPUMEM_ALREADY_EXISTS;
}

int tensors_rename(struct session *session, struct tensor *tensor, const char *name, struct npumem_error *error)
{
	struct names *names = &session->service->names;
	struct record *record = record_of(tensor);
	char before[NPUMEM_NAME_BYTES_MAX + 1];
	int status = check_new_name(session, record, name, error);

	if (status || !strcmp(record->name, name))
		return status;
	status = results_prepare(session, 1, error);
	if (status)
		return status;
	memcpy(before, record->name, sizeof(before));
	names_remove(names, record);
	memset(record->name, 0, sizeof(record->name));
	memcpy(record->name, name, strlen(name));
	names_add(names, record);
	keep_change(session, tensor);
	events_renamed(session->service, tensor, session, before);
	return 0;
}

static struct record_grants *grants_of(struct session *session, struct record *record)
{
	if (!record->grants)
		record->grants = heap_zalloc(session->service->heap, 1, sizeof(*record->grants));
	return record->grants;
}

/* The i-th, which is the uid's, or is none's yet. */
static void set_grant(struct record_grants *grants, unsigned i, uint32_t uid, enum record_access access)
{
	if (access != RECORD_NONE) {
		grants->to[i].uid = uid;
		grants->to[i].access = access;
		grants->n += i == grants->n;
	} else if (i < grants->n) {
		grants->to[i] = grants->to[--grants->n];
	}
}

int tensors_grant(struct session *session, struct tensor *tensor, uint32_t uid, enum record_access access,
		  struct npumem_error *error)
{
	struct record *record = record_of(tensor);
	struct record_grants *grants;
	unsigned i = 0;
	int status;

	if (!record->name[0])
		return npumem_error_set(error, NPUMEM_INVALID,
					"a tensor without a name dies with its session and cannot be granted");
	if (uid == record->uid)
		return npumem_error_set(error, NPUMEM_INVALID, "uid %" PRIu32 " owns %s", uid, record->name);
	grants = grants_of(session, record);
	if (!grants)
		return heap_exhausted(error);
	while (i < grants->n && grants->to[i].uid != uid)
		i++;
	if (access != RECORD_NONE && i == RECORD_GRANTS_MAX)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"%s is granted to %d uids, the most that it can be", record->name,
					RECORD_GRANTS_MAX);
	status = results_prepare(session, 1, error);
	if (status)
		return status;
	set_grant(grants, i, uid, access);
	keep_change(session, tensor);
	return 0;
}

struct tensor *tensors_after(const struct session *session, uint64_t *at, unsigned *looks)
{
	struct tensor *tensor;

	do
		tensor = device_after(session->service->device, at, looks);
	while (tensor && (record_of(tensor)->is_gone || !access_sees(session, tensor)));
	return tensor;
}

void tensors_new_state(const struct tensor *tensor, struct device_state *state)
{
	*state = (struct device_state){.unwritten_bytes = tensor->place.blocks.data};
	device_state_lending(tensor, state);
}

void tensors_describe(const struct session *session, const struct tensor *tensor, const struct device_state *state,
		      struct tensors_description *description)
{
	const struct record *record = record_of(tensor);
	const struct npumem_blocks *blocks = &tensor->place.blocks;

	description->tensor = tensor;
	description->name = record->name;
	description->uid = record->uid;
	description->base_handle = 0;
	description->base_name[0] = 0;
	if (state)
		description->bytes = *state;
	else
		device_state(session->service->device, tensor, &description->bytes);
	if (tensor->base) {
		if (access_sees(session, tensor->base))
			description->base_handle = tensor->base->handle;
		access_name(session, tensor->base, description->base_name, sizeof(description->base_name));
	}
	if (description->bytes.lost_bytes)
		description->state = "lost";
	else if (description->bytes.damaged_bytes)
		description->state = "damaged";
	else if (!description->bytes.unwritten_bytes)
		description->state = "ok";
	else
		description->state =
			description->bytes.unwritten_bytes < blocks->data ? "partly written" : "unwritten";
}
