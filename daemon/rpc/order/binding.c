/* A list of pointers, which stay good as a request that waits has an access to each of its tensors. */
#include "daemon/rpc/order/binding.h"

#include "daemon/service/record.h"

void binding_init(struct binding *binding, const struct session *session)
{
	binding->session = session;
	binding->tensors = binding->few;
	binding->needs = binding->few_needs;
	binding->n = binding->at = 0;
	binding->room = BINDING_FEW;
	binding->is_bound = false;
	binding->going = NULL;
}

void binding_deinit(struct binding *binding)
{
	if (binding->tensors != binding->few)
		heap_free(binding->session->service->heap, binding->tensors);
	binding->tensors = binding->few;
	binding->needs = binding->few_needs;
}

void binding_restart(struct binding *binding)
{
	binding->n = 0;
	binding->going = NULL;
}

bool binding_is_unchanged(const struct binding *binding, uint64_t since)
{
	enum { AHEAD = 12 };

	for (size_t i = 0; i < binding->n; i++) {
		if (i + AHEAD < binding->n)
			record_prefetch(binding->tensors[i + AHEAD]);
		if (!record_is_unchanged(binding->tensors[i], since))
			return false;
	}
	return true;
}

void binding_bind(struct binding *binding)
{
	binding->is_bound = true;
	binding->at = 0;
}

static int grow(struct binding *binding)
{
	size_t room = 2 * binding->room;
	struct tensor **grown = heap_alloc(binding->session->service->heap, room * (sizeof(*grown) + 1));
	uint8_t *needs = (uint8_t *)(grown + room);

	if (!grown)
		return -1;
	memcpy(grown, binding->tensors, binding->n * sizeof(*grown));
	memcpy(needs, binding->needs, binding->n);
	binding_deinit(binding);
	binding->tensors = grown;
	binding->needs = needs;
	binding->room = room;
	return 0;
}

static int add(struct binding *binding, struct tensor *tensor, enum access_need need)
{
	if (binding->n == binding->room && grow(binding))
		return -1;
	binding->needs[binding->n] = (uint8_t)need;
	binding->tensors[binding->n++] = tensor;
	return 0;
}

int binding_find(struct binding *binding, const Npumem__V1__Ref *ref, const char *what, enum access_need need,
		 struct tensor **tensor, struct npumem_error *error)
{
	struct access_ref to;
	int status;

	if (binding->is_bound) {
		*tensor = binding->tensors[binding->at++];
		return 0;
	}
	if (!ref)
		return npumem_error_set(error, NPUMEM_INVALID, "%s is not given", what);
	to = (struct access_ref){ref->handle, ref->name};
	status = access_find(binding->session, &to, need, tensor, error);
	if (status == NPUMEM_NOT_FOUND)
		binding->going = *tensor;
	if (!status && add(binding, *tensor, need))
		status = heap_exhausted(error);
	return status;
}

int binding_check(const struct binding *binding, struct npumem_error *error)
{
	int status = 0;

	for (size_t i = 0; i < binding->n && !status; i++)
		status = access_check(binding->session, binding->tensors[i], (enum access_need)binding->needs[i],
				      error);
	return status;
}
