/* What a uid may have holds wherever something is taken, and what is refused takes nothing. */
#include <errno.h>

#include "daemon/service/segments.h"
#include "tests/unit/daemon/service/world.h"

enum { SEGMENT_BYTES = 4096 };

static struct world world;
static struct session session;

static void begin(void)
{
	world_init(&world);
	session_init(&session, &world.service, 1001, 0, NULL);
}

static void end(void)
{
	session_deinit(&session);
	world_deinit(&world);
}

static void may_have(enum limits_key key, uint64_t most)
{
	ck_assert_int_eq(limits_set_own(&world.service.limits, 1001, key, most), 0);
}

static uint64_t has(enum limits_key key)
{
	ck_assert_uint_eq(world.service.limits.now[key], session.user->now[key]);
	return session.user->now[key];
}

static int alloc(unsigned n, const char *const *names, struct tensor **tensors)
{
	struct device_request requests[2] = {world_request(8, 128), world_request(8, 128)};
	npumem_error_clear(&world.error);
	return tensors_alloc(&session, requests, names, n, tensors, &world.error);
}

/* One has 8 * 128 bytes. */
TEST(bytes_of_all_tensors_of_a_request)
{
	const char *names[] = {"a", ""};
	struct tensor *tensors[2];
	int64_t before, after, largest;
	may_have(LIMITS_DEVICE_BYTES, 2 * 8 * 128 - 1);
	device_room(world.device, &before, &largest);
	ck_assert_int_eq(alloc(2, names, tensors), NPUMEM_RESOURCE_EXHAUSTED);
	device_room(world.device, &after, &largest);
	ck_assert_int_eq(after, before);
	ck_assert_int_eq(world_n_tensors(&world), 0);
	ck_assert_uint_eq(has(LIMITS_DEVICE_BYTES), 0);
	may_have(LIMITS_DEVICE_BYTES, 2 * 8 * 128);
	ck_assert_int_eq(alloc(2, names, tensors), 0);
	ck_assert_uint_eq(has(LIMITS_DEVICE_BYTES), 2 * 8 * 128);
}

TEST(tensors_and_views)
{
	const char *names[] = {"a", "b"};
	struct device_slice slice = {{0, 0, 0, 0}, {1, 8, 1, 8}};
	struct tensor *tensors[2], *view;
	may_have(LIMITS_TENSORS, 1);
	ck_assert_int_eq(alloc(2, names, tensors), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(alloc(1, names, tensors), 0);
	ck_assert_int_eq(tensors_view(&session, tensors[0], "v", "", &slice, NULL, NULL, &view, &world.error),
			 NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_uint_eq(has(LIMITS_TENSORS), 1);
	ck_assert_int_eq(world_n_tensors(&world), 1);
	may_have(LIMITS_TENSORS, 10);
	may_have(LIMITS_VIEWS, 1);
	ck_assert_int_eq(tensors_view(&session, tensors[0], "v", "", &slice, NULL, NULL, &view, &world.error), 0);
	ck_assert_int_eq(tensors_view(&session, tensors[0], "w", "", &slice, NULL, NULL, &view, &world.error),
			 NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_uint_eq(has(LIMITS_VIEWS), 1);
}

/* Whatever a request began with: what others took in its time counts when it ends. */
TEST(what_changed_while_a_place_was_searched)
{
	struct device_request request = world_request(8, 128);
	const char *names[] = {"a"};
	struct tensor *tensors[1], *others[1];
	struct tensors_alloc search = {.session = &session,
				       .requests = &request,
				       .names = names,
				       .labels = (const char *[]){""},
				       .n = 1,
				       .tensors = tensors};
	int64_t steps = 1000;
	ck_assert_int_eq(tensors_alloc_begin(&search, &world.error), 0);
	ck_assert_int_eq(alloc(1, names, others), 0);
	ck_assert_int_eq(tensors_alloc_step(&search, &steps, &world.error), NPUMEM_ALREADY_EXISTS);
	ck_assert_int_eq(world_n_tensors(&world), 1);
	names[0] = "b";
	npumem_error_clear(&world.error);
	ck_assert_int_eq(tensors_alloc_begin(&search, &world.error), 0);
	may_have(LIMITS_TENSORS, 1);
	ck_assert_int_eq(tensors_alloc_step(&search, &steps, &world.error), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(world_n_tensors(&world), 1);
}

TEST(what_a_session_has_without_a_name)
{
	const char *names[] = {"", ""};
	struct tensor *tensors[2];
	ck_assert_int_eq(alloc(2, names, tensors), 0);
	ck_assert_uint_eq(session.unnamed->device_bytes, 2 * 8 * 128);
	ck_assert_uint_eq(session.unnamed->n, 2);
	tensors_hide(&session, tensors, 1);
	ck_assert_uint_eq(session.unnamed->device_bytes, 8 * 128);
	ck_assert_uint_eq(session.unnamed->n, 1);
	tensors_free(&session, tensors, 1);
	tensors_hide(&session, tensors + 1, 1);
	tensors_free(&session, tensors + 1, 1);
	ck_assert_uint_eq(session.unnamed->device_bytes, 0);
}

TEST(sessions)
{
	struct session more;
	uint64_t n_uids = world.service.limits.n_uids;
	may_have(LIMITS_SESSIONS, 1);
	npumem_error_clear(&world.error);
	ck_assert_int_eq(session_init(&more, &world.service, 1001, 0, &world.error), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_uint_eq(world.service.n_sessions, 1);
	ck_assert_uint_eq(session.user->n_refs, 1);
	/* Nor does it stay as a uid. */
	ck_assert_int_eq(limits_set_own(&world.service.limits, 1002, LIMITS_SESSIONS, 0), 0);
	ck_assert_int_eq(session_init(&more, &world.service, 1002, 0, &world.error), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_uint_eq(world.service.limits.n_uids, n_uids);
}

/* ---- memory that a client shares ---- */

static uint8_t memory[SEGMENT_BYTES];
static unsigned n_mapped;
static bool is_broken;

static int take(void *ctx, struct segments_memory *taken, struct npumem_error *error)
{
	(void)ctx, (void)error;
	n_mapped++;
	*taken = (struct segments_memory){.base = memory, .bytes = SEGMENT_BYTES, .writable = true};
	return 0;
}

static void release(void *ctx, const struct segments_memory *taken)
{
	(void)ctx;
	(void)taken;
	n_mapped--;
}

static bool reach(const struct segments_memory *of, void (*access)(void *arg), void *arg)
{
	if (!is_broken)
		access(arg);
	return !is_broken && of->base == memory;
}

static void touch(void *arg)
{
	++*(unsigned *)arg;
}

static int share(void)
{
	static const struct segments_source source = {.take = take, .release = release, .reach = reach};
	struct segment *segment;
	npumem_error_clear(&world.error);
	session.segments_source = &source;
	return segments_share(&session, 0, &segment, &world.error);
}

TEST(segments)
{
	unsigned n = 0;
	may_have(LIMITS_SEGMENT_BYTES, 2 * SEGMENT_BYTES);
	ck_assert_int_eq(share(), 0);
	ck_assert_int_eq(share(), 0);
	ck_assert_int_eq(share(), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_uint_eq(n_mapped, 2);
	ck_assert_uint_eq(has(LIMITS_SEGMENT_BYTES), 2 * SEGMENT_BYTES);
	may_have(LIMITS_SEGMENT_BYTES, UINT64_MAX);
	while (share() == 0)
		ck_assert_uint_le(n++, SEGMENTS_MAX);
	ck_assert_uint_eq(n_mapped, SEGMENTS_MAX);
	segments_deinit(&session);
	ck_assert_uint_eq(n_mapped, 0);
	ck_assert_uint_eq(has(LIMITS_SEGMENT_BYTES), 0);
}

TEST(memory_that_has_faulted_is_not_used)
{
	struct segment *segment;
	unsigned n_touched = 0;
	ck_assert_int_eq(share(), 0);
	ck_assert_int_eq(segments_find(&session, session.last_segment, &segment, &world.error), 0);
	ck_assert(segments_reach(&session, segment, touch, &n_touched));
	is_broken = true;
	ck_assert(!segments_reach(&session, segment, touch, &n_touched));
	ck_assert_uint_eq(n_touched, 1);
	ck_assert_int_eq(segments_find(&session, session.last_segment, &segment, &world.error), NPUMEM_DATA_LOST);
	is_broken = false;
}

FIXTURE(begin, end)
