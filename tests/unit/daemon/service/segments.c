/* The ids of segments, and what is told to where their memory comes from. */
#include "daemon/service/segments.h"

#include <errno.h>

#include "daemon/service/order/stops.h"
#include "tests/unit/daemon/service/world.h"

enum { BYTES = 4096 };

static uint8_t memory[BYTES];

static int take(void *ctx, struct segments_memory *taken, struct npumem_error *error)
{
	(void)ctx, (void)error;
	*taken = (struct segments_memory){.base = memory, .bytes = BYTES, .writable = true};
	return 0;
}

static int take_only(void *ctx, struct segments_memory *taken, struct npumem_error *error)
{
	(void)ctx, (void)error;
	*taken = (struct segments_memory){.bytes = BYTES, .writable = true};
	return 0;
}

static int map_status;

static void map(void *ctx, struct segments_memory *taken, void (*done)(void *arg), void *arg)
{
	(void)ctx, (void)taken;
	done(arg);
}

static int mapped(void *ctx, struct segments_memory *taken)
{
	(void)ctx;
	taken->base = map_status ? NULL : memory;
	return map_status;
}

static void done(void *arg)
{
	++*(unsigned *)arg;
}

static unsigned n_released;

static void release(void *ctx, const struct segments_memory *taken)
{
	(void)ctx;
	(void)taken;
	n_released++;
}

struct scene {
	struct world world;
	struct session session;
	struct segments_source source;
	struct segment *segment;
};

static void scene_init(struct scene *scene)
{
	world_init(&scene->world);
	session_init(&scene->session, &scene->world.service, 1001, 1, NULL);
	scene->source = (struct segments_source){.take = take, .release = release};
	scene->session.segments_source = &scene->source;
	ck_assert_int_eq(segments_share(&scene->session, 0, &scene->segment, &scene->world.error), 0);
}

static void scene_deinit(struct scene *scene)
{
	session_deinit(&scene->session);
	world_deinit(&scene->world);
}

FIXTURE_OBJECT(struct scene, scene, scene_init(&scene), scene_deinit(&scene))

TEST(what_is_refused_was_not_shared)
{
	struct segment *segment;
	n_released = 0;
	ck_assert_int_eq(segments_share(&scene.session, 1, &segment, &scene.world.error), NPUMEM_INVALID);
	ck_assert(n_released == 1);
	ck_assert_int_eq(segments_unshare(&scene.session, 1, &scene.world.error), 0);
	ck_assert(n_released == 2);
}

TEST(it_is_found_when_it_is_mapped)
{
	struct npumem_error *error = &scene.world.error;
	const uint64_t *now = &scene.session.user->now[LIMITS_SEGMENT_BYTES];
	struct segment *segment, *found;
	unsigned n_done = 0;
	scene.source =
		(struct segments_source){.take = take_only, .map = map, .mapped = mapped, .release = release};
	for (int i = 0; i < 2; i++) {
		map_status = i ? 0 : -ENOMEM;
		n_released = 0;
		ck_assert_int_eq(segments_share(&scene.session, 5, &segment, error), 0);
		ck_assert_uint_eq(*now, 2 * BYTES);
		ck_assert_int_eq(segments_share(&scene.session, 5, &found, error), NPUMEM_INVALID);
		ck_assert_int_eq(segments_find(&scene.session, 5, &found, error), NPUMEM_NOT_FOUND);
		ck_assert_int_eq(segments_unshare(&scene.session, 5, error), NPUMEM_NOT_FOUND);
		ck_assert(segments_map(&scene.session, segment, done, &n_done));
		ck_assert_int_eq(segments_mapped(&scene.session, segment, error),
				 i ? 0 : NPUMEM_RESOURCE_EXHAUSTED);
		ck_assert_int_eq(segments_find(&scene.session, 5, &found, error), i ? 0 : NPUMEM_NOT_FOUND);
		ck_assert_uint_eq(*now, (1 + i) * BYTES);
		ck_assert_uint_eq(n_released, 2 - i);
		npumem_error_clear(error);
	}
}

static uint64_t clock_ns(void)
{
	return 1;
}

TEST(who_pays_for_a_map_shares_nothing)
{
	struct segment *segment;
	struct session other;
	unsigned n_done = 0;
	scene.world.service.events.now_ns = clock_ns;
	session_init(&other, &scene.world.service, 1002, 1, NULL);
	scene.source =
		(struct segments_source){.take = take_only, .map = map, .mapped = mapped, .release = release};
	map_status = 0;
	ck_assert_int_eq(segments_share(&scene.session, 0, &segment, &scene.world.error), 0);
	ck_assert(segments_map(&scene.session, segment, done, &n_done));
	ck_assert_ptr_nonnull(segment->memory.price.until_ns);
	stops_pay(&segment->memory.price, clock_ns(), UINT64_C(1000000000));
	ck_assert_int_eq(segments_mapped(&scene.session, segment, &scene.world.error), 0);
	n_released = 0;
	ck_assert_int_eq(segments_share(&scene.session, 0, &segment, &scene.world.error),
			 NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_gt(npumem_error_find(&scene.world.error, "retry_ms", -1), 0);
	ck_assert_uint_eq(n_released, 1);
	session_deinit(&other);
	scene.world.service.events.now_ns = NULL;
}

TEST(ids_may_be_chosen)
{
	struct segment *segment;
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
}

TEST(a_users_segments_are_counted)
{
	struct session second;
	struct segment *segment;
	const uint64_t *now = &scene.session.user->now[LIMITS_SEGMENTS];
	ck_assert_uint_eq(*now, 1);
	session_init(&second, &scene.world.service, 1001, 1, NULL);
	second.segments_source = &scene.source;
	ck_assert_int_eq(segments_share(&second, 0, &segment, &scene.world.error), 0);
	ck_assert_uint_eq(*now, 2);
	scene.world.service.limits.ordinary.most[LIMITS_SEGMENTS] = 2;
	ck_assert_int_eq(segments_share(&second, 0, &segment, &scene.world.error), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_ptr_nonnull(strstr(scene.world.error.message, "has 2 segments"));
	npumem_error_clear(&scene.world.error);
	ck_assert_int_eq(segments_unshare(&scene.session, 1, &scene.world.error), 0);
	ck_assert_int_eq(segments_share(&second, 0, &segment, &scene.world.error), 0);
	session_deinit(&second);
	ck_assert_uint_eq(*now, 0);
}
