/* Entries with accesses, and nobody behind them: who starts when, and who keeps whose place. */
#include "daemon/service/order/scheduler.h"

#include "tests/unit/daemon/service/world.h"

enum { ENTRIES = 5000, MANY = 400, COLUMNS = 100 };

/* Entry i has its own user, so that users do not matter. */
static struct {
	struct world world;
	struct session session;
	struct scheduler *scheduler;
	struct tensor *host, *guest, *other; /* the first two meet */
	struct scheduler_entry entries[ENTRIES];
	struct scheduler_user users[ENTRIES];
	struct fair_user loop, other_loop; /* of all of them, or of one */
	struct scheduler_access accesses[ENTRIES][2];
} s;

static struct tensor *place(const char *name, int64_t c, int64_t npu, int reuse)
{
	struct device_request request = world_request(c, COLUMNS);
	struct tensor *tensor = NULL;
	request.reuse = reuse;
	request.spec.address = npu < 0 ? NPUMEM_ANY : npu * 8192;
	ck_assert_int_eq(tensors_alloc(&s.session, &request, &name, 1, &tensor, &s.world.error), 0);
	return tensor;
}

static void begin(void)
{
	memset(&s, 0, sizeof(s));
	world_init(&s.world);
	session_init(&s.session, &s.world.service, 1001, 0, NULL);
	s.scheduler = &s.world.service.scheduler;
	for (unsigned i = 0; i < ENTRIES; i++)
		s.users[i].loop = &s.loop;
	s.host = place("host", 5, 0, NPUMEM_NEVER);
	s.guest = place("guest", 3, 5, NPUMEM_UNCHECKED);
	s.other = place("other", 8, -1, NPUMEM_NEVER);
}

static void end(void)
{
	ck_assert_ptr_null(s.scheduler->first);
	ck_assert_ptr_null(s.scheduler->put_off.comparing);
	for (unsigned i = 0; i < ENTRIES; i++)
		ck_assert(!s.users[i].put_off && !s.users[i].work.prev);
	session_deinit(&s.session);
	world_deinit(&s.world);
}

static void on_ready(struct scheduler_entry *entry)
{
	(void)entry;
}

static struct scheduler_access access(struct tensor *root, bool writes, int64_t from, int64_t to)
{
	struct scheduler_access made = {.tensor = root, .range = tensor_range_whole(root), .writes = writes};
	made.range.from.w = from;
	made.range.to.w = to;
	return made;
}

static struct scheduler_access whole(struct tensor *root, bool writes)
{
	return access(root, writes, 0, COLUMNS);
}

static void add(unsigned i, struct scheduler_access first)
{
	s.accesses[i][0] = first;
	s.entries[i].ready = on_ready;
	scheduler_enter(s.scheduler, &s.entries[i], &s.users[i], s.accesses[i], 1);
}

static bool runs(unsigned i)
{
	return s.entries[i].is_started;
}

static void later_turns(void)
{
	struct fair_work *work;
	while ((work = fair_queue_take(&s.world.service.queue)))
		work->run(work);
}

/* It has started, too, or does in a later turn. */
static void leave(unsigned i)
{
	if (!runs(i))
		later_turns();
	ck_assert_msg(runs(i), "entry %u never starts", i);
	scheduler_leave(s.scheduler, &s.entries[i]);
}

static void leave_all(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		leave(i);
}

TEST(channels_apart_do_not_conflict)
{
	struct scheduler_access low = whole(s.other, true), high = whole(s.other, true);
	low.range.to.c = 4;
	high.range.from.c = 4;
	add(0, low);
	add(1, high);
	ck_assert(runs(0) && runs(1));
	leave_all(2);
}

static void one_turn(void)
{
	struct fair_work *work = fair_queue_take(&s.world.service.queue);
	work->run(work);
}

static void add_reads(unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		add(i, access(s.other, false, 10, 20));
}

TEST(a_write_is_behind_none_that_reads_another_part)
{
	unsigned last = ENTRIES - 1;
	add_reads(0, last);
	add(last, access(s.other, true, 0, 10));
	/* Those before it are more than one turn compares. */
	one_turn();
	ck_assert(!runs(last));
	one_turn();
	ck_assert(runs(last));
	leave_all(ENTRIES);
}

/* Entries of user 1, with many before them, and one of user 2. */
TEST(a_user_waits_for_its_own_comparisons)
{
	enum { READS = 1000, OF_ONE = 100, END = READS + OF_ONE };
	unsigned n = 0;
	s.users[2].loop = &s.other_loop;
	add_reads(0, READS);
	for (unsigned i = READS; i <= END; i++) {
		s.accesses[i][0] = access(s.other, true, i == END ? 2 : 0, i == END ? 10 : 1);
		s.entries[i].ready = on_ready;
		scheduler_enter(s.scheduler, &s.entries[i], &s.users[i == END ? 2 : 1], s.accesses[i], 1);
	}
	for (; !runs(END); n++) {
		one_turn();
		fair_queue_charge(&s.world.service.queue, 1);
	}
	ck_assert_uint_le(n, 2);
	later_turns();
	leave(END);
	for (unsigned i = READS; i < END; i++)
		leave(i);
	leave_all(READS);
	fair_user_deinit(&s.other_loop);
}

/* Of two roots that meet, who uses the one's data and a kernel that writes the other's footprint wait for each
 * other, and nobody else does. */
TEST(footprints_conflict_across_meetings)
{
	struct scheduler_access kernel = whole(s.guest, true);
	struct scheduler_user *user = &s.users[9];
	ck_assert_uint_eq(s.host->n_meetings, 1);
	kernel.footprint = true;
	add(0, whole(s.host, false));
	ck_assert(!scheduler_is_clear(s.scheduler, user, &kernel, 1));
	add(1, kernel);
	ck_assert(runs(0) && !runs(1));
	leave(0);
	ck_assert(runs(1));
	add(2, whole(s.host, false));
	ck_assert(!runs(2));
	leave(1);
	ck_assert(runs(2));
	add(3, whole(s.guest, true));
	ck_assert(runs(3));
	leave(2);
	leave(3);
}

/* A kernel that writes the host's footprint, behind many that read it. */
TEST(a_footprint_far_ahead_is_seen_from_the_other_root)
{
	struct scheduler_access kernel = whole(s.host, true);
	kernel.footprint = true;
	for (unsigned i = 0; i < MANY; i++)
		add(i, whole(s.host, false));
	add(MANY, kernel);
	add(MANY + 1, whole(s.guest, false));
	ck_assert(!runs(MANY) && !runs(MANY + 1));
	leave_all(MANY);
	ck_assert(runs(MANY) && !runs(MANY + 1));
	leave(MANY);
	leave(MANY + 1);
	/* Reads that came after it are in nobody's way. */
	add(0, access(s.guest, true, 0, 10));
	kernel = whole(s.host, true);
	kernel.footprint = true;
	add(1, kernel);
	for (unsigned i = 2; i < MANY; i++)
		add(i, access(s.guest, false, 20, 30));
	ck_assert(!runs(1) && !runs(2));
	leave(0);
	ck_assert(runs(1) && !runs(2));
	for (unsigned i = 1; i < MANY; i++)
		leave(i);
}

/* A guest whose place is still searched for meets its host already, and has no owner yet. */
TEST(a_kernel_beside_a_guest_that_is_being_placed)
{
	struct scheduler_access kernel = whole(s.host, true);
	void *owner = s.guest->owner;
	kernel.footprint = true;
	s.guest->owner = NULL;
	add(0, kernel);
	add(1, kernel);
	ck_assert(runs(0) && !runs(1));
	leave(0);
	leave(1);
	s.guest->owner = owner;
}

TEST(a_kernel_beside_a_guest_that_has_its_place_and_no_owner_yet)
{
	struct scheduler_access kernel = whole(s.host, true);
	void *owner = s.guest->owner;
	kernel.footprint = true;
	s.guest->owner = NULL;
	scheduler_add_root(s.guest);
	add(0, kernel);
	s.guest->owner = owner;
	add(1, whole(s.guest, false));
	ck_assert(runs(0) && !runs(1));
	leave(0);
	leave(1);
	ck_assert_uint_eq(record_of(s.guest)->n_met_footprints, 0);
}

/* It had no queue that the kernel's arrival could have counted in. */
TEST(a_guest_that_comes_while_a_kernel_runs_waits_for_it)
{
	struct scheduler_access kernel = whole(s.host, true);
	kernel.footprint = true;
	service_release(&s.world.service, s.guest);
	add(0, kernel);
	s.guest = place("late", 3, 5, NPUMEM_UNCHECKED);
	add(1, whole(s.guest, false));
	ck_assert(runs(0) && !runs(1));
	leave(0);
	leave(1);
	ck_assert_uint_eq(record_of(s.guest)->n_met_footprints, 0);
}

/* What must be there, and whose bytes may be anything, waits for a free alone; and a free for it, also where many
 * read between them. */
TEST(what_looks_at_no_bytes_waits_for_a_free_alone)
{
	struct scheduler_access looks = access(s.other, false, 0, 0), frees = whole(s.other, true);
	looks.needs_tensor = frees.frees = true;
	add(0, whole(s.other, true));
	add(1, looks);
	ck_assert(runs(0) && runs(1));
	leave(0);
	add(0, whole(s.other, false));
	add(2, frees);
	leave(0);
	ck_assert(!runs(2));
	add(3, looks);
	ck_assert(!runs(3));
	leave(1);
	ck_assert(runs(2) && !runs(3));
	leave(2);
	leave(3);
}

/* Entries 2 to 61 wait for entry 0, which stays, and entry 62 waits for entry 1. */
TEST(many_that_wait_hide_no_one_from_what_it_waits_for)
{
	enum { WAIT = 60 };
	add(0, access(s.other, true, 0, 10));
	add(1, access(s.other, true, 10, 20));
	for (unsigned i = 0; i < WAIT; i++)
		add(2 + i, access(s.other, false, 0, 10));
	add(2 + WAIT, access(s.other, true, 10, 20));
	ck_assert(!runs(2) && !runs(2 + WAIT));
	leave(1);
	ck_assert(!runs(2) && runs(2 + WAIT));
	leave(2 + WAIT);
	leave(0);
	for (unsigned i = 0; i < WAIT; i++)
		leave(2 + i);
}

TEST(nobody_waits_for_a_root_that_goes)
{
	add(0, whole(s.other, true));
	add(1, whole(s.other, true));
	ck_assert(runs(0) && !runs(1));
	scheduler_forget(s.scheduler, s.other);
	ck_assert(runs(1));
	leave(0);
	leave(1);
}

static void add_exclusive(unsigned i)
{
	s.entries[i].is_exclusive = true;
	s.entries[i].ready = on_ready;
	scheduler_enter(s.scheduler, &s.entries[i], &s.users[i], NULL, 0);
}

/* Entry 0 runs; entry 1 is exclusive, and is the first as soon as 0 is over; entry 2 came after it. */
static void exclusive_beside(bool is_long)
{
	add(0, whole(s.other, true));
	add_exclusive(1);
	s.entries[2].is_long = is_long;
	add(2, whole(s.host, true));
	leave(0);
	ck_assert(runs(2) && !runs(1));
	add(3, whole(s.other, true));
}

TEST(an_exclusive_one_closes_the_device_once_it_is_first, .to = 2)
{
	exclusive_beside(_i);
	/* It lets others start beside what is long. */
	ck_assert_int_eq(runs(3), _i);
	if (runs(3))
		leave(3);
	leave(2);
	ck_assert(runs(1));
	add(4, whole(s.host, true));
	ck_assert(!runs(4));
	leave(1);
	leave(4);
	if (!_i)
		leave(3);
}

/* What is long is over, and what is short still runs: from here on everybody waits. */
TEST(an_exclusive_one_closes_the_device_beside_what_is_short)
{
	exclusive_beside(true);
	leave(2);
	ck_assert(runs(3) && !runs(1));
	add(4, whole(s.host, true));
	ck_assert(!runs(4));
	leave(3);
	leave(1);
	leave(4);
	ck_assert_uint_eq(s.scheduler->n_long, 0);
}

/* An entry turns out to be long while it runs. Others need not wait for its end. */
TEST(others_start_beside_what_lasts)
{
	exclusive_beside(false);
	ck_assert(!runs(3));
	scheduler_lasts(s.scheduler, &s.entries[2]);
	ck_assert(runs(3) && !runs(1));
	scheduler_lasts(s.scheduler, &s.entries[2]);
	ck_assert_uint_eq(s.scheduler->n_long, 1);
	leave(2);
	ck_assert_uint_eq(s.scheduler->n_long, 0);
	leave(3);
	ck_assert(runs(1));
	scheduler_lasts(s.scheduler, &s.entries[1]);
	ck_assert_uint_eq(s.scheduler->n_long, 0);
	leave(1);
}

/* A stream of lists of a few turns each would keep the exclusive one waiting for ever. */
TEST(an_exclusive_one_waits_for_few_turns_alone)
{
	exclusive_beside(false);
	for (unsigned turn = 1; turn < 10; turn++)
		scheduler_pauses(s.scheduler, &s.entries[2]);
	ck_assert(!runs(3));
	scheduler_pauses(s.scheduler, &s.entries[2]);
	ck_assert(runs(3) && !runs(1));
	leave(2);
	leave(3);
	leave(1);
	ck_assert_uint_eq(s.scheduler->n_long, 0);
}

static void add_read_of(unsigned i, unsigned user)
{
	s.accesses[i][0] = whole(s.host, false);
	s.entries[i].ready = on_ready;
	scheduler_enter(s.scheduler, &s.entries[i], &s.users[user], s.accesses[i], 1);
}

static unsigned n_running(unsigned from, unsigned to)
{
	unsigned n = 0;
	for (unsigned i = from; i < to; i++)
		n += runs(i);
	return n;
}

/* Entry 0 is long, entry 1 exclusive; then comes a crowd of one user, that others would wait for. */
TEST(few_of_a_crowd_are_before_an_exclusive_one)
{
	enum { CROWD = 100, END = 2 + CROWD, FEW = 8 };
	s.entries[0].is_long = true;
	add(0, whole(s.other, true));
	add_exclusive(1);
	for (unsigned i = 2; i < END; i++)
		add_read_of(i, 2);
	ck_assert_uint_eq(n_running(2, END), FEW);
	/* As one ends, or turns out to be long, another one begins. */
	leave(2);
	ck_assert_uint_eq(n_running(3, END), FEW);
	scheduler_lasts(s.scheduler, &s.entries[3]);
	ck_assert_uint_eq(n_running(4, END), FEW);
	/* Of another user. */
	add(END, whole(s.guest, false));
	leave(END);
	leave(3);
	leave(0);
	for (unsigned i = 4; i < 4 + FEW; i++) {
		ck_assert(!runs(1));
		leave(i);
	}
	ck_assert(runs(1));
	ck_assert_uint_eq(n_running(4 + FEW, END), 0);
	/* The others begin, but not thousands in one turn. */
	leave(1);
	ck_assert_uint_eq(n_running(4 + FEW, END), FEW);
	later_turns();
	for (unsigned i = 4 + FEW; i < END; i++) {
		ck_assert(runs(i));
		leave(i);
	}
	ck_assert_ptr_null(s.scheduler->holding);
}

/* One user after the other, where all of them wait for entry 0. */
TEST(nobody_has_to_wait_until_thousands_of_another_user_have_started)
{
	enum { USERS = 20, EACH = 16 };
	add_exclusive(0);
	for (unsigned i = 1; i <= USERS * EACH; i++)
		add_read_of(i, 1 + (i - 1) / EACH);
	leave(0);
	ck_assert_uint_eq(n_running(1, 1 + USERS * EACH), 64);
	for (unsigned turn = 1; turn < 3; turn++)
		one_turn();
	for (unsigned user = 0; user < USERS; user++)
		ck_assert_uint_gt(n_running(1 + user * EACH, 1 + (user + 1) * EACH), 0);
	later_turns();
	for (unsigned i = 1; i <= USERS * EACH; i++) {
		ck_assert(runs(i));
		leave(i);
	}
	ck_assert_ptr_null(s.scheduler->holding);
}

/* Entries 1 and 3 are exclusive. Entry 2 of entry 1's user waits for it; entry 0, for which entry 1 waits, becomes
 * ready after entry 2 is, while entry 3 closes the device. */
TEST(what_waits_for_an_exclusive_one_is_not_before_what_that_waits_for)
{
	add(4, whole(s.other, true));
	add_exclusive(3);
	s.accesses[0][0] = whole(s.other, true);
	s.entries[0].ready = on_ready;
	scheduler_enter(s.scheduler, &s.entries[0], &s.users[1], s.accesses[0], 1);
	add_exclusive(1);
	add_read_of(2, 1);
	ck_assert(!runs(0) && !runs(2));
	leave(4);
	ck_assert(runs(3) && !runs(0));
	leave(3);
	ck_assert(runs(0) && !runs(1));
	leave(0);
	ck_assert(runs(1) && !runs(2));
	leave(1);
	leave(2);
}

/* However many long ones of its user are before it. */
TEST(a_short_one_starts_behind_an_exclusive_one_beside_long_ones)
{
	enum { LONG = 100 };
	add_exclusive(0);
	for (unsigned i = 1; i <= LONG; i++) {
		s.entries[i].is_long = true;
		add_read_of(i, 1);
	}
	add_read_of(LONG + 1, 1);
	leave(0);
	later_turns();
	ck_assert(runs(LONG + 1));
	for (unsigned i = 1; i <= LONG + 1; i++)
		leave(i);
}

FIXTURE(begin, end)
