/* Which of a client's memory is taken for being there. */
#include "daemon/service/segments.h"

#include "tests/unit/daemon/service/world.h"

enum { BYTES = 4096, SLOW_NS = 1000000 };

static uint8_t memory[BYTES];

static int take(void *ctx, struct segments_memory *taken, struct npumem_error *error)
{
	(void)ctx;
	(void)error;
	*taken = (struct segments_memory){.base = memory, .bytes = BYTES, .writable = true};
	return 0;
}

static void release(void *ctx, const struct segments_memory *taken)
{
	(void)ctx;
	(void)taken;
}

struct scene {
	struct world world;
	struct session session;
	struct segments_source source;
	struct segment *segment;
	struct op op;
};

static void scene_init(struct scene *scene)
{
	world_init(&scene->world);
	session_init(&scene->session, &scene->world.service, 1001, 1, NULL);
	scene->source = (struct segments_source){.take = take, .release = release};
	scene->session.segments_source = &scene->source;
	ck_assert_int_eq(segments_share(&scene->session, 0, &scene->segment, &scene->world.error), 0);
	scene->op = (struct op){.kind = OP_READ,
				.tensor = world_tensor(&scene->world, &scene->session, "t"),
				.system = {.base = memory, .bytes = BYTES, .shared = true}};
}

static void scene_deinit(struct scene *scene)
{
	session_deinit(&scene->session);
	world_deinit(&scene->world);
}

/* Of bytes [from, from + n). */
static bool are_warm(struct scene *scene, uint64_t from, int64_t n)
{
	scene->op.system.off = from;
	scene->op.count = n;
	return segments_are_warm(&scene->session, &scene->op);
}

/* Bytes [from, from + n) are moved. */
static void move(struct scene *scene, uint64_t from, int64_t n, uint64_t ns)
{
	scene->op.system.warm = are_warm(scene, from, n);
	segments_note(&scene->session, &scene->op, ns);
}

START_TEST(what_was_moved_is_warm)
{
	struct scene scene;

	scene_init(&scene);
	ck_assert(!are_warm(&scene, 0, 1));
	move(&scene, 100, 200, SLOW_NS);
	ck_assert(are_warm(&scene, 100, 200) && are_warm(&scene, 299, 1));
	ck_assert(!are_warm(&scene, 99, 200) && !are_warm(&scene, 100, 201));
	ck_assert(!are_warm(&scene, UINT64_MAX, 2) && !are_warm(&scene, 200, INT64_MAX));
	/* As many as there are from there on. */
	scene.op.first = npumem_place_elements(&scene.op.tensor->place) - 200;
	ck_assert(are_warm(&scene, 100, -1));
	scene.op.first--;
	ck_assert(!are_warm(&scene, 100, -1));
	scene.op.first = INT64_MAX;
	ck_assert(!are_warm(&scene, 100, -1));
	scene.op.first = 0;
	/* What touches it is added. */
	move(&scene, 300, 50, 0);
	move(&scene, 50, 60, 0);
	ck_assert(are_warm(&scene, 50, 300));
	ck_assert(!are_warm(&scene, 49, 2) && !are_warm(&scene, 349, 2));
	/* One stretch is remembered, the latest. */
	move(&scene, 1000, 10, 0);
	ck_assert(are_warm(&scene, 1000, 10) && !are_warm(&scene, 50, 300));
	scene_deinit(&scene);
}
END_TEST

START_TEST(what_is_slow_was_not)
{
	struct scene scene;

	scene_init(&scene);
	move(&scene, 0, 1000, 0);
	move(&scene, 10, 20, SLOW_NS);
	ck_assert(!are_warm(&scene, 0, 1) && !are_warm(&scene, 10, 20));
	move(&scene, 10, 20, SLOW_NS);
	ck_assert(are_warm(&scene, 10, 20));
	scene_deinit(&scene);
}
END_TEST

START_TEST(other_memory_and_strides_do_not_count)
{
	struct scene scene;

	scene_init(&scene);
	scene.op.system.strided = true;
	move(&scene, 0, 1000, 0);
	ck_assert(!are_warm(&scene, 0, 1));
	scene.op.system.strided = false;
	scene.op.system.base = memory + 1;
	move(&scene, 0, 1000, 0);
	ck_assert(!are_warm(&scene, 0, 1));
	scene_deinit(&scene);
}
END_TEST

START_TEST(ids_may_be_chosen)
{
	struct scene scene;
	struct segment *segment;

	scene_init(&scene);
	ck_assert_uint_eq(scene.segment->id, 1);
	ck_assert_int_eq(segments_share(&scene.session, 7, &segment, &scene.world.error), 0);
	ck_assert_uint_eq(segment->id, 7);
	ck_assert_int_eq(segments_share(&scene.session, 7, &segment, &scene.world.error), NPUMEM_INVALID);
	ck_assert_int_eq(segments_share(&scene.session, 1, &segment, &scene.world.error), NPUMEM_INVALID);
	ck_assert_int_eq(segments_share(&scene.session, 3, &segment, &scene.world.error), 0);
	/* None is given that was given before. */
	ck_assert_int_eq(segments_share(&scene.session, 0, &segment, &scene.world.error), 0);
	ck_assert_uint_eq(segment->id, 8);
	ck_assert_int_eq(segments_share(&scene.session, UINT64_MAX, &segment, &scene.world.error), NPUMEM_INVALID);
	ck_assert_int_eq(segments_share(&scene.session, 0, &segment, &scene.world.error), 0);
	ck_assert_uint_eq(segment->id, 9);
	scene_deinit(&scene);
}
END_TEST

Suite *suite_segments(void)
{
	Suite *suite = suite_create("segments");
	TCase *tests = tcase_create("segments");

	tcase_add_test(tests, what_was_moved_is_warm);
	tcase_add_test(tests, what_is_slow_was_not);
	tcase_add_test(tests, other_memory_and_strides_do_not_count);
	tcase_add_test(tests, ids_may_be_chosen);
	suite_add_tcase(suite, tests);
	return suite;
}
