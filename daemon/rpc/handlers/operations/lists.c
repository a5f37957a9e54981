/* Invariant: a list has as many users as calls that point into its message, and one more while its peer keeps it;
 * its bytes are in the user's books until the last one goes. */
#include "daemon/rpc/handlers/operations/lists.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/operations/prepare.h"
#include "daemon/service/operations.h"

struct list {
	uint64_t id;
	unsigned n_users;
	size_t bytes; /* charged */
	struct rpc *rpc;
	struct limits_user *user;
	struct budget budget; /* that it was decoded into */
	const Npumem__V1__KeepRequest *request;
	uint8_t *message; /* with the payloads */
	struct list *next;
};

/* ---- the table ---- */

static struct list *find(const struct rpc_peer *peer, uint64_t id)
{
	struct list *list = peer->lists;

	while (list && list->id != id)
		list = list->next;
	return list;
}

void lists_release(struct list *list)
{
	if (!list || --list->n_users)
		return;
	limits_give_back(&list->rpc->service->limits, list->user, LIMITS_LIST_BYTES, list->bytes);
	limits_drop(&list->rpc->service->limits, list->user);
	budget_deinit(&list->budget);
	heap_free(list->rpc->heap, list->message);
	heap_free(list->rpc->heap, list);
}

/* Submits that came before go on with the list. */
static int drop(struct rpc_peer *peer, uint64_t id, struct npumem_error *error)
{
	struct list **at = &peer->lists, *list;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	list = *at;
	if (!list)
		return npumem_error_set(error, NPUMEM_NOT_FOUND, "this session keeps no list %" PRIu64, id);
	*at = list->next;
	lists_release(list);
	return 0;
}

void lists_deinit(struct rpc_peer *peer)
{
	struct list *list;

	while ((list = peer->lists)) {
		peer->lists = list->next;
		lists_release(list);
	}
}

/* ---- the tensors of an operation ---- */

/* Where an operation has its i-th tensor, and the role of that. NULL: it has no more. */
static Npumem__V1__Ref **tensor_at(const Npumem__V1__Operation *operation, size_t i, const char **role)
{
	*role = "";
	switch (operation->kind_case) {
	case NPUMEM__V1__OPERATION__KIND_WRITE:
		return i ? NULL : &operation->write->tensor;
	case NPUMEM__V1__OPERATION__KIND_READ:
		return i ? NULL : &operation->read->tensor;
	case NPUMEM__V1__OPERATION__KIND_FILL:
		return i ? NULL : &operation->fill->tensor;
	case NPUMEM__V1__OPERATION__KIND_COPY:
		*role = i ? "destination" : "source";
		if (i > 1)
			return NULL;
		return i ? &operation->copy->destination : &operation->copy->source;
	case NPUMEM__V1__OPERATION__KIND_RUN:
		if (i >= operation->run->n_operands)
			return NULL;
		*role = operation->run->operands[i]->role;
		return &operation->run->operands[i]->tensor;
	default:
		return NULL; /* its run says what it is */
	}
}

/* Where an operation has its tensor of that role. NULL: it has no such role. */
static Npumem__V1__Ref **place_of(const Npumem__V1__Operation *operation, const char *wanted)
{
	Npumem__V1__Ref **place;
	const char *role;

	for (size_t i = 0; (place = tensor_at(operation, i, &role)); i++)
		if (!strcmp(role, wanted))
			return place;
	return NULL;
}

static bool has_handles(const Npumem__V1__Operation *operation)
{
	Npumem__V1__Ref **place;
	const char *role;

	for (size_t i = 0; (place = tensor_at(operation, i, &role)); i++)
		if (!*place || !(*place)->handle || *(*place)->name)
			return false;
	return true;
}

/* ---- keeping ---- */

/* A name could be another tensor's at the next run. Each change of a run looks through its operands, so there are
 * no more of them than a kernel can have. */
static int check_operation(const Npumem__V1__Operation *operation, size_t index, struct npumem_error *error)
{
	char message[NPUMEM_MESSAGE_BYTES];

	if (operation->kind_case == NPUMEM__V1__OPERATION__KIND_RUN &&
	    prepare_check_operands(operation->run, error)) {
		snprintf(message, sizeof(message), "%s", error->message);
		snprintf(error->message, sizeof(error->message), "operation %zu: %.200s", index, message);
		return error->status;
	}
	return has_handles(operation)
		       ? 0
		       : npumem_error_set(
				 error, NPUMEM_INVALID,
				 "operation %zu: a kept list has its tensors by their handles, without names",
				 index);
}

static int check(const struct rpc_peer *peer, const Npumem__V1__KeepRequest *request, struct npumem_error *error)
{
	unsigned n = 0;

	if (!request->list)
		return npumem_error_set(error, NPUMEM_INVALID, "a list's id is above 0");
	if (find(peer, request->list))
		return npumem_error_set(error, NPUMEM_INVALID, "this session already keeps a list %" PRIu64,
					request->list);
	for (const struct list *list = peer->lists; list; list = list->next)
		n++;
	if (n >= LISTS_MAX)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"this session keeps %u lists, and no more are possible", n);
	if (!request->n_operations || request->n_operations > OPERATIONS_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "a list of %zu operations: 1 to %d are possible",
					request->n_operations, OPERATIONS_MAX);
	if (names_check_label(request->label, error))
		return error->status;
	for (size_t i = 0; i < request->n_operations; i++) {
		if (!names_check_label(request->operations[i]->label, error) &&
		    !check_operation(request->operations[i], i, error))
			continue;
		npumem_error_number(error, "operation", (int64_t)i);
		return error->status;
	}
	return 0;
}

/* The call's message, and what it was decoded into, are the list's from then on: 16 MiB are not copied on the
 * loop. The call points into them until it ends. */
static int keep_list(struct call *call, uint64_t *bytes)
{
	const struct heap *heap = call->rpc->heap;
	struct limits_table *limits = &call->rpc->service->limits;
	struct limits_user *user = call->session->user;
	int status = check(call->peer, call->request->keep, call->error);
	struct list *list;

	*bytes = sizeof(*list) + call->bytes + call->budget.held;
	if (!status)
		status = limits_check(limits, user, LIMITS_LIST_BYTES, *bytes, call->error);
	if (!status)
		status = charge_own_message(call);
	if (status)
		return status;
	list = heap_alloc(heap, sizeof(*list));
	if (!list)
		return heap_exhausted(call->error);
	*list = (struct list){.id = call->request->keep->list,
			      .n_users = 2,
			      .bytes = *bytes,
			      .rpc = call->rpc,
			      .user = limits_hold(user),
			      .request = call->request->keep,
			      .message = call->owns_message ? call->message : NULL,
			      .next = call->peer->lists};
	limits_charge(limits, user, LIMITS_LIST_BYTES, list->bytes);
	budget_move(&call->budget, &list->budget);
	call->owns_message = false;
	call->list = call->peer->lists = list;
	return 0;
}

/* ---- running ---- */

struct expansion {
	struct call *call;
	const struct list *list;
	Npumem__V1__Operation **operations;
};

static void *duplicate(struct expansion *expansion, const void *from, size_t bytes)
{
	void *to = budget_alloc(&expansion->call->budget, bytes);

	return to ? memcpy(to, from, bytes) : NULL;
}

static bool own_operands(struct expansion *expansion, Npumem__V1__RunRequest *run)
{
	size_t n = run->n_operands;

	if (!n)
		return true;
	run->operands = duplicate(expansion, run->operands, n * sizeof(void *));
	if (!run->operands)
		return false;
	for (size_t i = 0; i < n; i++) {
		run->operands[i] = duplicate(expansion, run->operands[i], sizeof(*run->operands[i]));
		if (!run->operands[i])
			return false;
	}
	return true;
}

/* The operation as the call's own, once; what does not change stays the list's. NULL without memory. */
static Npumem__V1__Operation *own_operation(struct expansion *expansion, size_t index)
{
	const Npumem__V1__Operation *from = expansion->list->request->operations[index];
	Npumem__V1__Operation *to = expansion->operations[index];
	const ProtobufCMessage *kind;

	if (to != from)
		return to;
	to = duplicate(expansion, from, sizeof(*from));
	if (!to || from->kind_case == NPUMEM__V1__OPERATION__KIND__NOT_SET)
		return to;
	kind = &from->write->base; /* or what it is, in the same place */
	to->write = duplicate(expansion, kind, kind->descriptor->sizeof_message);
	if (!to->write ||
	    (from->kind_case == NPUMEM__V1__OPERATION__KIND_RUN && !own_operands(expansion, to->run)))
		return NULL;
	expansion->operations[index] = to;
	return to;
}

/* Where it has a segment: the fields that say which. */
static bool change_segment(Npumem__V1__Operation *operation, const Npumem__V1__Change *change)
{
	if (operation->kind_case == NPUMEM__V1__OPERATION__KIND_WRITE && operation->write->segment) {
		operation->write->segment = change->segment;
		operation->write->segment_offset = change->segment_offset;
		return true;
	}
	if (operation->kind_case == NPUMEM__V1__OPERATION__KIND_READ && operation->read->segment) {
		operation->read->segment = change->segment;
		operation->read->segment_offset = change->segment_offset;
		return true;
	}
	return false;
}

static int refuse_change(struct call *call, size_t at, const char *why, const char *role)
{
	npumem_error_set(call->error, NPUMEM_INVALID, "change %zu %s%.32s%s", at, why, role, *role ? "\"" : "");
	npumem_error_number(call->error, "change", (int64_t)at);
	return NPUMEM_INVALID;
}

static int change(struct expansion *expansion, size_t at, const Npumem__V1__Change *change)
{
	struct call *call = expansion->call;
	Npumem__V1__Operation *operation;
	Npumem__V1__Ref **place, ref = NPUMEM__V1__REF__INIT;

	if (change->operation >= expansion->list->request->n_operations)
		return refuse_change(call, at, "is of an operation behind the list's end", "");
	if (!change->tensor && !change->segment)
		return refuse_change(call, at, "has neither a tensor nor a segment", "");
	operation = own_operation(expansion, change->operation);
	if (!operation)
		return heap_exhausted(call->error);
	if (change->segment && !change_segment(operation, change))
		return refuse_change(call, at, "has a segment, and its operation none", "");
	if (!change->tensor)
		return 0;
	place = place_of(operation, change->role);
	if (!place)
		return refuse_change(call, at, "has a tensor for a role that its operation has not: \"",
				     *change->role ? change->role : "\" (none)");
	ref.handle = change->tensor;
	*place = duplicate(expansion, &ref, sizeof(ref));
	return *place ? 0 : heap_exhausted(call->error);
}

int lists_expand(struct call *call)
{
	Npumem__V1__SubmitRequest *request = call->request->submit;
	struct expansion expansion = {.call = call, .list = find(call->peer, request->list)};
	size_t n;
	int status = 0;

	if (!request->list)
		return npumem_error_set(call->error, NPUMEM_INVALID, "a submit has changes and no list");
	if (request->n_operations)
		return npumem_error_set(call->error, NPUMEM_INVALID,
					"a submit has operations or a list, not both");
	if (!expansion.list)
		return npumem_error_set(call->error, NPUMEM_NOT_FOUND, "this session keeps no list %" PRIu64,
					request->list);
	n = expansion.list->request->n_operations;
	expansion.operations = duplicate(&expansion, expansion.list->request->operations, n * sizeof(void *));
	if (!expansion.operations)
		return heap_exhausted(call->error);
	for (size_t i = 0; i < request->n_changes && !status; i++)
		status = change(&expansion, i, request->changes[i]);
	if (status)
		return status;
	call->list = find(call->peer, request->list);
	call->list->n_users++;
	if (!*request->label)
		request->label = expansion.list->request->label;
	request->operations = expansion.operations;
	request->n_operations = n;
	/* What is left is a submit like any other: so a recording has it. */
	request->list = 0;
	request->n_changes = 0;
	return 0;
}

/* ---- the requests ---- */

/* Room for the answer first: a list that cannot be told of is not kept. */
int handle_lists_keep(struct call *call)
{
	Npumem__V1__Kept message = NPUMEM__V1__KEPT__INIT;
	int status = reply_reserve(&call->reply, 4 * REPLY_TAG_BYTES, call->error);

	if (!status)
		status = keep_list(call, &message.bytes);
	if (status)
		return status;
	message.list = call->request->keep->list;
	reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_KEPT, &message.base);
	return 0;
}

int handle_lists_unkeep(struct call *call)
{
	Npumem__V1__Unkept message = NPUMEM__V1__UNKEPT__INIT;
	int status = reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_UNKEPT, &message.base, call->error);

	return status ? status : drop(call->peer, call->request->unkeep->list, call->error);
}
