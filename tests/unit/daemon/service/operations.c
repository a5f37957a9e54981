/* A transfer in parts. */
#include "daemon/service/operations.h"

#include <errno.h>

#include "tests/unit/daemon/service/world.h"

enum { ELEMENTS = 800 };

struct scene {
	struct world world;
	struct session session;
	struct tensor *tensor;
	struct kernel_progress progress;
	uint8_t from[ELEMENTS], to[ELEMENTS];
};

static void scene_init(struct scene *scene)
{
	world_init(&scene->world);
	session_init(&scene->session, &scene->world.service, 1001, 1, NULL);
	scene->tensor = world_tensor(&scene->world, &scene->session, "t");
	ck_assert_int_eq(npumem_place_elements(&scene->tensor->place), ELEMENTS);
	for (unsigned i = 0; i < ELEMENTS; i++)
		scene->from[i] = (uint8_t)(i * 3 + i / 256);
	memset(&scene->progress, 0, sizeof(scene->progress));
}

static void scene_deinit(struct scene *scene)
{
	session_deinit(&scene->session);
	world_deinit(&scene->world);
}

static struct op begin(struct scene *scene, enum op_kind kind, uint8_t *memory)
{
	struct op op = {.kind = kind, .tensor = scene->tensor, .count = -1, .progress = &scene->progress};

	op.system = (struct op_system){.base = memory, .bytes = ELEMENTS};
	npumem_error_clear(&scene->world.error);
	ck_assert_int_eq(operations_check(&scene->session, &op, &scene->world.error), 0);
	return op;
}

static int run_part(struct scene *scene, struct op *op, int64_t *done, int64_t n)
{
	return operations_run_part(&scene->session, op, done, n, &scene->world.error);
}

/* Whatever the size of a part is. */
static void run_all(struct scene *scene, enum op_kind kind, uint8_t *memory, int64_t part)
{
	struct op op = begin(scene, kind, memory);
	int64_t done = 0, n = 0;
	int status;

	while ((status = run_part(scene, &op, &done, part)) == -EAGAIN)
		n++;
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(n, (ELEMENTS - 1) / part);
	ck_assert(op.first == 0 && op.count == ELEMENTS && op.system.off == 0);
	operations_end(&scene->session, &op);
}

START_TEST(parts_make_the_whole)
{
	const int64_t parts[] = {1, 7, 100, 128, 799, 800, 801};
	struct scene scene;

	scene_init(&scene);
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		scene.from[0]++;
		run_all(&scene, OP_WRITE, scene.from, parts[i]);
		memset(scene.to, 0, sizeof(scene.to));
		run_all(&scene, OP_READ, scene.to, parts[6 - i]);
		ck_assert_mem_eq(scene.to, scene.from, ELEMENTS);
	}
	scene_deinit(&scene);
}
END_TEST

/* Of the elements of a tensor that was written. */
static int64_t cancelled_after(struct scene *scene, int64_t n_parts)
{
	struct op op;
	int64_t done = 0, n = 0;

	run_all(scene, OP_WRITE, scene->from, ELEMENTS);
	op = begin(scene, OP_WRITE, scene->from);
	for (int64_t i = 0; i < n_parts; i++)
		ck_assert_int_eq(run_part(scene, &op, &done, 100), -EAGAIN);
	scene->progress.cancelled = true;
	ck_assert_int_eq(run_part(scene, &op, &done, 100), NPUMEM_CANCELLED);
	operations_end(&scene->session, &op);
	scene->progress.cancelled = false;
	for (int64_t i = 0; i < ELEMENTS; i++) {
		op = begin(scene, OP_READ, scene->to);
		op.first = i;
		op.count = 1;
		npumem_error_clear(&scene->world.error);
		n += operations_run(&scene->session, &op, &scene->world.error) == 0;
		operations_end(&scene->session, &op);
	}
	return n;
}

START_TEST(what_was_written_before_it_was_cancelled_counts_as_never_written)
{
	struct scene scene;

	scene_init(&scene);
	ck_assert_int_eq(cancelled_after(&scene, 0), ELEMENTS);
	ck_assert_int_eq(cancelled_after(&scene, 1), ELEMENTS - 100);
	ck_assert_int_eq(cancelled_after(&scene, 3), ELEMENTS - 300);
	scene_deinit(&scene);
}
END_TEST

Suite *suite_operations(void)
{
	Suite *suite = suite_create("operations");
	TCase *tests = tcase_create("operations");

	tcase_add_test(tests, parts_make_the_whole);
	tcase_add_test(tests, what_was_written_before_it_was_cancelled_counts_as_never_written);
	suite_add_tcase(suite, tests);
	return suite;
}
