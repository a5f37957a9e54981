/* Which pins leave an equal share to everybody, on 8192 bytes of each NPU: cells of 8. */
#include "daemon/service/tensors/places.h"

#include "tests/unit/daemon/service/world.h"

static struct {
	struct world world;
	struct session one, two, root;
} p;

static void begin(void)
{
	world_init(&p.world);
	p.world.service.limits.any_pins = false;
	ck_assert_int_eq(session_init(&p.one, &p.world.service, 1001, 1, NULL), 0);
}

static void end(void)
{
	session_deinit(&p.one);
	world_deinit(&p.world);
}

static int alloc(struct session *session, int64_t address, bool is_pinned)
{
	struct device_request request = world_request(8, 8);
	const char *name = "";
	struct tensor *tensor;
	request.spec.address = address;
	request.spec.layout = NPUMEM_COMPACT;
	request.pinned = is_pinned;
	npumem_error_clear(&p.world.error);
	int status = tensors_alloc(session, &request, &name, 1, &tensor, &p.world.error);
	world_check(&p.world);
	return status;
}

static int64_t field(const char *key)
{
	return npumem_error_find(&p.world.error, key, -1);
}

TEST(alone_half_is_left)
{
	ck_assert_int_eq(alloc(&p.one, 4088, false), 0);
	ck_assert_int_eq(alloc(&p.one, 4096, false), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(field("share_bytes"), 4096);
	/* How many users there are is no answer to one of them. */
	ck_assert_int_eq(field("left"), -1);
	ck_assert_int_eq(field("users"), -1);
	/* Of what is left on both sides of the first pin the lower one is no piece. */
	ck_assert_int_eq(field("spare_from"), 0);
	ck_assert_int_eq(field("spare_to"), 4088);
	ck_assert_int_eq(alloc(&p.one, 8184, false), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(alloc(&p.one, 0, false), 0);
	ck_assert_int_eq(alloc(&p.one, NPUMEM_ANY, false), 0);
	ck_assert_int_eq(world_n_tensors(&p.world), 3);
}

/* 341 cells for each of two: 2728 bytes. */
TEST(with_two_users_two_pieces_are_left)
{
	session_init(&p.two, &p.world.service, 1002, 1, NULL);
	ck_assert_int_eq(alloc(&p.one, 2720, false), 0);
	ck_assert_int_eq(alloc(&p.two, 5000, false), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(field("share_bytes"), 2728);
	ck_assert_int_eq(alloc(&p.two, 8184, false), 0);
	/* The third user's coming changes the share: 256 cells. Nobody may take what is too little already. */
	session_init(&p.root, &p.world.service, 0, 1, NULL);
	ck_assert_int_eq(alloc(&p.two, 1024, false), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(field("share_bytes"), 2048);
	ck_assert_int_eq(alloc(&p.root, 1024, false), 0);
	ck_assert_int_eq(alloc(&p.two, 8, false), 0);
	session_deinit(&p.root);
	session_deinit(&p.two);
}

TEST(who_is_free_of_it)
{
	session_init(&p.two, &p.world.service, 500, 1, NULL);
	ck_assert_int_eq(alloc(&p.two, 4096, false), 0);
	ck_assert_int_eq(alloc(&p.one, 2048, false), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(alloc(&p.two, 2048, false), 0);
	p.world.service.limits.any_pins = true;
	for (int64_t at = 0; at < 8192; at += 1024)
		ck_assert_int_eq(alloc(&p.one, at + 64, false), 0);
	session_deinit(&p.two);
}

TEST(pinned_where_there_is_room)
{
	for (unsigned i = 0; i < 512; i++)
		ck_assert_int_eq(alloc(&p.one, NPUMEM_ANY, true), 0);
	ck_assert_int_eq(alloc(&p.one, NPUMEM_ANY, true), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert(!tensors_lacked_room(&p.world.error));
	ck_assert_int_eq(alloc(&p.one, NPUMEM_ANY, false), 0);
}

FIXTURE(begin, end)
