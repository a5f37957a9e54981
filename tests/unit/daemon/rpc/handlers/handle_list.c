/* Pages of tensors. */
#include "tests/unit/daemon/rpc/crowd.h"

FIXTURE_OBJECT(struct talk, talk, talk_init(&talk), talk_deinit(&talk))

TEST(list_shows_a_session_what_it_sees)
{
	Npumem__V1__ListRequest request = NPUMEM__V1__LIST_REQUEST__INIT;
	ck_assert_int_eq(TALK(&talk, list, LIST, &request), 0);
	ck_assert_ptr_nonnull(talk.response->list);
	ck_assert_uint_eq(talk.response->list->n_tensors, 0);
	uint64_t named = talk_tensor(&talk, "x");
	ck_assert_int_eq(talk_write_as(&talk, &talk.session, named, 0, "abc", 3), 0);
	talk_tensor(&talk, "");
	ck_assert_int_eq(TALK(&talk, list, LIST, &request), 0);
	ck_assert_uint_eq(talk.response->list->n_tensors, 2);
	ck_assert_str_eq(talk.response->list->tensors[0]->state, "partly written");
	ck_assert_int_eq(TALK_AS(&talk, &talk.neighbour, list, LIST, &request), 0);
	ck_assert_uint_eq(talk.response->list->n_tensors, 1);
	ck_assert_uint_eq(talk.response->list->tensors[0]->handle, named);
	ck_assert_int_eq(TALK_AS(&talk, &talk.stranger, list, LIST, &request), 0);
	ck_assert_uint_eq(talk.response->list->n_tensors, 0);
}

static int page_as(struct session *session, uint64_t after, uint32_t limit)
{
	Npumem__V1__ListRequest request = {MESSAGE(list_request), .after = after, .limit = limit};
	return TALK_AS(&talk, session, list, LIST, &request);
}

static void ck_page(uint64_t after, uint32_t limit, size_t n, uint64_t next)
{
	ck_assert_int_eq(page_as(&talk.session, after, limit), 0);
	ck_assert_uint_eq(talk.response->list->n_tensors, n);
	ck_assert_uint_eq(talk.response->list->next, next);
}

/* Allocates n tensors of 4 bytes on one NPU each. */
static void add_small(struct session *session, unsigned n)
{
	struct device_request request = world_request(1, 4);
	const char *name = "";
	struct tensor *tensor;
	request.spec.layout = NPUMEM_COMPACT;
	while (n--)
		ck_assert_int_eq(tensors_alloc(session, &request, &name, 1, &tensor, &talk.world.error), 0);
}

TEST(a_page_holds_what_was_asked_for)
{
	add_small(&talk.session, 255);
	ck_page(0, 0, 255, 0);
	ck_page(0, UINT32_MAX, 255, 0);
	add_small(&talk.session, 1);
	ck_page(0, 0, 256, 0);
	add_small(&talk.session, 2);
	ck_page(0, 0, 256, 256);
	ck_page(256, 0, 2, 0);
	ck_page(0, UINT32_MAX, 256, 256);
	ck_page(0, 1, 1, 1);
	uint64_t gone = talk.response->list->tensors[0]->handle;
	ck_page(1, 1, 1, 2);
	ck_page(256, 1, 1, 257);
	ck_page(257, 1, 1, 0);
	/* Numbers that are no page's `next`. */
	ck_page(258, 0, 0, 0);
	ck_page(UINT64_MAX, 0, 0, 0);
	ck_page(UINT64_MAX, UINT32_MAX, 0, 0);
	ck_page(UINT64_C(1) << 32, 3, 3, 3);
	ck_page(gone, 300, 256, 257);
}

/* Others' tensors cost looks, and a page has no more of these than 4096. */
TEST(a_page_looks_at_so_many)
{
	static const struct device_options options = {
		.geometry = {.n_npus = 1, .npu_bytes = 1 << 20, .n_banks = 1, .eu_bytes = 128}};
	talk_again(&talk, &options);
	add_small(&talk.session, 1);
	add_small(&talk.stranger, 8000);
	add_small(&talk.session, 1);
	ck_page(0, 0, 1, 4096);
	ck_page(4096, 0, 1, 0);
	/* The second one there is not looked for any further than that. */
	ck_page(0, 1, 1, 4096);
	ck_page(1, 0, 0, 4097);
	ck_assert_int_eq(page_as(&talk.neighbour, 0, 0), 0);
	ck_assert_uint_eq(talk.response->list->n_tensors, 0);
	ck_assert_uint_eq(talk.response->list->next, 4096);
	/* Empty slots are looked at no more often. */
	session_deinit(&talk.stranger);
	session_init(&talk.stranger, &talk.world.service, 1002, 0, NULL);
	ck_page(1, 0, 0, 4097);
	ck_page(4097, 0, 1, 0);
}

static uint64_t send_list(unsigned from, uint64_t after)
{
	Npumem__V1__ListRequest request = NPUMEM__V1__LIST_REQUEST__INIT;
	request.after = after;
	return CROWD_SEND(from, list, LIST, &request);
}

static const Npumem__V1__List *listed(unsigned from, uint64_t id)
{
	ck_assert_int_eq(crowd_status(from, id), 0);
	return crowd_reply(from, id)->list;
}

/* What takes long to count is counted on a thread, and no more of it than a page may. */
TEST(large_tensors_are_counted_elsewhere)
{
	struct device_slice slice = {.to = {1, 8, 1, CROWD_SLOW_W - 1}};
	struct tensor *base, *view;
	base = crowd_slow("slow");
	for (const char *name = "a"; name; name = *name == 'a' ? "b" : *name == 'b' ? "c" : NULL)
		ck_assert_int_eq(tensors_view(&crowd.peers[0].session, base, name, "", &slice, NULL, NULL, &view,
					      &crowd.world.error),
				 0);
	uint64_t id = send_list(0, 0);
	ck_assert_int_eq(crowd_status(0, id), -1);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	/* Meanwhile nobody waits, and one of the page goes. */
	ck_assert_int_eq(crowd_status(1, crowd_free(1, "a")), 0);
	crowd_work(0);
	uint64_t other = crowd_alloc(1, "a", SHORT_W);
	ck_assert_int_eq(crowd_status(1, other), 0);
	crowd_finish(0);
	const Npumem__V1__List *list = listed(0, id);
	ck_assert_uint_eq(list->n_tensors, 2);
	ck_assert_str_eq(list->tensors[0]->name, "slow");
	ck_assert_str_eq(list->tensors[0]->state, "unwritten");
	ck_assert_int_eq(list->tensors[0]->unwritten_bytes, INT64_C(8) * CROWD_SLOW_W);
	ck_assert_str_eq(list->tensors[1]->name, "b");
	ck_assert_uint_eq(list->next, 3);
	id = send_list(0, list->next);
	crowd_finish_all();
	list = listed(0, id);
	ck_assert_uint_eq(list->n_tensors, 1);
	ck_assert_str_eq(list->tensors[0]->name, "c");
	ck_assert_uint_eq(list->next, 0);
	/* What was told to be written need not be counted any more. */
	crowd_fill(0, "slow", 3);
	crowd_finish_all();
	base->all_written = true;
	list = listed(0, send_list(0, 0));
	ck_assert_uint_eq(list->n_tensors, 4);
	ck_assert_uint_eq(list->next, 0);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_str_eq(list->tensors[i]->state,
				 strcmp(list->tensors[i]->name, "a") ? "ok" : "unwritten");
}

static uint64_t grant(const char *name, int access)
{
	Npumem__V1__Ref ref = talk_ref(0, name);
	Npumem__V1__GrantRequest request = {MESSAGE(grant_request), .tensor = &ref, .uid = 1002,
					    .access = (Npumem__V1__Access)access};
	return CROWD_SEND(0, grant, GRANT, &request);
}

TEST(what_is_taken_back_while_it_is_counted_is_not_listed)
{
	crowd_become(1, 1002);
	crowd_slow("slow");
	crowd_alloc(0, "small", SHORT_W);
	grant("slow", NPUMEM__V1__ACCESS__ACCESS_READ);
	grant("small", NPUMEM__V1__ACCESS__ACCESS_READ);
	crowd_finish_all();
	uint64_t id = send_list(1, 0);
	ck_assert_int_eq(crowd_status(1, id), -1);
	ck_assert_int_eq(crowd_status(0, grant("small", NPUMEM__V1__ACCESS__ACCESS_NONE)), 0);
	crowd_finish_all();
	ck_assert_uint_eq(listed(1, id)->n_tensors, 1);
	ck_assert_str_eq(listed(1, id)->tensors[0]->name, "slow");
}

/* Each allocation of a list that is counted elsewhere fails once. */
TEST(no_memory_to_count_elsewhere)
{
	bool hit = true;
	for (size_t i = 1; hit; i++) {
		uint64_t id;
		crowd_again();
		crowd_slow("slow");
		crowd.world.fail_at = crowd.world.n_allocs + i;
		id = send_list(0, 0);
		crowd_finish_all();
		hit = crowd.world.n_allocs >= crowd.world.fail_at;
		crowd.world.fail_at = 0;
		ck_assert(crowd.peers[0].is_broken || crowd_status(0, id) == 0 ||
			  crowd_status(0, id) == NPUMEM_RESOURCE_EXHAUSTED);
		ck_assert(hit || crowd_status(0, id) == 0);
	}
}

/* Tensors that all lie over each other and share no byte. */
TEST(a_page_of_nested_tensors)
{
	enum { NESTED = 200 };
	static const struct device_options options = {
		.geometry = {.n_npus = 2, .npu_bytes = 4096, .n_banks = 1, .eu_bytes = 128},
		.allow_unchecked = true};
	struct device_request request = world_request(1, 2);
	const char *name = "";
	struct tensor *tensor;
	uint64_t next = 0;
	unsigned n = 0;
	talk_again(&talk, &options);
	request.spec.layout = NPUMEM_STRIDED;
	request.reuse = NPUMEM_UNCHECKED;
	for (unsigned i = 0; i < NESTED; i++) {
		request.spec.address = i;
		request.spec.stride = (struct npumem_dims){1, 1, 1, 4096 - 8 - 2 * i};
		ck_assert_int_eq(tensors_alloc(&talk.session, &request, &name, 1, &tensor, &talk.world.error), 0);
	}
	do {
		ck_assert_int_eq(page_as(&talk.session, next, 0), 0);
		next = talk.response->list->next;
		for (size_t i = 0; i < talk.response->list->n_tensors; i++, n++)
			ck_assert(!talk.response->list->tensors[i]->lends &&
				  !talk.response->list->tensors[i]->borrows);
	} while (next);
	ck_assert_uint_eq(n, NESTED);
}
