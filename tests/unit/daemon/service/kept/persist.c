/* Changes are kept whole or not at all, also where memory runs out on their way. */
#include "daemon/service/kept/persist.h"

#include <string.h>

#include "tests/unit/daemon/service/lasting.h"

FIXTURE_OBJECT(struct lasting, kept, lasting_init(&kept), lasting_deinit(&kept))

/* What the store has of tensors, in a few numbers. */
static unsigned n_kept(void)
{
	unsigned n = 0;
	size_t bytes;
	for (uint32_t i = 0; i < store_n_cells(kept.store, STORE_TENSORS); i++)
		n += store_cell(kept.store, STORE_TENSORS, i, &bytes) != NULL;
	return n;
}

static int allocate(struct session *session)
{
	const char *names[] = {"one", "", "two"};
	struct device_request requests[3] = {world_request(8, 100), world_request(4, 10), world_request(1, 1)};
	struct tensor *tensors[3];
	npumem_error_clear(&kept.world.error);
	return tensors_alloc(session, requests, names, 3, tensors, &kept.world.error);
}

TEST(an_allocation_that_fails_anywhere_leaves_nothing)
{
	size_t i = 1;
	int status;
	lasting_begin(&kept, &kept.session);
	kept.session.request = 1;
	do {
		kept.world.fail_at = kept.world.n_allocs + i++;
		status = allocate(&kept.session);
		kept.world.fail_at = 0;
		ck_assert(status == 0 || status == NPUMEM_RESOURCE_EXHAUSTED);
		ck_assert_uint_eq(n_kept(), status ? 0 : 3);
		world_check(&kept.world);
	} while (status);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_tensors, 3);
}

TEST(a_token_without_memory_is_refused)
{
	enum { SESSIONS = 200 };
	static struct session sessions[SESSIONS];
	unsigned n_refused = 0;
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
}

TEST(seals_and_names_and_ends_are_kept)
{
	lasting_begin(&kept, &kept.session);
	struct tensor *tensor = world_tensor(&kept.world, &kept.session, "t");
	ck_assert_int_eq(tensors_seal(&kept.session, tensor, &kept.world.error), 0);
	lasting_restart(&kept);
	ck_assert(lasting_named(&kept, "t")->sealed);
	session_init(&kept.session, &kept.world.service, 1001, 1, NULL);
	tensor = lasting_named(&kept, "t");
	ck_assert_uint_eq(tensors_free(&kept.session, &tensor, 1), 1);
	ck_assert_uint_eq(n_kept(), 0);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_tensors, 0);
}

/* More of them than fit one commit for sure. */
TEST(very_many_go_at_once)
{
	struct device_slice slice = {{0, 0, 0, 0}, {1, 1, 1, 1}};
	struct tensor *base, *view;
	lasting_begin(&kept, &kept.session);
	base = world_tensor(&kept.world, &kept.session, "base");
	for (unsigned i = 0; i < 3 * PERSIST_RESERVE; i++)
		ck_assert_int_eq(
			tensors_view(&kept.session, base, "", "", &slice, NULL, NULL, &view, &kept.world.error),
			0);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_views, 3 * PERSIST_RESERVE);
	base = lasting_named(&kept, "base");
	session_init(&kept.session, &kept.world.service, 1001, 1, NULL);
	tensors_hide(&kept.session, &base, 1);
	ck_assert_uint_eq(tensors_free(&kept.session, &base, 1), 3 * PERSIST_RESERVE + 1);
	ck_assert_uint_eq(n_kept(), 0);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_tensors + kept.report.n_views, 0);
}

/* From the moment that a free takes effect nothing brings back what it takes, and its names are others'. */
TEST(what_is_freed_stays_so_while_its_bytes_are_there)
{
	static struct session other;
	struct device_slice slice = {{0, 0, 0, 0}, {1, 2, 1, 50}};
	struct tensor *both[2], *base, *view, *named;
	struct device_state state;
	uint64_t handles[3];
	lasting_begin(&kept, &kept.session);
	session_init(&other, &kept.world.service, 1001, 2, NULL);
	kept.session.request = 7;
	base = world_tensor(&kept.world, &kept.session, "base");
	ck_assert_int_eq(
		tensors_view(&kept.session, base, "view", "", &slice, NULL, NULL, &view, &kept.world.error), 0);
	ck_assert_int_eq(
		tensors_view(&kept.session, base, "other", "", &slice, NULL, NULL, &named, &kept.world.error), 0);
	handles[0] = base->handle;
	handles[1] = view->handle;
	handles[2] = named->handle;
	both[0] = view;
	both[1] = base;
	kept.session.request = 8;
	tensors_hide(&kept.session, both, 2);
	ck_assert_uint_eq(results_next(&kept.session, 8, NULL)->kept.number, 3);
	/* And of each that was named who made it; of the other view when it goes, which is after this. */
	ck_assert_uint_eq(kept.session.n_results, 3);
	/* In lower and in higher cells than theirs. */
	world_tensor(&kept.world, &other, "base");
	base = world_tensor(&kept.world, &other, "view");
	ck_assert_int_eq(tensors_view(&other, base, "other", "", &slice, NULL, NULL, &named, &kept.world.error),
			 0);
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
	ck_assert_uint_eq(kept.found[0].n_results, 4);
	device_state(kept.world.device, lasting_named(&kept, "base"), &state);
	ck_assert_int_eq(state.lost_bytes, 0);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_ended, 0);
	ck_assert_uint_eq(n_kept(), 3);
}

/* As many as one request may name, and each of them with views that their maker was not told of. */
TEST(all_of_a_free_takes_effect_at_once)
{
	enum { BASES = 60, VIEWS = 30 };
	struct device_slice slice = {{0, 0, 0, 0}, {1, 1, 1, 1}};
	struct tensor *bases[BASES], *view;
	const struct result *result = NULL;
	lasting_begin(&kept, &kept.session);
	kept.session.request = 1;
	for (unsigned i = 0; i < BASES; i++) {
		struct device_request request = world_request(1, 1);
		const char *name = "";
		ck_assert_int_eq(tensors_alloc(&kept.session, &request, &name, 1, &bases[i], &kept.world.error),
				 0);
		for (unsigned k = 0; k < VIEWS; k++, kept.session.request++)
			ck_assert_int_eq(tensors_view(&kept.session, bases[i], "", "", &slice, NULL, NULL, &view,
						      &kept.world.error),
					 0);
	}
	tensors_hide(&kept.session, bases, BASES);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_tensors + kept.report.n_views, 0);
	ck_assert_uint_eq(kept.report.n_ended, BASES * (VIEWS + 1));
	while ((result = results_next(&kept.found[0], BASES * VIEWS + 1, result)))
		if (result->kept.kind == RESULTS_FREED)
			break;
	ck_assert_uint_eq(result->kept.number, BASES * (VIEWS + 1));
}

static bool is_full;

static int fail_when_full(void *ctx, const char *call)
{
	(void)ctx;
	return is_full && (!strcmp(call, "fallocate") || !strcmp(call, "mremap")) ? ENOSPC : 0;
}

/* Where what is to be committed before it has left little room in a journal that cannot grow. */
TEST(all_of_a_free_takes_effect_on_a_full_disk)
{
	enum { TENSORS = 60 };
	static const struct store_hooks hooks = {.fail = fail_when_full};
	struct tensor *tensors[TENSORS];
	kept.hooks = &hooks;
	lasting_restart(&kept);
	lasting_begin(&kept, &kept.session);
	for (unsigned i = 0; i < TENSORS; i++) {
		struct device_request request = world_request(1, 1);
		const char *name = "";
		ck_assert_int_eq(tensors_alloc(&kept.session, &request, &name, 1, &tensors[i], &kept.world.error),
				 0);
	}
	is_full = true;
	while (!store_prepare(kept.store, STORE_TENSORS, 0, 2))
		store_drop(kept.store, STORE_RESULTS, 0, 0);
	kept.session.request = 4;
	tensors_hide(&kept.session, tensors, TENSORS);
	is_full = false;
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_tensors, 0);
	ck_assert_uint_eq(kept.report.n_ended, TENSORS);
	ck_assert_uint_eq(results_next(&kept.found[0], 4, NULL)->kept.number, TENSORS);
}

TEST(a_change_that_cannot_be_kept_is_refused)
{
	static const struct store_hooks hooks = {.fail = fail_when_full};
	kept.hooks = &hooks;
	lasting_restart(&kept);
	lasting_begin(&kept, &kept.session);
	kept.session.request = 1;
	struct tensor *tensor = world_tensor(&kept.world, &kept.session, "t");
	/* So that there is a cell. */
	kept.session.request = 2;
	ck_assert_int_eq(tensors_rename(&kept.session, tensor, "old", &kept.world.error), 0);
	kept.session.request = 3;
	for (unsigned with_result = 0; with_result < 2; with_result++) {
		is_full = true;
		/* There is room for the change, or not even for that. */
		while (!store_prepare(kept.store, STORE_TENSORS, 0, 3 - with_result))
			store_drop(kept.store, STORE_RESULTS, 5, 0);
		ck_assert_int_eq(tensors_rename(&kept.session, tensor, "new", &kept.world.error),
				 NPUMEM_RESOURCE_EXHAUSTED);
		ck_assert_ptr_nonnull(strstr(kept.world.error.message, "the state directory has no room"));
		ck_assert_int_eq(tensors_grant(&kept.session, tensor, 1002, RECORD_READ, &kept.world.error),
				 NPUMEM_RESOURCE_EXHAUSTED);
		is_full = false;
		ck_assert_ptr_eq(lasting_named(&kept, "old"), tensor);
		ck_assert_uint_eq(record_of(tensor)->grants->n, 0);
		ck_assert_ptr_null(results_next(&kept.session, 3, NULL));
		persist_commit(&kept.world.service.persist);
	}
	lasting_restart(&kept);
	ck_assert_ptr_nonnull(lasting_named(&kept, "old"));
}

TEST(a_token_is_asked_for_again)
{
	uint8_t token[PERSIST_TOKEN_BYTES];
	lasting_begin(&kept, &kept.session);
	memcpy(token, kept.session.token, sizeof(token));
	ck_assert_int_eq(persist_session_begin(&kept.session, true, &kept.world.error), 0);
	ck_assert_mem_eq(kept.session.token, token, sizeof(token));
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_sessions, 1);
	ck_assert(kept.found[0].lingers);
	ck_assert_mem_eq(kept.found[0].token, token, sizeof(token));
}

/* However often sessions and results come and go, and with them the process. */
TEST(cells_are_used_again)
{
	enum { SESSIONS = 300, ONE_IN = 50 };
	struct tensor *tensor;
	uint32_t n[STORE_TABLES];
	for (enum store_table table = 0; table < STORE_TABLES; table++)
		n[table] = store_n_cells(kept.store, table);
	for (unsigned i = 0; i < SESSIONS; i++) {
		lasting_begin(&kept, &kept.session);
		kept.session.request = 1;
		tensor = world_tensor(&kept.world, &kept.session, "t");
		kept.session.request = 2;
		tensors_hide(&kept.session, &tensor, 1);
		tensors_free(&kept.session, &tensor, 1);
		ck_assert_uint_eq(kept.session.n_results, 2);
		if (i % 2)
			results_answered(&kept.session, 3);
		session_deinit(&kept.session);
		if (i % ONE_IN == 0)
			lasting_restart(&kept);
	}
	for (enum store_table table = 0; table < STORE_TABLES; table++)
		ck_assert_uint_eq(store_n_cells(kept.store, table), n[table]);
}
