#include "daemon/service/tensors/tensors.h"

#include <errno.h>
#include <stdio.h>

#include "tests/unit/daemon/service/world.h"

struct bench {
	struct world world;
	struct session session;
};

static void bench_init(struct bench *bench)
{
	world_init(&bench->world);
	session_init(&bench->session, &bench->world.service, 1001, 0, NULL);
}

static void bench_deinit(struct bench *bench)
{
	session_deinit(&bench->session);
	world_deinit(&bench->world);
}

FIXTURE_OBJECT(struct bench, bench, bench_init(&bench), bench_deinit(&bench))

static int alloc(const char *const *names, unsigned n, struct tensor **tensors)
{
	struct device_request requests[TENSORS_ALLOC_MAX + 1];
	for (unsigned i = 0; i < n; i++)
		requests[i] = world_request(8, 10);
	npumem_error_clear(&bench.world.error);
	return tensors_alloc(&bench.session, requests, names, n, tensors, &bench.world.error);
}

TEST(names_are_unique_per_uid)
{
	struct session other;
	struct tensor *tensors[3];
	const char *once[] = {"a", "b", "c"}, *again[] = {"d", "", "b"}, *twice[] = {"d", "e", "d"};
	ck_assert_int_eq(alloc(once, 3, tensors), 0);
	ck_assert_int_eq(alloc(again, 3, tensors), NPUMEM_ALREADY_EXISTS);
	ck_assert_int_eq(npumem_error_find(&bench.world.error, "tensor_index", -1), 2);
	ck_assert_int_eq(alloc(twice, 3, tensors), NPUMEM_INVALID);
	ck_assert_int_eq(world_n_tensors(&bench.world), 3);
	session_init(&other, &bench.world.service, 1002, 0, NULL);
	world_tensor(&bench.world, &other, "a");
	ck_assert_int_eq(world_n_tensors(&bench.world), 4);
	session_deinit(&other);
}

TEST(all_or_nothing)
{
	struct device_request requests[3] = {world_request(8, 100), world_request(8, 100), world_request(8, 9000)};
	const char *names[] = {"a", "", "c"}, *bad[] = {"a", "1:2", ""};
	struct tensor *tensors[3];
	ck_assert_int_ne(tensors_alloc(&bench.session, requests, names, 3, tensors, &bench.world.error), 0);
	npumem_error_clear(&bench.world.error);
	ck_assert_int_eq(tensors_alloc(&bench.session, requests, bad, 3, tensors, &bench.world.error),
			 NPUMEM_INVALID);
	ck_assert_int_eq(npumem_error_find(&bench.world.error, "tensor_index", -1), 1);
	ck_assert_int_eq(world_n_tensors(&bench.world), 0);
	ck_assert_ptr_null(bench.session.unnamed->first);
	ck_assert_ptr_null(names_find(&bench.world.service.names, 1001, "a"));
}

TEST(counts_have_limits)
{
	const char *names[TENSORS_ALLOC_MAX + 1];
	struct tensor *tensors[TENSORS_ALLOC_MAX + 1];
	for (unsigned i = 0; i <= TENSORS_ALLOC_MAX; i++)
		names[i] = "";
	ck_assert_int_eq(alloc(names, 0, tensors), NPUMEM_INVALID);
	ck_assert_int_eq(alloc(names, TENSORS_ALLOC_MAX + 1, tensors), NPUMEM_INVALID);
	ck_assert_ptr_nonnull(strstr(bench.world.error.message, "256"));
}

static uint64_t free_all(struct session *session, struct tensor **tensors, size_t n)
{
	tensors_mark_going(session->service, tensors, n);
	tensors_hide(session, tensors, n);
	return tensors_free(session, tensors, n);
}

TEST(free_takes_all_or_none)
{
	struct tensor *tensors[3], *view;
	const char *names[] = {"a", "b", ""};
	struct device_slice slice = {{0, 0, 0, 0}, {1, 2, 1, 10}};
	struct access_ref a = {0, "a"}, v = {0, "v"};
	struct tensor *found;
	ck_assert_int_eq(alloc(names, 3, tensors), 0);
	ck_assert_int_eq(
		tensors_view(&bench.session, tensors[0], "v", "", &slice, NULL, NULL, &view, &bench.world.error),
		0);
	struct tensor *twice[] = {tensors[0], tensors[1], tensors[1]};
	ck_assert_int_eq(tensors_free_check(&bench.session, twice, 3, &bench.world.error), NPUMEM_INVALID);
	ck_assert_int_eq(npumem_error_find(&bench.world.error, "tensor_index", -1), 2);
	npumem_error_clear(&bench.world.error);
	ck_assert_int_eq(tensors_free_check(&bench.session, twice, TENSORS_FREE_MAX + 1, &bench.world.error),
			 NPUMEM_INVALID);
	ck_assert_int_eq(world_n_tensors(&bench.world), 4);
	/* A base and its view at once, base first: not found from the beginning, and gone at last. */
	struct tensor *both[] = {tensors[0], view};
	npumem_error_clear(&bench.world.error);
	ck_assert_int_eq(tensors_free_check(&bench.session, both, 2, &bench.world.error), 0);
	tensors_mark_going(&bench.world.service, both, 2);
	ck_assert_ptr_eq(both[0], view);
	ck_assert_int_eq(access_find(&bench.session, &a, ACCESS_READ, &found, &bench.world.error),
			 NPUMEM_NOT_FOUND);
	ck_assert_ptr_eq(found, tensors[0]);
	tensors_hide(&bench.session, both, 2);
	ck_assert_int_eq(access_find(&bench.session, &a, ACCESS_READ, &found, &bench.world.error),
			 NPUMEM_NOT_FOUND);
	ck_assert_int_eq(access_find(&bench.session, &v, ACCESS_READ, &found, &bench.world.error),
			 NPUMEM_NOT_FOUND);
	a = (struct access_ref){tensors[0]->handle, ""};
	ck_assert_int_eq(access_find(&bench.session, &a, ACCESS_READ, &found, &bench.world.error),
			 NPUMEM_NOT_FOUND);
	ck_assert_int_eq(world_n_tensors(&bench.world), 4);
	ck_assert_uint_eq(tensors_free(&bench.session, both, 2), 2);
	struct tensor *rest[] = {tensors[1], tensors[2]};
	ck_assert_uint_eq(free_all(&bench.session, rest, 2), 2);
	ck_assert_int_eq(world_n_tensors(&bench.world), 0);
}

TEST(a_view_counts_with_its_base)
{
	struct tensor *base, *view, *again;
	struct device_slice slice = {{0, 0, 0, 0}, {1, 2, 1, 100}};
	base = world_tensor(&bench.world, &bench.session, "base");
	ck_assert_int_eq(
		tensors_view(&bench.session, base, "base", "", &slice, NULL, NULL, &view, &bench.world.error),
		NPUMEM_ALREADY_EXISTS);
	npumem_error_clear(&bench.world.error);
	ck_assert_int_eq(
		tensors_view(&bench.session, base, "v", "", &slice, NULL, NULL, &view, &bench.world.error), 0);
	ck_assert_int_eq(
		tensors_view(&bench.session, view, "", "", &slice, NULL, NULL, &again, &bench.world.error), 0);
	slice.to.c = 9;
	ck_assert_int_eq(
		tensors_view(&bench.session, base, "w", "", &slice, NULL, NULL, &again, &bench.world.error),
		NPUMEM_INVALID);
	ck_assert_uint_eq(free_all(&bench.session, &base, 1), 3);
	ck_assert_ptr_null(bench.session.unnamed->first);
}

TEST(a_new_tensor_is_described_without_counting)
{
	struct tensors_description fresh, counted;
	struct device_state state;
	struct tensor *tensor = world_tensor(&bench.world, &bench.session, "x");
	tensors_new_state(tensor, &state);
	tensors_describe(&bench.session, tensor, &state, &fresh);
	tensors_describe(&bench.session, tensor, NULL, &counted);
	ck_assert_str_eq(fresh.state, "unwritten");
	ck_assert_str_eq(counted.state, fresh.state);
	ck_assert_int_eq(counted.bytes.unwritten_bytes, fresh.bytes.unwritten_bytes);
	ck_assert_int_eq(counted.bytes.unwritten_bytes, 800);
	ck_assert_str_eq(counted.name, "x");
	ck_assert_uint_eq(counted.base_handle, 0);
}

/* Each allocation of host memory fails once; the request is refused whole, or done whole. */
TEST(host_memory_may_run_out_anywhere)
{
	const char *names[40];
	char texts[40][16];
	unsigned n_refused = 0;
	bool hit = true;
	for (unsigned i = 0; i < 40; i++) {
		snprintf(texts[i], sizeof(texts[i]), "t%u", i);
		names[i] = i % 3 ? texts[i] : "";
	}
	for (size_t i = 1; hit; i++) {
		struct tensor *tensors[40];
		int status;
		bench_deinit(&bench);
		bench_init(&bench);
		bench.world.fail_at = bench.world.n_allocs + i;
		status = alloc(names, 40, tensors);
		hit = bench.world.n_allocs >= bench.world.fail_at;
		world_check(&bench.world);
		if (status) {
			n_refused++;
			ck_assert_int_eq(status, NPUMEM_RESOURCE_EXHAUSTED);
			ck_assert_int_eq(world_n_tensors(&bench.world), 0);
			ck_assert_uint_eq(bench.world.service.names.n, 0);
			ck_assert_ptr_null(bench.session.unnamed->first);
			ck_assert_int_eq(alloc(names, 40, tensors), 0);
		}
		ck_assert_int_eq(world_n_tensors(&bench.world), 40);
	}
	/* Two chunks of the table, and one of the arena. */
	ck_assert_uint_ge(n_refused, 3);
}

TEST(a_view_without_host_memory_leaves_nothing)
{
	bool hit = true;
	for (size_t i = 1; hit; i++) {
		struct device_slice slice = {{0, 0, 0, 0}, {1, 2, 1, 10}};
		struct tensor *base, *view;
		int status;
		bench_deinit(&bench);
		bench_init(&bench);
		base = world_tensor(&bench.world, &bench.session, "base");
		bench.world.fail_at = bench.world.n_allocs + i;
		status =
			tensors_view(&bench.session, base, "v", "", &slice, NULL, NULL, &view, &bench.world.error);
		hit = bench.world.n_allocs >= bench.world.fail_at;
		ck_assert_int_eq(status, hit ? NPUMEM_RESOURCE_EXHAUSTED : 0);
		ck_assert_int_eq(world_n_tensors(&bench.world), hit ? 1 : 2);
	}
}

/* What a search for a place over others holds between two of its steps is charged to its uid, and given back at
 * its end, when it is cancelled, and where it may not be held. */
TEST(a_search_is_charged_between_steps)
{
	struct tensor *tensors[1];
	const char *names[] = {""};
	struct device_request all = world_request(8, 8192), more = world_request(1, 4000);
	struct tensors_alloc alloc = {.session = &bench.session,
				      .requests = &more,
				      .names = names,
				      .labels = names,
				      .n = 1,
				      .tensors = tensors};
	int64_t steps = 1;
	const uint64_t *now = &bench.session.user->now[LIMITS_REQUEST_BYTES];
	ck_assert_int_eq(tensors_alloc(&bench.session, &all, names, 1, tensors, &bench.world.error), 0);
	more.reuse = NPUMEM_UNCHECKED;
	ck_assert_int_eq(tensors_alloc_begin(&alloc, &bench.world.error), 0);
	ck_assert_int_eq(tensors_alloc_step(&alloc, &steps, &bench.world.error), -EAGAIN);
	ck_assert_uint_ge(*now, 3 * 4000 / 8 / 128);
	tensors_alloc_cancel(&alloc, NPUMEM_CANCELLED);
	ck_assert_int_eq(tensors_alloc_step(&alloc, &steps, &bench.world.error), NPUMEM_CANCELLED);
	ck_assert_uint_eq(*now, 0);
	ck_assert_int_eq(tensors_alloc_begin(&alloc, &bench.world.error), 0);
	for (int status = -EAGAIN; status == -EAGAIN; steps = 1)
		status = tensors_alloc_step(&alloc, &steps, &bench.world.error);
	ck_assert_int_eq(bench.world.error.status, NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_ptr_nonnull(strstr(bench.world.error.message, "no room"));
	ck_assert_uint_eq(*now, 0);
	bench.world.service.limits.ordinary.most[LIMITS_REQUEST_BYTES] = 16;
	npumem_error_clear(&bench.world.error);
	ck_assert_int_eq(tensors_alloc_begin(&alloc, &bench.world.error), 0);
	ck_assert_int_eq(tensors_alloc_step(&alloc, &steps, &bench.world.error), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_ptr_nonnull(strstr(bench.world.error.message, "request_bytes"));
	ck_assert_uint_eq(*now, 0);
	ck_assert_int_eq(world_n_tensors(&bench.world), 1);
}

TEST(host_memory_is_charged)
{
	const char *const names[] = {"a", "b"}, *const other[] = {"c"};
	struct tensor *tensors[2], *view;
	struct npumem_dims same = {1, 8, 1, 10};
	struct limits *most = &bench.world.service.limits.ordinary;
	const uint64_t *now = &bench.session.user->now[LIMITS_HOST_BYTES];
	uint64_t one = device_host_bytes(bench.world.service.device, 0);
	ck_assert_uint_gt(one, sizeof(struct tensor) + sizeof(struct record));
	ck_assert_uint_gt(device_host_bytes(bench.world.service.device, 1), one);
	ck_assert_int_eq(alloc(names, 2, tensors), 0);
	ck_assert_uint_eq(*now, 2 * one);
	ck_assert_int_eq(
		tensors_view(&bench.session, tensors[0], "v", "", NULL, &same, NULL, &view, &bench.world.error),
		0);
	ck_assert_uint_eq(*now, 3 * one);
	/* Whether the first one is taken back or not, grants stay. */
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(tensors_grant(&bench.session, tensors[1], 1002, RECORD_READ, &bench.world.error),
				 0);
		ck_assert_uint_eq(*now, 3 * one + sizeof(struct record_grants));
		ck_assert_int_eq(tensors_grant(&bench.session, tensors[1], 1002, RECORD_NONE, &bench.world.error),
				 0);
	}
	most->most[LIMITS_HOST_BYTES] = *now + one - 1;
	ck_assert_int_eq(alloc(other, 1, tensors), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_ptr_nonnull(strstr(bench.world.error.message, "host_bytes"));
	ck_assert_int_eq(
		tensors_view(&bench.session, tensors[0], "w", "", NULL, &same, NULL, &view, &bench.world.error),
		NPUMEM_RESOURCE_EXHAUSTED);
	most->most[LIMITS_HOST_BYTES] = *now + sizeof(struct record_grants) - 1;
	ck_assert_int_eq(tensors_grant(&bench.session, tensors[0], 1002, RECORD_READ, &bench.world.error),
			 NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_ptr_null(record_of(tensors[0])->grants);
	tensors_free(&bench.session, tensors, 2);
	ck_assert_uint_eq(*now, 0);
}

TEST(a_name_is_exchanged)
{
	struct session other, root;
	struct tensor *tensors[2], *alien;
	struct names *names = &bench.world.service.names;
	const char *const given[] = {"a", "b"}, *const bad[] = {"", "12", "1:2", "a b"};
	ck_assert_int_eq(alloc(given, 2, tensors), 0);
	session_init(&other, &bench.world.service, 1002, 0, NULL);
	session_init(&root, &bench.world.service, 0, 0, NULL);
	alien = world_tensor(&bench.world, &other, "alien");
	for (unsigned i = 0; i < 4; i++) {
		npumem_error_clear(&bench.world.error);
		ck_assert_int_eq(tensors_rename(&bench.session, tensors[0], bad[i], &bench.world.error),
				 NPUMEM_INVALID);
	}
	npumem_error_clear(&bench.world.error);
	ck_assert_int_eq(tensors_rename(&bench.session, tensors[0], "b", &bench.world.error),
			 NPUMEM_ALREADY_EXISTS);
	ck_assert_ptr_eq(names_find(names, 1001, "a"), record_of(tensors[0]));
	ck_assert_int_eq(tensors_rename(&bench.session, tensors[0], "a", &bench.world.error), 0);
	ck_assert_int_eq(tensors_rename(&bench.session, tensors[0], "alien", &bench.world.error), 0);
	ck_assert_ptr_null(names_find(names, 1001, "a"));
	ck_assert_ptr_eq(names_find(names, 1001, "alien"), record_of(tensors[0]));
	ck_assert_ptr_eq(names_find(names, 1002, "alien"), record_of(alien));
	/* Whoever may, renames among the owner's names. */
	ck_assert_int_eq(tensors_rename(&root, alien, "b", &bench.world.error), 0);
	ck_assert_ptr_eq(names_find(names, 1002, "b"), record_of(alien));
	ck_assert_ptr_eq(names_find(names, 1001, "b"), record_of(tensors[1]));
	/* One that is to go has its name until it is gone. */
	tensors_mark_going(&bench.world.service, &tensors[1], 1);
	ck_assert_int_eq(tensors_rename(&bench.session, tensors[1], "c", &bench.world.error), 0);
	ck_assert_ptr_null(names_find(names, 1001, "b"));
	ck_assert_ptr_eq(names_find(names, 1001, "c"), record_of(tensors[1]));
	tensors_hide(&bench.session, &tensors[1], 1);
	ck_assert_ptr_null(names_find(names, 1001, "c"));
	tensors_free(&bench.session, &tensors[1], 1);
	session_deinit(&root);
	session_deinit(&other);
}

TEST(what_has_no_name_gets_none)
{
	struct tensor *tensor;
	const char *const none[] = {""};
	ck_assert_int_eq(alloc(none, 1, &tensor), 0);
	ck_assert_int_eq(tensors_rename(&bench.session, tensor, "a", &bench.world.error), NPUMEM_INVALID);
	ck_assert_ptr_null(names_find(&bench.world.service.names, 1001, "a"));
}
