/* Slots and turns, by tasks that run until they are let go. */
#include "daemon/server/loop/workers.h"

#include <errno.h>

#include "daemon/server/loop/turns.h"
#include "tests/support/test.h"
#include "tests/support/threads.h"

enum { ALICE = 1, BOB = 2, CAROL = 3, UIDS = 4, USERS = 64, TASKS_MAX = 64, SLOTS = 2, HANGS_MS = 60000 };

struct task {
	atomic_bool began, let_go;
	atomic_int looks; /* at whether somebody waits */
	bool gives_way, ended;
	uint64_t done_ns; /* that the loop takes for its end */
};

struct desk {
	uv_loop_t loop;
	struct fair_queue queue;
	struct turns turns;
	struct workers workers;
	struct limits_user users[USERS];
	struct rpc_executor executor;
	struct task tasks[TASKS_MAX];
	unsigned n_tasks, n_ended;
	atomic_int n_active, most_active, n_begun, most_begun;
	uv_thread_t thread;
	bool is_open;
};

static void desk_open(struct desk *desk, const struct heap *heap, unsigned n_slots)
{
	memset(desk, 0, sizeof(*desk));
	desk->thread = uv_thread_self();
	ck_assert_int_eq(uv_loop_init(&desk->loop), 0);
	turns_open(&desk->turns, &desk->loop, &desk->queue);
	ck_assert_int_eq(workers_open(&desk->workers, &desk->loop, &desk->queue, heap, n_slots), 0);
	desk->executor = workers_executor(&desk->workers);
	desk->is_open = true;
}

/* The loop ends by itself when nothing is left to do. A test may close its desk earlier than its end. */
static void desk_close(struct desk *desk)
{
	if (!desk->is_open)
		return;
	desk->is_open = false;
	uv_run(&desk->loop, UV_RUN_DEFAULT);
	ck_assert_uint_eq(desk->n_ended, desk->n_tasks);
	workers_close(&desk->workers);
	turns_close(&desk->turns);
	uv_run(&desk->loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&desk->loop), 0);
}

FIXTURE_OBJECT(struct desk, desk, desk_open(&desk, &heap_libc, SLOTS), desk_close(&desk))

static void desk_again(const struct heap *heap, unsigned n_slots)
{
	desk_close(&desk);
	desk_open(&desk, heap, n_slots);
}

static void raise_to(atomic_int *most, int n)
{
	int was = atomic_load(most);
	while (was < n && !atomic_compare_exchange_weak(most, &was, n))
		;
}

static void look(struct task *task)
{
	if (!task->gives_way) {
		uv_sleep(0);
		return;
	}
	atomic_fetch_sub(&desk.n_active, 1);
	workers_give_way(&desk.workers);
	raise_to(&desk.most_active, atomic_fetch_add(&desk.n_active, 1) + 1);
	atomic_fetch_add(&task->looks, 1);
}

static void work(void *arg)
{
	struct task *task = arg;
	raise_to(&desk.most_active, atomic_fetch_add(&desk.n_active, 1) + 1);
	raise_to(&desk.most_begun, atomic_fetch_add(&desk.n_begun, 1) + 1);
	atomic_store(&task->began, true);
	while (!atomic_load(&task->let_go))
		look(task);
	atomic_fetch_sub(&desk.n_begun, 1);
	atomic_fetch_sub(&desk.n_active, 1);
}

static void spin(uint64_t ns)
{
	for (uint64_t until = uv_hrtime() + ns; uv_hrtime() < until;)
		;
}

static void done(void *arg)
{
	struct task *task = arg;
	uv_thread_t self = uv_thread_self();
	ck_assert(uv_thread_equal(&self, &desk.thread));
	ck_assert(!task->ended);
	task->ended = true;
	desk.n_ended++;
	spin(task->done_ns);
}

static int try_submit(unsigned user, bool waits, struct task *task)
{
	return desk.executor.submit(desk.executor.ctx, &desk.users[user], waits, work, done, task);
}

static struct task *submit_as(unsigned user, bool gives_way, bool waits)
{
	struct task *task = &desk.tasks[desk.n_tasks++];
	task->gives_way = gives_way;
	ck_assert_int_eq(try_submit(user, waits, task), 0);
	return task;
}

static struct task *submit(unsigned user, bool gives_way)
{
	return submit_as(user, gives_way, false);
}

static void let_go(struct task *task)
{
	atomic_store(&task->let_go, true);
}

static void let_all_go(void)
{
	for (unsigned i = 0; i < desk.n_tasks; i++)
		let_go(&desk.tasks[i]);
}

/* Turns the loop until it is so. */
#define UNTIL(desk, condition)                                                                                    \
	do {                                                                                                      \
		uint64_t until_ns_ = uv_hrtime() + HANGS_MS * UINT64_C(1000000);                                  \
		while (!(condition)) {                                                                            \
			ck_assert_msg(uv_hrtime() < until_ns_, "waited in vain for %s", #condition);              \
			uv_run(&(desk)->loop, UV_RUN_NOWAIT);                                                     \
			uv_sleep(0);                                                                              \
		}                                                                                                 \
	} while (0)

TEST(a_user_alone_has_all_slots, .is_unbounded = true)
{
	struct task *tasks[SLOTS + 1];
	for (unsigned i = 0; i <= SLOTS; i++)
		tasks[i] = submit(ALICE, false);
	UNTIL(&desk, atomic_load(&tasks[0]->began) && atomic_load(&tasks[1]->began));
	ck_assert(!atomic_load(&tasks[SLOTS]->began));
	let_go(tasks[1]);
	UNTIL(&desk, atomic_load(&tasks[SLOTS]->began));
	let_all_go();
	desk_close(&desk);
	ck_assert_int_le(atomic_load(&desk.most_active), SLOTS);
}

TEST(users_take_turns, .is_unbounded = true)
{
	struct task *alice[4], *bob;
	for (unsigned i = 0; i < 4; i++)
		alice[i] = submit(ALICE, false);
	bob = submit(BOB, false);
	UNTIL(&desk, atomic_load(&alice[1]->began));
	let_go(alice[0]);
	UNTIL(&desk, atomic_load(&bob->began));
	ck_assert(!atomic_load(&alice[2]->began));
	let_all_go();
}

static void end_moments(void)
{
	uv_mutex_lock(&desk.workers.lock);
	desk.workers.latest.until_ns = desk.workers.before.until_ns = 0;
	uv_mutex_unlock(&desk.workers.lock);
}

TEST(beside_others_never_the_last_slot, .is_unbounded = true)
{
	struct task *bob, *alice[4], *carol;
	desk.workers.moment_ns = UINT64_MAX;
	bob = submit(BOB, false);
	UNTIL(&desk, atomic_load(&bob->began));
	for (unsigned i = 0; i < 4; i++)
		alice[i] = submit(ALICE, true);
	UNTIL(&desk, atomic_load(&alice[0]->began));
	let_go(bob);
	/* Nothing of Alice's takes Bob's slot while his moment lasts, so that Carol finds it free. */
	UNTIL(&desk, bob->ended);
	carol = submit(CAROL, false);
	ck_assert(!atomic_load(&alice[1]->began));
	UNTIL(&desk, atomic_load(&carol->began));
	ck_assert(!atomic_load(&alice[1]->began));
	let_go(carol);
	UNTIL(&desk, carol->ended);
	end_moments();
	/* Nobody else comes: what runs sees to it that the other slot is used again. */
	UNTIL(&desk, atomic_load(&alice[1]->began));
	ck_assert(!atomic_load(&alice[0]->let_go));
	let_all_go();
}

/* Who only sends short requests finds a slot as well: one of two tasks pauses while that lasts. */
TEST(who_is_heard_is_made_room_for, .is_unbounded = true)
{
	struct task *alice[SLOTS];
	int looks[SLOTS];
	desk.workers.heard_moment_ns = UINT64_MAX;
	for (unsigned i = 0; i < SLOTS; i++)
		alice[i] = submit(ALICE, true);
	UNTIL(&desk, atomic_load(&alice[0]->looks) && atomic_load(&alice[1]->looks));
	workers_hear(&desk.workers, &desk.users[ALICE]);
	spin(5 * 1000000);
	ck_assert_uint_eq(atomic_load(&desk.workers.n_running), SLOTS);
	workers_hear(&desk.workers, &desk.users[BOB]);
	UNTIL(&desk, atomic_load(&desk.workers.n_running) == SLOTS - 1);
	for (unsigned i = 0; i < SLOTS; i++)
		looks[i] = atomic_load(&alice[i]->looks);
	UNTIL(&desk, atomic_load(&alice[0]->looks) > looks[0] || atomic_load(&alice[1]->looks) > looks[1]);
	spin(5 * 1000000);
	bool goes_on = atomic_load(&alice[0]->looks) > looks[0];
	ck_assert_int_eq(atomic_load(&alice[goes_on]->looks), looks[goes_on]);
	end_moments();
	UNTIL(&desk, atomic_load(&alice[0]->looks) > looks[0] && atomic_load(&alice[1]->looks) > looks[1]);
	let_all_go();
	desk_close(&desk);
	ck_assert_int_le(atomic_load(&desk.most_active), SLOTS);
}

/* Nor do helpers take the slot that another uid is to find. */
TEST(helpers_leave_room_too, .is_unbounded = true)
{
	desk_again(&heap_libc, 3);
	desk.workers.heard_moment_ns = UINT64_MAX;
	ck_assert_ptr_null(workers_user());
	struct task *alice = submit(ALICE, true);
	UNTIL(&desk, atomic_load(&alice->began));
	ck_assert(workers_have_room(&desk.workers, &desk.users[ALICE], 2));
	ck_assert(!workers_have_room(&desk.workers, &desk.users[ALICE], 3));
	workers_hear(&desk.workers, &desk.users[BOB]);
	ck_assert(workers_have_room(&desk.workers, &desk.users[ALICE], 1));
	ck_assert(!workers_have_room(&desk.workers, &desk.users[ALICE], 2));
	let_all_go();
}

TEST(what_is_long_gives_way, .is_unbounded = true)
{
	struct task *alice[SLOTS], *another, *bob;
	for (unsigned i = 0; i < SLOTS; i++)
		alice[i] = submit(ALICE, true);
	another = submit(ALICE, true);
	UNTIL(&desk, atomic_load(&alice[0]->began) && atomic_load(&alice[1]->began));
	bob = submit(BOB, false);
	UNTIL(&desk, atomic_load(&bob->began));
	/* One goes on beside him, and the other one after him. */
	int looks = atomic_load(&alice[0]->looks) + atomic_load(&alice[1]->looks);
	UNTIL(&desk, atomic_load(&alice[0]->looks) + atomic_load(&alice[1]->looks) > looks);
	let_go(bob);
	UNTIL(&desk, bob->ended);
	for (unsigned i = 0; i < SLOTS; i++) {
		looks = atomic_load(&alice[i]->looks);
		UNTIL(&desk, atomic_load(&alice[i]->looks) > looks);
	}
	/* What began goes on before another is begun. */
	ck_assert(!atomic_load(&another->began));
	let_all_go();
	desk_close(&desk);
	ck_assert_int_le(atomic_load(&desk.most_active), SLOTS);
}

TEST(four_users_share_two_slots, .is_unbounded = true)
{
	struct task *tasks[UIDS];
	for (unsigned i = 0; i < UIDS; i++)
		tasks[i] = submit(ALICE + i, true);
	for (unsigned i = 0; i < 10 * UIDS; i++) {
		int looks = atomic_load(&tasks[i % UIDS]->looks);
		UNTIL(&desk, atomic_load(&tasks[i % UIDS]->looks) > looks);
	}
	let_all_go();
	desk_close(&desk);
	ck_assert_int_le(atomic_load(&desk.most_active), SLOTS);
}

/* Where others wait too, but have slots. */
TEST(who_has_none_goes_first, .is_unbounded = true)
{
	enum { FOUR = 4 };
	desk_again(&heap_libc, FOUR);
	for (unsigned i = 0; i < 2 * FOUR; i++)
		submit(i % 2 ? BOB : ALICE, true);
	UNTIL(&desk, atomic_load(&desk.n_begun) == FOUR);
	struct task *carol = submit(CAROL, true);
	UNTIL(&desk, atomic_load(&carol->began));
	let_all_go();
	desk_close(&desk);
	ck_assert_int_le(atomic_load(&desk.most_active), FOUR);
}

/* A uid's own tasks stand behind each other: one that began is ended before the next is begun. */
TEST(a_user_does_not_give_way_to_itself, .is_unbounded = true)
{
	struct task *tasks[SLOTS + 1];
	for (unsigned i = 0; i <= SLOTS; i++)
		tasks[i] = submit(ALICE, true);
	UNTIL(&desk, atomic_load(&tasks[0]->began) && atomic_load(&tasks[1]->began));
	spin(5 * 1000000);
	ck_assert(!atomic_load(&tasks[SLOTS]->began));
	let_all_go();
}

/* A kernel that gave way keeps its thread, but never the thread of another user. */
TEST(each_user_has_a_thread, .is_unbounded = true)
{
	enum { MANY = 60 };
	for (unsigned i = 0; i < MANY; i++)
		submit(i, true);
	UNTIL(&desk, atomic_load(&desk.n_begun) == MANY);
	ck_assert_uint_eq(desk.workers.n_threads, MANY + WORKERS_COMMON);
	let_all_go();
	desk_close(&desk);
	ck_assert_int_le(atomic_load(&desk.most_active), SLOTS);
}

/* Alice has her own thread and 2 further ones, as 2 begun tasks are no more than the 2 threads that were left. Bob
 * gets the last further one. */
TEST(users_share_further_threads, .is_unbounded = true)
{
	enum { FOUR = 4, FURTHER = 3 };
	desk_again(&heap_libc, FOUR);
	desk.workers.further_max = FURTHER;
	for (unsigned i = 0; i < FOUR; i++)
		submit(ALICE, true);
	UNTIL(&desk, atomic_load(&desk.n_begun) == 3);
	spin(5 * 1000000);
	ck_assert_int_eq(atomic_load(&desk.n_begun), 3);
	for (unsigned i = 0; i < FOUR; i++)
		submit(BOB, true);
	UNTIL(&desk, atomic_load(&desk.n_begun) == 3 + 2);
	for (unsigned i = 0; i < FOUR; i++)
		submit(CAROL, true);
	UNTIL(&desk, atomic_load(&desk.n_begun) == 3 + 2 + 1);
	spin(5 * 1000000);
	ck_assert_int_eq(atomic_load(&desk.n_begun), 3 + 2 + 1);
	ck_assert_uint_eq(desk.workers.n_further, FURTHER);
	let_all_go();
	desk_close(&desk);
	ck_assert_uint_eq(desk.workers.n_further, 0);
	ck_assert_uint_eq(desk.workers.n_threads, 3 + FURTHER + WORKERS_COMMON);
}

/* Bob's second task finds no further thread. It is begun on his own one, while Alice's task still runs. */
TEST(a_further_task_waits_for_its_user_alone, .is_unbounded = true)
{
	enum { FOUR = 4 };
	struct task *bob[2];
	desk_again(&heap_libc, FOUR);
	threads_fail_after(1);
	submit(ALICE, true);
	bob[0] = submit(BOB, true);
	bob[1] = submit(BOB, true);
	UNTIL(&desk, atomic_load(&bob[0]->began));
	spin(5 * 1000000);
	ck_assert(!atomic_load(&bob[1]->began));
	let_go(bob[0]);
	UNTIL(&desk, atomic_load(&bob[1]->began));
	let_all_go();
	desk_close(&desk);
	threads_fail_never();
}

TEST(without_a_thread_a_first_task_is_refused, .is_unbounded = true)
{
	struct task refused = {.ended = false}, *bob;
	threads_fail_after(1);
	submit(ALICE, true);
	bob = submit(BOB, true);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(try_submit(CAROL, false, &refused), -ENOMEM);
	let_go(bob);
	UNTIL(&desk, bob->ended);
	/* Bob's thread is idle. */
	let_go(submit(CAROL, true));
	UNTIL(&desk, desk.n_ended == 2);
	submit(BOB, true);
	/* A failure is not remembered. */
	threads_fail_never();
	submit(CAROL, true);
	UNTIL(&desk, atomic_load(&desk.n_begun) == 3);
	let_all_go();
	desk_close(&desk);
	ck_assert(!atomic_load(&refused.began));
}

/* Carol and Dave have the common thread, one after the other. */
TEST(what_waits_for_a_thread_shares_one, .is_unbounded = true)
{
	enum { DAVE = UIDS };
	struct task refused = {.ended = false}, *carol[2], *dave;
	desk_again(&heap_libc, UIDS);
	threads_fail_after(1);
	submit(ALICE, true);
	submit(BOB, true);
	for (unsigned i = 0; i < 2; i++)
		carol[i] = submit_as(CAROL, true, true);
	dave = submit_as(DAVE, true, true);
	UNTIL(&desk, atomic_load(&desk.n_begun) == 3 && atomic_load(&carol[0]->began));
	spin(5 * 1000000);
	ck_assert_int_eq(atomic_load(&desk.n_begun), 3);
	/* The rest of what Carol has to do is refused still. */
	ck_assert_int_eq(try_submit(CAROL, false, &refused), -ENOMEM);
	let_go(carol[0]);
	UNTIL(&desk, atomic_load(&dave->began));
	ck_assert(!atomic_load(&carol[1]->began));
	let_go(dave);
	UNTIL(&desk, atomic_load(&carol[1]->began));
	let_all_go();
	desk_close(&desk);
	ck_assert_uint_eq(desk.workers.n_threads, 2 + WORKERS_COMMON);
	threads_fail_never();
}

/* Whichever of her tasks ends first. */
TEST(who_is_on_the_common_thread_may_get_one, .is_unbounded = true)
{
	for (unsigned first = 0; first < 2; first++) {
		struct task *carol[2], *dave;
		desk_again(&heap_libc, UIDS);
		threads_fail_after(0);
		submit(ALICE, true);
		carol[0] = submit_as(CAROL, true, true);
		UNTIL(&desk, atomic_load(&carol[0]->began));
		threads_fail_never();
		carol[1] = submit(CAROL, true);
		UNTIL(&desk, atomic_load(&carol[1]->began));
		ck_assert_uint_eq(desk.workers.n_own, 2);
		let_go(carol[first]);
		UNTIL(&desk, carol[first]->ended);
		ck_assert_uint_eq(desk.workers.n_further, 0);
		ck_assert_int_eq(desk.workers.is_common_busy, first);
		threads_fail_after(0);
		dave = submit_as(UIDS, true, true);
		let_all_go();
		UNTIL(&desk, dave->ended);
		desk_close(&desk);
		ck_assert_uint_eq(desk.workers.n_own, 0);
		ck_assert(!desk.workers.is_common_busy);
		threads_fail_never();
	}
}

TEST(without_a_thread_and_the_common_one_nothing_is_open, .is_unbounded = true)
{
	for (int n = 0; n < 2; n++) {
		struct desk none = {.n_tasks = 0};
		ck_assert_int_eq(uv_loop_init(&none.loop), 0);
		threads_fail_after(n);
		ck_assert_int_eq(workers_open(&none.workers, &none.loop, &none.queue, &heap_libc, SLOTS), -EAGAIN);
		threads_fail_never();
		workers_close(&none.workers);
		uv_run(&none.loop, UV_RUN_DEFAULT);
		ck_assert_int_eq(uv_loop_close(&none.loop), 0);
	}
}

/* The loop ends with the last task, paused ones among them, and then the threads can. */
TEST(the_end_comes_after_paused_tasks, .is_unbounded = true)
{
	struct task *tasks[6];
	for (unsigned i = 0; i < 6; i++)
		tasks[i] = submit(ALICE + i, true);
	for (unsigned i = 0; i < 6; i++)
		UNTIL(&desk, atomic_load(&tasks[i]->began));
	let_all_go();
}

/* First, last and in the middle of those that wait; not what began, and not another's. */
TEST(what_has_not_begun_can_be_withdrawn, .is_unbounded = true)
{
	enum { WAITING = 5 };
	struct task *tasks[SLOTS + WAITING];
	const struct rpc_executor *executor = &desk.executor;
	for (unsigned i = 0; i < SLOTS + WAITING; i++)
		tasks[i] = submit(ALICE, false);
	UNTIL(&desk, atomic_load(&tasks[0]->began) && atomic_load(&tasks[1]->began));
	ck_assert(!executor->withdraw(executor->ctx, &desk.users[ALICE], tasks[0]));
	ck_assert(!executor->withdraw(executor->ctx, &desk.users[BOB], tasks[SLOTS]));
	for (unsigned i = 0; i < WAITING; i += 2) {
		ck_assert(executor->withdraw(executor->ctx, &desk.users[ALICE], tasks[SLOTS + i]));
		ck_assert(!executor->withdraw(executor->ctx, &desk.users[ALICE], tasks[SLOTS + i]));
		tasks[SLOTS + i]->ended = true;
		desk.n_ended++;
	}
	tasks[0] = submit(ALICE, false);
	let_all_go();
	UNTIL(&desk, tasks[0]->ended);
	desk_close(&desk);
	for (unsigned i = 0; i < WAITING; i++)
		ck_assert_int_eq(atomic_load(&tasks[SLOTS + i]->began), i % 2);
}

static unsigned n_turns;

static void on_turn(uv_check_t *check)
{
	(void)check;
	n_turns++;
}

/* What follows many ends does not keep the loop from others. */
TEST(ends_are_told_in_several_turns, .is_unbounded = true)
{
	enum { ENDS = 10 };
	static uv_check_t check;
	n_turns = 0;
	uv_check_init(&desk.loop, &check);
	uv_check_start(&check, on_turn);
	for (unsigned i = 0; i < ENDS; i++)
		submit(ALICE, false)->done_ns = 1000000;
	let_all_go();
	/* All have run before the first is told. */
	while (atomic_load(&desk.n_begun) || !atomic_load(&desk.tasks[ENDS - 1].began))
		uv_sleep(0);
	UNTIL(&desk, desk.n_ended == ENDS);
	ck_assert_uint_ge(n_turns, ENDS);
	uv_close((uv_handle_t *)&check, NULL);
}

static void *nothing(void *ctx, size_t bytes)
{
	int *left = ctx;
	return (*left)-- > 0 ? malloc(bytes) : NULL;
}

static void give_back(void *ctx, void *memory)
{
	(void)ctx;
	free(memory);
}

TEST(without_memory_nothing_is_called, .is_unbounded = true)
{
	struct task task = {.ended = false};
	static int left;
	static const struct heap heap = {nothing, give_back, &left};
	desk_again(&heap, SLOTS);
	for (left = 0; left < 1;) {
		int was = left;
		ck_assert_int_eq(try_submit(ALICE, true, &task), -ENOMEM);
		left = was + 1;
	}
	ck_assert(!atomic_load(&task.began));
	let_go(submit(ALICE, false));
}
