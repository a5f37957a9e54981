#include "daemon/service/session.h"

#include "tests/unit/daemon/service/world.h"

FIXTURE_OBJECT(struct world, world, world_init(&world), world_deinit(&world))

TEST(the_end_of_a_session_frees_its_anonymous_tensors)
{
	struct session one, two;
	session_init(&one, &world.service, 1001, 1, NULL);
	session_init(&two, &world.service, 1001, 2, NULL);
	ck_assert_uint_ne(one.id, two.id);
	ck_assert_uint_eq(world.service.n_sessions, 2);
	world_tensor(&world, &one, "");
	world_tensor(&world, &one, "kept");
	world_tensor(&world, &one, "");
	world_tensor(&world, &two, "");
	ck_assert_int_eq(world_n_tensors(&world), 4);
	session_deinit(&one);
	ck_assert_int_eq(world_n_tensors(&world), 2);
	ck_assert_ptr_nonnull(names_find(&world.service.names, 1001, "kept"));
	session_deinit(&two);
	ck_assert_int_eq(world_n_tensors(&world), 1);
	ck_assert_uint_eq(world.service.n_sessions, 0);
}

TEST(views_go_with_their_base_named_or_not)
{
	struct session one, two;
	struct device_slice slice = {{0, 0, 0, 0}, {1, 2, 1, 100}};
	struct tensor *base, *view;
	session_init(&one, &world.service, 1001, 1, NULL);
	session_init(&two, &world.service, 1001, 2, NULL);
	base = world_tensor(&world, &one, "");
	ck_assert_int_eq(tensors_view(&one, base, "named", "", &slice, NULL, NULL, &view, &world.error), 0);
	ck_assert_int_eq(tensors_view(&one, base, "", "", &slice, NULL, NULL, &view, &world.error), 0);
	/* An anonymous view of a named base goes with its own session only. */
	base = world_tensor(&world, &one, "base");
	ck_assert_int_eq(tensors_view(&two, base, "", "", &slice, NULL, NULL, &view, &world.error), 0);
	ck_assert_int_eq(world_n_tensors(&world), 5);
	session_deinit(&one);
	ck_assert_int_eq(world_n_tensors(&world), 2);
	ck_assert_ptr_null(names_find(&world.service.names, 1001, "named"));
	/* Now the base goes first, under the view's session. */
	service_release(&world.service, base);
	ck_assert_int_eq(world_n_tensors(&world), 0);
	session_deinit(&two);
}

TEST(sessions_may_end_in_any_order)
{
	struct session sessions[4];
	static const unsigned order[] = {2, 0, 3, 1};
	for (unsigned i = 0; i < 4; i++) {
		session_init(&sessions[i], &world.service, 1000 + i, 0, NULL);
		world_tensor(&world, &sessions[i], "");
	}
	for (unsigned i = 0; i < 4; i++) {
		session_deinit(&sessions[order[i]]);
		ck_assert_int_eq(world_n_tensors(&world), 3 - (int)i);
	}
	ck_assert_ptr_null(world.service.sessions);
}
