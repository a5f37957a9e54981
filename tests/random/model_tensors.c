/* How tensors come and go, and what is told of them. */
#include "tests/random/model_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct model_tensor *add(struct model *model, unsigned peer, int slot, uint64_t handle)
{
	unsigned index = 0;
	struct model_tensor *tensor;

	while (model->tensors[index].is_there)
		if (++index == MODEL_TENSORS)
			abort();
	tensor = model_keep(model, index, true);
	*tensor = (struct model_tensor){.is_there = true,
					.peer = peer,
					.uid = model_uid(model, peer),
					.slot = slot,
					.handle = handle,
					.base = -1,
					.n_w = TRACE_W,
					.n_c = TRACE_C};
	memset(model->bytes[index], MODEL_UNWRITTEN, MODEL_ELEMENTS);
	return tensor;
}

/* With its views; the number of all. */
static unsigned drop(struct model *model, unsigned index)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MODEL_TENSORS; i++)
		if (model->tensors[i].is_there && (i == index || model->tensors[i].base == (int)index)) {
			model_keep(model, i, false)->is_there = false;
			n++;
		}
	return n;
}

void model_close(struct model *model, unsigned peer)
{
	for (unsigned i = 0; i < MODEL_TENSORS; i++)
		if (model->tensors[i].is_there && model->tensors[i].slot == MODEL_NO_NAME &&
		    model->tensors[i].peer == peer)
			drop(model, i);
}

static unsigned check_names(const struct model *model, const struct model_request *from)
{
	const struct trace_request *request = from->request;
	unsigned refused = 0, uid = model_uid(model, from->peer);

	for (unsigned i = 0; i < request->n_tensors; i++) {
		const struct trace_tensor *tensor = &request->tensors[i];

		if (tensor->anonymous)
			continue;
		if (model_find_named(model, uid, tensor->slot) >= 0)
			refused |= model_bit(NPUMEM__V1__STATUS__ALREADY_EXISTS);
		for (unsigned k = 0; k < i; k++)
			if (!request->tensors[k].anonymous && request->tensors[k].slot == tensor->slot)
				refused |= model_bit(NPUMEM__V1__STATUS__INVALID);
	}
	return refused;
}

bool model_do_alloc(struct model *model, const struct model_request *from, int status)
{
	const Npumem__V1__Response *response = from->response;
	unsigned refused = check_names(model, from), n = from->request->n_tensors;

	/* Whether there is room is the daemon's to say. */
	if (status == NPUMEM__V1__STATUS__RESOURCE_EXHAUSTED || status == NPUMEM__V1__STATUS__DEADLINE_EXCEEDED)
		return true;
	if (!((refused ? refused : MODEL_OK) & model_bit(status)))
		return model_deny(model, "may be answered by %x, bits of statuses", refused ? refused : MODEL_OK);
	if (!status && response && (!response->allocated || response->allocated->n_tensors != n))
		return model_deny(model, "it is not told of %u tensors", n);
	for (unsigned i = 0; i < n && !status; i++) {
		const struct trace_tensor *spec = &from->request->tensors[i];
		struct model_tensor *tensor =
			add(model, from->peer, spec->anonymous ? MODEL_NO_NAME : (int)spec->slot,
			    response ? response->allocated->tensors[i]->handle : 0);

		tensor->dma_only = spec->dma_only;
		tensor->n_c = spec->narrow ? TRACE_C_NARROW : TRACE_C;
	}
	return true;
}

/* That a tensor which is told of is this one. */
static bool is_told(struct model *model, unsigned index, const Npumem__V1__Tensor *told)
{
	const struct model_tensor *tensor = &model->tensors[index],
				  *root = &model->tensors[model_root(model, index)];
	char name[TRACE_NAME_BYTES] = "";

	if (!tensor->handle)
		model_keep(model, index, false)->handle = told->handle;
	if (tensor->slot != MODEL_NO_NAME)
		snprintf(name, sizeof(name), "t%d", tensor->slot);
	if (tensor->handle != told->handle || strcmp(name, told->name) ||
	    told->uid != TRACE_FIRST_UID + tensor->uid)
		return model_deny(model,
				  "it is told of %s of uid %u, handle %llx, not of %s of uid %u, handle %llx",
				  told->name, told->uid, (unsigned long long)told->handle, name,
				  TRACE_FIRST_UID + tensor->uid, (unsigned long long)tensor->handle);
	return (told->sealed == root->sealed && told->dma_only == root->dma_only &&
		(tensor->base >= 0 || !told->base_handle)) ||
	       model_deny(model, "it is told of %s as sealed, dma_only or a view, which is not so", name);
}

bool model_do_view(struct model *model, const struct model_request *from, int status)
{
	const struct trace_op *op = &from->request->ops[0];
	const Npumem__V1__Response *response = from->response;
	unsigned index = 0, may = model_resolve(model, from, 0, 1, MODEL_READ, &index), uid;
	struct model_tensor base = model->tensors[index], *view;
	unsigned slot = op->refs[0].slot;

	if (!may && model_right_to_root(model, index, from->peer) < MODEL_READ)
		may = model_bit(NPUMEM__V1__STATUS__PERMISSION_DENIED);
	if (trace_slot_of(model->trace, from->peer, slot, &uid, &slot) &&
	    model_find_named(model, model_uid(model, from->peer), slot) >= 0)
		may |= model_bit(NPUMEM__V1__STATUS__ALREADY_EXISTS);
	if ((unsigned)(op->first + op->count) > base.n_w)
		may |= model_bit(NPUMEM__V1__STATUS__INVALID);
	may = may ? may : MODEL_OK;
	if (!(may & model_bit(status)))
		return model_deny(model, "may be answered by %x, bits of statuses", may);
	if (status)
		return true;
	view = add(model, from->peer, (int)slot, response ? response->tensor->handle : 0);
	view->base = (int)model_root(model, index);
	view->from_w = base.from_w + (unsigned)op->first;
	view->n_w = (unsigned)op->count;
	view->n_c = TRACE_C_NARROW;
	return true;
}

bool model_do_free(struct model *model, const struct model_request *from, int status)
{
	unsigned indices[TRACE_OPS], may = 0, n = from->request->n_ops, freed = 0;

	for (unsigned i = 0; i < n; i++)
		may |= model_resolve(model, from, i, 0, MODEL_OWN, &indices[i]);
	for (unsigned i = 1; i < n && !may; i++)
		if (indices[i] == indices[0])
			may |= model_bit(NPUMEM__V1__STATUS__INVALID);
	may = may ? may : MODEL_OK;
	if (!(may & model_bit(status)))
		return model_deny(model, "may be answered by %x, bits of statuses", may);
	for (unsigned i = 0; i < n && !status; i++)
		freed += drop(model, indices[i]);
	return status || !from->response || (unsigned)from->response->freed->tensors == freed ||
	       model_deny(model, "it is told of %u tensors, not %u", (unsigned)from->response->freed->tensors,
			  freed);
}

static unsigned check_seal(const struct model *model, unsigned index)
{
	const struct model_tensor *tensor = &model->tensors[index];

	return tensor->base >= 0 ? model_bit(NPUMEM__V1__STATUS__INVALID)
				 : model_look(model, index, 0, model_elements(tensor));
}

static unsigned check_grant(const struct model *model, const struct model_request *from, unsigned index)
{
	const struct model_tensor *tensor = &model->tensors[index];
	unsigned uid = message_granted_uid(model->trace, from->peer, &from->request->ops[0]) - TRACE_FIRST_UID;

	return tensor->slot == MODEL_NO_NAME || tensor->uid == uid ? model_bit(NPUMEM__V1__STATUS__INVALID)
								   : MODEL_OK;
}

static void grant(struct model *model, const struct model_request *from, unsigned index)
{
	const struct trace_op *op = &from->request->ops[0];
	unsigned uid = message_granted_uid(model->trace, from->peer, op) - TRACE_FIRST_UID;

	model_keep(model, index, false)->rights[uid] = (unsigned)op->value - NPUMEM__V1__ACCESS__ACCESS_NONE;
}

/* Open, seal, grant: answered with the tensor. */
bool model_do_one(struct model *model, const struct model_request *from, int status)
{
	enum trace_verb verb = from->request->verb;
	unsigned index = 0;
	unsigned may = model_resolve(model, from, 0, 0, verb == TRACE_OPEN ? MODEL_READ : MODEL_OWN, &index);

	if (!may)
		may = verb == TRACE_OPEN   ? MODEL_OK
		      : verb == TRACE_SEAL ? check_seal(model, index)
					   : check_grant(model, from, index);
	if (!(may & model_bit(status)))
		return model_deny(model, "may be answered by %x, bits of statuses", may);
	if (status)
		return true;
	if (verb == TRACE_SEAL)
		model_keep(model, index, false)->sealed = true;
	if (verb == TRACE_GRANT)
		grant(model, from, index);
	return !from->response || is_told(model, index, from->response->tensor);
}

/* All that is told must be there for the client; that all is told that is can be said where nothing else is under
 * way: what goes meanwhile is left out. */
bool model_do_list(struct model *model, const struct model_request *from, int status)
{
	const Npumem__V1__List *list = from->response ? from->response->list : NULL;
	unsigned n = 0;

	if (status || !list)
		return !status;
	for (size_t i = 0; i < list->n_tensors; i++) {
		int found = model_find(model, from->peer, 0, list->tensors[i]->handle);

		if (found >= 0 ? !model_right(model, &model->tensors[found], from->peer)
			       : from->is_alone && list->tensors[i]->name[0] == 0)
			return model_deny(model, "%s of uid %u is listed, which is not for this client",
					  list->tensors[i]->name, list->tensors[i]->uid);
	}
	for (unsigned i = 0; i < MODEL_TENSORS; i++)
		n += model->tensors[i].is_there && model_right(model, &model->tensors[i], from->peer);
	return list->n_tensors == n || (!from->is_alone && list->n_tensors < n) ||
	       model_deny(model, "%zu tensors are listed of %u", list->n_tensors, n);
}
