/* Lives of tensors by the operations alone. The offsets are one way to place them, from low to high; a device may
 * find another, and compact makes room up to the peak. Invariant: the live tensors are sorted by offset and do not
 * overlap; one without room is not among them. */
#include "client/ctl/core/network/planning/planning.h"

#include <string.h>

#include "client/ctl/core/memory.h"

struct placing {
	struct lives *lives;
	const struct npumem_geometry *geometry;
	size_t *live; /* indices of lives->list */
	size_t n_live;
	size_t *of; /* per tensor of the network its index in the list */
	int64_t now;
};

static int64_t round_up(int64_t offset, int64_t multiple)
{
	return (offset + multiple - 1) / multiple * multiple;
}

/* Puts it between the others; where its address is given, only there. */
static void place(struct placing *placing, size_t index)
{
	struct lives *lives = placing->lives;
	struct lives_tensor *one = &lives->list[index];
	int64_t bytes = one->place.bytes_per_npu, fixed = one->place.offset, offset = 0;
	size_t at = 0;
	if (fixed != NPUMEM_ANY)
		offset = fixed;
	for (; at < placing->n_live; at++) {
		const struct lives_tensor *other = &lives->list[placing->live[at]];
		int64_t end = other->offset + other->place.bytes_per_npu;
		if (offset + bytes <= other->offset)
			break;
		if (end > offset && fixed != NPUMEM_ANY)
			break;
		if (end > offset)
			offset = round_up(end, one->place.align_bytes);
	}
	bool meets = fixed != NPUMEM_ANY && at < placing->n_live &&
		     offset + bytes > lives->list[placing->live[at]].offset;
	if (meets || offset + bytes > placing->geometry->npu_bytes) {
		one->offset = NPUMEM_ANY;
		lives->crowded = index < lives->crowded ? index : lives->crowded;
		return;
	}
	one->offset = offset;
	lives->reach = offset + bytes > lives->reach ? offset + bytes : lives->reach;
	memmove(placing->live + at + 1, placing->live + at, (placing->n_live - at) * sizeof(*placing->live));
	placing->live[at] = index;
	placing->n_live++;
}

static void remove_live(struct placing *placing, size_t index)
{
	for (size_t i = 0; i < placing->n_live; i++) {
		if (placing->live[i] != index)
			continue;
		memmove(placing->live + i, placing->live + i + 1,
			(placing->n_live - i - 1) * sizeof(*placing->live));
		placing->n_live--;
		return;
	}
}

static int birth(struct placing *placing, const struct network *network, size_t i, struct npumem_error *error)
{
	const struct network_operation *operation = &network->operations[i];
	const struct network_tensor *tensor = &network->tensors[operation->tensor];
	struct lives *lives = placing->lives;
	struct lives_tensor *one = &lives->list[lives->n];
	struct npumem_error why = {.status = 0};
	*one = (struct lives_tensor){
		.tensor = operation->tensor, .from = i, .to = network->n_operations, .last = i};
	int status = npumem_place_resolve(placing->geometry, &tensor->spec, &one->place, &why);
	if (!status && tensor->spec.address != NPUMEM_ANY)
		status = npumem_place_at(placing->geometry, &one->place, tensor->spec.address, &why);
	if (status)
		return network_about(network, operation, &why, error);
	placing->of[operation->tensor] = lives->n++;
	placing->now += one->place.bytes_per_npu;
	if (placing->now > lives->peak) {
		lives->peak = placing->now;
		lives->peak_at = i;
	}
	place(placing, lives->n - 1);
	return 0;
}

static void death(struct placing *placing, int tensor, size_t i)
{
	struct lives_tensor *one = &placing->lives->list[placing->of[tensor]];
	one->to = i;
	placing->now -= one->place.bytes_per_npu;
	remove_live(placing, placing->of[tensor]);
}

static void use(struct placing *placing, const struct network *network, int tensor, size_t i)
{
	int root = network_root(network, tensor);
	if (!network->tensors[root].is_opened)
		placing->lives->list[placing->of[root]].last = i;
}

static int step(struct placing *placing, const struct network *network, size_t i, struct npumem_error *error)
{
	const struct network_operation *operation = &network->operations[i];
	bool is_base = operation->kind == NETWORK_FREE &&
		       network->tensors[operation->tensor].base == NETWORK_NONE &&
		       !network->tensors[operation->tensor].is_opened;
	if (operation->kind == NETWORK_ALLOC)
		return birth(placing, network, i, error);
	if (is_base) {
		death(placing, operation->tensor, i);
	} else if (operation->kind == NETWORK_OPEN) {
		placing->lives->n_opened++;
	} else if (operation->kind != NETWORK_RUN && operation->kind != NETWORK_FREE) {
		use(placing, network, operation->tensor, i);
	}
	if (operation->kind == NETWORK_COPY)
		use(placing, network, operation->source, i);
	for (unsigned k = 0; k < operation->n_operands; k++)
		use(placing, network, network->operands[operation->operand + k].tensor, i);
	return 0;
}

/* The peak of lives that end with the last use; what is kept stays. */
static void least(struct lives *lives, const struct network *network)
{
	int64_t *change = memory_new(network->n_operations + 1, sizeof(*change)), now = 0;
	for (size_t i = 0; i < lives->n; i++) {
		const struct lives_tensor *one = &lives->list[i];
		change[one->from] += one->place.bytes_per_npu;
		if (!network->tensors[one->tensor].keep)
			change[one->last + 1] -= one->place.bytes_per_npu;
	}
	for (size_t i = 0; i < network->n_operations; i++) {
		now += change[i];
		lives->least = now > lives->least ? now : lives->least;
	}
	memory_free(change);
}

int lives_compute(const struct network *network, const struct npumem_geometry *geometry, struct lives *lives,
		  struct npumem_error *error)
{
	size_t n = network->n_tensors;
	struct placing placing = {.lives = lives,
				  .geometry = geometry,
				  .live = memory_new(n, sizeof(size_t)),
				  .of = memory_new(n, sizeof(size_t))};
	*lives = (struct lives){.list = memory_new(n, sizeof(*lives->list)), .crowded = SIZE_MAX};
	int status = 0;
	for (size_t i = 0; i < network->n_operations && !status; i++)
		status = step(&placing, network, i, error);
	if (!status)
		least(lives, network);
	if (lives->crowded == SIZE_MAX)
		lives->crowded = lives->n;
	memory_free(placing.live);
	memory_free(placing.of);
	return status;
}
