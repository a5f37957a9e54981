/* The safety rule when a tensor is placed: every reason to refuse with the bytes it is about. */
#include "daemon/device/reuse/reuse.h"

#include "daemon/device/internal.h"
#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/rig.h"

FIXTURE_OBJECT(struct rig, rig, rig_open(&rig, 4, 1024), rig_close(&rig))

/* Four NPUs; `host` has 100 bytes of data on NPUs 0 to 2, padding behind them, and an empty block on NPU 3. */
static struct tensor *open_with_host(bool dma_only)
{
	rig_reopen(&rig, 4, 1024);
	struct device_request request = rig_request(NPUMEM_FX8, 1, 3, 1, 100);
	request.dma_only = dma_only;
	request.spec.address = 0;
	struct tensor *host = rig_place(&rig, &request);
	host->owner = "host";
	return host;
}

/* A strided row of `bytes` at an address. */
static struct device_request row_at(int64_t npu, int64_t offset, int64_t bytes, int reuse, bool dma_only)
{
	struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, bytes);
	request.spec.layout = NPUMEM_STRIDED;
	request.spec.stride = (struct npumem_dims){1, 1, 1, 1};
	request.spec.address = npu * 1024 + offset;
	request.reuse = reuse;
	request.dma_only = dma_only;
	return request;
}

TEST(data_over_data)
{
	for (int reuse = NPUMEM_IF_SAFE; reuse <= NPUMEM_UNCHECKED; reuse++) {
		struct tensor *host = open_with_host(true);
		struct device_request request = row_at(2, 60, 64, reuse, true);
		rig_refuses(&rig, &request, NPUMEM_FAILED_PRECONDITION,
			    "the new tensor's data would lie on data of host on NPU 2, bytes 60 to 99; data over "
			    "data is always refused");
		rig_blames(&rig, host, 2, 60, 40);
	}
}

/* Dummies count as data. */
TEST(data_over_dummies)
{
	struct device_request request = rig_request(NPUMEM_FX8, 3, 2, 1, 8);
	request.spec.mode = NPUMEM_MODE_4N;
	request.spec.address = 0;
	struct tensor *host = rig_place(&rig, &request);
	request = row_at(1, 7, 1, NPUMEM_UNCHECKED, true);
	rig_refuses(&rig, &request, NPUMEM_FAILED_PRECONDITION, "on data of #1 on NPU 1, bytes 7 to 7");
	rig_blames(&rig, host, 1, 7, 1);
}

TEST(data_in_padding)
{
	struct tensor *host = open_with_host(true);
	struct device_request request = row_at(1, 104, 40, NPUMEM_IF_SAFE, true);
	rig_refuses(&rig, &request, NPUMEM_FAILED_PRECONDITION,
		    "the new tensor's data would lie in padding of host on NPU 1, bytes 104 to 127; only empty "
		    "blocks");
	rig_blames(&rig, host, 1, 104, 24);
	request.reuse = NPUMEM_UNCHECKED;
	ck_assert(tensor_is_guest(rig_place(&rig, &request)));
}

TEST(somebody_may_write)
{
	struct tensor *host = open_with_host(false);
	struct device_request request = row_at(3, 20, 60, NPUMEM_IF_SAFE, true);
	rig_refuses(&rig, &request, NPUMEM_FAILED_PRECONDITION,
		    "a kernel may write host, whose footprint overlaps the new tensor's on NPU 3, bytes 20 to 79; "
		    "seal the other "
		    "tensor, or allocate it dma_only");
	rig_blames(&rig, host, 3, 20, 60);
	request.dma_only = false;
	rig_refuses(&rig, &request, NPUMEM_FAILED_PRECONDITION,
		    "seal the other tensor, or allocate it dma_only; and allocate the new one dma_only");
	/* Sealed is as good as dma_only. */
	ck_assert_int_eq(rig_fill(&rig, host, 1), 0);
	ck_assert_int_eq(rig_seal(&rig, host), 0);
	rig_refuses(&rig, &request, NPUMEM_FAILED_PRECONDITION,
		    "a kernel may write the new tensor, whose footprint overlaps that of host on NPU 3, bytes 20 "
		    "to 79; "
		    "allocate the new one dma_only");
	rig_blames(&rig, host, 3, 20, 60);
	request.dma_only = true;
	struct tensor *guest = rig_place(&rig, &request);
	rig_sound(&rig);
	/* The guest's block row is empty on the other NPUs, where the host has data: each holds some of the other.
	 */
	struct device_state state;
	device_state(rig.device, host, &state);
	ck_assert(state.lends && state.borrows);
	device_state(rig.device, guest, &state);
	ck_assert(state.lends && state.borrows);
	struct device_counts counts;
	device_stat(rig.device, &counts);
	ck_assert_int_eq(counts.lent, 4 * 60);
}

/* Whichever of the two has data in the other's footprint. */
TEST(whose_data_is_at_risk)
{
	struct tensor *host = open_with_host(false);
	/* The new one's second block row lies on NPU 0, behind the host. */
	struct device_request request = rig_request(NPUMEM_FX8, 1, 2, 1, 100);
	request.spec.address = 3 * 1024;
	request.reuse = NPUMEM_IF_SAFE;
	request.dma_only = true;
	rig_refuses(&rig, &request, NPUMEM_FAILED_PRECONDITION,
		    "a kernel may write host, whose footprint overlaps the new tensor's on NPU 3, bytes 0 to 99");
	rig_blames(&rig, host, 3, 0, 100);
	/* The new one starts before another, whose data is in its empty blocks. */
	rig_reopen(&rig, 4, 1024);
	request = rig_request(NPUMEM_FX8, 1, 1, 1, 100);
	request.spec.address = 128;
	host = rig_place(&rig, &request);
	host->owner = "host";
	request = row_at(1, 120, 1, NPUMEM_IF_SAFE, true);
	request.spec.shape.h = 2;
	request.spec.stride.h = 120;
	rig_refuses(
		&rig, &request, NPUMEM_FAILED_PRECONDITION,
		"a kernel may write host, whose footprint overlaps the new tensor's on NPU 1, bytes 240 to 240");
	request.spec.stride.h = 160;
	rig_refuses(
		&rig, &request, NPUMEM_FAILED_PRECONDITION,
		"a kernel may write host, whose footprint overlaps the new tensor's on NPU 0, bytes 128 to 227");
	rig_blames(&rig, host, 0, 128, 100);
}

TEST(never_enters_no_footprint)
{
	open_with_host(true);
	struct device_request request = row_at(3, 0, 64, NPUMEM_NEVER, true);
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "in the way: host, offsets 0 to 127");
	request.reuse = 0;
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "in the way: host");
}

TEST(free_space_first)
{
	open_with_host(true);
	struct device_request request = row_at(3, 0, 64, NPUMEM_IF_SAFE, true);
	request.spec.address = NPUMEM_ANY;
	request.spec.start_npu = 3;
	struct tensor *tensor = rig_place(&rig, &request);
	ck_assert_int_ge(tensor_place(tensor).offset, 128);
	ck_assert(!tensor_is_guest(tensor));
	rig_block(&rig, 256, 768);
	rig_release(&rig, tensor);
	tensor = rig_place(&rig, &request);
	ck_assert_int_ge(tensor_place(tensor).offset, 128);
	request.spec.shape.w = 128;
	tensor = rig_place(&rig, &request);
	ck_assert(tensor_is_guest(tensor));
	ck_assert_int_eq(tensor_place(tensor).offset, 0);
}

/* A search that finds only places that a kernel could spoil says so, and what would help. */
TEST(only_writers_in_the_way)
{
	struct tensor *host = open_with_host(false);
	rig_block(&rig, 128, 896);
	struct device_request request = row_at(3, 0, 64, NPUMEM_IF_SAFE, true);
	request.spec.address = NPUMEM_ANY;
	request.spec.start_npu = 3;
	rig_refuses(&rig, &request, NPUMEM_FAILED_PRECONDITION, "a kernel may write host");
	rig_blames(&rig, host, 3, 0, 64);
	request.spec.shape.w = 200;
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "no room for 200 bytes");
}
