#include "tests/unit/daemon/rpc/talk.h"

FIXTURE_OBJECT(struct talk, talk, talk_init(&talk), talk_deinit(&talk))

TEST(info_tells_device_and_caller)
{
	Npumem__V1__InfoRequest request = NPUMEM__V1__INFO_REQUEST__INIT;
	const Npumem__V1__Info *info;
	ck_assert_int_eq(TALK(&talk, info, INFO, &request), 0);
	info = talk.response->info;
	ck_assert_int_eq(info->n_npus, 8);
	ck_assert_int_eq(info->npu_bytes, 8192);
	ck_assert_int_eq(info->eu_bytes, 128);
	ck_assert_int_eq((int)info->rounding, NPUMEM_CONVERGENT);
	ck_assert_int_eq((int)info->uninitialized, NPUMEM_REFUSE);
	ck_assert(info->unchecked_reuse);
	ck_assert_int_eq(info->frame_bytes_max, 16 << 20);
	ck_assert_uint_eq(info->uid, 1001);
	ck_assert_uint_eq(info->session, talk.session.id);
	ck_assert_uint_gt(info->pid, 0);
	ck_assert(info->version[0]);
	ck_assert_uint_eq(info->features & NPUMEM__V1__FEATURE__FEATURE_SUBMIT, 1);
}

static void count_shutdowns(void *ctx, const struct session *session)
{
	(void)session;
	++*(unsigned *)ctx;
}

TEST(shutdown_is_for_administrators)
{
	struct session admin;
	Npumem__V1__ShutdownRequest request = NPUMEM__V1__SHUTDOWN_REQUEST__INIT;
	unsigned n = 0;
	ck_assert_int_eq(session_init(&admin, &talk.world.service, 500, 0, NULL), 0);
	talk.rpc->shut_down = count_shutdowns;
	talk.rpc->ctx = &n;
	talk_fails(&talk, TALK(&talk, shutdown, SHUTDOWN, &request), NPUMEM_PERMISSION_DENIED,
		   "only root and uid 500, as whom the daemon runs, may shut it down");
	ck_assert_uint_eq(n, 0);
	ck_assert_int_eq(TALK_AS(&talk, &admin, shutdown, SHUTDOWN, &request), 0);
	ck_assert_uint_eq(n, 1);
	talk.rpc->shut_down = NULL;
	session_deinit(&admin);
}

TEST(stat_adds_up)
{
	Npumem__V1__StatRequest request = NPUMEM__V1__STAT_REQUEST__INIT;
	const Npumem__V1__Stat *stat;
	talk_tensor(&talk, "x");
	ck_assert_int_eq(TALK(&talk, stat, STAT, &request), 0);
	stat = talk.response->stat;
	ck_assert_int_eq(stat->total, 8 * 8192);
	ck_assert_int_eq(stat->data, 8 * 16);
	ck_assert_int_eq(stat->data + stat->dummy + stat->padding + stat->empty + stat->free, stat->total);
	ck_assert_int_eq(stat->tensors, 1);
	ck_assert_int_eq(stat->views, 0);
	ck_assert_int_eq(stat->sessions, 2); /* of its uid; there is a stranger */
}

static int dump(struct session *session, int64_t npu, int64_t offset, int64_t bytes)
{
	Npumem__V1__DumpRequest request = {MESSAGE(dump_request), .npu = npu, .offset = offset, .bytes = bytes};
	return TALK_AS(&talk, session, dump, DUMP, &request);
}

TEST(dump_gives_raw_bytes_to_whom_they_belong)
{
	uint64_t handle = talk_tensor(&talk, "x");
	ck_assert_int_eq(talk_fill(&talk, handle, 0x2a), 0);
	ck_assert_int_eq(dump(&talk.session, 3, 0, 24), 0);
	ck_assert_uint_eq(talk.response->dump->data.len, 24);
	ck_assert_uint_eq(talk.response->dump->data.data[15], 0x2a);
	ck_assert_uint_eq(talk.response->dump->data.data[16], 0);
	talk_fails(&talk, dump(&talk.stranger, 3, 0, 24), NPUMEM_PERMISSION_DENIED,
		   "a tensor of uid 1001 (128 bytes per NPU)");
	ck_assert_int_eq(dump(&talk.stranger, 3, 8191, 1), 0);
	talk_fails(&talk, dump(&talk.session, 8, 0, 1), NPUMEM_INVALID, "NPU 8");
	ck_assert_int_eq(dump(&talk.session, 0, 0, 8193), NPUMEM_INVALID);
	ck_assert_int_eq(dump(&talk.session, 0, -1, 1), NPUMEM_INVALID);
}

static int plan(Npumem__V1__Spec *spec)
{
	Npumem__V1__PlanRequest request = NPUMEM__V1__PLAN_REQUEST__INIT;
	request.spec = spec;
	return TALK(&talk, plan, PLAN, &request);
}

TEST(plan_answers_without_allocating)
{
	struct talk_spec spec;
	ck_assert_int_eq(plan(talk_spec(&spec, 9, 16)), 0);
	ck_assert_int_eq(talk.response->plan->place->channels_per_npu, 2);
	ck_assert_int_eq(talk.response->plan->place->address_given_case, 0);
	ck_assert_int_eq((int)talk.response->plan->place->layout, NPUMEM_ALIGNED);
	npumem__v1__spec__init(&spec.spec);
	spec.spec.dtype = NPUMEM__V1__DTYPE__INT8;
	spec.spec.layout = NPUMEM__V1__LAYOUT__MATRIX;
	spec.spec.rows = 4;
	spec.spec.cols = 1000;
	ck_assert_int_eq(plan(&spec.spec), 0);
	ck_assert_uint_gt(talk.response->plan->n_widths, 0);
	ck_assert_int_eq(talk.response->plan->widths[0]->w, talk.response->plan->place->w);
	ck_assert_int_eq(world_n_tensors(&talk.world), 0);
}

TEST(what_only_the_wire_can_get_wrong_in_a_spec)
{
	struct talk_spec spec;
	ck_assert_int_eq(plan(NULL), NPUMEM_INVALID);
	talk_spec(&spec, 8, 8)->dtype = (Npumem__V1__Dtype)77;
	talk_fails(&talk, plan(&spec.spec), NPUMEM_INVALID, "dtype 77");
	talk_spec(&spec, 8, 8)->layout = (Npumem__V1__Layout)-5;
	talk_fails(&talk, plan(&spec.spec), NPUMEM_INVALID, "layout -5");
	talk_spec(&spec, 8, 8)->mode = (Npumem__V1__Mode)9;
	talk_fails(&talk, plan(&spec.spec), NPUMEM_INVALID, "mode 9");
	talk_spec(&spec, 8, 8)->frac_bits_given_case = NPUMEM__V1__SPEC__FRAC_BITS_GIVEN_FRAC_BITS;
	spec.spec.frac_bits = -1;
	talk_fails(&talk, plan(&spec.spec), NPUMEM_INVALID, "frac_bits -1");
	talk_spec(&spec, 8, 8)->start_npu_given_case = NPUMEM__V1__SPEC__START_NPU_GIVEN_START_NPU;
	spec.spec.start_npu = -1;
	ck_assert_int_eq(plan(&spec.spec), NPUMEM_INVALID);
	talk_spec(&spec, 8, 8)->address_given_case = NPUMEM__V1__SPEC__ADDRESS_GIVEN_ADDRESS;
	spec.spec.address = INT64_MIN;
	talk_fails(&talk, plan(&spec.spec), NPUMEM_INVALID, "address");
	talk_spec(&spec, INT64_MAX, INT64_MAX);
	ck_assert_int_eq(plan(&spec.spec), NPUMEM_INVALID);
	talk_spec(&spec, -1, 1);
	ck_assert_int_eq(plan(&spec.spec), NPUMEM_INVALID);
}

TEST(compact_moves_and_tells)
{
	Npumem__V1__CompactRequest request = NPUMEM__V1__COMPACT_REQUEST__INIT;
	Npumem__V1__Ref ref, *list = &ref;
	ref = talk_ref(talk_tensor(&talk, ""), "");
	ck_assert_int_eq(talk_alloc_as(&talk, &talk.stranger, "theirs", 8, 16), 0);
	uint64_t moved = talk_tensor(&talk, "mine");
	ck_assert_int_eq(talk_fill(&talk, moved, 7), 0);
	Npumem__V1__FreeRequest free_request = {MESSAGE(free_request), .n_tensors = 1, .tensors = &list};
	ck_assert_int_eq(TALK(&talk, free, FREE, &free_request), 0);
	request.dry_run = true;
	for (unsigned dry = 0; dry < 2; dry++) {
		ck_assert_int_eq(TALK(&talk, compact, COMPACT, &request), 0);
		/* Where others' lie is not told. */
		ck_assert_uint_eq(talk.response->compacted->n_moves, 1);
		ck_assert_uint_eq(talk.response->compacted->moves[0]->handle, moved);
		ck_assert_str_eq(talk.response->compacted->moves[0]->name, "mine");
		ck_assert_int_eq(talk.response->compacted->moves[0]->from_address, 256);
		ck_assert_int_eq(talk.response->compacted->moves[0]->to_address, 128);
		ck_assert_int_eq(talk.response->compacted->largest_free_before, 8192 - 384);
		request.dry_run = false;
	}
	ck_assert_int_eq(talk.response->compacted->largest_free_after, 8192 - 256);
	ck_assert_int_eq(talk_read_as(&talk, &talk.session, moved, 0, 0), 0);
	ck_assert_int_eq(talk.response->done->data.data[127], 7);
}
