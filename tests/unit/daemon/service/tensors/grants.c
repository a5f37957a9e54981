/* What others may do with a tensor that was granted to them, and with views of it. */
#include "daemon/service/tensors/access.h"
#include "tests/unit/daemon/service/world.h"

static struct world world;
static struct session alice, bob, carol, root;
static struct tensor *tensor;

static void begin(void)
{
	world_init(&world);
	session_init(&alice, &world.service, 1001, 0, NULL);
	session_init(&bob, &world.service, 1002, 0, NULL);
	session_init(&carol, &world.service, 1003, 0, NULL);
	session_init(&root, &world.service, 0, 0, NULL);
	tensor = world_tensor(&world, &alice, "x");
}

static void end(void)
{
	session_deinit(&alice);
	session_deinit(&bob);
	session_deinit(&carol);
	session_deinit(&root);
	world_deinit(&world);
}

static int grant(struct tensor *of, uint32_t uid, enum record_access access)
{
	npumem_error_clear(&world.error);
	return tensors_grant(&alice, of, uid, access, &world.error);
}

/* ACCESS_OWN, ACCESS_WRITE, ACCESS_READ, or 0: it is not found. */
static int right(const struct session *session, struct tensor *of)
{
	struct access_ref ref = {of->handle, ""};
	struct tensor *found;
	for (int need = ACCESS_OWN; need >= ACCESS_READ; need--) {
		int status;
		npumem_error_clear(&world.error);
		status = access_find(session, &ref, (enum access_need)need, &found, &world.error);
		if (!status)
			return need;
		ck_assert(status == NPUMEM_PERMISSION_DENIED || status == NPUMEM_NOT_FOUND);
	}
	return 0;
}

TEST(each_uid_has_its_own)
{
	ck_assert_int_eq(right(&bob, tensor), 0);
	ck_assert_int_eq(grant(tensor, 1002, RECORD_READ), 0);
	ck_assert_int_eq(grant(tensor, 1003, RECORD_WRITE), 0);
	ck_assert_int_eq(right(&bob, tensor), ACCESS_READ);
	ck_assert_int_eq(right(&carol, tensor), ACCESS_WRITE);
	ck_assert_int_eq(right(&alice, tensor), ACCESS_OWN);
	ck_assert_int_eq(right(&root, tensor), ACCESS_OWN);
	/* What comes later takes the place of what was. */
	ck_assert_int_eq(grant(tensor, 1002, RECORD_WRITE), 0);
	ck_assert_int_eq(right(&bob, tensor), ACCESS_WRITE);
	ck_assert_int_eq(grant(tensor, 1003, RECORD_READ), 0);
	ck_assert_int_eq(right(&carol, tensor), ACCESS_READ);
	ck_assert_int_eq(grant(tensor, 1002, RECORD_NONE), 0);
	ck_assert_int_eq(right(&bob, tensor), 0);
	ck_assert_int_eq(right(&carol, tensor), ACCESS_READ);
	ck_assert_int_eq(grant(tensor, 1002, RECORD_NONE), 0);
}

TEST(what_cannot_be_granted)
{
	struct tensor *nameless = world_tensor(&world, &alice, "");
	ck_assert_int_eq(grant(nameless, 1002, RECORD_READ), NPUMEM_INVALID);
	ck_assert_int_eq(right(&bob, nameless), 0);
	ck_assert_int_eq(grant(tensor, 1001, RECORD_READ), NPUMEM_INVALID);
	for (uint32_t i = 0; i < RECORD_GRANTS_MAX; i++)
		ck_assert_int_eq(grant(tensor, 2000 + i, RECORD_READ), 0);
	ck_assert_int_eq(grant(tensor, 1002, RECORD_READ), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(right(&bob, tensor), 0);
	ck_assert_int_eq(grant(tensor, 2000, RECORD_WRITE), 0);
	ck_assert_int_eq(grant(tensor, 2000, RECORD_NONE), 0);
	ck_assert_int_eq(grant(tensor, 1002, RECORD_READ), 0);
}

/* A view belongs to who made it, and opens no more than its base is open to him. */
TEST(views_of_others)
{
	struct device_slice slice = {{0, 0, 0, 0}, {1, 8, 1, 8}};
	struct tensors_description told;
	struct tensor *view, *own;
	ck_assert_int_eq(grant(tensor, 1002, RECORD_READ), 0);
	ck_assert_int_eq(tensors_view(&bob, tensor, "v", "", &slice, NULL, NULL, &view, &world.error), 0);
	ck_assert_int_eq(tensors_view(&alice, tensor, "w", "", &slice, NULL, NULL, &own, &world.error), 0);
	ck_assert_int_eq(access_check(&bob, view, ACCESS_READ, &world.error), 0);
	ck_assert_int_eq(access_check(&bob, view, ACCESS_WRITE, &world.error), NPUMEM_PERMISSION_DENIED);
	ck_assert_int_eq(access_check(&bob, view, ACCESS_OWN, &world.error), 0);
	ck_assert_int_eq(access_check(&alice, own, ACCESS_WRITE, &world.error), 0);
	tensors_describe(&bob, view, NULL, &told);
	ck_assert_uint_eq(told.base_handle, tensor->handle);
	ck_assert_int_eq(grant(tensor, 1002, RECORD_WRITE), 0);
	ck_assert_int_eq(access_check(&bob, view, ACCESS_WRITE, &world.error), 0);
	ck_assert_int_eq(grant(tensor, 1002, RECORD_NONE), 0);
	ck_assert_int_eq(access_check(&bob, view, ACCESS_READ, &world.error), NPUMEM_PERMISSION_DENIED);
	ck_assert_int_eq(access_check(&bob, view, ACCESS_OWN, &world.error), 0);
	tensors_describe(&bob, view, NULL, &told);
	ck_assert_uint_eq(told.base_handle, 0);
}

/* A number that is a uid only after it was cut, and none at all. */
TEST(uids_that_are_none)
{
	struct access_ref cut = {0, "4294968297:x"}, none = {0, ":z"}, zero = {0, "0:z"};
	struct tensor *found;
	ck_assert_int_eq(access_find(&root, &cut, ACCESS_READ, &found, &world.error), NPUMEM_NOT_FOUND);
	world_tensor(&world, &root, "z");
	ck_assert_int_eq(access_find(&root, &none, ACCESS_READ, &found, &world.error), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(access_find(&root, &zero, ACCESS_READ, &found, &world.error), 0);
}

TEST(what_somebody_frees_is_listed_no_more)
{
	unsigned looks = 100;
	uint64_t at = 0;
	tensors_hide(&alice, &tensor, 1);
	ck_assert_ptr_null(tensors_after(&root, &at, &looks));
	ck_assert_int_eq(right(&alice, tensor), 0);
	tensors_free(&alice, &tensor, 1);
}

FIXTURE(begin, end)
