/* What a claim says of a root that is met more than once. */
#include "daemon/rpc/order/claim.h"

#include "tests/unit/daemon/service/world.h"

static struct world world;
static struct session session;
static struct tensor *root, *left, *right;
static struct claim claim;

static struct tensor *columns(const char *name, int64_t from, int64_t to)
{
	struct device_slice slice = {{0, 0, 0, from}, {1, 8, 1, to}};
	struct tensor *view;
	ck_assert_int_eq(tensors_view(&session, root, name, "", &slice, NULL, NULL, &view, &world.error), 0);
	return view;
}

static void begin(void)
{
	world_init(&world);
	session_init(&session, &world.service, 1001, 0, NULL);
	root = world_tensor(&world, &session, "root");
	left = columns("left", 10, 20);
	right = columns("right", 40, 60);
	claim_init(&claim, &world.heap);
}

static void end(void)
{
	claim_deinit(&claim);
	session_deinit(&session);
	world_deinit(&world);
}

static const struct scheduler_access *only(void)
{
	ck_assert_uint_eq(claim.n, 1);
	ck_assert_ptr_eq(claim.accesses[0].root, root);
	return &claim.accesses[0];
}

TEST(a_range_holds_all_that_is_met)
{
	claim_tensor(&claim, right, CLAIM_READ);
	ck_assert_int_eq(only()->range.from.w, 40);
	claim_tensor(&claim, left, CLAIM_READ);
	ck_assert_int_eq(only()->range.from.w, 10);
	ck_assert_int_eq(only()->range.to.w, 60);
	ck_assert(!only()->writes);
	claim_tensor(&claim, left, CLAIM_WRITE);
	ck_assert(only()->writes && !only()->footprint && !only()->frees);
	claim_tensor(&claim, right, CLAIM_FREE);
	ck_assert(only()->frees);
}

TEST(a_free_writes)
{
	claim_tensor(&claim, left, CLAIM_FREE);
	ck_assert(only()->writes && only()->frees);
}

/* A copy touches data alone; what a kernel writes it writes with all of its footprint, wherever else it was met.
 */
TEST(what_kernels_write)
{
	struct op_operand operands[] = {{.role = "in", .tensor = left}, {.role = "out", .tensor = right}};
	struct op copy = {.kind = OP_COPY, .tensor = right, .source = left};
	struct op run = {.kind = OP_RUN, .kernel = NPUMEM_KERNEL_RELU, .operands = operands, .n_operands = 2};
	claim_op(&claim, &copy);
	ck_assert(only()->writes && !only()->footprint);
	claim_op(&claim, &run);
	ck_assert(only()->writes && only()->footprint);
}

TEST(what_is_looked_at_may_be_read_too)
{
	claim_tensor(&claim, left, CLAIM_ROOT);
	ck_assert(only()->needs_root);
	claim_tensor(&claim, right, CLAIM_READ);
	ck_assert(!only()->needs_root && !only()->writes);
	claim_tensor(&claim, left, CLAIM_ROOT);
	ck_assert(!only()->needs_root);
}

FIXTURE(begin, end)
