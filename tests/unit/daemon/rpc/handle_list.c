/* Pages of tensors. */
#include "tests/unit/daemon/rpc/talk.h"

START_TEST(list_shows_a_session_what_it_sees)
{
	struct talk talk;
	Npumem__V1__ListRequest request = NPUMEM__V1__LIST_REQUEST__INIT;
	uint64_t named;

	talk_init(&talk);
	ck_assert_int_eq(TALK(&talk, list, LIST, &request), 0);
	ck_assert_ptr_nonnull(talk.response->list);
	ck_assert_uint_eq(talk.response->list->n_tensors, 0);
	named = talk_tensor(&talk, "x");
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
	talk_deinit(&talk);
}
END_TEST

static int page_as(struct talk *talk, struct session *session, uint64_t after, uint32_t limit)
{
	Npumem__V1__ListRequest request = NPUMEM__V1__LIST_REQUEST__INIT;

	request.after = after;
	request.limit = limit;
	return TALK_AS(talk, session, list, LIST, &request);
}

static void ck_page(struct talk *talk, uint64_t after, uint32_t limit, size_t n, uint64_t next)
{
	ck_assert_int_eq(page_as(talk, &talk->session, after, limit), 0);
	ck_assert_uint_eq(talk->response->list->n_tensors, n);
	ck_assert_uint_eq(talk->response->list->next, next);
}

/* Allocates n tensors of 4 bytes on one NPU each. */
static void add_small(struct talk *talk, struct session *session, unsigned n)
{
	struct device_request request = world_request(1, 4);
	const char *name = "";
	struct tensor *tensor;

	request.spec.layout = NPUMEM_COMPACT;
	while (n--)
		ck_assert_int_eq(tensors_alloc(session, &request, &name, 1, &tensor, &talk->world.error), 0);
}

START_TEST(a_page_holds_what_was_asked_for)
{
	struct talk talk;
	uint64_t gone;

	talk_init(&talk);
	add_small(&talk, &talk.session, 255);
	ck_page(&talk, 0, 0, 255, 0);
	ck_page(&talk, 0, UINT32_MAX, 255, 0);
	add_small(&talk, &talk.session, 1);
	ck_page(&talk, 0, 0, 256, 0);
	add_small(&talk, &talk.session, 2);
	ck_page(&talk, 0, 0, 256, 256);
	ck_page(&talk, 256, 0, 2, 0);
	ck_page(&talk, 0, UINT32_MAX, 256, 256);
	ck_page(&talk, 0, 1, 1, 1);
	gone = talk.response->list->tensors[0]->handle;
	ck_page(&talk, 1, 1, 1, 2);
	ck_page(&talk, 256, 1, 1, 257);
	ck_page(&talk, 257, 1, 1, 0);
	/* Numbers that are no page's `next`. */
	ck_page(&talk, 258, 0, 0, 0);
	ck_page(&talk, UINT64_MAX, 0, 0, 0);
	ck_page(&talk, UINT64_MAX, UINT32_MAX, 0, 0);
	ck_page(&talk, UINT64_C(1) << 32, 3, 3, 3);
	ck_page(&talk, gone, 300, 256, 257);
	talk_deinit(&talk);
}
END_TEST

/* Others' tensors cost looks, and a page has no more of these than 4096. */
START_TEST(a_page_looks_at_so_many)
{
	static const struct device_options options = {
		.geometry = {.n_npus = 1, .npu_bytes = 1 << 20, .n_banks = 1, .eu_bytes = 128}};
	struct talk talk;

	talk_init_as(&talk, &options);
	add_small(&talk, &talk.session, 1);
	add_small(&talk, &talk.stranger, 8000);
	add_small(&talk, &talk.session, 1);
	ck_page(&talk, 0, 0, 1, 4096);
	ck_page(&talk, 4096, 0, 1, 0);
	/* The second one there is not looked for any further than that. */
	ck_page(&talk, 0, 1, 1, 4096);
	ck_page(&talk, 1, 0, 0, 4097);
	ck_assert_int_eq(page_as(&talk, &talk.neighbour, 0, 0), 0);
	ck_assert_uint_eq(talk.response->list->n_tensors, 0);
	ck_assert_uint_eq(talk.response->list->next, 4096);
	/* Empty slots are looked at no more often. */
	session_deinit(&talk.stranger);
	session_init(&talk.stranger, &talk.world.service, 1002, 0, NULL);
	ck_page(&talk, 1, 0, 0, 4097);
	ck_page(&talk, 4097, 0, 1, 0);
	talk_deinit(&talk);
}
END_TEST

Suite *suite_handle_list(void)
{
	Suite *suite = suite_create("rpc/handle_list");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, list_shows_a_session_what_it_sees);
	tcase_add_test(tcase, a_page_holds_what_was_asked_for);
	tcase_add_test(tcase, a_page_looks_at_so_many);
	suite_add_tcase(suite, tcase);
	return suite;
}
