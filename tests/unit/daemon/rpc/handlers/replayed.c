/* Requests that are sent again, to a session that knows all, a part or nothing any more of what they did. */
#include "daemon/rpc/handlers/replayed.h"

#include "daemon/rpc/calls/call.h"
#include "tests/unit/daemon/rpc/talk.h"
#include "tests/unit/daemon/service/lasting.h"

enum { TENSORS = 3, OPERATIONS = 4 };

struct scene {
	struct lasting kept;
	struct talk talk;		/* its world is `kept`'s */
	struct session begun, *session; /* which asks */
};

static void begin_rpc(struct scene *scene)
{
	scene->talk.rpc = malloc(sizeof(*scene->talk.rpc));
	rpc_init(scene->talk.rpc, &scene->kept.world.service, &scene->kept.world.heap);
	buffer_init(&scene->talk.out, &scene->kept.world.heap);
}

static void end_rpc(struct scene *scene)
{
	talk_forget(&scene->talk);
	buffer_deinit(&scene->talk.out);
	rpc_deinit(scene->talk.rpc);
	free(scene->talk.rpc);
}

static void scene_init(struct scene *scene)
{
	memset(scene, 0, sizeof(*scene));
	lasting_init(&scene->kept);
	begin_rpc(scene);
	scene->session = &scene->begun;
	lasting_begin(&scene->kept, scene->session);
}

/* The process is gone, and the session has come back to the next one. */
static void scene_restart(struct scene *scene)
{
	end_rpc(scene);
	lasting_restart(&scene->kept);
	begin_rpc(scene);
	ck_assert_uint_eq(scene->kept.n_found, 1);
	scene->session = &scene->kept.found[0];
}

static void scene_deinit(struct scene *scene)
{
	end_rpc(scene);
	lasting_deinit(&scene->kept);
}

FIXTURE_OBJECT(struct scene, scene, scene_init(&scene), scene_deinit(&scene))

/* Sends it with this id, as one that was sent before or not. */
static int ask(uint64_t id, bool again, Npumem__V1__Request request)
{
	request.again = again;
	scene.talk.id = id - 1;
	return talk_request_as(&scene.talk, scene.session, &request);
}

#define ASK(id, again, member, CALL, message)                                                                     \
	ask(id, again,                                                                                            \
	    (Npumem__V1__Request){PROTOBUF_C_MESSAGE_INIT(&npumem__v1__request__descriptor),                      \
				  .call_case = NPUMEM__V1__REQUEST__CALL_##CALL, .member = (message)})

/* n unnamed tensors. */
static int alloc(uint64_t id, bool again, size_t n)
{
	Npumem__V1__Allocation allocations[TENSORS], *list[TENSORS];
	struct talk_spec specs[TENSORS];
	ck_assert_uint_le(n, TENSORS);
	for (size_t i = 0; i < n; i++) {
		npumem__v1__allocation__init(&allocations[i]);
		allocations[i].spec = talk_spec(&specs[i], 8, 16);
		list[i] = &allocations[i];
	}
	Npumem__V1__AllocRequest request = {MESSAGE(alloc_request), .n_tensors = n, .tensors = list};
	return ASK(id, again, alloc, ALLOC, &request);
}

static uint64_t made(size_t i)
{
	ck_assert_uint_lt(i, scene.talk.response->allocated->n_tensors);
	return scene.talk.response->allocated->tensors[i]->handle;
}

static int rename_to(uint64_t id, uint64_t handle, const char *name)
{
	Npumem__V1__Ref ref = talk_ref(handle, "");
	Npumem__V1__RenameRequest request = {MESSAGE(rename_request), .tensor = &ref, .name = (char *)name};
	return ASK(id, false, rename, RENAME, &request);
}

/* Fills the first, reads the second and overwrites it, so that it cannot be read again, and reads `last`. */
static int submit(uint64_t id, bool again, const uint64_t *handles, uint64_t last)
{
	Npumem__V1__Ref refs[] = {talk_ref(handles[0], ""), talk_ref(handles[1], ""), talk_ref(last, "")};
	Npumem__V1__Operation operations[OPERATIONS], *list[OPERATIONS];
	Npumem__V1__FillRequest fills[2];
	Npumem__V1__ReadRequest reads[2];
	for (unsigned i = 0; i < OPERATIONS; i++) {
		npumem__v1__operation__init(&operations[i]);
		list[i] = &operations[i];
	}
	for (unsigned i = 0; i < 2; i++) {
		npumem__v1__fill_request__init(&fills[i]);
		fills[i].tensor = &refs[i];
		fills[i].value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER;
		fills[i].integer = 5;
		operations[2 * i].kind_case = NPUMEM__V1__OPERATION__KIND_FILL;
		operations[2 * i].fill = &fills[i];
		npumem__v1__read_request__init(&reads[i]);
		reads[i].tensor = &refs[i + 1];
		operations[2 * i + 1].kind_case = NPUMEM__V1__OPERATION__KIND_READ;
		operations[2 * i + 1].read = &reads[i];
	}
	Npumem__V1__SubmitRequest request = {MESSAGE(submit_request), .n_operations = OPERATIONS,
					     .operations = list};
	return ASK(id, again, submit, SUBMIT, &request);
}

static int fill(uint64_t id, bool again, uint64_t handle, int64_t integer)
{
	Npumem__V1__Ref ref = talk_ref(handle, "");
	Npumem__V1__FillRequest request = {MESSAGE(fill_request), .tensor = &ref,
					   .value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER,
					   .integer = integer};
	return ASK(id, again, fill, FILL, &request);
}

/* Two tensors that hold 3, and one that was never written, by requests 1 to 3. */
static void three_tensors(uint64_t *handles)
{
	ck_assert_int_eq(alloc(1, false, TENSORS), 0);
	for (unsigned i = 0; i < TENSORS; i++)
		handles[i] = made(i);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(fill(2 + i, false, handles[i], 3), 0);
}

static int value(uint64_t handle)
{
	ck_assert_int_eq(talk_read_as(&scene.talk, scene.session, handle, 0, 1), 0);
	return (int8_t)scene.talk.response->done->data.data[0];
}

TEST(an_allocation_is_known_whole_or_refused)
{
	uint64_t handles[2];
	ck_assert_int_eq(alloc(5, false, 2), 0);
	handles[0] = made(0);
	handles[1] = made(1);
	ck_assert_int_eq(alloc(5, true, 2), 0);
	ck_assert(made(0) == handles[0] && made(1) == handles[1]);
	ck_assert_int_eq(alloc(5, true, 3), NPUMEM_ABORTED);
	talk_says(&scene.talk, "request 5");
	ck_assert_int_eq(world_n_tensors(&scene.kept.world), 2);
	/* What never came is done. */
	ck_assert_int_eq(alloc(6, true, 1), 0);
	ck_assert_int_eq(world_n_tensors(&scene.kept.world), 3);
	scene.session->forgotten_below = 8;
	ck_assert_int_eq(alloc(7, true, 1), NPUMEM_ABORTED);
	ck_assert_int_eq(alloc(8, true, 1), 0);
	ck_assert_int_eq(world_n_tensors(&scene.kept.world), 4);
}

static int free_tensor(uint64_t id, bool again, uint64_t handle)
{
	Npumem__V1__Ref ref = talk_ref(handle, ""), *list = &ref;
	Npumem__V1__FreeRequest request = {MESSAGE(free_request), .n_tensors = 1, .tensors = &list};
	return ASK(id, again, free, FREE, &request);
}

TEST(a_free_is_answered_as_the_first_time)
{
	ck_assert_int_eq(alloc(1, false, 1), 0);
	uint64_t handle = made(0);
	ck_assert_int_eq(free_tensor(2, false, handle), 0);
	ck_assert_int_eq(free_tensor(2, true, handle), 0);
	ck_assert_int_eq(scene.talk.response->freed->tensors, 1);
	ck_assert_int_eq(free_tensor(3, true, handle), NPUMEM_NOT_FOUND);
}

TEST(what_may_have_been_done_is_not_done_again)
{
	uint64_t handles[TENSORS];
	three_tensors(handles);
	scene.session->forgotten_below = 10;
	ck_assert_int_eq(submit(9, true, handles, handles[0]), NPUMEM_ABORTED);
	talk_says(&scene.talk, "not known any more");
	ck_assert_int_eq(value(handles[0]), 3);
	ck_assert_int_eq(value(handles[1]), 3);
	/* What does the same twice is done. */
	ck_assert_int_eq(fill(9, true, handles[1], 4), 0);
	ck_assert_int_eq(value(handles[1]), 4);
}

TEST(what_was_done_for_good_is_not_done_again)
{
	uint64_t handles[TENSORS];
	three_tensors(handles);
	ck_assert_int_eq(submit(9, false, handles, handles[0]), 0);
	ck_assert_int_eq(submit(9, true, handles, handles[0]), NPUMEM_ABORTED);
	ck_assert_int_eq(talk_field(&scene.talk, "done"), OPERATIONS);
}

TEST(what_was_refused_is_not_among_what_was_done)
{
	uint64_t handles[TENSORS];
	three_tensors(handles);
	ck_assert_int_eq(submit(9, false, handles, handles[2]), NPUMEM_FAILED_PRECONDITION);
	ck_assert_uint_eq(scene.talk.response->submitted->n_done, OPERATIONS - 1);
	ck_assert_int_eq(submit(9, true, handles, handles[2]), NPUMEM_ABORTED);
	ck_assert_int_eq(talk_field(&scene.talk, "done"), OPERATIONS - 1);
}

TEST(the_next_process_knows_what_was_done_for_good)
{
	uint64_t handles[TENSORS];
	three_tensors(handles);
	ck_assert_int_eq(submit(9, false, handles, handles[0]), 0);
	scene_restart(&scene);
	ck_assert_int_eq(submit(9, true, handles, handles[0]), NPUMEM_ABORTED);
	ck_assert_int_eq(talk_field(&scene.talk, "done"), OPERATIONS);
	ck_assert_int_eq(alloc(1, true, TENSORS), 0);
	ck_assert(made(0) == handles[0] && made(1) == handles[1]);
}

/* Of request 9, when the process before ended. */
static void was_done(uint32_t index)
{
	scene.session->request = 9;
	ck_assert_int_eq(results_prepare(scene.session, 0, &scene.kept.world.error), 0);
	results_put(scene.session, (struct results_cell){.kind = RESULTS_DONE, .index = index});
	persist_commit(&scene.kept.world.service.persist);
}

TEST(what_begins_anew_counts_from_the_beginning)
{
	uint64_t handles[TENSORS];
	three_tensors(handles);
	was_done(0);
	ck_assert_int_eq(submit(9, true, handles, handles[0]), 0);
	ck_assert_int_eq((int8_t)scene.talk.response->submitted->done[1]->data.data[0], 3);
	ck_assert_int_eq(submit(9, true, handles, handles[0]), NPUMEM_ABORTED);
	ck_assert_int_eq(talk_field(&scene.talk, "done"), OPERATIONS);
}

/* The last operation, which was done the first time, is refused the second time. */
TEST(what_begins_anew_does_not_count_what_was_done_before)
{
	uint64_t handles[TENSORS];
	three_tensors(handles);
	was_done(OPERATIONS - 1);
	ck_assert_int_eq(submit(9, true, handles, handles[2]), NPUMEM_FAILED_PRECONDITION);
	ck_assert_int_eq(submit(9, true, handles, handles[2]), NPUMEM_ABORTED);
	ck_assert_int_eq(talk_field(&scene.talk, "done"), OPERATIONS - 1);
}

static bool is_kept(uint64_t id, bool again)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	struct call call = {.request = &request, .session = scene.session, .id = id};
	request.again = again;
	return replayed_is_kept(&call);
}

TEST(what_was_done_is_not_taken_back)
{
	const struct tensor *named = world_tensor(&scene.kept.world, scene.session, "a");
	ck_assert_int_eq(alloc(4, false, 1), 0);
	ck_assert_int_eq(rename_to(5, named->handle, "b"), 0);
	ck_assert(is_kept(4, true));
	ck_assert(is_kept(5, true));
	ck_assert(!is_kept(6, true));
	/* An id alone tells nothing: clients may give one twice. */
	ck_assert(!is_kept(4, false) && !is_kept(5, false));
	scene.session->forgotten_below = 7;
	ck_assert(is_kept(6, true));
	ck_assert(!is_kept(7, true) && !is_kept(6, false));
	session_forget(scene.session);
	ck_assert(!is_kept(4, true) && !is_kept(6, true));
}
