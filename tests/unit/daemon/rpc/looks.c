/* Calls that look at many bytes: elsewhere, while anything may happen to the tensor. */
#include "daemon/rpc/calls/perform.h"

#include "tests/support/loop_turns.h"
#include "tests/unit/daemon/rpc/crowd.h"

enum { GAPPED_W = 65536 };

/* int8 [1, 8, 1, GAPPED_W], each element on its own, of which the first half is written. */
static uint64_t alloc_gapped(const char *name)
{
	struct talk_spec spec;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT, *list = &allocation;
	Npumem__V1__Dims stride = NPUMEM__V1__DIMS__INIT;
	Npumem__V1__Ref ref = talk_ref(0, name);
	allocation.spec = talk_spec(&spec, 8, GAPPED_W);
	spec.spec.layout = NPUMEM__V1__LAYOUT__STRIDED;
	stride.n = stride.c = stride.h = 2 * GAPPED_W;
	stride.w = 2;
	spec.spec.stride = &stride;
	allocation.name = (char *)name;
	Npumem__V1__AllocRequest request = {MESSAGE(alloc_request), .n_tensors = 1, .tensors = &list};
	uint64_t id = CROWD_SEND(0, alloc, ALLOC, &request);
	ck_assert_msg(crowd_status(0, id) == 0, "%s", crowd_reply(0, id)->message);
	uint64_t handle = crowd_reply(0, id)->allocated->tensors[0]->handle;
	Npumem__V1__WriteRequest write = {MESSAGE(write_request), .tensor = &ref, .data.len = 4 * GAPPED_W};
	write.data.data = calloc(1, write.data.len);
	id = CROWD_SEND(0, write, WRITE, &write);
	free(write.data.data);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, id), 0);
	return handle;
}

static uint64_t list_all(unsigned from)
{
	Npumem__V1__ListRequest request = NPUMEM__V1__LIST_REQUEST__INIT;
	return CROWD_SEND(from, list, LIST, &request);
}

static void check_tensor(const Npumem__V1__Tensor *tensor)
{
	ck_assert_str_eq(tensor->name, "G");
	ck_assert_str_eq(tensor->state, "partly written");
	ck_assert_int_eq(tensor->unwritten_bytes, 4 * GAPPED_W);
}

TEST(bytes_are_counted_elsewhere)
{
	crowd_alloc(0, "s", SHORT_W);
	alloc_gapped("G");
	uint64_t open = crowd_open(0, "G");
	uint64_t list = list_all(1);
	uint64_t seal = crowd_seal(2, "G");
	/* A seal waits for those that look, as it would for those that read. */
	ck_assert_uint_eq(crowd.n_tasks, 2);
	ck_assert_int_eq(crowd_status(0, crowd_open(0, "s")), 0);
	crowd_finish_all();
	check_tensor(crowd_reply(0, open)->tensor);
	ck_assert_uint_eq(crowd_reply(1, list)->list->n_tensors, 2);
	check_tensor(crowd_reply(1, list)->list->tensors[1]);
	ck_assert_int_eq(crowd_status(2, seal), NPUMEM_FAILED_PRECONDITION);
	uint64_t view = crowd_view(0, "v", 0, "G", GAPPED_W);
	ck_assert_int_eq(crowd_status(0, view), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_reply(0, view)->tensor->unwritten_bytes, 2 * GAPPED_W);
}

TEST(what_is_looked_at_stays_and_what_is_listed_may_go)
{
	alloc_gapped("G");
	uint64_t list = list_all(0);
	uint64_t freed = crowd_free(1, "G");
	ck_assert_uint_eq(crowd.n_tasks, 2);
	crowd_finish(1);
	ck_assert_int_eq(crowd_status(1, freed), 0);
	crowd_finish_all();
	ck_assert_uint_eq(crowd_reply(0, list)->list->n_tensors, 0);
	alloc_gapped("G");
	uint64_t open = crowd_open(0, "G");
	freed = crowd_free(1, "G");
	ck_assert_int_eq(crowd_status(0, crowd_open(2, "G")), -1);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	crowd_finish_all();
	check_tensor(crowd_reply(0, open)->tensor);
	ck_assert_int_eq(crowd_status(1, freed), 0);
	alloc_gapped("G");
	crowd_fill(0, "G", 1);
	crowd_finish_all();
	uint64_t seal = crowd_seal(0, "G");
	freed = crowd_free(1, "G");
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, seal), 0);
	ck_assert(crowd_reply(0, seal)->tensor->sealed);
	ck_assert_int_eq(crowd_status(1, freed), 0);
}

TEST(its_client_may_go_meanwhile)
{
	alloc_gapped("G");
	crowd_open(1, "G");
	list_all(1);
	crowd_seal(1, "G");
	crowd_free(1, "G");
	crowd_work(0);
	crowd_close(1);
	ck_assert_uint_eq(crowd.peers[1].n_drained, 0);
	crowd_finish_all();
	ck_assert_uint_eq(crowd.peers[1].n_drained, 1);
	/* The free had not begun. */
	ck_assert_int_eq(world_n_tensors(&crowd.world), 1);
}

/* Two tensors at the same offsets, on NPUs 0 and 1. */
static void add_pair(unsigned i)
{
	const char *name = "";
	for (int64_t npu = 0; npu < 2; npu++) {
		struct device_request request = world_request(1, 64);
		struct tensor *tensor;
		request.spec.address = npu * CROWD_NPU_BYTES + 128 * (int64_t)i;
		request.reuse = NPUMEM_UNCHECKED;
		ck_assert_int_eq(
			tensors_alloc(&crowd.peers[0].session, &request, &name, 1, &tensor, &crowd.world.error),
			0);
	}
}

TEST(what_overlaps_is_counted_a_part_at_a_time)
{
	enum { PAIRS = 1200 };
	Npumem__V1__StatRequest request = NPUMEM__V1__STAT_REQUEST__INIT;
	const Npumem__V1__Stat *stat;
	unsigned turns = 0;
	loop_turns_begin(crowd.rpc);
	for (unsigned i = 0; i < PAIRS; i++)
		add_pair(i);
	uint64_t id = CROWD_SEND(0, stat, STAT, &request);
	while (crowd_status(0, id) < 0) {
		uint64_t alloc = crowd_alloc(1, "", SHORT_W);
		ck_assert(loop_turns_one(crowd.rpc));
		ck_assert_int_eq(crowd_status(1, alloc), 0);
		turns++;
	}
	ck_assert_uint_ge(turns, 2);
	stat = crowd_reply(0, id)->stat;
	ck_assert_int_eq(stat->tensors, 2 * PAIRS + turns);
	ck_assert_int_eq(stat->data, 2 * PAIRS * 64 + turns * 8 * SHORT_W);
	ck_assert_int_eq(stat->data + stat->dummy + stat->padding + stat->empty + stat->free, 8 * CROWD_NPU_BYTES);
	/* What is counted is not counted again. */
	id = CROWD_SEND(0, stat, STAT, &request);
	ck_assert_int_eq(crowd_status(0, id), 0);
	loop_turns_end(crowd.rpc);
}

TEST(host_memory_may_run_out_anywhere)
{
	bool hit = true;
	for (size_t i = 1; hit; i++) {
		uint64_t ids[4];
		crowd_again();
		alloc_gapped("G");
		crowd.world.fail_at = crowd.world.n_allocs + i;
		ids[0] = crowd_open(0, "G");
		ids[1] = list_all(0);
		ids[2] = crowd_seal(0, "G");
		ids[3] = crowd_free(0, "G");
		crowd_finish_all();
		hit = crowd.world.n_allocs >= crowd.world.fail_at;
		for (unsigned k = 0; k < 4; k++) {
			int status = crowd_status(0, ids[k]);
			ck_assert(status >= 0 || crowd.peers[0].is_broken);
			ck_assert(status < 1 || status == NPUMEM_RESOURCE_EXHAUSTED ||
				  status == NPUMEM_NOT_FOUND || status == NPUMEM_FAILED_PRECONDITION);
		}
		crowd.world.fail_at = 0;
	}
}
