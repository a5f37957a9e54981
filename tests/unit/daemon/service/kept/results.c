/* What is kept of requests, and when it goes. */
#include "daemon/service/kept/results.h"

#include "tests/unit/daemon/service/lasting.h"

FIXTURE_OBJECT(struct lasting, kept, (lasting_init(&kept), lasting_begin(&kept, &kept.session)),
	       lasting_deinit(&kept))

static struct tensor *make(struct session *session, uint64_t request, const char *name)
{
	session->request = request;
	return world_tensor(&kept.world, session, name);
}

static void release(struct session *session, uint64_t request, struct tensor *tensor)
{
	session->request = request;
	tensors_hide(session, &tensor, 1);
	ck_assert_uint_eq(tensors_free(session, &tensor, 1), 1);
}

TEST(a_tensor_tells_who_made_it_and_a_result_when_it_is_gone)
{
	struct tensor *tensor, *made[2] = {NULL, NULL};
	tensor = make(&kept.session, 4, "a");
	uint64_t handle = tensor->handle;
	results_made(&kept.session, 4, made, 2);
	ck_assert_ptr_eq(made[0], tensor);
	ck_assert_ptr_null(made[1]);
	ck_assert_uint_eq(kept.session.n_results, 0);
	release(&kept.session, 5, tensor);
	ck_assert_uint_eq(kept.session.n_results, 2);
	const struct result *result = results_next(&kept.session, 4, NULL);
	ck_assert_uint_eq(result->kept.kind, RESULTS_MADE);
	ck_assert_uint_eq(result->kept.handle, handle);
	ck_assert_ptr_null(results_next(&kept.session, 4, result));
	ck_assert_uint_eq(results_next(&kept.session, 5, NULL)->kept.number, 1);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.found[0].n_results, 2);
	ck_assert_uint_eq(results_next(&kept.found[0], 4, NULL)->kept.handle, handle);
}

TEST(each_tensor_has_its_place_in_its_request)
{
	enum { TENSORS = 5 };
	struct device_request requests[TENSORS];
	const char *names[TENSORS] = {"a", "", "c", "", "e"};
	struct tensor *tensors[TENSORS], *made[TENSORS] = {NULL}, *others[TENSORS] = {NULL};
	uint64_t handles[TENSORS];
	make(&kept.session, 2, "other");
	for (unsigned i = 0; i < TENSORS; i++)
		requests[i] = world_request(1, 1);
	kept.session.request = 3;
	ck_assert_int_eq(tensors_alloc(&kept.session, requests, names, TENSORS, tensors, &kept.world.error), 0);
	for (unsigned i = 0; i < TENSORS; i++)
		handles[i] = tensors[i]->handle;
	make(&kept.session, 4, "another");
	kept.session.request = 5;
	ck_assert_int_eq(tensors_rename(&kept.session, make(&kept.session, 5, ""), "x", &kept.world.error),
			 NPUMEM_INVALID);
	ck_assert_int_eq(tensors_rename(&kept.session, tensors[0], "new", &kept.world.error), 0);
	ck_assert_uint_eq(results_next(&kept.session, 5, NULL)->kept.kind, RESULTS_CHANGED);
	ck_assert_uint_eq(results_next(&kept.session, 5, NULL)->kept.handle, handles[0]);
	lasting_restart(&kept);
	results_made(&kept.found[0], 3, made, TENSORS);
	for (unsigned i = 0; i < TENSORS; i++)
		ck_assert_uint_eq(made[i]->handle, handles[i]);
	results_made(&kept.found[0], 4, others, TENSORS);
	ck_assert_str_eq(record_of(others[0])->name, "another");
	ck_assert_ptr_null(others[1]);
	ck_assert_uint_eq(results_next(&kept.found[0], 5, NULL)->kept.handle, handles[0]);
}

/* Cells are in another order where slots were used again. */
TEST(made_tensors_are_found_in_the_order_of_their_requests)
{
	struct tensor *first;
	first = make(&kept.session, 1, "first");
	make(&kept.session, 2, "second");
	release(&kept.session, 3, first);
	ck_assert_uint_eq(device_handle_slot(make(&kept.session, 4, "third")->handle), 0);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.found[0].n_made, 2);
	results_answered(&kept.found[0], 4);
	ck_assert_uint_eq(kept.found[0].n_made, 1);
	ck_assert_uint_eq(kept.found[0].made->request, 4);
}

TEST(what_is_done_anew_has_no_results)
{
	for (kept.session.request = 1; kept.session.request <= 3; kept.session.request++)
		for (unsigned i = 0; i < 3; i++)
			results_put(&kept.session, (struct results_cell){.kind = RESULTS_DONE, .index = i});
	results_forget(&kept.session, 2);
	persist_commit(&kept.world.service.persist);
	for (unsigned round = 0; round < 2; round++) {
		struct session *now = round ? &kept.found[0] : &kept.session;
		ck_assert_uint_eq(now->n_results, 6);
		ck_assert_ptr_nonnull(results_next(now, 1, NULL));
		ck_assert_ptr_null(results_next(now, 2, NULL));
		ck_assert_ptr_nonnull(results_next(now, 3, NULL));
		if (!round)
			lasting_restart(&kept);
	}
}

/* One commit would have those of all sessions, in the turn of anybody. */
TEST(many_answered_ones_do_not_wait_for_the_next_commit)
{
	for (kept.session.request = 1; kept.session.request <= 2000; kept.session.request++)
		results_put(&kept.session, (struct results_cell){.kind = RESULTS_FREED});
	persist_commit(&kept.world.service.persist);
	results_answered(&kept.session, 11);
	ck_assert_uint_eq(store_n_changes(kept.store), 10);
	results_answered(&kept.session, 2001);
	ck_assert_uint_eq(kept.session.n_results, 0);
	ck_assert_uint_eq(store_n_changes(kept.store), 0);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.found[0].n_results, 0);
}

TEST(answered_ones_go)
{
	struct tensor *tensor;
	for (uint64_t request = 1; request < 20; request += 2)
		release(&kept.session, request + 1, make(&kept.session, request, ""));
	ck_assert_uint_eq(kept.session.n_results, 20);
	results_answered(&kept.session, 11);
	ck_assert_uint_eq(kept.session.n_results, 10);
	results_answered(&kept.session, 3);
	ck_assert_uint_eq(kept.session.answered_below, 11);
	/* One whose answer the client has is not kept when its tensor goes. */
	tensor = make(&kept.session, 30, "");
	results_answered(&kept.session, 31);
	ck_assert_uint_eq(kept.session.n_results, 0);
	release(&kept.session, 31, tensor);
	ck_assert_uint_eq(kept.session.n_results, 1);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.found[0].n_results, 1);
}

TEST(the_oldest_is_forgotten_for_the_latest)
{
	for (kept.session.request = 1; kept.session.request <= RESULTS_MAX + 3; kept.session.request++) {
		results_put(&kept.session, (struct results_cell){.kind = RESULTS_FREED});
		persist_commit(&kept.world.service.persist);
	}
	ck_assert_uint_eq(kept.session.n_results, RESULTS_MAX);
	ck_assert_uint_eq(kept.session.forgotten_below, 4);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.found[0].forgotten_below, 4);
	ck_assert_uint_eq(kept.found[0].n_results, RESULTS_MAX);
	ck_assert_ptr_null(results_next(&kept.found[0], 3, NULL));
	ck_assert_ptr_nonnull(results_next(&kept.found[0], 4, NULL));
}

TEST(without_memory_it_is_known_that_it_is_not_known)
{
	kept.session.request = 6;
	kept.world.fail_at = kept.world.n_allocs + 1;
	results_put(&kept.session, (struct results_cell){.kind = RESULTS_FREED});
	persist_commit(&kept.world.service.persist);
	kept.world.fail_at = 0;
	ck_assert_uint_eq(kept.session.n_results, 0);
	ck_assert_uint_eq(kept.session.forgotten_below, 7);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.found[0].forgotten_below, 7);
}

TEST(of_the_tensors_that_it_made_the_latest_are_known)
{
	enum { MORE = 20 };
	struct device_slice slice = {{0, 0, 0, 0}, {1, 1, 1, 1}};
	struct tensor *base, *view, *made;
	base = make(&kept.session, 1, "base");
	for (kept.session.request = 2; kept.session.request <= RESULTS_MAX + MORE; kept.session.request++)
		ck_assert_int_eq(
			tensors_view(&kept.session, base, "", "", &slice, NULL, NULL, &view, &kept.world.error),
			0);
	for (unsigned round = 0; round < 2; round++) {
		struct session *now = round ? &kept.found[0] : &kept.session;
		ck_assert_uint_eq(now->n_made, RESULTS_MAX);
		ck_assert_uint_eq(now->forgotten_below, MORE + 1);
		made = NULL;
		results_made(now, MORE, &made, 1);
		ck_assert_ptr_null(made);
		results_made(now, MORE + 1, &made, 1);
		ck_assert_ptr_nonnull(made);
		if (!round)
			lasting_restart(&kept);
	}
	results_answered(&kept.found[0], RESULTS_MAX);
	ck_assert_uint_eq(kept.found[0].n_made, MORE + 1);
}

TEST(they_count_as_what_the_uid_holds)
{
	uint64_t *now = &kept.session.user->now[LIMITS_REQUEST_BYTES];
	kept.world.service.limits.ordinary.most[LIMITS_REQUEST_BYTES] = 3 * sizeof(struct result);
	for (kept.session.request = 1; kept.session.request < 6; kept.session.request++)
		results_put(&kept.session, (struct results_cell){.kind = RESULTS_FREED});
	persist_commit(&kept.world.service.persist);
	ck_assert_uint_eq(kept.session.n_results, 3);
	ck_assert_uint_eq(*now, 3 * sizeof(struct result));
	ck_assert_uint_eq(kept.session.forgotten_below, 3);
	results_answered(&kept.session, 5);
	ck_assert_uint_eq(*now, sizeof(struct result));
	results_answered(&kept.session, 6);
	ck_assert_uint_eq(*now, 0);
	/* Where it holds all of it otherwise, nothing is kept. */
	limits_charge(&kept.world.service.limits, kept.session.user, LIMITS_REQUEST_BYTES,
		      3 * sizeof(struct result));
	kept.session.request = 9;
	results_put(&kept.session, (struct results_cell){.kind = RESULTS_FREED});
	ck_assert_uint_eq(kept.session.n_results, 0);
	ck_assert_uint_eq(kept.session.forgotten_below, 10);
	limits_give_back(&kept.world.service.limits, kept.session.user, LIMITS_REQUEST_BYTES,
			 3 * sizeof(struct result));
	persist_commit(&kept.world.service.persist);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.found[0].user->now[LIMITS_REQUEST_BYTES], 0);
}

TEST(without_a_token_nothing_is_kept)
{
	static struct session session;
	session_init(&session, &kept.world.service, 1001, 1, NULL);
	release(&session, 2, make(&session, 1, ""));
	ck_assert_uint_eq(session.n_results, 0);
	ck_assert_uint_eq(store_n_cells(kept.store, STORE_RESULTS) ? session.n_results : 0, 0);
}
