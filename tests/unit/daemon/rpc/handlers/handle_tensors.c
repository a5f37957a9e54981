#include "tests/unit/daemon/rpc/crowd.h"

FIXTURE_OBJECT(struct talk, talk, talk_init(&talk), talk_deinit(&talk))

TEST(alloc_answers_where_a_tensor_lies)
{
	talk_tensor(&talk, "weights.0");
	const Npumem__V1__Tensor *tensor = talk.response->allocated->tensors[0];
	ck_assert_str_eq(tensor->name, "weights.0");
	ck_assert_uint_eq(tensor->uid, 1001);
	ck_assert_str_eq(tensor->state, "unwritten");
	ck_assert_int_eq(tensor->unwritten_bytes, 128);
	ck_assert_int_eq(tensor->place->address, 0);
	ck_assert_int_eq(tensor->place->address_given_case, NPUMEM__V1__PLACE__ADDRESS_GIVEN_ADDRESS);
	ck_assert_int_eq(tensor->place->bytes_per_npu, 128);
	ck_assert_int_eq((int)tensor->reuse, NPUMEM_NEVER);
	ck_assert_uint_eq(tensor->base_handle, 0);
	ck_assert_str_eq(tensor->base_name, "");
}

static int alloc_many(size_t n, int reuse)
{
	struct talk_spec spec;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT, **list = calloc(n + 1, sizeof(*list));
	allocation.spec = talk_spec(&spec, 8, 4);
	allocation.spec->layout = NPUMEM__V1__LAYOUT__COMPACT;
	allocation.reuse = (Npumem__V1__Reuse)reuse;
	for (size_t i = 0; i < n; i++)
		list[i] = &allocation;
	Npumem__V1__AllocRequest request = {MESSAGE(alloc_request), .n_tensors = n, .tensors = list};
	int status = TALK(&talk, alloc, ALLOC, &request);
	free(list);
	return status;
}

TEST(alloc_counts_before_it_takes)
{
	ck_assert_int_eq(alloc_many(0, 0), NPUMEM_INVALID);
	talk_fails(&talk, alloc_many(257, 0), NPUMEM_INVALID, "257");
	talk_says(&talk, "256");
	talk_fails(&talk, alloc_many(2, 17), NPUMEM_INVALID, "reuse 17");
	ck_assert_int_eq(talk_field(&talk, "tensor_index"), 0);
	ck_assert_int_eq(alloc_many(256, 0), 0);
	ck_assert_uint_eq(talk.response->allocated->n_tensors, 256);
	ck_assert_uint_ne(talk.response->allocated->tensors[255]->handle,
			  talk.response->allocated->tensors[254]->handle);
	ck_assert_int_eq(world_n_tensors(&talk.world), 256);
}

TEST(a_refusal_carries_its_fields)
{
	ck_assert_int_eq(talk_alloc_as(&talk, &talk.stranger, "big", 8, 8000), 0);
	ck_assert_int_eq(talk_alloc_as(&talk, &talk.session, "more", 8, 1000), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(talk_field(&talk, "asked_bytes_per_npu"), 1024);
	ck_assert_int_eq(talk_field(&talk, "largest_free_bytes"), 8192 - 8064);
	ck_assert_ptr_null(talk.response->allocated);
}

TEST(the_longest_tensor_fits_its_room)
{
	struct talk_spec spec;
	char name[NPUMEM_NAME_BYTES_MAX + 1];
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT, *list = &allocation;
	memset(name, 'n', NPUMEM_NAME_BYTES_MAX);
	name[NPUMEM_NAME_BYTES_MAX] = 0;
	allocation.name = name;
	allocation.spec = talk_spec(&spec, 8, 8000);
	allocation.spec->dtype = NPUMEM__V1__DTYPE__FX8;
	allocation.spec->frac_bits_given_case = NPUMEM__V1__SPEC__FRAC_BITS_GIVEN_FRAC_BITS;
	allocation.spec->frac_bits = 127;
	allocation.dma_only = allocation.pinned = true;
	Npumem__V1__AllocRequest request = {MESSAGE(alloc_request), .n_tensors = 1, .tensors = &list};
	ck_assert_int_eq(TALK(&talk, alloc, ALLOC, &request), 0);
	ck_assert_str_eq(talk.response->allocated->tensors[0]->name, name);
	ck_assert(talk.response->allocated->tensors[0]->pinned);
	ck_assert(talk.response->allocated->tensors[0]->dma_only);
	ck_assert_uint_lt(talk.out.used, 768 - 100);
	name[0] = ':';
	ck_assert_int_eq(TALK(&talk, alloc, ALLOC, &request), NPUMEM_INVALID);
}

static int view(uint64_t base, const char *name, const Npumem__V1__Dims *from, const Npumem__V1__Dims *to,
		const Npumem__V1__Dims *shape)
{
	Npumem__V1__Ref ref = talk_ref(base, "");
	Npumem__V1__ViewRequest request = {MESSAGE(view_request),	 .tensor = base ? &ref : NULL,
					   .name = (char *)name,	 .from = (Npumem__V1__Dims *)from,
					   .to = (Npumem__V1__Dims *)to, .shape = (Npumem__V1__Dims *)shape};
	return TALK(&talk, view, VIEW, &request);
}

TEST(views_are_slices_or_reshapes)
{
	Npumem__V1__Dims from = NPUMEM__V1__DIMS__INIT, to = NPUMEM__V1__DIMS__INIT;
	uint64_t base;
	base = talk_tensor(&talk, "base");
	from.c = 2;
	to.n = 1;
	to.c = 5;
	to.h = 1;
	to.w = 16;
	ck_assert_int_eq(view(base, "v", &from, &to, NULL), 0);
	ck_assert_uint_eq(talk.response->tensor->base_handle, base);
	ck_assert_str_eq(talk.response->tensor->base_name, "base");
	ck_assert_str_eq(talk.response->tensor->state, "unwritten");
	ck_assert_int_eq(talk.response->tensor->place->shape->c, 3);
	ck_assert_int_eq(talk.response->tensor->place->start_npu, 2);
	ck_assert_int_eq(view(base, "w", NULL, &to, NULL), 0);
	ck_assert_int_eq(talk.response->tensor->place->shape->c, 5);
	to.c = 8;
	to.h = 4;
	to.w = 4;
	ck_assert_int_eq(view(base, "r", NULL, NULL, &to), 0);
	ck_assert_int_eq(talk.response->tensor->place->shape->h, 4);
	ck_assert_int_eq(view(base, "u", NULL, NULL, NULL), NPUMEM_INVALID);
	ck_assert_int_eq(view(base, "u", &from, NULL, NULL), NPUMEM_INVALID);
	ck_assert_int_eq(view(base, "u", NULL, &to, &to), NPUMEM_INVALID);
	ck_assert_int_eq(view(base, "u", &from, NULL, &to), NPUMEM_INVALID);
	ck_assert_int_eq(view(0, "u", &from, &to, NULL), NPUMEM_INVALID);
	ck_assert_int_eq(view(base, "v", NULL, NULL, &to), NPUMEM_ALREADY_EXISTS);
	ck_assert_int_eq(world_n_tensors(&talk.world), 4);
}

static int free_as(struct session *session, uint64_t handle, const char *name)
{
	Npumem__V1__Ref ref = talk_ref(handle, name), *list[1] = {&ref};
	Npumem__V1__FreeRequest request = {MESSAGE(free_request), .n_tensors = 1, .tensors = list};
	return TALK_AS(&talk, session, free, FREE, &request);
}

static int open_as(struct session *session, uint64_t handle, const char *name)
{
	Npumem__V1__OpenRequest request = NPUMEM__V1__OPEN_REQUEST__INIT;
	Npumem__V1__Ref ref = talk_ref(handle, name);
	request.tensor = &ref;
	return TALK_AS(&talk, session, open, OPEN, &request);
}

TEST(free_and_then_it_is_not_there)
{
	Npumem__V1__FreeRequest none = NPUMEM__V1__FREE_REQUEST__INIT;
	uint64_t handle = talk_tensor(&talk, "x");
	ck_assert_int_eq(open_as(&talk.neighbour, 0, "x"), 0);
	ck_assert_uint_eq(talk.response->tensor->handle, handle);
	ck_assert_int_eq(free_as(&talk.stranger, handle, ""), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(TALK(&talk, free, FREE, &none), NPUMEM_INVALID);
	ck_assert_int_eq(free_as(&talk.neighbour, 0, "x"), 0);
	ck_assert_int_eq(talk.response->freed->tensors, 1);
	ck_assert_int_eq(free_as(&talk.session, handle, ""), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(open_as(&talk.session, handle, ""), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(talk_write_as(&talk, &talk.session, handle, 0, "ab", 2), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(world_n_tensors(&talk.world), 0);
}

TEST(an_anonymous_tensor_is_its_session_s_alone)
{
	uint64_t handle = talk_tensor(&talk, "");
	ck_assert_int_eq(open_as(&talk.neighbour, handle, ""), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(free_as(&talk.neighbour, handle, ""), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(talk_write_as(&talk, &talk.neighbour, handle, 0, "ab", 2), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(talk_read_as(&talk, &talk.neighbour, handle, 0, 0), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(open_as(&talk.session, handle, ""), 0);
}

static int seal(uint64_t handle)
{
	Npumem__V1__SealRequest request = NPUMEM__V1__SEAL_REQUEST__INIT;
	Npumem__V1__Ref ref = talk_ref(handle, "");
	request.tensor = handle ? &ref : NULL;
	return TALK(&talk, seal, SEAL, &request);
}

TEST(what_is_sealed_stays_as_it_is)
{
	uint64_t handle = talk_tensor(&talk, "x");
	ck_assert_int_eq(seal(0), NPUMEM_INVALID);
	ck_assert_int_eq(seal(handle), NPUMEM_FAILED_PRECONDITION);
	ck_assert_int_eq(talk_fill(&talk, handle, 3), 0);
	ck_assert_int_eq(seal(handle), 0);
	ck_assert(talk.response->tensor->sealed);
	ck_assert_str_eq(talk.response->tensor->state, "ok");
	talk_fails(&talk, talk_fill(&talk, handle, 4), NPUMEM_FAILED_PRECONDITION, "x");
	ck_assert_int_eq(talk_read_as(&talk, &talk.session, handle, 0, 1), 0);
	ck_assert_int_eq(talk.response->done->data.data[0], 3);
}

static uint64_t crowd_rename(unsigned from, const char *name, const char *to)
{
	Npumem__V1__Ref ref = talk_ref(0, name);
	Npumem__V1__RenameRequest request = {MESSAGE(rename_request), .tensor = &ref, .name = (char *)to};
	return CROWD_SEND(from, rename, RENAME, &request);
}

TEST(a_rename_takes_effect_where_it_was_sent)
{
	crowd_alloc(0, "a", LONG_W);
	uint64_t before = crowd_fill(0, "a", 1);
	uint64_t renamed = crowd_rename(0, "a", "b");
	uint64_t after = crowd_fill(0, "b", 2);
	uint64_t old = crowd_read(0, "a");
	uint64_t again = crowd_alloc(0, "a", SHORT_W);
	ck_assert_int_eq(crowd_status(0, renamed), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, before), 0);
	ck_assert_int_eq(crowd_status(0, renamed), 0);
	ck_assert_str_eq(crowd_reply(0, renamed)->tensor->name, "b");
	ck_assert_int_eq(crowd_status(0, after), 0);
	ck_assert_int_eq(crowd_status(0, old), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(crowd_status(0, again), 0);
}

/* Another session frees it, or takes the name, while the rename waits for a long fill. */
TEST(others_come_while_a_rename_waits)
{
	uint64_t renamed[2], freed, taken;
	crowd_alloc(0, "a", LONG_W);
	crowd_alloc(0, "x", LONG_W);
	crowd_fill(1, "a", 1);
	crowd_fill(1, "x", 1);
	renamed[0] = crowd_rename(0, "a", "b");
	renamed[1] = crowd_rename(2, "x", "y");
	freed = crowd_free(1, "a");
	taken = crowd_alloc(1, "y", SHORT_W);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, renamed[0]), 0);
	ck_assert_int_eq(crowd_status(1, freed), 0);
	/* It was sent after a free, and waits for that. */
	ck_assert_int_eq(crowd_status(2, renamed[1]), 0);
	ck_assert_int_eq(crowd_status(1, taken), NPUMEM_ALREADY_EXISTS);
	ck_assert_int_eq(world_n_tensors(&crowd.world), 1);
}
