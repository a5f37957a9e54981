/* An operand stays where it is if its role is reached by feature and its features lie in one piece each; of every
 * other an array is made, once for each tensor, in one stretch of memory with the kernel's scratch. */
#include "daemon/device/operations/op_operands.h"

#include <string.h>

#include "daemon/device/geometry/intersect.h"
#include "daemon/device/operations/move.h"
#include "daemon/device/operations/move_marks.h"
#include "daemon/device/tensors/written.h"

enum { ARRAY_ALIGN = 64 };

/* Of a packed place: each with the elements that are packed with it. */
static bool in_one_piece(const struct tensor *tensor)
{
	const struct tensor_packed *packed = &tensor->packed;
	int64_t h = packed->shape.h, w = packed->shape.w;
	return packed->layout != NPUMEM_MATRIX && (w == 1 || packed->stride.w == 1) &&
	       (h == 1 || packed->stride.h == w) && h * w * packed->word_bytes >= KERNEL_FEATURE_BYTES_MIN;
}

static bool by_feature(const struct op_work *work, unsigned role)
{
	return work->kernel->by_feature >> role & 1;
}

/* Whether all operands are packed in one way, without dummies, and a kernel whose elements map one to one may take
 * packed elements for neighbours. */
static bool packed_alike(const struct op_work *work)
{
	const struct tensor_packed *first = &work->tensors[0]->packed;
	bool alike = work->kernel->in_place && first->lanes > 1 && first->shape.n % first->lanes == 0;
	for (unsigned role = 0; role < work->call.n_roles; role++)
		alike = alike && by_feature(work, role);
	for (unsigned i = 0; i < work->n && alike; i++) {
		const struct tensor_packed *packed = &work->tensors[i]->packed;
		alike = in_one_piece(work->tensors[i]) && packed->lanes == first->lanes &&
			packed->word_bytes == first->word_bytes &&
			!memcmp(&packed->shape, &first->shape, sizeof(packed->shape));
	}
	return alike;
}

static void set_in_place(struct op_work *work)
{
	unsigned i = 0;
	if (packed_alike(work)) {
		for (; i < work->n; i++) {
			int64_t lanes = tensor_lanes(work->tensors[i]);
			work->in_place[i] = true;
			work->operands[i].shape.n /= lanes;
			work->operands[i].shape.w *= lanes;
		}
		return;
	}
	for (unsigned role = 0; role < work->call.n_roles; role++)
		for (unsigned end = i + work->roles[role].n; i < end; i++)
			work->in_place[i] = by_feature(work, role) && tensor_lanes(work->tensors[i]) == 1 &&
					    in_one_piece(work->tensors[i]);
}

unsigned op_operands_packed(const struct op_work *work, unsigned *packed)
{
	unsigned n = 0;
	for (unsigned role = 0; role < work->call.n_roles; role++)
		if (work->kernel->packed >> role & 1 && work->roles[role].n)
			packed[n++] = (unsigned)(work->roles[role].operands - work->operands);
	return n;
}

/* Of these elements nothing is needed but the pack that is there. */
static bool is_packed(const struct op_work *work, unsigned i)
{
	unsigned packed[PACKS_TENSORS], n = work->call.pack ? op_operands_packed(work, packed) : 0, at = 0;
	while (at < n && packed[at] != i)
		at++;
	if (at == n)
		return false;
	for (unsigned k = 0; k < work->n; k++)
		if (k != i && work->gathered_as[k] == i)
			return false;
	return true;
}

static uint64_t array_bytes(const struct op_work *work, unsigned i)
{
	if (work->in_place[i] || work->gathered_as[i] != i || is_packed(work, i))
		return 0;
	return (uint64_t)tensor_data_bytes(work->tensors[i]);
}

static bool round_up(uint64_t bytes, size_t *rounded)
{
	if (__builtin_add_overflow(bytes, (uint64_t)ARRAY_ALIGN - 1, rounded))
		return false;
	*rounded -= *rounded % ARRAY_ALIGN;
	return true;
}

static bool add_bytes(size_t *total, uint64_t bytes)
{
	size_t rounded;
	return round_up(bytes, &rounded) && !__builtin_add_overflow(*total, rounded, total);
}

bool op_operands_are_same(const struct tensor *a, const struct tensor *b)
{
	return a == b || (tensor_root(a) == tensor_root(b) && intersect_same(TENSOR_PLACE(a), TENSOR_PLACE(b)));
}

static void share_inputs(struct op_work *work)
{
	for (unsigned i = 0; i < work->n; i++) {
		unsigned as = 0;
		while (as < i && (work->output[i] || work->output[as] || work->in_place[i] != work->in_place[as] ||
				  !op_operands_are_same(work->tensors[i], work->tensors[as])))
			as++;
		work->gathered_as[i] = as;
	}
}

static bool total_bytes(const struct op_work *work, size_t *total)
{
	bool fits = true;
	*total = ARRAY_ALIGN;
	for (unsigned i = 0; i < work->n; i++)
		fits = fits && add_bytes(total, array_bytes(work, i));
	return fits && add_bytes(total, work->scratch_bytes);
}

size_t op_operands_bytes(const struct op_work *work)
{
	size_t total;
	total_bytes(work, &total); /* no more than was planned */
	return total;
}

int op_operands_plan(struct op_work *work, const struct error_context *context)
{
	set_in_place(work);
	share_inputs(work);
	work->scratch_bytes = work->kernel->scratch_bytes ? work->kernel->scratch_bytes(&work->call) : 0;
	if (!total_bytes(work, &work->memory_bytes))
		return npumem_error_set(context->error, NPUMEM_RESOURCE_EXHAUSTED,
					"no host has the memory for this kernel");
	work->pack_bytes = work->kernel->pack_bytes ? work->kernel->pack_bytes(&work->call) : 0;
	return 0;
}

static void use_features(const struct device *device, const struct npumem_place *place,
			 struct kernel_operand *operand)
{
	operand->data = NULL;
	operand->features = (struct kernel_features){
		.base = local_at(&device->local, 0, place->offset),
		.n_bytes = place->stride.n * place->word_bytes,
		.row_bytes = place->stride.c * place->word_bytes,
		.lane_bytes = (int64_t)device->local.lane_pitch,
		.start_npu = place->start_npu,
		.n_npus = device->options.geometry.n_npus,
	};
}

void op_operands_spread(const struct device *device, struct op_work *work, void *memory)
{
	uint8_t *at = (uint8_t *)(((uintptr_t)memory + ARRAY_ALIGN - 1) / ARRAY_ALIGN * ARRAY_ALIGN);
	for (unsigned i = 0; i < work->n; i++) {
		struct kernel_operand *operand = &work->operands[i];
		size_t bytes = 0;
		round_up(array_bytes(work, i), &bytes);
		if (work->in_place[i])
			use_features(device, TENSOR_PLACE(work->tensors[i]), operand);
		else
			kernel_operand_dense(operand, bytes ? at : work->operands[work->gathered_as[i]].data);
		at += bytes;
	}
	work->call.scratch = work->scratch_bytes ? at : NULL;
}

bool op_operands_are_direct(const struct op_work *work)
{
	for (unsigned i = 0; i < work->n; i++)
		if (work->output[i] && work->in_place[i])
			return true;
	return false;
}

bool op_operands_gather(const struct device *device, const struct op_work *work)
{
	struct move_watch watch = {.progress = work->call.progress};
	for (unsigned i = 0; i < work->n; i++) {
		if (work->output[i] || work->in_place[i] || work->gathered_as[i] != i || is_packed(work, i))
			continue;
		const struct npumem_place *place = TENSOR_PLACE(work->tensors[i]);
		struct move_host host = move_dense(place, work->operands[i].data, 0);
		if (!move_out(&device->local, place, 0, npumem_place_elements(place), &host, &watch))
			return false;
	}
	return true;
}

void op_operands_scatter(struct device *device, const struct op_work *work)
{
	const struct move_watch watch = {.progress = work->call.progress};
	for (unsigned i = 0; i < work->n; i++) {
		if (!work->output[i])
			continue;
		const struct npumem_place *place = TENSOR_PLACE(work->tensors[i]);
		struct move_host host = move_dense(place, work->operands[i].data, 0);
		if (!work->in_place[i])
			move_in_kernel(&device->local, place, &host, work->call.progress);
		if (!written_is_known(device, work->tensors[i]))
			move_marks_all(&device->local, place, true, &watch);
		written_note(work->tensors[i]);
	}
}

void op_operands_tear(struct device *device, const struct op_work *work)
{
	const struct move_watch watch = {.progress = work->call.progress};
	for (unsigned i = 0; i < work->n; i++)
		if (work->output[i])
			move_marks_all(&device->local, TENSOR_PLACE(work->tensors[i]), false, &watch);
}
