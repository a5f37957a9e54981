/* Which requests are stale, and that the next process knows it. */
#include "daemon/service/kept/stale.h"

#include "tests/unit/daemon/service/lasting.h"

struct scene {
	struct lasting kept;
	struct session session, other;
};

static void scene_init(struct scene *scene)
{
	lasting_init(&scene->kept);
	lasting_begin(&scene->kept, &scene->session);
	lasting_begin(&scene->kept, &scene->other);
}

FIXTURE_OBJECT(struct scene, scene, scene_init(&scene), lasting_deinit(&scene.kept))

static void add(struct session *session, uint64_t first, uint64_t last)
{
	struct ids ids = {.few = {{.first = first, .last = last}}, .n = 1};
	stale_add(session, &ids);
}

static void restart(void)
{
	lasting_restart(&scene.kept);
	ck_assert_uint_eq(scene.kept.n_found, 2);
}

TEST(these_and_no_others)
{
	static const uint64_t ids[][2] = {{10, 12}, {20, 20}, {30, 40}, {13, 15}, {5, 5}, {18, 22}};
	bool model[64] = {false};
	for (unsigned i = 0; i < 6; i++) {
		add(&scene.session, ids[i][0], ids[i][1]);
		for (uint64_t id = ids[i][0]; id <= ids[i][1]; id++)
			model[id] = true;
	}
	for (unsigned i = 0; i < 3; i++) {
		const struct session *session = i ? &scene.kept.found[0] : &scene.session;
		for (uint64_t id = 0; id < 64; id++)
			ck_assert_int_eq(stale_has(session, id), model[id]);
		ck_assert(!stale_has(i ? &scene.kept.found[1] : &scene.other, 11));
		ck_assert_uint_eq(session->stale.n, 4);
		restart();
	}
}

/* Until the client has the answers; and with the session. */
TEST(they_go)
{
	struct session *found = scene.kept.found;
	for (uint64_t id = 1; id < 200; id += 2)
		add(&scene.session, id, id);
	uint32_t n_cells = store_n_cells(scene.kept.store, STORE_RESULTS);
	results_answered(&scene.session, 100);
	persist_commit(&scene.kept.world.service.persist);
	restart();
	ck_assert(!stale_has(&found[0], 99) && stale_has(&found[0], 101) && stale_has(&found[0], 199));
	/* Their cells are others'. */
	for (uint64_t id = 201; id < 300; id += 2)
		add(&found[0], id, id);
	ck_assert_uint_eq(store_n_cells(scene.kept.store, STORE_RESULTS), n_cells);
	session_forget(&found[0]);
	ck_assert_uint_eq(found[0].stale.n, 0);
	ck_assert_uint_eq(found[0].user->now[LIMITS_REQUEST_BYTES], 0);
	lasting_restart(&scene.kept);
	ck_assert_uint_eq(scene.kept.n_found, 1);
	ck_assert_uint_eq(scene.kept.report.n_results, 0);
}

/* What goes on elsewhere has them there. */
TEST(they_go_with_the_session)
{
	struct session detached, fresh;
	for (uint64_t id = 1; id < 100; id += 2)
		add(&scene.session, id, id);
	ck_assert_int_eq(session_stay_away(&scene.session, &detached), 0);
	ck_assert(stale_has(&detached, 51) && !stale_has(&detached, 52) && !stale_has(&scene.session, 51));
	ck_assert_int_eq(session_init(&fresh, &scene.kept.world.service, 1001, 1, NULL), 0);
	session_hand_over(&detached, &fresh);
	session_deinit(&detached);
	session_deinit(&scene.session);
	ck_assert(stale_has(&fresh, 51) && !stale_has(&fresh, 52));
	restart();
	ck_assert(stale_has(&scene.kept.found[0], 51) != stale_has(&scene.kept.found[1], 51));
}

/* Where a range has no room, too many count as stale, and never too few. */
TEST(without_room)
{
	struct npumem_error error = {.status = 0};
	uint32_t at;
	scene.session.user->has_own = true;
	for (uint64_t id = 10; id < 100; id += 10) {
		add(&scene.session, id, id);
		ck_assert(stale_has(&scene.session, id) && !stale_has(&scene.session, 9));
	}
	ck_assert_uint_eq(scene.session.stale.n, IDS_FEW);
	restart();
	for (uint64_t id = 10; id < 100; id += 10)
		ck_assert(stale_has(&scene.kept.found[0], id));
	ck_assert(!stale_has(&scene.kept.found[0], 9) && !stale_has(&scene.kept.found[0], 91));
	lasting_deinit(&scene.kept);
	/* No cell at all. */
	scene_init(&scene);
	const struct persist_cells *results = &scene.kept.world.service.persist.results;
	while (results->n || results->n_cells < results->room)
		ck_assert_int_eq(persist_take_cell(&scene.kept.world.service, STORE_RESULTS, 1, &at, &error), 0);
	scene.kept.world.fail_at = scene.kept.world.n_allocs + 1;
	add(&scene.session, 40, 50);
	scene.kept.world.fail_at = 0;
	for (unsigned i = 0; i < 2; i++) {
		const struct session *session = i ? &scene.kept.found[0] : &scene.session;
		ck_assert(stale_has(session, 1) && stale_has(session, 50) && !stale_has(session, 51));
		restart();
	}
}

/* Many ranges would keep the loop for milliseconds: neighbours become one, and nothing below or behind them
 * counts. */
TEST(too_many_ranges)
{
	enum { N = 3 * STALE_RANGES_MAX + 1 };
	static struct ids_range ranges[N];
	struct ids ids = {.many = ranges, .n = N, .room = N};
	for (unsigned i = 0; i < N; i++)
		ranges[i].first = ranges[i].last = 1001 + 2 * i;
	stale_add(&scene.session, &ids);
	ck_assert_uint_le(scene.session.stale.n, STALE_RANGES_MAX);
	for (unsigned k = 0; k < 2; k++) {
		const struct session *session = k ? &scene.kept.found[0] : &scene.session;
		for (unsigned i = 0; i < N; i++)
			ck_assert(stale_has(session, ranges[i].first));
		ck_assert(!stale_has(session, 1000) && !stale_has(session, ranges[N - 1].last + 1));
		restart();
	}
}

/* Cells that say what cannot be. */
TEST(what_does_not_fit)
{
	static const uint64_t ids[][2] = {{50, 60}, {55, 65}, {70, 69}};
	uint32_t at;
	for (unsigned i = 0; i < 3; i++) {
		struct results_cell cell = {.session = scene.session.id,
					    .request = ids[i][0],
					    .kind = RESULTS_STALE,
					    .number = ids[i][1]};
		ck_assert_int_eq(persist_take_cell(&scene.kept.world.service, STORE_RESULTS, 1, &at,
						   &scene.kept.world.error),
				 0);
		store_put(scene.kept.store, STORE_RESULTS, at, &cell, sizeof(cell));
	}
	persist_commit(&scene.kept.world.service.persist);
	for (unsigned i = 0; i < 2; i++) {
		restart();
		ck_assert(stale_has(&scene.kept.found[0], 50) && stale_has(&scene.kept.found[0], 65));
		ck_assert(!stale_has(&scene.kept.found[0], 70) && !stale_has(&scene.kept.found[1], 50));
	}
	ck_assert_uint_eq(scene.kept.report.n_results, 1);
}
