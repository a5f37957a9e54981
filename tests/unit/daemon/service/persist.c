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
	ck_assert_uint_eq(tensors_free(&session, &base, 1), 3 * PERSIST_RESERVE + 1);
	ck_assert_uint_eq(n_kept(&kept), 0);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_tensors + kept.report.n_views, 0);
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
	suite_add_tcase(suite, tests);
	return suite;
}
