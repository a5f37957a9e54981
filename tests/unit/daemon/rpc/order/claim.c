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

static const struct scheduler_access *access_to(const struct tensor *tensor)
{
	for (size_t i = 0; i < claim.n; i++)
		if (claim.accesses[i].tensor == tensor)
			return &claim.accesses[i];
	ck_abort_msg("it is not accessed");
}

static bool has_bytes(const struct tensor *tensor)
{
	return access_to(tensor)->range.to.w > 0;
}

TEST(a_range_holds_all_that_is_met)
{
	claim_tensor(&claim, right, CLAIM_READ);
	ck_assert_int_eq(access_to(root)->range.from.w, 40);
	claim_tensor(&claim, left, CLAIM_READ);
	ck_assert_int_eq(access_to(root)->range.from.w, 10);
	ck_assert_int_eq(access_to(root)->range.to.w, 60);
	ck_assert(!access_to(root)->writes);
	ck_assert_uint_eq(claim.n, 3);
	claim_tensor(&claim, root, CLAIM_CHANGE);
	ck_assert(access_to(root)->writes && !access_to(root)->footprint && !access_to(root)->frees);
	claim_tensor(&claim, root, CLAIM_FREE);
	ck_assert(access_to(root)->frees);
	ck_assert_uint_eq(claim.n, 3);
}

TEST(a_free_writes)
{
	claim_tensor(&claim, root, CLAIM_FREE);
	ck_assert(access_to(root)->writes && access_to(root)->frees);
}

TEST(who_changes_a_view_reads_no_byte)
{
	claim_tensor(&claim, left, CLAIM_CHANGE);
	ck_assert(access_to(left)->frees && !access_to(root)->frees && !access_to(root)->writes);
	ck_assert(access_to(root)->needs_tensor && !has_bytes(root));
	claim_tensor(&claim, right, CLAIM_READ);
	ck_assert(!access_to(right)->frees && access_to(right)->needs_tensor);
}

TEST(who_frees_a_view_reads_no_byte)
{
	claim_tensor(&claim, left, CLAIM_FREE);
	ck_assert(access_to(left)->frees && !has_bytes(left));
	ck_assert(access_to(root)->needs_tensor && !has_bytes(root));
	ck_assert(!access_to(root)->frees && !access_to(root)->writes);
	/* What else the request does counts as before. */
	claim_tensor(&claim, right, CLAIM_READ);
	ck_assert_int_eq(access_to(root)->range.from.w, 40);
}

TEST(a_name_is_given_back_by_the_view_or_by_its_root)
{
	service_mark_going(&world.service, left);
	claim_going(&claim, left);
	ck_assert_uint_eq(claim.n, 1);
	ck_assert(access_to(left)->needs_tensor);
	service_mark_going(&world.service, root);
	claim_going(&claim, right);
	ck_assert_uint_eq(claim.n, 2);
	ck_assert(access_to(root)->needs_tensor && !has_bytes(root));
}

/* A copy touches data alone; what a kernel writes it writes with all of its footprint, wherever else it was met.
 */
TEST(what_kernels_write)
{
	struct op_operand operands[] = {{.role = "in", .tensor = left}, {.role = "out", .tensor = right}};
	struct op copy = {.kind = OP_COPY, .tensor = right, .source = left};
	struct op run = {.kind = OP_RUN, .kernel = NPUMEM_KERNEL_RELU, .operands = operands, .n_operands = 2};
	claim_op(&claim, &copy);
	ck_assert(access_to(root)->writes && !access_to(root)->footprint);
	claim_op(&claim, &run);
	ck_assert(access_to(root)->writes && access_to(root)->footprint);
	ck_assert(access_to(left)->needs_tensor && access_to(right)->needs_tensor);
}

TEST(what_is_looked_at_may_be_read_too)
{
	claim_tensor(&claim, left, CLAIM_EXISTS);
	ck_assert(access_to(root)->needs_tensor && access_to(left)->needs_tensor);
	ck_assert_ptr_eq(claim.accesses[0].tensor, root);
	claim_tensor(&claim, right, CLAIM_READ);
	ck_assert(!access_to(root)->needs_tensor && !access_to(root)->writes);
	claim_tensor(&claim, left, CLAIM_EXISTS);
	ck_assert(!access_to(root)->needs_tensor);
	ck_assert_int_eq(access_to(root)->range.from.w, 40);
}

/* As two turns of the loop claim it. */
TEST(what_is_twice_in_it_is_merged)
{
	claim_tensor(&claim, left, CLAIM_FREE);
	claim.stamp = 0;
	claim_tensor(&claim, left, CLAIM_READ);
	ck_assert_uint_eq(claim.n, 4);
	ck_assert(claim_merge(&claim));
	ck_assert_uint_eq(claim.n, 2);
	ck_assert(access_to(left)->frees && !access_to(root)->needs_tensor);
	ck_assert_int_eq(access_to(root)->range.from.w, 10);
	ck_assert(!claim_merge(&claim));
}

FIXTURE(begin, end)
