#include "daemon/service/tensors.h"

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

static int alloc(struct bench *bench, const char *const *names, unsigned n, struct tensor **tensors)
{
	struct device_request requests[TENSORS_ALLOC_MAX + 1];

	for (unsigned i = 0; i < n; i++)
		requests[i] = world_request(8, 10);
	npumem_error_clear(&bench->world.error);
	return tensors_alloc(&bench->session, requests, names, n, tensors, &bench->world.error);
}

START_TEST(names_are_unique_per_uid)
{
	struct bench bench;
	struct session other;
	struct tensor *tensors[3];
	const char *once[] = {"a", "b", "c"}, *again[] = {"d", "", "b"}, *twice[] = {"d", "e", "d"};

	bench_init(&bench);
	ck_assert_int_eq(alloc(&bench, once, 3, tensors), 0);
	ck_assert_int_eq(alloc(&bench, again, 3, tensors), NPUMEM_ALREADY_EXISTS);
	ck_assert_int_eq(npumem_error_find(&bench.world.error, "tensor_index", -1), 2);
	ck_assert_int_eq(alloc(&bench, twice, 3, tensors), NPUMEM_INVALID);
	ck_assert_int_eq(world_n_tensors(&bench.world), 3);
	session_init(&other, &bench.world.service, 1002, 0, NULL);
	world_tensor(&bench.world, &other, "a");
	ck_assert_int_eq(world_n_tensors(&bench.world), 4);
	session_deinit(&other);
	bench_deinit(&bench);
}
END_TEST

START_TEST(all_or_nothing)
{
	struct bench bench;
	struct device_request requests[3] = {world_request(8, 100), world_request(8, 100), world_request(8, 9000)};
	const char *names[] = {"a", "", "c"}, *bad[] = {"a", "1:2", ""};
	struct tensor *tensors[3];

	bench_init(&bench);
	ck_assert_int_ne(tensors_alloc(&bench.session, requests, names, 3, tensors, &bench.world.error), 0);
	npumem_error_clear(&bench.world.error);
	ck_assert_int_eq(tensors_alloc(&bench.session, requests, bad, 3, tensors, &bench.world.error),
			 NPUMEM_INVALID);
	ck_assert_int_eq(npumem_error_find(&bench.world.error, "tensor_index", -1), 1);
	ck_assert_int_eq(world_n_tensors(&bench.world), 0);
	ck_assert_ptr_null(bench.session.anonymous);
	ck_assert_ptr_null(names_find(&bench.world.service.names, 1001, "a"));
	bench_deinit(&bench);
}
END_TEST

START_TEST(counts_have_limits)
{
	struct bench bench;
	const char *names[TENSORS_ALLOC_MAX + 1];
	struct tensor *tensors[TENSORS_ALLOC_MAX + 1];

	bench_init(&bench);
	for (unsigned i = 0; i <= TENSORS_ALLOC_MAX; i++)
		names[i] = "";
	ck_assert_int_eq(alloc(&bench, names, 0, tensors), NPUMEM_INVALID);
	ck_assert_int_eq(alloc(&bench, names, TENSORS_ALLOC_MAX + 1, tensors), NPUMEM_INVALID);
	ck_assert_ptr_nonnull(strstr(bench.world.error.message, "256"));
	bench_deinit(&bench);
}
END_TEST

/* Handles by index, for tensors_free. */
struct handles {
	struct access_ref refs[4];
};

static const struct access_ref *handle_at(void *ctx, size_t i)
{
	return &((struct handles *)ctx)->refs[i];
}

START_TEST(free_takes_all_or_none)
{
	struct bench bench;
	struct tensor *tensors[3], *view;
	const char *names[] = {"a", "b", ""};
	struct device_slice slice = {{0, 0, 0, 0}, {1, 2, 1, 10}};
	uint64_t n;

	bench_init(&bench);
	ck_assert_int_eq(alloc(&bench, names, 3, tensors), 0);
	ck_assert_int_eq(tensors_view(&bench.session, tensors[0], "v", &slice, NULL, &view, &bench.world.error),
			 0);
	struct handles missing = {{{0, "a"}, {0, "b"}, {0, "nobody"}}};
	ck_assert_int_eq(tensors_free(&bench.session, handle_at, &missing, 3, &n, &bench.world.error),
			 NPUMEM_NOT_FOUND);
	ck_assert_int_eq(npumem_error_find(&bench.world.error, "tensor_index", -1), 2);
	struct handles twice = {{{0, "a"}, {tensors[1]->handle, ""}, {0, "b"}}};
	npumem_error_clear(&bench.world.error);
	ck_assert_int_eq(tensors_free(&bench.session, handle_at, &twice, 3, &n, &bench.world.error),
			 NPUMEM_INVALID);
	ck_assert_int_eq(world_n_tensors(&bench.world), 4);
	/* A base and its view at once, base first. */
	struct handles both = {{{0, "a"}, {0, "v"}}};
	npumem_error_clear(&bench.world.error);
	ck_assert_int_eq(tensors_free(&bench.session, handle_at, &both, 2, &n, &bench.world.error), 0);
	ck_assert_uint_eq(n, 2);
	struct handles rest = {{{0, "b"}, {tensors[2]->handle, ""}}};
	ck_assert_int_eq(tensors_free(&bench.session, handle_at, &rest, 2, &n, &bench.world.error), 0);
	ck_assert_uint_eq(n, 2);
	ck_assert_int_eq(world_n_tensors(&bench.world), 0);
	ck_assert_int_eq(tensors_free(&bench.session, handle_at, &rest, 1, &n, &bench.world.error),
			 NPUMEM_NOT_FOUND);
	bench_deinit(&bench);
}
END_TEST

START_TEST(a_view_counts_with_its_base)
{
	struct bench bench;
	struct tensor *base, *view, *again;
	struct device_slice slice = {{0, 0, 0, 0}, {1, 2, 1, 100}};
	uint64_t n;

	bench_init(&bench);
	base = world_tensor(&bench.world, &bench.session, "base");
	ck_assert_int_eq(tensors_view(&bench.session, base, "base", &slice, NULL, &view, &bench.world.error),
			 NPUMEM_ALREADY_EXISTS);
	npumem_error_clear(&bench.world.error);
	ck_assert_int_eq(tensors_view(&bench.session, base, "v", &slice, NULL, &view, &bench.world.error), 0);
	ck_assert_int_eq(tensors_view(&bench.session, view, "", &slice, NULL, &again, &bench.world.error), 0);
	slice.to.c = 9;
	ck_assert_int_eq(tensors_view(&bench.session, base, "w", &slice, NULL, &again, &bench.world.error),
			 NPUMEM_INVALID);
	struct handles handles = {{{0, "base"}}};
	ck_assert_int_eq(tensors_free(&bench.session, handle_at, &handles, 1, &n, &bench.world.error), 0);
	ck_assert_uint_eq(n, 3);
	ck_assert_ptr_null(bench.session.anonymous);
	bench_deinit(&bench);
}
END_TEST

START_TEST(a_new_tensor_is_described_without_counting)
{
	struct bench bench;
	struct tensor *tensor;
	struct tensors_description fresh, counted;
	struct device_state state;

	bench_init(&bench);
	tensor = world_tensor(&bench.world, &bench.session, "x");
	tensors_new_state(tensor, &state);
	tensors_describe(&bench.session, tensor, &state, &fresh);
	tensors_describe(&bench.session, tensor, NULL, &counted);
	ck_assert_str_eq(fresh.state, "unwritten");
	ck_assert_str_eq(counted.state, fresh.state);
	ck_assert_int_eq(counted.bytes.unwritten_bytes, fresh.bytes.unwritten_bytes);
	ck_assert_int_eq(counted.bytes.unwritten_bytes, 800);
	ck_assert_str_eq(counted.name, "x");
	ck_assert_uint_eq(counted.base_handle, 0);
	bench_deinit(&bench);
}
END_TEST

/* Each allocation of host memory fails once; the request is refused whole, or done whole. */
START_TEST(host_memory_may_run_out_anywhere)
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
		struct bench bench;
		struct tensor *tensors[40];
		int status;

		bench_init(&bench);
		bench.world.fail_at = bench.world.n_allocs + i;
		status = alloc(&bench, names, 40, tensors);
		hit = bench.world.n_allocs >= bench.world.fail_at;
		world_check(&bench.world);
		if (status) {
			n_refused++;
			ck_assert_int_eq(status, NPUMEM_RESOURCE_EXHAUSTED);
			ck_assert_int_eq(world_n_tensors(&bench.world), 0);
			ck_assert_uint_eq(bench.world.service.names.n, 0);
			ck_assert_ptr_null(bench.session.anonymous);
			ck_assert_int_eq(alloc(&bench, names, 40, tensors), 0);
		}
		ck_assert_int_eq(world_n_tensors(&bench.world), 40);
		bench_deinit(&bench);
	}
	ck_assert_uint_ge(n_refused, 40);
}
END_TEST

START_TEST(a_view_without_host_memory_leaves_nothing)
{
	bool hit = true;

	for (size_t i = 1; hit; i++) {
		struct bench bench;
		struct device_slice slice = {{0, 0, 0, 0}, {1, 2, 1, 10}};
		struct tensor *base, *view;
		int status;

		bench_init(&bench);
		base = world_tensor(&bench.world, &bench.session, "base");
		bench.world.fail_at = bench.world.n_allocs + i;
		status = tensors_view(&bench.session, base, "v", &slice, NULL, &view, &bench.world.error);
		hit = bench.world.n_allocs >= bench.world.fail_at;
		ck_assert_int_eq(status, hit ? NPUMEM_RESOURCE_EXHAUSTED : 0);
		ck_assert_int_eq(world_n_tensors(&bench.world), hit ? 1 : 2);
		bench_deinit(&bench);
	}
}
END_TEST

Suite *suite_tensors(void)
{
	Suite *suite = suite_create("service/tensors");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, names_are_unique_per_uid);
	tcase_add_test(tcase, all_or_nothing);
	tcase_add_test(tcase, counts_have_limits);
	tcase_add_test(tcase, free_takes_all_or_none);
	tcase_add_test(tcase, a_view_counts_with_its_base);
	tcase_add_test(tcase, a_new_tensor_is_described_without_counting);
	tcase_add_test(tcase, host_memory_may_run_out_anywhere);
	tcase_add_test(tcase, a_view_without_host_memory_leaves_nothing);
	suite_add_tcase(suite, tcase);
	return suite;
}
