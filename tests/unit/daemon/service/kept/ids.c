/* Sets of ids against arrays of bits. */
#include "daemon/service/kept/ids.h"

#include "tests/unit/daemon/service/world.h"

enum { IDS = 400, STEPS = 3000 };

struct scene {
	struct world world;
	struct session session;
	struct ids ids;
	bool model[IDS + 1];
	unsigned n_made, n_dropped, n_changed;
	bool is_full; /* of the keeper */
};

static struct scene scene;

static bool make(struct session *session, struct ids_range *range)
{
	ck_assert_ptr_eq(session, &scene.session);
	range->cell = ++scene.n_made;
	return !scene.is_full;
}

static void change(struct session *session, const struct ids_range *range)
{
	(void)session;
	ck_assert_uint_gt(range->cell, 0);
	scene.n_changed++;
}

static void drop(struct session *session, const struct ids_range *range)
{
	(void)session;
	ck_assert_uint_gt(range->cell, 0);
	scene.n_dropped++;
}

static const struct ids_keeper keeper = {make, change, drop};

static void scene_init(void)
{
	memset(&scene, 0, sizeof(scene));
	world_init(&scene.world);
	session_init(&scene.session, &scene.world.service, 1001, 1, NULL);
}

static void scene_deinit(void)
{
	ids_clear(&scene.ids, &scene.session, NULL);
	ck_assert_uint_eq(scene.session.user->now[LIMITS_REQUEST_BYTES], 0);
	session_deinit(&scene.session);
	world_deinit(&scene.world);
}

static void add(uint64_t first, uint64_t last)
{
	ck_assert(ids_add(&scene.ids, &scene.session, first, last, &keeper));
	for (uint64_t id = first; id <= last; id++)
		scene.model[id] = true;
}

/* What was added is in it, and where there is room, nothing else. */
static void check(bool exactly)
{
	const struct ids_range *ranges = ids_ranges(&scene.ids);
	for (uint64_t id = 0; id <= IDS; id++)
		if (scene.model[id] || exactly)
			ck_assert_int_eq(ids_has(&scene.ids, id), scene.model[id]);
	for (unsigned i = 0; i < scene.ids.n; i++) {
		ck_assert_uint_le(ranges[i].first, ranges[i].last);
		ck_assert(!i || ranges[i - 1].last + 1 < ranges[i].first);
	}
}

TEST(random_ids)
{
	scene_init();
	srand(7);
	for (unsigned step = 0; step < STEPS; step++) {
		uint64_t first = 1 + (uint64_t)rand() % (IDS - 8), below = 1 + (uint64_t)rand() % IDS;
		if (step % 500 == 499) {
			ids_drop_below(&scene.ids, &scene.session, below, &keeper);
			for (uint64_t id = 0; id < below && !ids_has(&scene.ids, id); id++)
				scene.model[id] = false;
		} else {
			add(first, first + (uint64_t)rand() % (rand() % 8 ? 1 : 8));
		}
		check(true);
		ck_assert_uint_eq(scene.ids.n, scene.n_made - scene.n_dropped);
		ck_assert_int_eq(scene.ids.many != NULL, scene.session.user->now[LIMITS_REQUEST_BYTES] != 0);
	}
	ck_assert_uint_gt(scene.n_changed, 100);
	scene_deinit();
}

/* One after the other they are one range, whatever there are of them. */
TEST(in_order)
{
	scene_init();
	for (uint64_t id = 1; id < 100000; id++)
		ck_assert(ids_add(&scene.ids, &scene.session, id, id, NULL));
	ck_assert_uint_eq(scene.ids.n, 1);
	ck_assert_ptr_null(scene.ids.many);
	ck_assert(ids_has(&scene.ids, 1) && ids_has(&scene.ids, 99999));
	ck_assert(!ids_has(&scene.ids, 0) && !ids_has(&scene.ids, 100000));
	ck_assert(ids_add(&scene.ids, &scene.session, UINT64_MAX, UINT64_MAX, NULL));
	ck_assert(ids_add(&scene.ids, &scene.session, UINT64_MAX - 1, UINT64_MAX - 1, NULL));
	ck_assert_uint_eq(scene.ids.n, 2);
	ck_assert(ids_has(&scene.ids, UINT64_MAX) && !ids_has(&scene.ids, UINT64_MAX - 2));
	scene_deinit();
}

/* However many there are, the rest joins what is next to it: 0: of the ranges, 1: of the uid's, 2: of the heap, 3:
 * of the keeper. */
TEST(without_room, .to = 4)
{
	uint64_t most = 0;
	scene_init();
	if (_i == 1)
		scene.session.user->has_own = true;
	for (uint64_t i = 0; i < 20000; i++) {
		uint64_t id = 2 + i * 7919 % 20000 * 3;
		if (_i == 2)
			scene.world.fail_at = scene.world.n_allocs + 1;
		scene.is_full = _i == 3 && i >= 10;
		ck_assert(ids_add(&scene.ids, &scene.session, id, id, &keeper));
		ck_assert(ids_has(&scene.ids, id));
		most = scene.ids.n > most ? scene.ids.n : most;
	}
	ck_assert_uint_eq(most, _i == 0 ? IDS_MAX : _i == 3 ? 10 : IDS_FEW);
	ck_assert(!ids_has(&scene.ids, 1));
	for (uint64_t i = 0; i < 20000; i++)
		ck_assert(ids_has(&scene.ids, 2 + i * 3));
	scene.is_full = true;
	ids_clear(&scene.ids, &scene.session, &keeper);
	ck_assert(!ids_add(&scene.ids, &scene.session, 5, 5, &keeper));
	ck_assert(!ids_has(&scene.ids, 5));
	scene.world.fail_at = 0;
	scene_deinit();
}

TEST(as_it_was_kept)
{
	static const struct ids_range ranges[] = {{2, 4, 7}, {6, 6, 8}, {100, UINT64_MAX, 9}};
	scene_init();
	for (unsigned i = 0; i < 3; i++)
		ck_assert(ids_append(&scene.ids, &scene.session, &ranges[i]));
	ck_assert(ids_has(&scene.ids, 4) && !ids_has(&scene.ids, 5) && ids_has(&scene.ids, UINT64_MAX));
	ck_assert_uint_eq(ids_ranges(&scene.ids)[1].cell, 8);
	ids_clear(&scene.ids, &scene.session, NULL);
	ck_assert(ids_append(&scene.ids, &scene.session, &ranges[1]));
	ck_assert(!ids_append(&scene.ids, &scene.session, &ranges[0]));
	ck_assert(!ids_append(&scene.ids, &scene.session, &ranges[1]));
	ck_assert(!ids_append(&scene.ids, &scene.session, &(struct ids_range){9, 8, 1}));
	scene_deinit();
}
