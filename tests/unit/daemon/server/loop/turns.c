/* Who is run when, and that nobody is run twice. */
#include "daemon/server/loop/turns.h"

#include <check.h>
#include <stdbool.h>
#include <string.h>

#include "tests/support/hrtime.h"

enum { ENTRIES = 3, TURN_NS = 25000 };

struct one {
	struct turns_entry entry;
	struct turns *turns;
	char name;
	unsigned n_again; /* how often it stands in line anew */
	bool is_last, is_slow;
};

static char said[200];

static void stand(struct one *one)
{
	if (one->is_last)
		turns_add_last(one->turns, &one->entry);
	else
		turns_add(one->turns, &one->entry);
}

static void run(struct turns_entry *entry)
{
	struct one *one = (struct one *)entry;

	ck_assert_ptr_null(entry->next);
	strncat(said, &one->name, 1);
	if (one->is_slow)
		hrtime_skip(TURN_NS);
	if (one->n_again && one->n_again--)
		stand(one);
}

struct scene {
	uv_loop_t loop;
	struct turns turns;
	struct one ones[ENTRIES], last;
};

static void open_scene(struct scene *scene)
{
	memset(scene, 0, sizeof(*scene));
	memset(said, 0, sizeof(said));
	uv_loop_init(&scene->loop);
	turns_open(&scene->turns, &scene->loop);
	/* Only what is slow on purpose takes time. */
	scene->turns.most_ns = TURN_NS;
	hrtime_stop();
	for (unsigned i = 0; i < ENTRIES; i++)
		scene->ones[i] = (struct one){{.run = run}, .turns = &scene->turns, .name = (char)('a' + i)};
	scene->last = (struct one){{.run = run}, .turns = &scene->turns, .name = 'Z', .is_last = true};
}

/* One turn, or all that there are. */
static void turn(struct scene *scene, uv_run_mode mode, const char *expected)
{
	said[0] = 0;
	uv_run(&scene->loop, mode);
	ck_assert_str_eq(said, expected);
}

static void close_scene(struct scene *scene)
{
	turn(scene, UV_RUN_DEFAULT, "");
	hrtime_run();
	turns_close(&scene->turns);
	uv_run(&scene->loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&scene->loop), 0);
}

START_TEST(each_once_in_order_and_the_last_at_the_end)
{
	struct scene scene;

	open_scene(&scene);
	stand(&scene.last);
	for (unsigned i = 0; i < 2 * ENTRIES; i++)
		stand(&scene.ones[i % ENTRIES]);
	stand(&scene.last);
	turn(&scene, UV_RUN_NOWAIT, "abcZ");
	ck_assert_uint_eq(scene.turns.n_run, 4);
	close_scene(&scene);
}
END_TEST

START_TEST(who_has_more_stands_behind_the_others)
{
	struct scene scene;

	open_scene(&scene);
	scene.ones[0].n_again = 2;
	for (unsigned i = 0; i < ENTRIES; i++)
		stand(&scene.ones[i]);
	turn(&scene, UV_RUN_NOWAIT, "abcaa");
	close_scene(&scene);
}
END_TEST

START_TEST(a_turn_has_an_end)
{
	struct scene scene;

	open_scene(&scene);
	scene.ones[0].is_slow = scene.ones[1].is_slow = true;
	for (unsigned i = 0; i < ENTRIES; i++)
		stand(&scene.ones[i]);
	stand(&scene.last);
	scene.last.n_again = 1;
	turn(&scene, UV_RUN_NOWAIT, "aZ");
	turn(&scene, UV_RUN_NOWAIT, "bZ");
	/* It does not sleep while somebody is left. */
	turn(&scene, UV_RUN_DEFAULT, "c");
	close_scene(&scene);
}
END_TEST

START_TEST(who_is_removed_is_not_run)
{
	struct scene scene;

	open_scene(&scene);
	for (unsigned i = 0; i < ENTRIES; i++)
		stand(&scene.ones[i]);
	stand(&scene.last);
	turns_remove(&scene.ones[1].entry);
	turns_remove(&scene.ones[1].entry);
	turns_remove(&scene.last.entry);
	turn(&scene, UV_RUN_NOWAIT, "ac");
	close_scene(&scene);
}
END_TEST

Suite *suite_turns(void)
{
	Suite *suite = suite_create("turns");
	TCase *tests = tcase_create("turns");

	tcase_add_test(tests, each_once_in_order_and_the_last_at_the_end);
	tcase_add_test(tests, who_has_more_stands_behind_the_others);
	tcase_add_test(tests, a_turn_has_an_end);
	tcase_add_test(tests, who_is_removed_is_not_run);
	suite_add_tcase(suite, tests);
	return suite;
}
