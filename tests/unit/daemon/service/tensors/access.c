#include "daemon/service/tensors/access.h"

#include <stdio.h>

#include "daemon/service/observed/inspect.h"
#include "tests/unit/daemon/service/world.h"

struct people {
	struct world world;
	struct session alice, alice_again, bob, root, owner;
	struct tensor *named, *anonymous; /* alice's, the second of her first session */
};

static void people_init(struct people *p)
{
	world_init(&p->world);
	session_init(&p->alice, &p->world.service, 1001, 0, NULL);
	session_init(&p->alice_again, &p->world.service, 1001, 0, NULL);
	session_init(&p->bob, &p->world.service, 1002, 0, NULL);
	session_init(&p->root, &p->world.service, 0, 0, NULL);
	session_init(&p->owner, &p->world.service, 500, 0, NULL);
	p->named = world_tensor(&p->world, &p->alice, "x");
	p->anonymous = world_tensor(&p->world, &p->alice, "");
}

static void people_deinit(struct people *p)
{
	session_deinit(&p->alice);
	session_deinit(&p->alice_again);
	session_deinit(&p->bob);
	session_deinit(&p->root);
	session_deinit(&p->owner);
	world_deinit(&p->world);
}

FIXTURE_OBJECT(struct people, p, people_init(&p), people_deinit(&p))

static int find(struct session *session, uint64_t handle, const char *name, struct tensor *expected)
{
	struct access_ref ref = {handle, name};
	struct tensor *tensor = NULL;
	npumem_error_clear(&p.world.error);
	int status = access_find(session, &ref, ACCESS_READ, &tensor, &p.world.error);
	ck_assert_ptr_eq(tensor, expected);
	ck_assert_int_eq(p.world.error.status, status);
	return status;
}

TEST(who_finds_what)
{
	uint64_t named = p.named->handle;
	uint64_t anonymous = p.anonymous->handle;
	ck_assert_int_eq(find(&p.alice, named, "", p.named), 0);
	ck_assert_int_eq(find(&p.alice, 0, "x", p.named), 0);
	ck_assert_int_eq(find(&p.alice, 0, "1001:x", p.named), 0);
	ck_assert_int_eq(find(&p.alice, anonymous, "", p.anonymous), 0);
	ck_assert_int_eq(find(&p.alice_again, 0, "x", p.named), 0);
	ck_assert_int_eq(find(&p.alice_again, named, "", p.named), 0);
	ck_assert_int_eq(find(&p.alice_again, anonymous, "", NULL), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(find(&p.bob, 0, "x", NULL), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(find(&p.bob, 0, "1001:x", NULL), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(find(&p.bob, named, "", NULL), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(find(&p.bob, anonymous, "", NULL), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(find(&p.root, 0, "x", NULL), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(find(&p.root, 0, "1001:x", p.named), 0);
	ck_assert_int_eq(find(&p.owner, 0, "1001:x", p.named), 0);
	ck_assert_int_eq(find(&p.root, named, "", p.named), 0);
	ck_assert_int_eq(find(&p.root, anonymous, "", NULL), NPUMEM_NOT_FOUND);
}

TEST(what_is_hidden_is_told_as_if_it_were_not)
{
	char hidden[NPUMEM_MESSAGE_BYTES], text[NPUMEM_MESSAGE_BYTES];
	uint64_t handle = p.named->handle;
	find(&p.bob, handle, "", NULL);
	strcpy(hidden, p.world.error.message);
	ck_assert_uint_eq(p.world.error.n_fields, 0);
	service_release(&p.world.service, p.named);
	find(&p.bob, handle, "", NULL);
	ck_assert_str_eq(p.world.error.message, hidden);
	find(&p.bob, 0, "1001:y", NULL);
	strcpy(text, p.world.error.message);
	text[strlen(text) - 1] = 'x';
	p.named = world_tensor(&p.world, &p.alice, "x");
	find(&p.bob, 0, "1001:x", NULL);
	ck_assert_str_eq(p.world.error.message, text);
}

TEST(odd_references)
{
	static const char *const none[] = {
		":x",	   "x:",      "1001:", "1001", "99999999999999999999:x", "4294967296:x", "-1:x",
		"1001::x", "1001 :x", " x",    "X"};
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		ck_assert_int_eq(find(&p.alice, 0, none[i], NULL), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(find(&p.alice, 0, "", NULL), NPUMEM_INVALID);
	ck_assert_int_eq(find(&p.alice, UINT64_MAX, "x", NULL), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(find(&p.alice, p.named->handle + ((uint64_t)1 << 32), "", NULL), NPUMEM_NOT_FOUND);
}

static void hears(struct session *session, const struct tensor *tensor, const char *expected)
{
	char buffer[ERROR_CONTEXT_NAME_BYTES];
	struct error_context context = access_context(session, NULL);
	ck_assert_str_eq(error_context_name(&context, tensor, buffer), expected);
}

TEST(how_tensors_are_spoken_of)
{
	char own[64], other[64];
	snprintf(own, sizeof(own), "tensor #%llu", (unsigned long long)p.anonymous->handle);
	snprintf(other, sizeof(other), "a tensor of uid 1001 (%lld bytes per NPU)",
		 (long long)tensor_place(p.named).bytes_per_npu);
	hears(&p.alice, p.named, "x");
	hears(&p.alice, p.anonymous, own);
	hears(&p.alice_again, p.named, "x");
	hears(&p.alice_again, p.anonymous, other);
	hears(&p.bob, p.named, other);
	hears(&p.bob, p.anonymous, other);
	hears(&p.root, p.named, "1001:x");
	hears(&p.owner, p.anonymous, own);
}

/* All of it, part by part. */
static int dump_check(const struct session *session, int64_t npu, int64_t offset, int64_t bytes,
		      struct npumem_error *error)
{
	struct inspect_dump dump;
	int64_t part_bytes;
	int status = inspect_dump_begin(&dump, session, npu, offset, bytes, error);
	for (; !status && dump.done_bytes < bytes; dump.done_bytes += part_bytes) {
		status = inspect_dump_part(&dump, NULL, NULL, &part_bytes, error);
		ck_assert(status || part_bytes > 0);
	}
	return status;
}

TEST(who_may_dump)
{
	struct npumem_error *error = &p.world.error;
	int64_t offset = tensor_place(p.anonymous).offset;
	int64_t bytes = tensor_place(p.anonymous).bytes_per_npu;
	int64_t end = offset + bytes;
	ck_assert_int_eq(dump_check(&p.alice, 0, 0, end, error), 0);
	ck_assert_int_eq(dump_check(&p.alice_again, 0, 0, end, error), NPUMEM_PERMISSION_DENIED);
	ck_assert_int_eq(dump_check(&p.alice_again, 0, 0, offset, error), 0);
	ck_assert_int_eq(dump_check(&p.alice_again, 0, offset + bytes - 1, 1, error), NPUMEM_PERMISSION_DENIED);
	ck_assert_int_eq(dump_check(&p.bob, 7, 0, 1, error), NPUMEM_PERMISSION_DENIED);
	ck_assert_int_eq(dump_check(&p.bob, 0, end, 8192 - end, error), 0);
	ck_assert_int_eq(dump_check(&p.root, 0, 0, 8192, error), 0);
	ck_assert_int_eq(dump_check(&p.owner, 0, 0, 8192, error), 0);
	ck_assert_ptr_null(strstr(error->message, "#"));
}

static struct tensor *view_of(struct session *session, struct tensor *base, const char *name)
{
	struct device_slice slice = {.to = tensor_place(base).shape};
	struct tensor *view = NULL;
	slice.from.w = 50;
	ck_assert_int_eq(tensors_view(session, base, name, "", &slice, NULL, NULL, &view, &p.world.error), 0);
	return view;
}

static int dump(const struct session *session, const struct tensor *tensor)
{
	return dump_check(session, 0, tensor_place(tensor).offset, tensor_place(tensor).bytes_per_npu,
			  &p.world.error);
}

/* Whose bytes they are decides, and not who looks at them through a view. */
TEST(dumps_under_views)
{
	struct npumem_error *error = &p.world.error;
	struct tensor *view, *mine, *private;
	/* A view that was granted opens no raw bytes, not even its own. */
	view = view_of(&p.alice, p.named, "v");
	ck_assert_int_eq(tensors_grant(&p.alice, view, 1002, RECORD_READ, error), 0);
	ck_assert_int_eq(dump(&p.bob, view), NPUMEM_PERMISSION_DENIED);
	ck_assert_str_eq(error->fields[0].key, "tensor");
	ck_assert_ptr_nonnull(strstr(error->message, "a tensor of uid 1001"));
	/* A base that was granted does, whoever has views of it. */
	ck_assert_int_eq(tensors_grant(&p.alice, p.named, 1002, RECORD_READ, error), 0);
	private = view_of(&p.alice, p.named, "");
	ck_assert_int_eq(dump(&p.bob, p.named), 0);
	ck_assert_int_eq(dump(&p.bob, private), 0);
	ck_assert_int_eq(dump(&p.alice_again, private), 0);
	/* Bob's own view of it opens nothing any more once the grant is taken back. */
	mine = view_of(&p.bob, p.named, "mine");
	ck_assert_int_eq(dump(&p.bob, mine), 0);
	ck_assert_int_eq(tensors_grant(&p.alice, p.named, 1002, RECORD_NONE, error), 0);
	ck_assert_int_eq(dump(&p.bob, mine), NPUMEM_PERMISSION_DENIED);
}

/* A guest's bytes are its owner's, and so are those of the host around it: a range with both needs both. */
TEST(dumps_over_guests)
{
	struct device_request request = world_request(1, 128);
	const char *name = "";
	struct tensor *host, *guest;
	request.spec.address = 4096;
	ck_assert_int_eq(tensors_alloc(&p.alice, &request, &name, 1, &host, &p.world.error), 0);
	request.spec.address = 5 * 8192 + 4096;
	request.reuse = NPUMEM_UNCHECKED;
	ck_assert_int_eq(tensors_alloc(&p.bob, &request, &name, 1, &guest, &p.world.error), 0);
	ck_assert(tensor_is_guest(guest));
	ck_assert_int_eq(dump(&p.alice, host), NPUMEM_PERMISSION_DENIED);
	ck_assert_int_eq(dump(&p.bob, guest), NPUMEM_PERMISSION_DENIED);
	ck_assert_int_eq(dump(&p.root, guest), 0);
	service_release(&p.world.service, host);
	ck_assert_int_eq(dump(&p.bob, guest), 0);
	ck_assert_int_eq(dump(&p.alice, guest), NPUMEM_PERMISSION_DENIED);
}

TEST(dumps_stay_within_the_device)
{
	static const int64_t bad[][3] = {{-1, 0, 1},	    {8, 0, 1},	      {0, -1, 1},   {0, 0, 0},
					 {0, 0, -1},	    {0, 8192, 1},     {0, 1, 8192}, {0, INT64_MAX, 1},
					 {0, 1, INT64_MAX}, {INT64_MIN, 0, 1}};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(dump_check(&p.root, bad[i][0], bad[i][1], bad[i][2], NULL), NPUMEM_INVALID);
}

static struct tensor *seen_after(const struct session *session, const struct tensor *tensor)
{
	uint64_t at = tensor ? tensor->handle : 0;
	unsigned looks = 99;
	return tensors_after(session, &at, &looks);
}

TEST(lists_show_what_is_seen)
{
	uint64_t at = 0;
	unsigned looks = 1;
	ck_assert_ptr_eq(seen_after(&p.alice, NULL), p.named);
	ck_assert_ptr_eq(seen_after(&p.alice, p.named), p.anonymous);
	ck_assert_ptr_null(seen_after(&p.alice, p.anonymous));
	ck_assert_ptr_eq(seen_after(&p.alice_again, NULL), p.named);
	ck_assert_ptr_null(seen_after(&p.alice_again, p.named));
	ck_assert_ptr_null(seen_after(&p.bob, NULL));
	ck_assert_ptr_eq(seen_after(&p.root, p.named), p.anonymous);
	/* What is not seen takes looks as well. */
	ck_assert_ptr_null(tensors_after(&p.bob, &at, &looks));
	ck_assert(at == 1 && looks == 0);
}
