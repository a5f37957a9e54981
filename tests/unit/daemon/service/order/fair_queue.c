/* Whose work is taken next, by times that the test gives. */
#include "daemon/service/order/fair_queue.h"

#include <string.h>

#include "tests/support/test.h"

enum { USERS = 3, WORKS = 4 };

struct scene {
	struct fair_queue queue;
	struct fair_user users[USERS];
	struct fair_work works[USERS][WORKS];
	unsigned n_wakes;
};

static void count_wake(void *ctx)
{
	++*(unsigned *)ctx;
}

static void add(struct scene *scene, unsigned user, unsigned work)
{
	fair_queue_add(&scene->queue, &scene->users[user], &scene->works[user][work]);
}

/* Takes what is next and charges its user; "ab" is work 1 of user 0. */
static void take(struct scene *scene, char user, char work, uint64_t ns)
{
	struct fair_work *taken = fair_queue_take(&scene->queue);
	ck_assert_ptr_eq(taken, &scene->works[user - 'a'][work - 'a']);
	ck_assert_ptr_null(taken->prev);
	fair_queue_charge(&scene->queue, ns);
}

TEST(the_user_served_least_is_next)
{
	struct scene scene = {.n_wakes = 0};
	for (unsigned work = 0; work < WORKS; work++)
		add(&scene, 0, work);
	add(&scene, 1, 0);
	add(&scene, 1, 1);
	take(&scene, 'a', 'a', 10);
	take(&scene, 'b', 'a', 5);
	take(&scene, 'b', 'b', 5);
	take(&scene, 'a', 'b', 10);
	add(&scene, 1, 2);
	take(&scene, 'b', 'c', 100);
	take(&scene, 'a', 'c', 1);
	take(&scene, 'a', 'd', 1);
	ck_assert_ptr_null(fair_queue_take(&scene.queue));
}

/* A user that was away for long has no more than its part when it comes back. */
TEST(nothing_is_saved_up)
{
	struct scene scene = {.n_wakes = 0};
	for (unsigned i = 0; i < 100; i++) {
		add(&scene, 0, 0);
		take(&scene, 'a', 'a', 1000);
	}
	add(&scene, 0, 0);
	add(&scene, 1, 0);
	take(&scene, 'b', 'a', 3000);
	add(&scene, 1, 0);
	take(&scene, 'a', 'a', 1000);
	add(&scene, 0, 0);
	take(&scene, 'a', 'a', 3000);
	take(&scene, 'b', 'a', 0);
}

TEST(work_is_queued_once_and_can_be_removed)
{
	struct scene scene = {.n_wakes = 0};
	scene.queue.wake = count_wake;
	scene.queue.ctx = &scene.n_wakes;
	fair_queue_remove(&scene.works[0][0]);
	add(&scene, 0, 0);
	add(&scene, 0, 0);
	add(&scene, 0, 1);
	add(&scene, 1, 0);
	ck_assert_uint_eq(scene.n_wakes, 1);
	fair_queue_remove(&scene.works[0][0]);
	fair_queue_remove(&scene.works[1][0]);
	fair_queue_add_first(&scene.queue, &scene.users[0], &scene.works[0][2]);
	fair_queue_add_first(&scene.queue, &scene.users[0], &scene.works[0][2]);
	take(&scene, 'a', 'c', 0);
	take(&scene, 'a', 'b', 0);
	ck_assert(fair_queue_is_empty(&scene.queue));
	add(&scene, 2, 0);
	ck_assert_uint_eq(scene.n_wakes, 2);
	ck_assert_ptr_eq(fair_queue_take_of(&scene.queue, &scene.users[2]), &scene.works[2][0]);
	/* A user that has gone is not charged. */
	fair_user_deinit(&scene.users[2]);
	fair_queue_charge(&scene.queue, 5);
	ck_assert_uint_eq(scene.users[2].served_ns, 0);
}
