/* Names are checked first, so that the device's step is the last one and need not be undone. Checks no rights. */
#include "daemon/service/tensors/tensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "daemon/service/kept/results.h"
#include "daemon/service/observed/events.h"
#include "daemon/service/service.h"
#include "daemon/service/tables.h"

static int check_free_name(const struct session *session, const char *name, const char *label,
			   struct npumem_error *error)
{
	int status;

	if (!name[0])
		return names_check_label(label, error);
	if (label[0])
		return npumem_error_set(error, NPUMEM_INVALID, "%.63s has a name, and a label is for one without",
					name);
	status = names_check(name, error);
	if (status)
		return status;
	if (names_find(&session->service->names, session->uid, name)) {
		status = npumem_error_set(error, NPUMEM_ALREADY_EXISTS, "there is a tensor %s already", name);
		npumem_error_text(error, "tensor", name);
	}
	return status;
}

static int check_free_names(const struct tensors_alloc *alloc, struct npumem_error *error)
{
	const char *const *names = alloc->names;

	for (unsigned i = 0; i < alloc->n; i++) {
		int status = check_free_name(alloc->session, names[i], alloc->labels[i], error);

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

/* Host memory of its grants. */
static uint32_t grants_bytes(const struct record *record)
{
	return record_grants(record) ? sizeof(struct record_grants) : 0;
}

/* Host memory of a tensor with so many meetings: in the heap, and in the mapped files of the state. */
static uint32_t host_bytes(const struct service *service, unsigned n_meetings)
{
	/* A cell with its frame, and a part of the journal. */
	enum { STATE_BYTES = STORE_TENSOR_BYTES_MAX + 80 };
	size_t in_state = persist_is_on(&service->persist) ? STATE_BYTES : 0;

	return (uint32_t)(device_host_bytes(service->device, n_meetings) + in_state);
}

/* Whether the user may have n more tensors, not counting meetings. */
static int check_more(struct session *session, unsigned n, struct npumem_error *error)
{
	struct limits_table *limits = &session->service->limits;
	int status = limits_check(limits, session->user, LIMITS_TENSORS, n, error);

	if (status)
		return status;
	return limits_check(limits, session->user, LIMITS_HOST_BYTES,
			    (uint64_t)n * host_bytes(session->service, 0), error);
}

/* Checks new tensors against the user's limits. */
static int check_charges(struct session *session, struct tensor *const *tensors, unsigned n,
			 struct npumem_error *error)
{
	uint64_t bytes = 0, host = 0;
	int status;

	for (unsigned i = 0; i < n; i++) {
		bytes += record_device_bytes(tensor_owner_room(tensors[i]));
		host += host_bytes(session->service, tensors[i]->n_meetings);
	}
	status = limits_check(&session->service->limits, session->user, LIMITS_DEVICE_BYTES, bytes, error);
	return status ? status
		      : limits_check(&session->service->limits, session->user, LIMITS_HOST_BYTES, host, error);
}

static void charge(struct service *service, struct tensor *tensor, struct limits_user *user, uint32_t uid)
{
	struct record *record = tensor_owner_room(tensor);

	record->uid = uid;
	record->user = user;
	if (!tensor->base)
		tensor->account = &user->packs;
	limits_charge(&service->limits, user, LIMITS_TENSORS, 1);
	limits_charge(&service->limits, user, LIMITS_VIEWS, tensor->base != NULL);
	limits_charge(&service->limits, user, LIMITS_DEVICE_BYTES, record_device_bytes(record));
	if (!tensor->base)
		totals_add(&user->totals, service->limits.geometry, tensor, 1);
	service_count_place(service, tensor, tensor_offset(tensor), 1);
	record->host_bytes = host_bytes(service, tensor->n_meetings) + grants_bytes(record);
	limits_charge(&service->limits, user, LIMITS_HOST_BYTES, record->host_bytes);
}

int tensors_readopt(struct service *service, struct session *session, uint32_t uid, struct tensor *tensor)
{
	struct limits_user *user = limits_take(&service->limits, uid);

	if (!user)
		return -ENOMEM;
	charge(service, tensor, user, uid);
	service_adopt(service, session, tensor);
	return 0;
}

/* `index`: among those of the request. */
static void adopt(struct session *session, const char *name, const char *label, unsigned index,
		  struct tensor *tensor)
{
	struct record *record = tensor_owner_room(tensor);

	record->session_id = session->id;
	record->era = session->service->recorder.era;
	if (results_are_kept(session)) {
		record->request = session->request;
		record->request_index = index;
		record->maker_cell = session->cell;
	}
	charge(session->service, tensor, limits_hold(session->user), session->uid);
	/* Checked: they fit, and the rest is zero. */
	memcpy(record->name, name, strlen(name));
	memcpy(record->name + !name[0], label, strlen(label));
	service_adopt(session->service, session, tensor);
	if (record->request)
		results_add_made(session, record);
	persist_put(session->service, tensor);
	events_tensor(session->service, EVENTS_ALLOCATED, tensor, session, -1);
}

bool tensors_lacked_room(const struct npumem_error *error)
{
	return error->status == NPUMEM_RESOURCE_EXHAUSTED &&
	       npumem_error_find(error, "asked_bytes_per_npu", -1) >= 0;
}

static int check(const struct tensors_alloc *alloc, struct npumem_error *error)
{
	struct session *session = alloc->session;
	int status = check_free_names(alloc, error);

	return status ? status : check_more(session, alloc->n, error);
}

int tensors_alloc_begin(struct tensors_alloc *alloc, struct npumem_error *error)
{
	int status;

	if (alloc->n < 1 || alloc->n > TENSORS_ALLOC_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "%u tensors to allocate, which is not 1 to %d",
					alloc->n, TENSORS_ALLOC_MAX);
	status = check(alloc, error);
	if (status)
		return status;
	alloc->refused = 0;
	alloc->n_in_order = 0;
	alloc->lacks_places = false;
	device_alloc_begin(&alloc->device, alloc->session->service->device, alloc->requests, alloc->n,
			   alloc->tensors);
	return 0;
}

/* The text of the refusal has the places that are left when the tensors are released, so it is written then. */
static int check_places(struct tensors_alloc *alloc)
{
	alloc->lacks_places = !places_are_left(alloc->session, &alloc->places);
	return alloc->lacks_places ? NPUMEM_RESOURCE_EXHAUSTED : 0;
}

/* Names and charges may have changed between the steps. */
static int check_again(struct tensors_alloc *alloc, struct waiting_claims claims, struct npumem_error *error)
{
	struct service *service = alloc->session->service;
	int status = check(alloc, error);

	if (!status)
		status = check_charges(alloc->session, alloc->tensors, alloc->n, error);
	if (!status)
		status = tensors_check_turn(alloc, claims, error);
	if (!status)
		status = check_places(alloc);
	return status ? status : persist_prepare_new(service, alloc->tensors, alloc->n, error);
}

static void give_back_held(struct tensors_alloc *alloc)
{
	struct limits_user *user = alloc->session->user;

	for (int key = 0; key < LIMITS_N; key++) {
		limits_give_back(&alloc->session->service->limits, user, (enum limits_key)key, alloc->held[key]);
		alloc->held[key] = 0;
	}
}

/* What it holds between two steps; returns how many tensors have their places. */
static unsigned measure_held(const struct tensors_alloc *alloc, uint64_t held[LIMITS_N])
{
	unsigned n;

	memset(held, 0, LIMITS_N * sizeof(*held));
	held[LIMITS_DEVICE_BYTES] = (uint64_t)device_alloc_bytes(&alloc->device, &n);
	held[LIMITS_TENSORS] = n;
	held[LIMITS_HOST_BYTES] = (uint64_t)n * host_bytes(alloc->session->service, 0);
	held[LIMITS_REQUEST_BYTES] = device_alloc_host_bytes(&alloc->device);
	return n;
}

/* -EAGAIN; or what it holds passes a limit or is kept for others. */
static int check_held(struct tensors_alloc *alloc, struct waiting_claims claims, struct npumem_error *error)
{
	struct session *session = alloc->session;
	uint64_t held[LIMITS_N];
	unsigned n = measure_held(alloc, held);
	int status = 0;

	for (int key = 0; key < LIMITS_N && !status; key++)
		if (held[key])
			status = limits_check(&session->service->limits, session->user, (enum limits_key)key,
					      held[key], error);
	if (!status)
		status = check_places(alloc);
	if (!status)
		status = tensors_check_held(alloc, claims, n, error);
	return status ? status : -EAGAIN;
}

static void charge_held(struct tensors_alloc *alloc)
{
	struct service *service = alloc->session->service;

	measure_held(alloc, alloc->held);
	/* What one in line asks for is looked at beside what its user has. */
	if (alloc->turn == TENSORS_HEAD)
		alloc->held[LIMITS_DEVICE_BYTES] = 0;
	for (int key = 0; key < LIMITS_N; key++)
		limits_charge(&service->limits, alloc->session->user, (enum limits_key)key, alloc->held[key]);
}

/* 0: all have their places, and may keep them; -EAGAIN; or a status. */
static int place(struct tensors_alloc *alloc, int64_t *steps, struct npumem_error *error)
{
	struct session *session = alloc->session;
	struct error_context context = access_context(session, error);
	struct waiting_claims claims;
	int64_t free_bytes;
	int status;

	/* It is tried after each free, so its refusals must be cheap. */
	context.is_brief = alloc->turn == TENSORS_HEAD;
	/* Computed before its own tensors take room. */
	claims = waiting_claims(session->service, session->user);
	places_before(session, alloc->requests, alloc->n, &alloc->places);
	device_room(session->service->device, &free_bytes, &alloc->largest);
	status = device_alloc_step(&alloc->device, steps, &context);
	/* In steps, as each of them may meet hundreds. */
	for (; alloc->n_in_order < alloc->device.i; alloc->n_in_order++)
		scheduler_add_root(alloc->tensors[alloc->n_in_order]);
	if (status == -EAGAIN)
		return check_held(alloc, claims, error);
	return status ? status : check_again(alloc, claims, error);
}

int tensors_alloc_step(struct tensors_alloc *alloc, int64_t *steps, struct npumem_error *error)
{
	struct session *session = alloc->session;
	int status = alloc->refused;

	give_back_held(alloc);
	if (!status)
		status = place(alloc, steps, error);
	if (status > 0) {
		alloc->refused = status;
		if (!device_alloc_cancel(&alloc->device, steps))
			status = -EAGAIN;
		else if (alloc->lacks_places)
			status = places_refuse(session, &alloc->places, error);
	}
	if (status == -EAGAIN)
		charge_held(alloc);
	if (status)
		return status;
	for (unsigned i = 0; i < alloc->n; i++)
		adopt(session, alloc->names[i], alloc->labels[i], i, alloc->tensors[i]);
	persist_commit(&session->service->persist);
	events_room(session->service);
	/* It may block a waiter of its user, which then holds others up no more. */
	session->service->waiting.is_due |= session->service->waiting.n > 0;
	return 0;
}

void tensors_moved(struct service *service, const struct device_move *moves, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		service_count_place(service, moves[i].tensor, moves[i].from_offset, -1);
		service_count_place(service, moves[i].tensor, moves[i].to_offset, 1);
	}
	for (unsigned i = 0; i < n; i++)
		persist_put(service, moves[i].tensor);
	persist_commit(&service->persist);
}

int tensors_view(struct session *session, struct tensor *base, const char *name, const char *label,
		 const struct device_slice *slice, const struct npumem_dims *shape, const int64_t *frac_bits,
		 struct tensor **view, struct npumem_error *error)
{
	struct service *service = session->service;
	struct error_context context = access_context(session, error);
	int status = check_free_name(session, name, label, error);

	if (!status)
		status = limits_check(&service->limits, session->user, LIMITS_VIEWS, 1, error);
	if (!status)
		status = check_more(session, 1, error);
	if (!status && frac_bits)
		status = device_view_format(service->device, base, *frac_bits, view, &context);
	else if (!status)
		status = shape ? device_view_reshape(service->device, base, shape, view, &context)
			       : device_view_slice(service->device, base, slice, view, &context);
	if (status)
		return status;
	status = persist_prepare_new(service, view, 1, error);
	if (status) {
		device_release(service->device, *view, NULL, NULL);
		return status;
	}
	adopt(session, name, label, 0, *view);
	persist_commit(&service->persist);
	return 0;
}

struct tensor *tensors_after(const struct session *session, uint64_t *at, unsigned *looks)
{
	struct tensor *tensor;

	do
		tensor = device_after(session->service->device, at, looks);
	while (tensor && (record_is_gone(record_of(tensor)) || !access_sees(session, tensor)));
	return tensor;
}

void tensors_new_state(const struct tensor *tensor, struct device_state *state)
{
	*state = (struct device_state){.unwritten_bytes = tensor_data_bytes(tensor)};
	device_state_lending(tensor, state);
}

void tensors_describe(const struct session *session, const struct tensor *tensor, const struct device_state *state,
		      struct tensors_description *description)
{
	const struct record *record = record_of(tensor);
	const int64_t data_bytes = tensor_data_bytes(tensor);
	struct npumem_error refusal;

	refusal.status = 0;
	description->tensor = tensor;
	description->name = record->name;
	record_label(record, description->label);
	description->uid = record->uid;
	description->base_handle = 0;
	description->base_name[0] = 0;
	/* A view may outlive its owner's right to the base. */
	if (access_check(session, tensor, ACCESS_READ, &refusal))
		description->bytes = (struct device_state){.unwritten_bytes = 0};
	else if (state)
		description->bytes = *state;
	else
		device_state(session->service->device, tensor, &description->bytes);
	if (tensor->base) {
		if (access_sees(session, tensor->base))
			description->base_handle = tensor->base->handle;
		access_name(session, tensor->base, description->base_name, sizeof(description->base_name));
	}
	if (refusal.status)
		description->state = "";
	else if (description->bytes.lost_bytes)
		description->state = "lost";
	else if (description->bytes.damaged_bytes)
		description->state = "damaged";
	else if (!description->bytes.unwritten_bytes)
		description->state = "ok";
	else
		description->state =
			description->bytes.unwritten_bytes < data_bytes ? "partly written" : "unwritten";
}
