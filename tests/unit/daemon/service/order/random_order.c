/* Random requests, and after each step of one what a walk over all accesses says: the scheduler walks over as few
 * as it can, and must find the same. Its bounds are small, so that short queues reach all that long ones do.
 *
 * Roots 0 and 1 meet. Root r and view v are those of users r and v % USERS; all users use all of them. Only their
 * owners free roots and change or free views, as access.c has it. Views stay in the device: that one is made or
 * gone is what the requests say. */
#include "daemon/service/order/scheduler.h"

#include "daemon/device/tensors/meetings.h"
#include "daemon/service/order/conflicts.h"
#include "daemon/service/tensors/record.h"
#include "tests/support/oracle.h"
#include "tests/unit/daemon/service/world.h"

enum {
	REQUESTS = 48, /* that are there at once */
	STEPS = 400,
	SEEDS = 200,
	ROOTS = 3,
	VIEWS = 2 * ROOTS, /* two of each root */
	USERS = 4,
	ACCESSES = 5,
	COLUMNS = 100,
};

struct request {
	struct scheduler_entry entry;
	struct scheduler_access accesses[ACCESSES];
	size_t n;
	bool (*begin)(struct request *request); /* one of `kinds`; NULL: it is free */
	unsigned root, view;			/* that it frees; that it makes, changes or frees */
	bool is_due;				/* it has started, and not done what it does then */
	bool reads_too;				/* it has made or changed the view */
};

/* What a request that arrives finds. */
enum view_state { VIEW_NONE, VIEW_COMES, VIEW_THERE, VIEW_GOES };

static struct {
	struct world world;
	struct scheduler *scheduler;
	struct session sessions[USERS];
	struct tensor *roots[ROOTS], *views[VIEWS];
	bool goes[ROOTS]; /* a free of the root has arrived */
	enum view_state states[VIEWS];
	struct request requests[REQUESTS];
	uint64_t random, seed;
} s;

static unsigned below(unsigned n)
{
	return oracle_random(&s.random) % n;
}

static struct scheduler_user *user(unsigned i)
{
	return &s.sessions[i].user->order;
}

static unsigned view_owner(unsigned view)
{
	return view % 2 ? USERS - 1 : view / 2;
}

static struct tensor *place(unsigned owner, const char *name, int64_t c, int64_t npu, int reuse)
{
	struct device_request request = world_request(c, COLUMNS);
	struct tensor *tensor = NULL;
	request.reuse = reuse;
	request.spec.address = npu < 0 ? NPUMEM_ANY : npu * 8192;
	ck_assert_int_eq(tensors_alloc(&s.sessions[owner], &request, &name, 1, &tensor, &s.world.error), 0);
	return tensor;
}

static void begin(void)
{
	memset(&s, 0, sizeof(s));
	world_init(&s.world);
	s.scheduler = &s.world.service.scheduler;
	for (unsigned i = 0; i < USERS; i++)
		session_init(&s.sessions[i], &s.world.service, 1001 + i, 0, NULL);
	s.roots[0] = place(0, "host", 5, 0, NPUMEM_NEVER);
	s.roots[1] = place(1, "guest", 3, 5, NPUMEM_UNCHECKED);
	s.roots[2] = place(2, "other", 8, -1, NPUMEM_NEVER);
	ck_assert_ptr_nonnull(meetings_first(s.roots[0]));
	for (unsigned i = 0; i < VIEWS; i++) {
		struct device_slice slice = {{0, 0, 0, 0}, {1, 1, 1, 10}};
		ck_assert_int_eq(tensors_view(&s.sessions[view_owner(i)], s.roots[i / 2], "", "", &slice, NULL,
					      NULL, &s.views[i], &s.world.error),
				 0);
	}
}

static void end(void)
{
	for (unsigned i = 0; i < USERS; i++)
		session_deinit(&s.sessions[i]);
	world_deinit(&s.world);
}

/* ---- requests that arrive: false if there is nothing for one of this kind to do ---- */

/* The request's access to a tensor. */
static struct scheduler_access *access_to(struct request *request, struct tensor *tensor)
{
	for (size_t i = 0; i < request->n; i++)
		if (request->accesses[i].tensor == tensor)
			return &request->accesses[i];
	ck_assert_uint_lt(request->n, ACCESSES);
	request->accesses[request->n] = (struct scheduler_access){.tensor = tensor, .needs_tensor = true};
	return &request->accesses[request->n++];
}

static struct tensor_range random_range(const struct tensor *root)
{
	struct tensor_range range = tensor_range_whole(root);
	if (below(3)) {
		range.from.w = below(8) * 10;
		range.to.w = range.from.w + 10 + below(2) * 10;
	}
	return range;
}

static struct scheduler_access *access_bytes(struct request *request, unsigned root, bool writes)
{
	struct scheduler_access *access = access_to(request, s.roots[root]);
	access->range = random_range(s.roots[root]);
	access->needs_tensor = false;
	access->writes = writes;
	return access;
}

static bool is_found(unsigned view)
{
	return s.states[view] == VIEW_THERE && !s.goes[view / 2];
}

/* The first view from a random one on that is in `state`, and whose root is not being freed. VIEWS: none. */
static unsigned some_view(enum view_state state)
{
	unsigned first = below(VIEWS);
	for (unsigned i = 0; i < VIEWS; i++)
		if (s.states[(first + i) % VIEWS] == state && !s.goes[(first + i) % VIEWS / 2])
			return (first + i) % VIEWS;
	return VIEWS;
}

static bool uses_bytes(struct request *request)
{
	unsigned root = below(ROOTS);
	for (unsigned i = 1 + below(2); i; i--, root = (root + 1) % ROOTS) {
		unsigned view = 2 * root + below(2);
		struct scheduler_access *access;
		if (s.goes[root])
			continue;
		access = access_bytes(request, root, !below(3));
		access->footprint = access->writes && !below(3);
		if (below(2) && is_found(view))
			access_to(request, s.views[view]);
	}
	return request->n > 0;
}

static bool changes_view(struct request *request)
{
	unsigned view = some_view(VIEW_THERE);
	if (view == VIEWS)
		return false;
	access_to(request, s.roots[view / 2]);
	access_to(request, s.views[view])->frees = true;
	request->entry.user = user(view_owner(view));
	request->view = view;
	return true;
}

static bool frees_view(struct request *request)
{
	unsigned view = some_view(VIEW_THERE);
	if (view == VIEWS)
		return false;
	access_to(request, s.roots[view / 2]);
	access_to(request, s.views[view])->frees = true;
	request->entry.user = user(view_owner(view));
	request->view = view;
	s.states[view] = VIEW_GOES;
	return true;
}

static bool frees_root(struct request *request)
{
	unsigned root = below(ROOTS);
	struct scheduler_access *access = access_bytes(request, root, true);
	if (s.goes[root])
		return false;
	access->range = tensor_range_whole(s.roots[root]);
	access->frees = true;
	request->entry.user = user(root);
	request->root = root;
	s.goes[root] = true;
	return true;
}

/* For names and room that are given back. */
static bool waits_for_frees(struct request *request)
{
	unsigned root = below(ROOTS), view = some_view(VIEW_GOES);
	if (view < VIEWS)
		access_to(request, s.views[view]);
	if (s.goes[root])
		access_to(request, s.roots[root]);
	return request->n > 0;
}

/* By a name that may be given back first, of the root or of its other view. */
static bool makes_view(struct request *request)
{
	unsigned view = some_view(VIEW_NONE), going = some_view(VIEW_GOES);
	if (view == VIEWS)
		return false;
	access_to(request, s.roots[view / 2]);
	if (is_found(view ^ 1))
		access_to(request, s.views[view ^ 1]);
	if (going < VIEWS && below(2))
		access_to(request, s.views[going]);
	access_to(request, NULL);
	request->entry.user = user(view_owner(view));
	request->view = view;
	s.states[view] = VIEW_COMES;
	return true;
}

static bool is_alone(struct request *request)
{
	request->entry.is_exclusive = true;
	return true;
}

/* `gives_up`: it may leave before it has started. */
static const struct {
	bool (*begin)(struct request *request);
	unsigned percent;
	bool gives_up;
} kinds[] = {
	{uses_bytes, 58, true},	    {changes_view, 8, true}, {frees_view, 8, false}, {frees_root, 4, false},
	{waits_for_frees, 6, true}, {makes_view, 13, false}, {is_alone, 3, true},
};

static void on_ready(struct scheduler_entry *entry)
{
	struct request *request = (struct request *)entry;
	ck_assert(!request->is_due);
	request->is_due = true;
}

static void arrive(void)
{
	unsigned i = 0, kind = 0;
	struct request *request;
	while (i < REQUESTS && s.requests[i].begin)
		i++;
	if (i == REQUESTS)
		return;
	request = &s.requests[i];
	*request = (struct request){.entry = {.ready = on_ready, .is_long = !below(4)}};
	request->entry.user = user(below(USERS));
	for (unsigned at = below(100); at >= kinds[kind].percent; kind++)
		at -= kinds[kind].percent;
	if (!kinds[kind].begin(request))
		return;
	request->begin = kinds[kind].begin;
	scheduler_enter(s.scheduler, &request->entry, request->entry.user, request->accesses, request->n);
}

/* ---- requests that go on ---- */

static void leave(struct request *request)
{
	scheduler_leave(s.scheduler, &request->entry);
	request->begin = NULL;
	request->is_due = false;
}

static void give_up(struct request *request)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (request->begin == kinds[i].begin && kinds[i].gives_up)
			leave(request);
}

/* Entries that have an access in the queue of the tensor wait for this free alone. */
static void forget(const struct request *by, const struct tensor *tensor)
{
	for (struct scheduler_access *at = record_queue(tensor)->first; at; at = at->next)
		ck_assert(at->entry == &by->entry || !at->entry->is_started);
	scheduler_forget(s.scheduler, tensor);
}

static void forget_view(const struct request *by, unsigned view)
{
	forget(by, s.views[view]);
	s.states[view] = VIEW_NONE;
}

/* With the views that it has. */
static void forget_root(const struct request *by, unsigned root)
{
	for (unsigned view = 2 * root; view < 2 * root + 2; view++)
		if (s.states[view] >= VIEW_THERE)
			forget_view(by, view);
	forget(by, s.roots[root]);
	s.goes[root] = false;
}

/* Its answer has the state of the view's bytes. */
static void read_too(struct request *request)
{
	struct tensor_range range = random_range(s.roots[request->view / 2]);
	request->reads_too = true;
	request->is_due = false;
	if (scheduler_read_too(s.scheduler, &request->entry, &range))
		request->is_due = true;
}

/* Requests that arrive from now on use the view. */
static void make_view(struct request *request)
{
	s.states[request->view] = VIEW_THERE;
	scheduler_add_made(s.scheduler, &request->accesses[request->n - 1], s.views[request->view]);
}

static void go_on(struct request *request)
{
	bool is_first = !request->reads_too;
	if (is_first && request->begin == makes_view)
		make_view(request);
	if (is_first && (request->begin == makes_view || request->begin == changes_view)) {
		read_too(request);
		return;
	}
	if (request->begin == frees_view)
		forget_view(request, request->view);
	if (request->begin == frees_root)
		forget_root(request, request->root);
	if (!below(5)) {
		scheduler_lasts(s.scheduler, &request->entry);
		if (request->begin == uses_bytes)
			return;
	}
	leave(request);
}

/* One that has started and has something to do, or one that has not started. NULL: none. */
static struct request *some_request(bool is_due)
{
	unsigned first = below(REQUESTS);
	for (unsigned i = 0; i < REQUESTS; i++) {
		struct request *request = &s.requests[(first + i) % REQUESTS];
		if (request->begin && (is_due ? request->is_due : !request->entry.is_started))
			return request;
	}
	return NULL;
}

static bool go_on_with_some(void)
{
	struct request *request = some_request(true);
	if (request)
		go_on(request);
	return request;
}

static void give_up_some(void)
{
	struct request *request = some_request(false);
	if (request)
		give_up(request);
}

static bool run_turn(void)
{
	struct fair_work *work = fair_queue_take(&s.world.service.queue);
	if (work)
		work->run(work);
	return work;
}

/* ---- what a walk over all accesses says ---- */

static bool waits_in_queue(const struct scheduler_access *access)
{
	for (const struct scheduler_access *before = access->prev; before; before = before->prev)
		if (conflicts_between(before, access))
			return true;
	return false;
}

static bool waits_across(const struct scheduler_access *access)
{
	for (const struct meeting *met = meetings_first(access->tensor); met; met = met->next)
		for (const struct scheduler_access *at = record_queue(met->other)->first; at; at = at->next)
			if (at->entry != access->entry && (at->footprint || access->footprint) &&
			    (at->entry->is_started || at->entry->arrival < access->entry->arrival))
				return true;
	return false;
}

static void check_access(const struct scheduler_access *access)
{
	bool waits = waits_in_queue(access) || (!access->tensor->base && waits_across(access));
	ck_assert_msg(!access->is_ready || !access->is_put_off, "seed %u: ready and put off", (unsigned)s.seed);
	ck_assert_msg(!access->is_ready || !waits, "seed %u: ready beside a conflict", (unsigned)s.seed);
	ck_assert_msg(access->is_ready || access->is_put_off || waits, "seed %u: it waits for nothing",
		      (unsigned)s.seed);
	ck_assert(!access->is_put_off || access->entry->user->work.prev);
}

/* Those that have started, then the others in order of arrival. */
static void check_place(const struct scheduler_access *before, const struct scheduler_access *access)
{
	if (!before || before->entry->is_started)
		return;
	ck_assert(!access->entry->is_started);
	ck_assert_uint_lt(before->entry->arrival, access->entry->arrival);
}

static void check_queue(const struct tensor *tensor)
{
	const struct scheduler_queue *queue = record_queue(tensor);
	const struct scheduler_access *last = NULL, *last_started = NULL;
	unsigned n_waiting = 0, n_needs_tensor = 0, n_changes = 0;
	for (const struct scheduler_access *at = queue->first; at; last = at, at = at->next) {
		ck_assert_ptr_eq(at->prev, last);
		ck_assert_ptr_eq(at->tensor, tensor);
		check_place(last, at);
		check_access(at);
		if (at->entry->is_started)
			last_started = at;
		n_waiting += !at->is_ready;
		n_needs_tensor += at->needs_tensor;
		n_changes += at->writes || at->frees;
	}
	ck_assert_ptr_eq(queue->last, last);
	ck_assert_ptr_eq(queue->last_started, last_started);
	ck_assert_uint_eq(queue->n_waiting, n_waiting);
	ck_assert_uint_eq(queue->n_needs_tensor, n_needs_tensor);
	ck_assert_uint_eq(queue->n_changes, n_changes);
}

static void check_footprints(const struct tensor *root)
{
	const struct scheduler_access *last = NULL;
	unsigned n = 0, n_met = 0;
	for (const struct scheduler_access *at = record_queue(root)->first; at; at = at->next)
		n += at->footprint;
	ck_assert_uint_eq(record_of(root)->n_footprints, n);
	for (const struct scheduler_access *at = record_queue(root)->footprints; at;
	     last = at, at = at->next_footprint, n--) {
		ck_assert(at->footprint && at->tensor == root);
		check_place(last, at);
	}
	ck_assert_uint_eq(n, 0);
	for (const struct meeting *met = meetings_first(root); met; met = met->next)
		n_met += record_of(met->other)->n_footprints;
	ck_assert_uint_eq(record_of(root)->n_met_footprints, n_met);
	ck_assert(!record_of(root)->is_checked);
}

static void check_request(const struct request *request)
{
	const struct scheduler_entry *entry = &request->entry;
	size_t n_ready = 0;
	for (size_t i = 0; i < request->n; i++)
		n_ready += request->accesses[i].is_ready;
	ck_assert_uint_eq(entry->n_ready, n_ready);
	ck_assert(!entry->is_started || n_ready == request->n);
	ck_assert(!request->is_due || entry->is_started);
	ck_assert(!entry->held_in || n_ready == request->n);
	if (n_ready == request->n && !entry->is_started && !entry->is_exclusive)
		ck_assert_msg(entry->held_in, "seed %u: ready, neither started nor held", (unsigned)s.seed);
}

/* What is being compared conflicts with nothing between it and the access to compare it with next. */
static void check_compared(const struct scheduler_user *user)
{
	const struct scheduler_access *at;
	ck_assert(!user->put_off || user->work.prev);
	if (!user->compared)
		return;
	ck_assert(user->compared->is_put_off && user->compared->tensor);
	for (at = user->compared->prev; at && at != user->compared_at; at = at->prev)
		ck_assert_msg(!conflicts_between(at, user->compared), "seed %u: a conflict was missed",
			      (unsigned)s.seed);
	ck_assert_ptr_eq(at, user->compared_at);
}

static void check_all(void)
{
	for (unsigned i = 0; i < ROOTS; i++) {
		check_queue(s.roots[i]);
		check_footprints(s.roots[i]);
	}
	for (unsigned i = 0; i < VIEWS; i++)
		check_queue(s.views[i]);
	for (unsigned i = 0; i < REQUESTS; i++)
		if (s.requests[i].begin)
			check_request(&s.requests[i]);
	for (unsigned i = 0; i < USERS; i++)
		check_compared(user(i));
	ck_assert(!scheduler_is_exclusive(s.scheduler) || s.scheduler->n_started == 1);
}

/* ---- the test ---- */

/* More arrive in some runs than in others, so that queues are empty or long. */
static void step(unsigned percent_arrives)
{
	unsigned what = below(100);
	if (what < percent_arrives)
		arrive();
	else if (what < percent_arrives + 5)
		give_up_some();
	else if (below(3))
		go_on_with_some();
	else
		run_turn();
}

static void check_is_empty(void)
{
	ck_assert(!s.scheduler->n_started && !s.scheduler->n_long && !s.scheduler->n_exclusive);
	ck_assert(!s.scheduler->holding && !s.scheduler->put_off.comparing);
	for (unsigned i = 0; i < USERS; i++)
		ck_assert(!user(i)->put_off && !user(i)->n_accesses && !user(i)->n_started && !user(i)->n_short);
}

static void run(uint64_t seed)
{
	unsigned percent;
	s.seed = seed;
	s.random = seed;
	s.scheduler->checked_max = 1 + below(4);
	s.scheduler->compared_at_once = 1 + below(4);
	s.scheduler->compared_in_a_turn = 1 + below(8);
	percent = 20 + below(70);
	for (unsigned i = 0; i < STEPS; i++) {
		step(percent);
		check_all();
	}
	while (s.scheduler->first) {
		ck_assert_msg(go_on_with_some() || run_turn(), "seed %u: they wait for each other",
			      (unsigned)seed);
		check_all();
	}
	while (run_turn())
		;
	check_is_empty();
}

TEST(random_requests)
{
	const char *more = getenv("NPUMEM_ORDER_SEEDS");
	uint64_t seeds = more ? strtoull(more, NULL, 10) : SEEDS;
	for (uint64_t seed = 1; seed <= seeds; seed++)
		run(seed);
}

FIXTURE(begin, end)
