/* Every call that takes host memory, with every single one of its allocations failing in turn: a status, nothing
 * changed, and the same call succeeds when it is made again. */
#include <errno.h>

#include "daemon/device/internal.h"
#include "tests/unit/daemon/device/rig.h"

/* A device in which everything may happen: hosts and guests, views, gaps, and as many blocks as the arena has
 * entries for, so that the next one makes it grow. */
struct stage {
	struct rig rig;
	struct tensor *in, *out;
};

static struct device_request small(int64_t bytes)
{
	struct device_request request = rig_request(NPUMEM_FX8, 1, 4, 1, bytes);
	request.spec.layout = NPUMEM_COMPACT;
	return request;
}

static struct device_request guest(int64_t start_npu)
{
	struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, 128);
	request.spec.start_npu = start_npu;
	request.dma_only = true;
	return request;
}

/* The next tensor needs memory for the table. */
static void fill_table(struct stage *stage)
{
	struct device *device = stage->rig.device;
	struct device_slice slice = {.to = tensor_place(stage->out).shape};
	struct tensor *view;
	while (device->unused || device->n_slots % TENSORS_PER_CHUNK)
		ck_assert_int_eq(device_view_slice(device, stage->out, &slice, &view, &stage->rig.context), 0);
}

static void stage_open(struct stage *stage, unsigned n_gaps)
{
	struct rig *rig = &stage->rig;
	struct tensor *gaps[2];
	rig_open(rig, 4, 4096);
	struct device_request request, block = small(64);
	for (unsigned i = 0; i < 2; i++) {
		request = guest(0);
		request.spec.layout = NPUMEM_COMPACT;
		rig_place(rig, &request)->owner = "host";
		gaps[i] = rig_place(rig, &block);
	}
	stage->in = rig_place(rig, &block);
	stage->out = rig_place(rig, &block);
	ck_assert_int_eq(rig_fill(rig, stage->in, 1), 0);
	request = rig_matrix(NPUMEM_FX8, 2, 30, 7);
	rig_place(rig, &request);
	/* Full, but for the gaps and what is empty. */
	request = small((int64_t)arena_largest_free(rig->device->arena));
	rig_place(rig, &request);
	for (unsigned i = 0; i < n_gaps; i++)
		rig_release(rig, gaps[i]);
	fill_table(stage);
}

/* Sets aside all block entries that the arena has without host memory; returns how many. */
static uint32_t take_entries(struct rig *rig)
{
	uint32_t n = 0;
	scarce_arm(&rig->scarce, 0);
	while (arena_prepare(rig->device->arena, 1) == 0)
		n++;
	scarce_arm(&rig->scarce, -1);
	return n;
}

/* Leaves the arena `left` block entries that it can take without host memory. */
static void drain(struct rig *rig, uint32_t left)
{
	uint32_t n = take_entries(rig);
	arena_unprepare(rig->device->arena, left < n ? left : n);
}

static uint8_t image[2][4 * 4096];

static void snapshot(struct stage *stage, struct device_counts *counts, uint8_t *bytes)
{
	device_stat(stage->rig.device, counts);
	for (int64_t npu = 0; npu < 4; npu++)
		device_peek(stage->rig.device, npu, 0, 4096, bytes + npu * 4096);
}

/* Calls `call` on a fresh stage for each allocation that it makes. `call` returns its status. */
static int64_t each_allocation_of(int (*call)(struct stage *stage), int expected, uint32_t entries_left,
				  unsigned n_gaps)
{
	int64_t n = 0;
	for (bool fired = true; fired; n += fired) {
		struct stage stage;
		struct device_counts before, after;
		stage_open(&stage, n_gaps);
		struct rig *rig = &stage.rig;
		drain(rig, entries_left);
		snapshot(&stage, &before, image[0]);
		npumem_error_clear(&rig->error);
		scarce_arm(&rig->scarce, n);
		int status = call(&stage);
		fired = scarce_fired(&rig->scarce);
		scarce_arm(&rig->scarce, -1);
		rig_sound(rig);
		/* Advice in a refusal may be left out without memory, and the refusal stays what it is. */
		if (fired && status != expected) {
			ck_assert_msg(status == NPUMEM_RESOURCE_EXHAUSTED || status == -ENOMEM, "%d: %s", status,
				      rig->error.message);
			ck_assert(status < 0 || strstr(rig->error.message, "host memory"));
		}
		if (status) {
			snapshot(&stage, &after, image[1]);
			ck_assert_int_eq(memcmp(&before, &after, sizeof(after)), 0);
			ck_assert_int_eq(memcmp(image[0], image[1], sizeof(image[0])), 0);
			/* None that was set aside stays so; the arena may have grown. */
			uint32_t left = take_entries(rig);
			ck_assert_uint_ge(left, entries_left);
			arena_unprepare(rig->device->arena, left);
			npumem_error_clear(&rig->error);
			status = call(&stage);
			rig_sound(rig);
		}
		ck_assert_int_eq(status, expected);
		rig_close(rig);
	}
	return n;
}

/* The same with few entries left in the arena, so that it has to grow at each place where it may. */
static void each_allocation(int (*call)(struct stage *stage), int expected, int64_t at_least)
{
	ck_assert_int_ge(each_allocation_of(call, expected, 0, 2), at_least);
	for (uint32_t left = 1; left < 16; left++)
		each_allocation_of(call, expected, left, 2);
}

static int alloc(struct stage *stage, const struct device_request *request)
{
	struct tensor *tensor;
	return device_alloc(stage->rig.device, request, 1, &tensor, &stage->rig.context);
}

/* ---- allocation ---- */

static int alloc_into_the_gap(struct stage *stage)
{
	struct device_request requests[6];
	struct tensor *tensors[6];
	for (unsigned i = 0; i < 6; i++)
		requests[i] = small(4 + 4 * (i % 2));
	return device_alloc(stage->rig.device, requests, 6, tensors, &stage->rig.context);
}

static int alloc_where_it_must_be(struct stage *stage)
{
	struct device_request request = small(8);
	request.spec.address = 128 + 16;
	return alloc(stage, &request);
}

static int alloc_if_safe(struct stage *stage)
{
	struct device_request request = guest(1);
	request.reuse = NPUMEM_IF_SAFE;
	return alloc(stage, &request);
}

static int alloc_several_guests(struct stage *stage)
{
	struct device_request requests[3] = {guest(1), guest(2), guest(3)};
	struct tensor *tensors[3];
	for (unsigned i = 0; i < 3; i++)
		requests[i].reuse = NPUMEM_UNCHECKED;
	return device_alloc(stage->rig.device, requests, 3, tensors, &stage->rig.context);
}

static int alloc_over_the_gap(struct stage *stage)
{
	struct device_request request = guest(1);
	request.spec.layout = NPUMEM_COMPACT;
	request.spec.shape.w = 384;
	request.spec.address = 4096;
	request.reuse = NPUMEM_IF_SAFE;
	return alloc(stage, &request);
}

/* From the middle of the one to the middle of the other. */
static int alloc_into_both_gaps(struct stage *stage)
{
	struct device_request request = guest(1);
	request.spec.layout = NPUMEM_COMPACT;
	request.spec.shape.w = 192;
	request.spec.address = 4096 + 160;
	request.reuse = NPUMEM_IF_SAFE;
	return alloc(stage, &request);
}

static int alloc_without_room(struct stage *stage)
{
	struct device_request request = guest(0);
	request.spec.shape.n = 20;
	return alloc(stage, &request);
}

static int alloc_without_safe_room(struct stage *stage)
{
	struct device_request request = guest(1);
	request.dma_only = false;
	request.reuse = NPUMEM_IF_SAFE;
	return alloc(stage, &request);
}

TEST(allocation)
{
	each_allocation(alloc_into_the_gap, 0, 2);
	each_allocation(alloc_where_it_must_be, 0, 1);
	each_allocation(alloc_if_safe, 0, 2);
	each_allocation(alloc_several_guests, 0, 5);
	each_allocation(alloc_over_the_gap, 0, 1);
	each_allocation(alloc_into_both_gaps, 0, 1);
	each_allocation(alloc_without_room, NPUMEM_RESOURCE_EXHAUSTED, 1);
	each_allocation(alloc_without_safe_room, NPUMEM_FAILED_PRECONDITION, 1);
}

/* ---- the other calls ---- */

static int views(struct stage *stage)
{
	struct tensor *view, *tensor = stage->in;
	struct device_slice slice = {.to = tensor_place(tensor).shape};
	for (int i = 0; i < 4; i++) {
		int status =
			i % 2 ? device_view_slice(stage->rig.device, tensor, &slice, &view, &stage->rig.context)
			      : device_view_reshape(stage->rig.device, tensor, &TENSOR_PLACE(tensor)->shape, &view,
						    &stage->rig.context);
		while (status && tensor_views(tensor))
			device_release(stage->rig.device, tensor_views(tensor), NULL, NULL);
		if (status)
			return status;
	}
	return 0;
}

static int run(struct stage *stage)
{
	struct rig *rig = &stage->rig;
	rig_relu_op(rig, stage->in, stage->out);
	return rig_op(rig);
}

static int compact(struct stage *stage)
{
	return device_compact(stage->rig.device, false, NULL, NULL);
}

/* With guests over the first host's offsets that have lost it, and meet nobody. Giving it back has cut its block.
 */
static void make_former_guests(struct rig *rig)
{
	struct tensor *host = device_next(rig->device, NULL);
	ck_assert_str_eq(host->owner, "host");
	for (int64_t offset = 8; offset < 128; offset += 12) {
		struct device_request request = guest(1);
		request.spec.layout = NPUMEM_COMPACT;
		request.spec.shape.w = 8;
		request.spec.address = 4096 + offset;
		request.reuse = NPUMEM_IF_SAFE;
		/* Not pinned, as one is that a search has placed. */
		struct tensor *tensor = rig_place(rig, &request);
		tensor->pinned = false;
		ck_assert_int_eq(rig_fill(rig, tensor, offset), 0);
	}
	rig_release(rig, host);
}

TEST(others)
{
	each_allocation(views, 0, 1);
	each_allocation(run, 0, 2);
	each_allocation(compact, 0, 0);
	/* With one gap the first move gives back no more than it takes. */
	for (uint32_t left = 0; left < 4; left++)
		each_allocation_of(compact, 0, left, 1);
}

TEST(former_guests)
{
	for (uint32_t left = 0; left < 12; left++)
		for (int64_t fail_at = 0, n = 1; n > fail_at; fail_at++) {
			struct stage stage;
			struct device_counts before, after;
			stage_open(&stage, 2);
			struct rig *rig = &stage.rig;
			make_former_guests(rig);
			drain(rig, left);
			snapshot(&stage, &before, image[0]);
			scarce_arm(&rig->scarce, fail_at);
			int status = device_compact(rig->device, false, NULL, NULL);
			n = rig->scarce.n_calls;
			ck_assert_int_eq(status, scarce_fired(&rig->scarce) ? -ENOMEM : 0);
			rig_sound(rig);
			scarce_arm(&rig->scarce, -1);
			snapshot(&stage, &after, image[1]);
			if (status) {
				ck_assert_int_eq(memcmp(&before, &after, sizeof(after)), 0);
				ck_assert_int_eq(memcmp(image[0], image[1], sizeof(image[0])), 0);
			}
			ck_assert_int_eq(device_compact(rig->device, false, NULL, NULL), 0);
			ck_assert_ptr_null(rig->device->guests.root);
			rig_close(rig);
		}
}

/* Takes none at all: they cannot fail. */
TEST(those_that_take_none)
{
	struct stage stage;
	struct device_counts counts;
	struct device_state state;
	struct device_owner owner;
	stage_open(&stage, 2);
	struct rig *rig = &stage.rig;
	ck_assert_int_eq(alloc_over_the_gap(&stage), 0);
	ck_assert_int_eq(alloc_several_guests(&stage), 0);
	ck_assert_ptr_nonnull(rig->device->guests.root);
	drain(rig, 0);
	scarce_arm(&rig->scarce, 0);
	device_stat(rig->device, &counts);
	ck_assert_int_gt(counts.lent, 0);
	device_state(rig->device, stage.in, &state);
	device_at(rig->device, 1, 0, &owner, 1);
	ck_assert_int_eq(rig_seal(rig, stage.in), 0);
	ck_assert_int_eq(rig_copy(rig, stage.out, stage.in), 0);
	rig_sound(rig);
	/* Nor does anything that frees, whatever it cuts. */
	for (struct tensor *t = device_next(rig->device, NULL), *next; t; t = next) {
		next = device_next(rig->device, t);
		rig_release(rig, t);
		rig_sound(rig);
	}
	ck_assert(!scarce_fired(&rig->scarce));
	device_stat(rig->device, &counts);
	ck_assert_int_eq(counts.free, counts.total);
	rig_close(rig);
}

TEST(a_new_device)
{
	struct device_options options = {.geometry = {4, 1024, 8, 128}};
	void *memory = rig_memory(&options.geometry);
	struct scarce scarce;
	struct device *device;
	int64_t n = 0;
	scarce_init(&scarce);
	for (scarce_arm(&scarce, n); device_new(&options, &scarce.heap, memory, &device); scarce_arm(&scarce, ++n))
		ck_assert_int_eq(scarce.n_live, 0);
	ck_assert_int_ge(n, 5);
	ck_assert_ptr_null(device_check(device));
	device_free(device);
	device_free(NULL);
	ck_assert_int_eq(scarce.n_live, 0);
	free(memory);
}
