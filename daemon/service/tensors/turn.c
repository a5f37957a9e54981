/* Whether an allocation may keep its new tensors while requests wait for room. Checked after the allocation: only
 * the arena knows the best place. */
#include <inttypes.h>
#include <stdio.h>

#include "daemon/device/placement/keep_free.h"
#include "daemon/service/tables.h"
#include "daemon/service/tensors/tensors.h"

static bool is_in_range(const struct waiter *claimant, struct tensor *const *tensors, unsigned n)
{
	for (unsigned i = 0; claimant && i < n; i++) {
		const struct npumem_place *place = TENSOR_PLACE(tensors[i]);

		if (place->offset < claimant->to && claimant->from < place->offset + place->bytes_per_npu)
			return true;
	}
	return false;
}

static bool has_shrunk(const struct tensors_alloc *alloc)
{
	int64_t free_bytes, left;

	device_room(alloc->session->service->device, &free_bytes, &left);
	return left < alloc->largest;
}

/* Whether its last step left the largest free extent to the waiter that claims it, if it must. */
static bool leaves_extent(const struct tensors_alloc *alloc, struct waiting_claims claims)
{
	return !claims.extent || alloc->turn == TENSORS_HEAD ||
	       (alloc->turn == TENSORS_AT_ONCE && !has_shrunk(alloc));
}

/* The same between two steps. One that holds no others up may never be granted, and what it holds until then would
 * be kept from those behind it. */
static bool holds_extent_of_others(const struct tensors_alloc *alloc, struct waiting_claims claims)
{
	const struct waiter *claimant;

	if (alloc->turn != TENSORS_HEAD)
		return !leaves_extent(alloc, claims);
	claimant = waiting_claims(alloc->session->service, NULL).extent;
	return claimant && claimant->user != alloc->session->user && has_shrunk(alloc);
}

static bool may_lie_anywhere(const struct tensors_alloc *alloc)
{
	unsigned i = 0;

	while (i < alloc->n && alloc->requests[i].spec.address == NPUMEM_ANY &&
	       alloc->requests[i].reuse <= NPUMEM_NEVER)
		i++;
	return i == alloc->n;
}

/* Allocates the tensors again, outside of a claimant's range. If that cannot be kept free, they may lie in it. 0,
 * or a status without a message. */
static int leave_range(struct tensors_alloc *alloc, const struct waiter *claimant)
{
	struct device *device = alloc->session->service->device;
	struct error_context quiet = {.error = NULL};
	struct keep_free keep;
	bool is_kept;
	int status;

	if (!may_lie_anywhere(alloc))
		return NPUMEM_RESOURCE_EXHAUSTED;
	device_release_all(device, alloc->tensors, alloc->n);
	is_kept = keep_free_begin(device, claimant->from, claimant->to, &keep);
	status = device_alloc(device, alloc->requests, alloc->n, alloc->tensors, &quiet);
	alloc->device.i = status ? 0 : alloc->n;
	if (is_kept)
		keep_free_end(device, &keep);
	return status;
}

/* Counts only the user's own waiters: the number of other users' is not disclosed. */
static int refuse_turn(const struct tensors_alloc *alloc, int64_t asked, struct npumem_error *error)
{
	uint64_t n_own = alloc->session->user->now[LIMITS_WAITING];
	char own[64] = "";

	if (n_own)
		snprintf(own, sizeof(own), ", %" PRIu64 " of them of this user", n_own);
	npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
			 alloc->turn == TENSORS_LAST
				 ? "earlier allocations wait for room before this one%s"
				 : "what is free here is kept for allocations that wait for room%s",
			 own);
	npumem_error_number(error, "asked_bytes_per_npu", asked);
	npumem_error_number(error, "waiting", (int64_t)n_own);
	return NPUMEM_RESOURCE_EXHAUSTED;
}

static bool is_in_claimed_range(const struct tensors_alloc *alloc, struct waiting_claims claims, unsigned n)
{
	return claims.range != alloc->waiter && is_in_range(claims.range, alloc->tensors, n);
}

int tensors_check_turn(struct tensors_alloc *alloc, struct waiting_claims claims, struct npumem_error *error)
{
	int64_t asked = tensor_bytes_per_npu(alloc->tensors[0]);

	if (is_in_claimed_range(alloc, claims, alloc->n) && leave_range(alloc, claims.range))
		return refuse_turn(alloc, asked, error);
	return leaves_extent(alloc, claims) ? 0 : refuse_turn(alloc, asked, error);
}

/* It may lie over others, so that it is not allocated again outside of a range. */
int tensors_check_held(struct tensors_alloc *alloc, struct waiting_claims claims, unsigned n,
		       struct npumem_error *error)
{
	if (!n || (!is_in_claimed_range(alloc, claims, n) && !holds_extent_of_others(alloc, claims)))
		return 0;
	alloc->session->service->waiting.has_yielded |= alloc->turn == TENSORS_HEAD;
	return refuse_turn(alloc, tensor_bytes_per_npu(alloc->tensors[0]), error);
}
