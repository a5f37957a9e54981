/* Tensors come and go: what a request may say, where a tensor may lie, what is left of it when it goes. */
#include "tests/unit/daemon/device/rig.h"

FIXTURE_OBJECT(struct rig, rig, rig_open(&rig, 4, 1024), rig_close(&rig))

static struct device_counts counts_of(void)
{
	struct device_counts counts;
	device_stat(rig.device, &counts);
	return counts;
}

static void same_counts(const struct device_counts *before)
{
	struct device_counts now = counts_of();
	ck_assert_int_eq(memcmp(&now, before, sizeof(now)), 0);
}

TEST(defaults)
{
	rig_reopen_with(&rig, 4, 1024, (struct device_options){.rounding = 0});
	const struct device_options *options = device_options(rig.device);
	ck_assert_int_eq(options->rounding, NPUMEM_CONVERGENT);
	ck_assert_int_eq(options->uninitialized, NPUMEM_REFUSE);
	ck_assert(!options->allow_unchecked);
	struct device_counts counts = counts_of();
	ck_assert_int_eq(counts.total, 4096);
	ck_assert_int_eq(counts.free, 4096);
	ck_assert_int_eq(counts.largest_free, 1024);
	struct device_request request = rig_request(NPUMEM_INT8, 1, 2, 1, 1);
	struct tensor *tensor = rig_place(&rig, &request);
	ck_assert_int_eq(tensor->reuse, NPUMEM_NEVER);
	ck_assert_int_eq(tensor_place(tensor).start_npu, 0);
	ck_assert(!tensor->pinned && !tensor->dma_only && !tensor->sealed && !tensor_is_guest(tensor));
}

TEST(where_it_is_asked_for)
{
	struct device_request request = rig_request(NPUMEM_INT8, 1, 4, 1, 100);
	request.spec.address = 2 * 1024 + 384;
	struct tensor *tensor = rig_place(&rig, &request);
	ck_assert_int_eq(tensor_place(tensor).address, 2 * 1024 + 384);
	ck_assert_int_eq(tensor_place(tensor).start_npu, 2);
	ck_assert_int_eq(tensor_place(tensor).offset, 384);
	ck_assert(tensor->pinned);
	request.spec.address = NPUMEM_ANY;
	request.spec.start_npu = 3;
	tensor = rig_place(&rig, &request);
	ck_assert_int_eq(tensor_place(tensor).address, 3 * 1024 + tensor_place(tensor).offset);
	ck_assert_int_eq(tensor_place(tensor).npu, 3);
	ck_assert(!tensor->pinned);
}

TEST(bad_requests)
{
	rig_reopen_with(&rig, 4, 1024, (struct device_options){.rounding = 0});
	rig_block(&rig, 0, 128);
	struct device_counts before = counts_of();
	struct device_request request = rig_request(NPUMEM_INT8, 1, 4, 1, 100);
	request.reuse = 4;
	rig_refuses(&rig, &request, NPUMEM_INVALID, "reuse 4 is not one of never, if-safe, unchecked");
	request.reuse = -1;
	rig_refuses(&rig, &request, NPUMEM_INVALID, "reuse -1");
	request.reuse = NPUMEM_UNCHECKED;
	rig_refuses(&rig, &request, NPUMEM_PERMISSION_DENIED, "--allow-unchecked-reuse");
	request.reuse = 0;
	request.spec.start_npu = 4;
	rig_refuses(&rig, &request, NPUMEM_INVALID, "start NPU 4 is not below the 4 NPUs of this device");
	request.spec.start_npu = NPUMEM_ANY;
	request.spec.address = 4096;
	rig_refuses(&rig, &request, NPUMEM_INVALID, "address 4096 is not below the 4096 bytes of this device");
	request.spec.address = 64;
	rig_refuses(&rig, &request, NPUMEM_INVALID, "64 is not a multiple of 128");
	request.spec.address = 3 * 1024 + 896;
	request.spec.shape.h = 2;
	rig_refuses(&rig, &request, NPUMEM_INVALID, "run past the end of the NPU");
	request = rig_request(NPUMEM_INT8, 9, 4, 1, 128);
	rig_refuses(&rig, &request, NPUMEM_INVALID, "needs 1152 bytes on each NPU; an NPU has 1024");
	request = rig_request(NPUMEM_INT8, 8, 4, 1, 128);
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "no room for 1024 bytes");
	same_counts(&before);
	ck_assert_int_eq(before.tensors, 1);
}

TEST(all_or_none)
{
	struct tensor *tensors[3];
	struct device_request requests[3] = {rig_request(NPUMEM_INT8, 2, 4, 1, 128),
					     rig_request(NPUMEM_INT8, 4, 4, 1, 128),
					     rig_request(NPUMEM_INT8, 3, 4, 1, 128)};
	struct device_counts before = counts_of();
	npumem_error_clear(&rig.error);
	ck_assert_int_eq(device_alloc(rig.device, requests, 3, tensors, &rig.context), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(rig_field(&rig, "tensor_index"), 2);
	ck_assert_int_eq(rig_field(&rig, "largest_n"), 2);
	same_counts(&before);
	/* Two at one address: the second one finds the first, and both are gone. */
	requests[0].spec.address = requests[1].spec.address = 128;
	npumem_error_clear(&rig.error);
	ck_assert_int_eq(device_alloc(rig.device, requests, 2, tensors, &rig.context), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(rig_field(&rig, "tensor_index"), 1);
	same_counts(&before);
	requests[0].spec.address = requests[1].spec.address = NPUMEM_ANY;
	requests[2].spec.shape.n = 2;
	npumem_error_clear(&rig.error);
	ck_assert_int_eq(device_alloc(rig.device, requests, 3, tensors, &rig.context), 0);
	ck_assert_int_eq(counts_of().free, 0);
}

/* A strided tensor may start at any element, and its neighbour may start where it ends, although the arena counts
 * in fours. */
TEST(odd_neighbours)
{
	struct tensor *tensors[3];
	rig_reopen(&rig, 2, 128);
	struct device_request request = rig_request(NPUMEM_INT8, 1, 2, 1, 4);
	request.spec.layout = NPUMEM_STRIDED;
	request.spec.stride = (struct npumem_dims){8, 8, 8, 1};
	for (int64_t i = 0; i < 3; i++) {
		request.spec.address = 1 + 4 * (i * 2 % 3);
		tensors[i] = rig_place(&rig, &request);
		rig_sound(&rig);
		ck_assert_int_eq(rig_fill(&rig, tensors[i], 10 + i), 0);
	}
	request.spec.address = 8;
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "in the way: #3, offsets 5 to 8");
	ck_assert_int_eq(counts_of().data, 24);
	ck_assert_int_eq(counts_of().free, 256 - 24);
	ck_assert_int_eq(device_compact(rig.device, false, NULL, NULL), 0);
	static const uint8_t expected[16] = {0, 10, 10, 10, 10, 12, 12, 12, 12, 11, 11, 11, 11, 0, 0, 0};
	uint8_t lane[16];
	device_peek(rig.device, 1, 0, 16, lane);
	ck_assert_int_eq(memcmp(lane, expected, sizeof(expected)), 0);
	rig_release(&rig, tensors[0]);
	rig_sound(&rig);
	ck_assert_int_eq(counts_of().free, 256 - 16);
	rig_release(&rig, tensors[2]);
	rig_sound(&rig);
	rig_release(&rig, tensors[1]);
	ck_assert_int_eq(counts_of().largest_free, 128);
}

struct gone {
	struct tensor *tensors[4];
	unsigned n;
};

static void note_gone(void *ctx, struct tensor *tensor)
{
	struct gone *gone = ctx;
	gone->tensors[gone->n++] = tensor;
}

TEST(freed_memory_is_never_written)
{
	uint8_t lane[1024];
	struct gone gone = {.n = 0};
	rig_reopen_with(&rig, 2, 1024, (struct device_options){.uninitialized = NPUMEM_ALLOW});
	struct device_request request = rig_request(NPUMEM_FX8, 5, 3, 2, 3);
	request.spec.mode = NPUMEM_MODE_4N;
	struct tensor *secret = rig_place(&rig, &request), *views[2];
	ck_assert_int_eq(rig_fill(&rig, secret, 0x5e), 0);
	struct device_slice slice = {.to = tensor_place(secret).shape};
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(device_view_slice(rig.device, secret, &slice, &views[i], &rig.context), 0);
	device_release(rig.device, secret, note_gone, &gone);
	ck_assert_uint_eq(gone.n, 3);
	ck_assert_ptr_eq(gone.tensors[2], secret);
	for (int64_t npu = 0; npu < 2; npu++) {
		device_peek(rig.device, npu, 0, 1024, lane);
		for (int i = 0; i < 1024; i++)
			ck_assert_int_eq(lane[i], 0);
	}
	/* The same place again: not even where unwritten bytes are allowed is anything to be had of it. */
	struct tensor *spy = rig_place(&rig, &request);
	struct device_state state;
	device_state(rig.device, spy, &state);
	ck_assert_int_eq(state.unwritten_bytes, 5 * 3 * 2 * 3);
	ck_assert_int_eq(rig_read(&rig, spy, lane), 0);
	for (int i = 0; i < 5 * 3 * 2 * 3; i++)
		ck_assert_int_eq(lane[i], 0);
}

TEST(sealing)
{
	struct tensor *view;
	rig_reopen(&rig, 2, 1024);
	struct device_request request = rig_request(NPUMEM_FX8, 1, 2, 2, 3);
	struct tensor *tensor = rig_place(&rig, &request);
	tensor->owner = "weights";
	ck_assert_int_eq(rig_write_some(&rig, tensor, 0, 7, "1234567"), 0);
	npumem_error_clear(&rig.error);
	rig_fails(&rig, rig_seal(&rig, tensor), NPUMEM_FAILED_PRECONDITION,
		  "weights has bytes that were never written: 5 of 12, the first at offset 1 of NPU 1");
	ck_assert(!tensor->sealed);
	struct device_slice slice = {.to = tensor_place(tensor).shape};
	ck_assert_int_eq(device_view_slice(rig.device, tensor, &slice, &view, &rig.context), 0);
	npumem_error_clear(&rig.error);
	rig_fails(&rig, rig_seal(&rig, view), NPUMEM_INVALID, "is a view: seal its base, weights");
	ck_assert_int_eq(rig_fill(&rig, tensor, 3), 0);
	ck_assert_int_eq(rig_seal(&rig, tensor), 0);
	ck_assert_int_eq(rig_seal(&rig, tensor), 0);
	rig_fails(&rig, rig_fill(&rig, view, 3), NPUMEM_FAILED_PRECONDITION,
		  "is sealed: it is read-only until it is freed");
	/* Where unwritten bytes are no reason to refuse, they are none here. */
	rig_reopen_with(&rig, 2, 1024, (struct device_options){.uninitialized = NPUMEM_WARN});
	ck_assert_int_eq(rig_seal(&rig, rig_place(&rig, &request)), 0);
}

TEST(memory_needed)
{
	struct npumem_geometry geometry = {.n_npus = 1024, .npu_bytes = INT64_C(1) << 30};
	/* The bytes, and two bits for each; what is beside them is little. */
	uint64_t bytes = UINT64_C(1) << 40;
	ck_assert_uint_ge(device_memory_bytes(&geometry), bytes + bytes / 4);
	ck_assert_uint_le(device_memory_bytes(&geometry), bytes + bytes / 4 + (4 << 20));
}
