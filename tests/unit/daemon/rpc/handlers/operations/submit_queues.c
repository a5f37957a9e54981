/* Within a queue of a group nothing runs behind what was refused; the other queue runs to its end. */
#include "tests/unit/daemon/rpc/crowd.h"

static void check(const struct crowd_op *ops, unsigned n, const char *runs, const char *does_not)
{
	static const char *const names[] = {"a", "b", "c", "d", "unwritten"};
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		crowd_alloc(0, names[i], SHORT_W);
	crowd_fill(0, "a", 1);
	uint64_t list = crowd_list(0, ops, n);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, list), NPUMEM_FAILED_PRECONDITION);
	ck_assert_int_eq(crowd_status(0, crowd_read(0, runs)), 0);
	ck_assert_int_eq(crowd_status(0, crowd_read(0, does_not)), NPUMEM_FAILED_PRECONDITION);
}

TEST(kernels)
{
	const struct crowd_op ops[] = {
		{1, 'k', "unwritten", "b", 0}, {1, 'k', "a", "c", 0}, {1, 'f', "d", NULL, 5}};
	check(ops, 3, "d", "c");
}

TEST(transfers)
{
	const struct crowd_op ops[] = {
		{1, 'c', "b", "unwritten", 0}, {1, 'f', "c", NULL, 5}, {1, 'k', "a", "d", 0}};
	check(ops, 3, "d", "c");
}
