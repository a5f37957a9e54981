/* Changes are kept whole or not at all, also where memory runs out on their way. */
#include "daemon/service/persist.h"

#include "tests/unit/daemon/service/lasting.h"

/* What the store has of tensors, in a few numbers. */
static unsigned n_kept(struct lasting *kept)
{
	unsigned n = 0;
	size_t bytes;

	for (uint32_t i = 0; i < store_n_cells(kept->store, STORE_TENSORS); i++)
		n += store_cell(kept->store, STORE_TENSORS, i, &bytes) != NULL;
	return n;
}

static int allocate(struct lasting *kept, struct session *session)
{
	const char *names[] = {"one", "", "two"};
	struct device_request requests[3] = {world_request(8, 100), world_request(4, 10), world_request(1, 1)};
	struct tensor *tensors[3];

	npumem_error_clear(&kept->world.error);
	return tensors_alloc(session, requests, names, 3, tensors, &kept->world.error);
}

START_TEST(an_allocation_that_fails_anywhere_leaves_nothing)
{
	struct lasting kept;
	struct session session;
	size_t i = 1;
	int status;

	lasting_init(&kept);
	lasting_begin(&kept, &session);
	session.request = 1;
	do {
		kept.world.fail_at = kept.world.n_allocs + i++;
		status = allocate(&kept, &session);
		kept.world.fail_at = 0;
		ck_assert(status == 0 || status == NPUMEM_RESOURCE_EXHAUSTED);
		ck_assert_uint_eq(n_kept(&kept), status ? 0 : 3);
		world_check(&kept.world);
	} while (status);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_tensors, 3);
	lasting_deinit(&kept);
}
END_TEST

START_TEST(a_token_without_memory_is_refused)
{
	enum { SESSIONS = 200 };
	static struct session sessions[SESSIONS];
	struct lasting kept;
	unsigned n_refused = 0;

	lasting_init(&kept);
	for (unsigned i = 0; i < SESSIONS; i++) {
		struct session *session = &sessions[i];

		session_init(session, &kept.world.service, 1001, 1, NULL);
		for (size_t nth = 1; !session->has_token; nth++) {
			int status;

			kept.world.fail_at = kept.world.n_allocs + nth;
			status = persist_session_begin(session, false, &kept.world.error);
			kept.world.fail_at = 0;
			ck_assert(status == 0 || status == NPUMEM_RESOURCE_EXHAUSTED);
			ck_assert(session->has_token == !status);
			n_refused += status != 0;
		}
		ck_assert_ptr_eq(persist_session_at(&kept.world.service.persist, session->cell), session);
	}
	ck_assert_uint_gt(n_refused, 0);
	ck_assert_ptr_null(persist_session_at(&kept.world.service.persist, UINT32_MAX));
	for (unsigned i = 0; i < SESSIONS; i++)
		session_deinit(&sessions[i]);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_sessions, 0);
	lasting_deinit(&kept);
}
END_TEST

START_TEST(seals_and_names_and_ends_are_kept)
{
	struct lasting kept;
	struct session session;
	struct tensor *tensor;

	lasting_init(&kept);
	lasting_begin(&kept, &session);
	tensor = world_tensor(&kept.world, &session, "t");
	device_lose(kept.world.device, tensor, 0, -1);
	ck_assert_int_eq(tensors_seal(&session, tensor, &kept.world.error), NPUMEM_DATA_LOST);
	lasting_restart(&kept);
	ck_assert(!lasting_named(&kept, "t")->sealed);
	session_init(&session, &kept.world.service, 1001, 1, NULL);
	tensor = lasting_named(&kept, "t");
	ck_assert_uint_eq(tensors_free(&session, &tensor, 1), 1);
	ck_assert_uint_eq(n_kept(&kept), 0);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_tensors, 0);
	lasting_deinit(&kept);
}
END_TEST

/* More of them than fit one commit for sure. */
START_TEST(very_many_go_at_once)
{
	struct lasting kept;
	struct session session;
	struct device_slice slice = {{0, 0, 0, 0}, {1, 1, 1, 1}};
	struct tensor *base, *view;

	lasting_init(&kept);
	lasting_begin(&kept, &session);
	base = world_tensor(&kept.world, &session, "base");
	for (unsigned i = 0; i < 3 * PERSIST_RESERVE; i++)
		ck_assert_int_eq(tensors_view(&session, base, "", &slice, NULL, &view, &kept.world.error), 0);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_views, 3 * PERSIST_RESERVE);
	base = lasting_named(&kept, "base");
	session_init(&session, &kept.world.service, 1001, 1, NULL);
	tensors_hide(&session, &base, 1);
	ck_assert_uint_eq(tensors_free(&session, &base, 1), 3 * PERSIST_RESERVE + 1);
	ck_assert_uint_eq(n_kept(&kept), 0);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_tensors + kept.report.n_views, 0);
	lasting_deinit(&kept);
}
END_TEST

/* From the moment that a free takes effect nothing brings back what it takes, and its names are others'. */
START_TEST(what_is_freed_stays_so_while_its_bytes_are_there)
{
	struct lasting kept;
	struct session session, other;
	struct device_slice slice = {{0, 0, 0, 0}, {1, 2, 1, 50}};
	struct tensor *both[2], *base, *view, *named;
	struct device_state state;
	uint64_t handles[3];

	lasting_init(&kept);
	lasting_begin(&kept, &session);
	session_init(&other, &kept.world.service, 1001, 2, NULL);
	session.request = 7;
	base = world_tensor(&kept.world, &session, "base");
	ck_assert_int_eq(tensors_view(&session, base, "view", &slice, NULL, &view, &kept.world.error), 0);
	ck_assert_int_eq(tensors_view(&session, base, "other", &slice, NULL, &named, &kept.world.error), 0);
	handles[0] = base->handle;
	handles[1] = view->handle;
	handles[2] = named->handle;
	both[0] = view;
	both[1] = base;
	session.request = 8;
	tensors_hide(&session, both, 2);
	ck_assert_uint_eq(results_next(&session, 8, NULL)->kept.number, 3);
	/* In lower and in higher cells than theirs. */
	world_tensor(&kept.world, &other, "base");
	base = world_tensor(&kept.world, &other, "view");
	ck_assert_int_eq(tensors_view(&other, base, "other", &slice, NULL, &named, &kept.world.error), 0);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_refused, 0);
	ck_assert_uint_eq(kept.report.n_ended, 3);
	ck_assert_uint_eq(kept.report.n_tensors, 2);
	ck_assert_uint_eq(kept.report.n_views, 1);
	lasting_says(
		&kept,
		"ended: 3 unnamed tensors of sessions that do not come back, or tensors that were being freed");
	ck_assert_ptr_null(strstr(kept.said, "lost"));
	ck_assert_ptr_nonnull(lasting_named(&kept, "base"));
	ck_assert_ptr_eq(lasting_named(&kept, "other")->base, lasting_named(&kept, "view"));
	for (unsigned i = 0; i < 3; i++)
		ck_assert_ptr_null(device_find(kept.world.device, handles[i]));
	ck_assert_uint_eq(results_next(&kept.found[0], 8, NULL)->kept.number, 3);
	ck_assert_uint_eq(results_next(&kept.found[0], 7, NULL)->kept.kind, RESULTS_MADE);
	device_state(kept.world.device, lasting_named(&kept, "base"), &state);
	ck_assert_int_eq(state.lost_bytes, 0);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_ended, 0);
	ck_assert_uint_eq(n_kept(&kept), 3);
	lasting_deinit(&kept);
}
END_TEST

/* As many as one request may name, and each of them with views that their maker was not told of. */
START_TEST(all_of_a_free_takes_effect_at_once)
{
	enum { BASES = 60, VIEWS = 30 };
	struct lasting kept;
	struct session session;
	struct device_slice slice = {{0, 0, 0, 0}, {1, 1, 1, 1}};
	struct tensor *bases[BASES], *view;
	const struct result *result = NULL;

	lasting_init(&kept);
	lasting_begin(&kept, &session);
	session.request = 1;
	for (unsigned i = 0; i < BASES; i++) {
		struct device_request request = world_request(1, 1);
		const char *name = "";

		ck_assert_int_eq(tensors_alloc(&session, &request, &name, 1, &bases[i], &kept.world.error), 0);
		for (unsigned k = 0; k < VIEWS; k++, session.request++)
			ck_assert_int_eq(
				tensors_view(&session, bases[i], "", &slice, NULL, &view, &kept.world.error), 0);
	}
	tensors_hide(&session, bases, BASES);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_tensors + kept.report.n_views, 0);
	ck_assert_uint_eq(kept.report.n_ended, BASES * (VIEWS + 1));
	while ((result = results_next(&kept.found[0], BASES * VIEWS + 1, result)))
		if (result->kept.kind == RESULTS_FREED)
			break;
	ck_assert_uint_eq(result->kept.number, BASES * (VIEWS + 1));
	lasting_deinit(&kept);
}
END_TEST

Suite *suite_persist(void)
{
	Suite *suite = suite_create("persist");
	TCase *tests = tcase_create("persist");

	tcase_add_test(tests, an_allocation_that_fails_anywhere_leaves_nothing);
	tcase_add_test(tests, a_token_without_memory_is_refused);
	tcase_add_test(tests, seals_and_names_and_ends_are_kept);
	tcase_add_test(tests, very_many_go_at_once);
	tcase_add_test(tests, what_is_freed_stays_so_while_its_bytes_are_there);
	tcase_add_test(tests, all_of_a_free_takes_effect_at_once);
	suite_add_tcase(suite, tests);
	return suite;
}
