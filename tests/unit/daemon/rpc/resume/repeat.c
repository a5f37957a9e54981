/* Which lists of operations do the same when they are done twice. */
#include "daemon/rpc/resume/repeat.h"

#include "tests/unit/daemon/service/world.h"

enum { OPS_MAX = 4, SAFE = -1 };

/* In words: F x: fill; W x: a write of all of it, w x: of a part; R x: a read; C x y: a copy of y to x; + x y: a
 * kernel that adds y to x. v is a slice of x. */
static const struct {
	const char *ops[OPS_MAX];
	int first_final;
} cases[] = {
	{{"F x"}, SAFE},
	{{"R x"}, SAFE},
	{{"F x", "R x", "F x"}, SAFE},
	{{"W x", "R x", "W x"}, SAFE},
	{{"R x", "F y"}, SAFE},
	{{"R x", "F x"}, 1},
	{{"R x", "F y", "F x"}, 2},
	{{"w x", "R x", "w x"}, 2},
	{{"w x", "w x"}, SAFE},
	{{"C y x"}, SAFE},
	{{"C y x", "F x"}, 1},
	{{"F x", "C y x", "F x"}, SAFE},
	{{"C y x", "C x y"}, 1},
	{{"F y", "C x y", "C y x"}, SAFE},
	{{"+ x y"}, 0},
	{{"F x", "+ x y"}, SAFE},
	{{"F x", "+ x y", "F y"}, 2},
	{{"F y", "+ x y"}, 1},
	{{"F v", "R v", "F v"}, 2},
	{{"F x", "R v", "F v"}, SAFE},
	{{"C v y", "R y"}, SAFE},
	{{"R v", "F x"}, 1},
	{{"R x", "w v"}, 1},
};

struct scene {
	struct world world;
	struct session session;
	struct tensor *x, *y, *v;
};

static struct tensor *tensor_of(const struct scene *scene, char name)
{
	return name == 'x' ? scene->x : name == 'y' ? scene->y : scene->v;
}

static void look(const struct scene *scene, struct repeat *repeat, const char *text)
{
	struct op op = {.tensor = tensor_of(scene, text[2]), .count = -1};
	struct op_operand operands[3] = {{"in1", op.tensor}, {"in2", NULL}, {"out", op.tensor}};
	switch (text[0]) {
	case 'F':
		op.kind = OP_FILL;
		break;
	case 'R':
		op.kind = OP_READ;
		break;
	case 'W':
		op.kind = OP_WRITE;
		op.count = tensor_elements(op.tensor);
		break;
	case 'w':
		op.kind = OP_WRITE;
		op.count = 1;
		break;
	case 'C':
		op.kind = OP_COPY;
		op.source = tensor_of(scene, text[4]);
		break;
	default:
		op.kind = OP_RUN;
		op.kernel = NPUMEM_KERNEL_ELTWISE_ADD;
		operands[1].tensor = tensor_of(scene, text[4]);
		op.operands = operands;
		op.n_operands = 3;
	}
	repeat_add(repeat, &op);
}

static void scene_init(struct scene *scene)
{
	struct device_slice slice = {{0, 0, 0, 0}, {1, 2, 1, 50}};
	world_init(&scene->world);
	session_init(&scene->session, &scene->world.service, 1001, 1, NULL);
	scene->x = world_tensor(&scene->world, &scene->session, "x");
	scene->y = world_tensor(&scene->world, &scene->session, "y");
	ck_assert_int_eq(tensors_view(&scene->session, scene->x, "v", "", &slice, NULL, NULL, &scene->v,
				      &scene->world.error),
			 0);
}

static void scene_deinit(struct scene *scene)
{
	scene->session.has_token = false;
	session_deinit(&scene->session);
	world_deinit(&scene->world);
}

FIXTURE_OBJECT(struct scene, scene, scene_init(&scene), scene_deinit(&scene))

TEST(what_it_reads_it_must_not_change, .to = sizeof(cases) / sizeof(cases[0]))
{
	struct repeat repeat;
	scene.session.has_token = true;
	/* What another request did before does not count. */
	repeat_begin(&repeat, &scene.session);
	look(&scene, &repeat, "R x");
	repeat_begin(&repeat, &scene.session);
	for (unsigned i = 0; i < OPS_MAX && cases[_i].ops[i]; i++)
		look(&scene, &repeat, cases[_i].ops[i]);
	ck_assert_int_eq(repeat_is_safe(&repeat) ? SAFE : (int)repeat.first_final, cases[_i].first_final);
}

TEST(nobody_looks_without_a_token)
{
	struct repeat repeat;
	repeat_begin(&repeat, &scene.session);
	look(&scene, &repeat, "R x");
	look(&scene, &repeat, "F x");
	ck_assert(repeat_is_safe(&repeat));
}
