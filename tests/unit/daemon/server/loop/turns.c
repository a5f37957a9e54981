/* The order in which a turn runs the work of users and what it ends with. */
#include "daemon/server/loop/turns.h"

#include <stdbool.h>
#include <string.h>

#include "tests/support/hrtime.h"
#include "tests/support/test.h"

enum { WORKS = 3, TURN_NS = 25000 };

struct one {
	struct fair_work work;
	struct fair_user *user;
	struct fair_queue *queue;
	char name;
	unsigned n_again; /* how often it is queued anew */
	uint64_t takes_ns;
};

struct last {
	struct turns_entry entry;
	struct turns *turns;
	unsigned n_again;
};

struct scene {
	uv_loop_t loop;
	struct fair_queue queue;
	struct fair_user users[2];
	struct turns turns;
	struct one ones[WORKS];
	struct last last;
};

static char said[200];

static void queue(struct one *one)
{
	fair_queue_add(one->queue, one->user, &one->work);
}

static void run(struct fair_work *work)
{
	struct one *one = (struct one *)work;
	ck_assert_ptr_null(work->prev);
	strncat(said, &one->name, 1);
	hrtime_skip(one->takes_ns);
	if (one->n_again && one->n_again--)
		queue(one);
}

static void run_last(struct turns_entry *entry)
{
	struct last *last = (struct last *)entry;
	strcat(said, "Z");
	if (last->n_again && last->n_again--)
		turns_add_last(last->turns, entry);
}

static void open_scene(struct scene *scene)
{
	memset(scene, 0, sizeof(*scene));
	memset(said, 0, sizeof(said));
	uv_loop_init(&scene->loop);
	turns_open(&scene->turns, &scene->loop, &scene->queue);
	scene->turns.most_ns = TURN_NS;
	hrtime_stop();
	for (unsigned i = 0; i < WORKS; i++)
		scene->ones[i] = (struct one){
			{.run = run}, .user = &scene->users[0], .queue = &scene->queue, .name = (char)('a' + i)};
	scene->last = (struct last){{.run = run_last}, .turns = &scene->turns};
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

FIXTURE_OBJECT(struct scene, scene, open_scene(&scene), close_scene(&scene))

TEST(each_once_in_order_and_the_last_at_the_end)
{
	turns_add_last(&scene.turns, &scene.last.entry);
	for (unsigned i = 0; i < 2 * WORKS; i++)
		queue(&scene.ones[i % WORKS]);
	turns_add_last(&scene.turns, &scene.last.entry);
	turn(&scene, UV_RUN_NOWAIT, "abcZ");
}

TEST(new_work_goes_behind_the_same_users)
{
	scene.ones[0].n_again = 2;
	for (unsigned i = 0; i < WORKS; i++)
		queue(&scene.ones[i]);
	turn(&scene, UV_RUN_NOWAIT, "abcaa");
}

/* However many works a user has, another user waits for one of them at most. */
TEST(the_user_served_least_is_next)
{
	scene.turns.most_ns = 10 * TURN_NS;
	for (unsigned i = 0; i < WORKS; i++)
		scene.ones[i].takes_ns = TURN_NS;
	scene.ones[0].n_again = 3;
	scene.ones[2].user = &scene.users[1];
	for (unsigned i = 0; i < WORKS; i++)
		queue(&scene.ones[i]);
	turn(&scene, UV_RUN_NOWAIT, "acbaaa");
	/* One that comes back has saved nothing up. */
	scene.ones[2].n_again = scene.ones[0].n_again = 2;
	queue(&scene.ones[0]);
	queue(&scene.ones[2]);
	turn(&scene, UV_RUN_NOWAIT, "cacaca");
}

TEST(a_turn_has_an_end)
{
	scene.ones[0].takes_ns = scene.ones[1].takes_ns = TURN_NS;
	for (unsigned i = 0; i < WORKS; i++)
		queue(&scene.ones[i]);
	turns_add_last(&scene.turns, &scene.last.entry);
	scene.last.n_again = 1;
	turn(&scene, UV_RUN_NOWAIT, "aZ");
	turn(&scene, UV_RUN_NOWAIT, "bZ");
	/* It does not sleep while work is left. */
	turn(&scene, UV_RUN_DEFAULT, "c");
}

TEST(removed_work_is_not_run)
{
	for (unsigned i = 0; i < WORKS; i++)
		queue(&scene.ones[i]);
	turns_add_last(&scene.turns, &scene.last.entry);
	fair_queue_remove(&scene.ones[1].work);
	fair_queue_remove(&scene.ones[1].work);
	turns_remove(&scene.last.entry);
	turn(&scene, UV_RUN_NOWAIT, "ac");
}
