/* What the next process takes for lost, by what an operation noted before it was cut off. */
#include "daemon/service/kept/notes.h"

#include "tests/unit/daemon/service/lasting.h"

enum { ALL_BYTES = 800, PART_BYTES = 20 };

struct scene {
	struct lasting kept;
	struct session session;
	struct tensor *x, *y;
	struct notes notes;
};

static void scene_init(struct scene *scene)
{
	memset(scene, 0, sizeof(*scene));
	lasting_init(&scene->kept);
	lasting_begin(&scene->kept, &scene->session);
	scene->x = world_tensor(&scene->kept.world, &scene->session, "x");
	scene->y = world_tensor(&scene->kept.world, &scene->session, "y");
}

static void plan(struct scene *scene, struct op *op)
{
	struct world *world = &scene->kept.world;
	ck_assert_int_eq(notes_plan(&scene->notes, &world->service, op, &world->error), 0);
	ck_assert_ptr_nonnull(op->begins);
}

static void begin(struct scene *scene, struct op *op)
{
	plan(scene, op);
	ck_assert_int_eq(op->begins(op->begins_ctx, &scene->kept.world.error), 0);
}

static int64_t lost(struct scene *scene, const char *name)
{
	struct device_state state;
	device_state(scene->kept.world.device, lasting_named(&scene->kept, name), &state);
	return state.lost_bytes;
}

TEST(of_a_part_that_was_written_the_part)
{
	struct scene scene;
	struct op op;
	scene_init(&scene);
	op = (struct op){.kind = OP_WRITE, .tensor = scene.x, .first = 5, .count = PART_BYTES};
	begin(&scene, &op);
	lasting_restart(&scene.kept);
	ck_assert_int_eq(lost(&scene, "x"), PART_BYTES);
	ck_assert_int_eq(lost(&scene, "y"), 0);
	lasting_deinit(&scene.kept);
}

TEST(of_what_was_overwritten_all_and_nothing_of_its_source)
{
	static const enum op_kind kinds[] = {OP_FILL, OP_COPY};
	for (unsigned i = 0; i < 2; i++) {
		struct scene scene;
		struct op op;
		scene_init(&scene);
		/* These two have no part, whatever stands there. */
		op = (struct op){.kind = kinds[i], .tensor = scene.x, .first = 5, .count = PART_BYTES};
		op.source = kinds[i] == OP_COPY ? scene.y : NULL;
		begin(&scene, &op);
		lasting_restart(&scene.kept);
		ck_assert_int_eq(lost(&scene, "x"), ALL_BYTES);
		ck_assert_int_eq(lost(&scene, "y"), 0);
		lasting_deinit(&scene.kept);
	}
}

TEST(nothing_of_what_has_not_begun_or_has_ended)
{
	struct scene scene;
	struct op op;
	scene_init(&scene);
	op = (struct op){.kind = OP_FILL, .tensor = scene.x};
	begin(&scene, &op);
	notes_end(&scene.notes, &scene.kept.world.service);
	op = (struct op){.kind = OP_FILL, .tensor = scene.y};
	plan(&scene, &op);
	lasting_restart(&scene.kept);
	ck_assert_int_eq(lost(&scene, "x"), 0);
	ck_assert_int_eq(lost(&scene, "y"), 0);
	lasting_deinit(&scene.kept);
}

TEST(what_only_reads_notes_nothing)
{
	struct scene scene;
	struct op op;
	scene_init(&scene);
	op = (struct op){.kind = OP_READ, .tensor = scene.x, .count = -1};
	ck_assert_int_eq(notes_plan(&scene.notes, &scene.kept.world.service, &op, &scene.kept.world.error), 0);
	ck_assert_ptr_null(op.begins);
	ck_assert_uint_eq(scene.notes.n, 0);
	lasting_deinit(&scene.kept);
}
