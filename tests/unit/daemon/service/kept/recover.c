/* What is believed of a store that was found, and what is not. */
#include "daemon/service/kept/recover.h"

#include "daemon/service/kept/tensor_cell.h"
#include "tests/unit/daemon/service/lasting.h"

FIXTURE_OBJECT(struct lasting, kept, lasting_init(&kept), lasting_deinit(&kept))

TEST(all_of_the_tables_is_there_again)
{
	static struct session other;
	struct device_slice slice = {{0, 0, 0, 0}, {1, 2, 1, 50}};
	struct tensor *named, *unnamed, *view, *back;
	uint64_t handles[3], session_id;
	lasting_begin(&kept, &kept.session);
	session_init(&other, &kept.world.service, 1002, 2, NULL);
	world_tensor(&kept.world, &other, "");
	named = world_tensor(&kept.world, &kept.session, "named");
	unnamed = world_tensor(&kept.world, &kept.session, "");
	ck_assert_int_eq(
		tensors_view(&kept.session, named, "view", "", &slice, NULL, NULL, &view, &kept.world.error), 0);
	ck_assert_int_eq(tensors_grant(&kept.session, named, 1002, RECORD_WRITE, &kept.world.error), 0);
	handles[0] = named->handle;
	handles[1] = unnamed->handle;
	handles[2] = view->handle;
	session_id = kept.session.id;
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_tensors, 2);
	ck_assert_uint_eq(kept.report.n_views, 1);
	ck_assert_uint_eq(kept.report.n_sessions, 1);
	ck_assert_uint_eq(kept.report.n_ended, 1);
	lasting_says(&kept, "kept: 2 tensors, 1 views, and 1 sessions, which wait 30 s");
	back = lasting_named(&kept, "named");
	ck_assert_uint_eq(back->handle, handles[0]);
	ck_assert_uint_eq(record_of(back)->grants->n, 1);
	ck_assert_uint_eq(record_of(back)->grants->to[0].uid, 1002);
	ck_assert_int_eq((int)record_of(back)->grants->to[0].access, RECORD_WRITE);
	ck_assert_uint_eq(record_of(back)->user->now[LIMITS_TENSORS], 3);
	ck_assert_uint_eq(record_of(back)->user->now[LIMITS_SESSIONS], 0);
	ck_assert_uint_eq(lasting_named(&kept, "view")->handle, handles[2]);
	ck_assert_ptr_eq(lasting_named(&kept, "view")->base, back);
	ck_assert_uint_eq(kept.found[0].id, session_id);
	ck_assert_uint_eq(record_tensor(kept.found[0].unnamed->first)->handle, handles[1]);
	/* A new one has another number. */
	session_init(&other, &kept.world.service, 1001, 2, NULL);
	ck_assert_uint_gt(other.id, session_id);
	ck_assert(session_is_fresh(&other));
	session_hand_over(&kept.found[0], &other);
	ck_assert_uint_eq(other.id, session_id);
	ck_assert_uint_eq(other.unnamed->n, 1);
	ck_assert_ptr_null(kept.found[0].unnamed->first);
	ck_assert_ptr_eq(record_of(device_find(kept.world.device, handles[1]))->unnamed, other.unnamed);
	/* Its end is the end of what it had. */
	session_deinit(&other);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_sessions, 0);
	ck_assert_int_eq(world_n_tensors(&kept.world), 2);
}

/* One tensor's cell, changed as no daemon would have written it. */
static void change(const char *name, void (*with)(struct persist_tensor *cell))
{
	uint32_t slot = device_handle_slot(lasting_named(&kept, name)->handle);
	uint8_t packed[STORE_TENSOR_BYTES_MAX];
	struct persist_tensor cell;
	size_t bytes;
	const void *found = store_cell(kept.store, STORE_TENSORS, slot, &bytes);
	ck_assert(tensor_cell_unpack(found, bytes, slot, &cell));
	with(&cell);
	ck_assert_int_eq(store_prepare(kept.store, STORE_TENSORS, 0, 1), 0);
	store_put(kept.store, STORE_TENSORS, slot, packed, tensor_cell_pack(&cell, packed));
	store_commit(kept.store);
}

static void bad_name(struct persist_tensor *cell)
{
	strcpy(cell->name, "a b");
}
static void same_name(struct persist_tensor *cell)
{
	strcpy(cell->name, "first");
}
static void other_shape(struct persist_tensor *cell)
{
	cell->saved.shape.c = INT64_MAX;
}
static void first_s_place(struct persist_tensor *cell)
{
	cell->saved.address = 0;
}
static void no_base(struct persist_tensor *cell)
{
	cell->saved.base = 4711;
}

static const struct {
	void (*with)(struct persist_tensor *cell);
	const char *says;
} changes[] = {
	{bad_name, "which is not one of"},
	{same_name, "another one has its name"},
	{other_shape, "lost: tensor second of uid 1001: "},
	{first_s_place, "lost: tensor second of uid 1001: "},
	{no_base, "lost: tensor second of uid 1001: "},
};

TEST(a_cell_that_cannot_be_costs_that_tensor_alone, .to = sizeof(changes) / sizeof(changes[0]))
{
	struct tensor *tensor;
	session_init(&kept.session, &kept.world.service, 1001, 1, NULL);
	world_tensor(&kept.world, &kept.session, "first");
	uint64_t lost = world_tensor(&kept.world, &kept.session, "second")->handle;
	world_tensor(&kept.world, &kept.session, "third");
	change("second", changes[_i].with);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_refused, 1);
	ck_assert_uint_eq(kept.report.n_tensors, 2);
	lasting_says(&kept, changes[_i].says);
	ck_assert_ptr_nonnull(lasting_named(&kept, "first"));
	ck_assert_ptr_null(lasting_named(&kept, "second"));
	ck_assert_ptr_nonnull(lasting_named(&kept, "third"));
	/* It is told once, and what was its handle is not given again. */
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_refused + kept.report.n_damaged, 0);
	session_init(&kept.session, &kept.world.service, 1001, 1, NULL);
	for (unsigned i = 0; i < 20; i++) {
		tensor = world_tensor(&kept.world, &kept.session, "");
		ck_assert_uint_ne(tensor->handle, lost);
		tensors_free(&kept.session, &tensor, 1);
	}
}

/* The names of what goes with it are nobody's, so that they may be others' already. */
TEST(what_ended_with_its_session_has_no_name)
{
	static struct session other;
	struct device_slice slice = {{0, 0, 0, 0}, {1, 2, 1, 50}};
	struct tensor *base, *view;
	lasting_begin(&kept, &kept.session);
	session_init(&other, &kept.world.service, 1001, 1, NULL);
	base = world_tensor(&kept.world, &kept.session, "");
	ck_assert_int_eq(tensors_view(&kept.session, base, "v", "", &slice, NULL, NULL, &view, &kept.world.error),
			 0);
	session_forget(&kept.session);
	ck_assert_uint_eq(session_hide(&kept.session, &base, 1), 1);
	world_tensor(&kept.world, &other, "v");
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_refused, 0);
	ck_assert_uint_eq(kept.report.n_ended, 2);
	ck_assert_ptr_null(strstr(kept.said, "lost"));
	ck_assert_ptr_null(lasting_named(&kept, "v")->base);
}

/* A byte of the name that stands in a table flips. */
static void flip(const char *name)
{
	static char bytes[1 << 16];
	for (unsigned i = 0; i < kept.n_files; i++) {
		ssize_t n = strcmp(kept.files[i].name, "tensors")
				    ? 0
				    : pread(kept.files[i].fd, bytes, sizeof(bytes), 0);
		const char *at = n > 0 ? memmem(bytes, (size_t)n, name, strlen(name)) : NULL;
		if (at)
			ck_assert_int_eq(pwrite(kept.files[i].fd, "?", 1, at - bytes), 1);
	}
}

/* Nobody knows what handles its slot gave. */
TEST(a_damaged_slot_is_never_used_again)
{
	enum { TENSORS = 60 };
	session_init(&kept.session, &kept.world.service, 1001, 1, NULL);
	uint64_t lost = world_tensor(&kept.world, &kept.session, "damaged")->handle;
	world_tensor(&kept.world, &kept.session, "other");
	flip("damaged");
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_damaged, 1);
	ck_assert_uint_eq(kept.report.n_tensors, 1);
	lasting_says(&kept, "! lost: 1 tensors, whose cells are damaged");
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_damaged, 0);
	session_init(&kept.session, &kept.world.service, 1001, 1, NULL);
	for (unsigned i = 0; i < TENSORS; i++)
		ck_assert_uint_ne(device_handle_slot(world_tensor(&kept.world, &kept.session, "")->handle),
				  device_handle_slot(lost));
}

static struct tensor *place(const char *name, int64_t c, int64_t npu, int reuse)
{
	struct device_request request = world_request(c, 100);
	struct tensor *tensor;
	request.spec.address = npu * 8192;
	request.reuse = reuse;
	ck_assert_int_eq(tensors_alloc(&kept.session, &request, &name, 1, &tensor, &kept.world.error), 0);
	return tensor;
}

static int first_byte(int64_t npu)
{
	uint8_t byte;
	device_peek(kept.world.device, npu, 0, 1, &byte);
	return byte;
}

/* Its room is not free, as the host has it. */
TEST(bytes_of_a_damaged_guest_are_not_left_in_its_host)
{
	struct error_context context = {.error = &kept.world.error};
	struct op op = {.kind = OP_FILL, .value = 7};
	session_init(&kept.session, &kept.world.service, 1001, 1, NULL);
	place("host", 7, 0, NPUMEM_NEVER);
	op.tensor = place("guest", 1, 7, NPUMEM_UNCHECKED);
	ck_assert_int_eq(op_check(kept.world.device, &op, &context), 0);
	ck_assert_int_eq(op_run(kept.world.device, &op, &context), 0);
	op_deinit(kept.world.device, &op);
	ck_assert_int_eq(first_byte(7), 7);
	flip("guest");
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_damaged, 1);
	ck_assert_int_eq(first_byte(7), 0);
}

TEST(what_was_being_written_is_lost)
{
	struct device_state state;
	struct store_write *write;
	session_init(&kept.session, &kept.world.service, 1001, 1, NULL);
	struct tensor *tensor = world_tensor(&kept.world, &kept.session, "cut");
	world_tensor(&kept.world, &kept.session, "whole");
	ck_assert_int_eq(store_write_begin(kept.store, tensor->handle, 10, 20, &write), 0);
	/* Of one that is gone by then nothing is said. */
	ck_assert_int_eq(store_write_begin(kept.store, UINT64_C(99) << 32 | 1, 0, -1, &write), 0);
	lasting_restart(&kept);
	lasting_says(&kept, "! lost: data of 1 tensors that were written when it ended: cut");
	device_state(kept.world.device, lasting_named(&kept, "cut"), &state);
	ck_assert_int_eq(state.lost_bytes, 20);
	device_state(kept.world.device, lasting_named(&kept, "whole"), &state);
	ck_assert_int_eq(state.lost_bytes, 0);
	lasting_restart(&kept);
	ck_assert_ptr_null(strstr(kept.said, "lost"));
	device_state(kept.world.device, lasting_named(&kept, "cut"), &state);
	ck_assert_int_eq(state.lost_bytes, 20);
}

TEST(what_was_being_written_through_a_view_that_is_gone_is_lost)
{
	static struct session other;
	struct device_slice slice = {{0, 1, 0, 0}, {1, 3, 1, 50}};
	struct tensor *base, *view, *named;
	struct device_state state;
	struct store_write *write;
	session_init(&kept.session, &kept.world.service, 1001, 1, NULL);
	session_init(&other, &kept.world.service, 1001, 1, NULL);
	base = world_tensor(&kept.world, &kept.session, "base");
	ck_assert_int_eq(tensors_view(&other, base, "", "", &slice, NULL, NULL, &view, &kept.world.error), 0);
	ck_assert_int_eq(store_write_begin(kept.store, view->handle, 0, 60, &write), 0);
	/* A view with a name, of a base that goes, goes with it. */
	base = world_tensor(&kept.world, &other, "");
	ck_assert_int_eq(tensors_view(&other, base, "named", "", &slice, NULL, NULL, &named, &kept.world.error),
			 0);
	ck_assert_int_eq(store_write_begin(kept.store, named->handle, 0, -1, &write), 0);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_ended, 3);
	ck_assert_uint_eq(kept.report.n_cut, 1);
	lasting_says(&kept, "when it ended: base");
	device_state(kept.world.device, lasting_named(&kept, "base"), &state);
	ck_assert_int_eq(state.lost_bytes, 60);
	ck_assert_int_eq(world_n_tensors(&kept.world), 1);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_ended, 0);
}

TEST(after_a_loss_of_power_no_data_is_believed)
{
	struct device_state state;
	session_init(&kept.session, &kept.world.service, 1001, 1, NULL);
	world_tensor(&kept.world, &kept.session, "one");
	world_tensor(&kept.world, &kept.session, "two");
	kept.is_other_boot = true;
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_cut, 2);
	lasting_says(&kept, "! lost: the data of all 2 tensors, as it may be older than the tables");
	device_state(kept.world.device, lasting_named(&kept, "one"), &state);
	ck_assert_int_gt(state.lost_bytes, 0);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_cut, 0);
}

/* Nor by the next process, for which the state is sound again. */
TEST(after_a_loss_of_power_no_grant_is_believed)
{
	session_init(&kept.session, &kept.world.service, 1001, 1, NULL);
	struct tensor *tensor = world_tensor(&kept.world, &kept.session, "one");
	ck_assert_int_eq(tensors_grant(&kept.session, tensor, 1002, RECORD_READ, &kept.world.error), 0);
	world_tensor(&kept.world, &kept.session, "two");
	lasting_restart(&kept);
	ck_assert_uint_eq(record_grants(record_of(lasting_named(&kept, "one")))->n, 1);
	kept.is_other_boot = true;
	for (unsigned i = 0; i < 2; i++) {
		lasting_restart(&kept);
		ck_assert_uint_eq(kept.report.n_ungranted, !i);
		if (!i)
			lasting_says(&kept, "! lost: the grants of 1 tensors, as some may have been taken back");
		ck_assert_ptr_null(record_grants(record_of(lasting_named(&kept, "one"))));
	}
}

TEST(what_was_being_written_may_be_anything_where_its_cell_is_damaged)
{
	struct device_slice slice = {{0, 0, 0, 0}, {1, 2, 1, 50}};
	struct tensor *base, *view;
	struct store_write *write;
	session_init(&kept.session, &kept.world.service, 1001, 1, NULL);
	base = world_tensor(&kept.world, &kept.session, "base");
	world_tensor(&kept.world, &kept.session, "beside");
	ck_assert_int_eq(
		tensors_view(&kept.session, base, "view", "", &slice, NULL, NULL, &view, &kept.world.error), 0);
	ck_assert_int_eq(store_write_begin(kept.store, view->handle, 0, -1, &write), 0);
	change("view", no_base);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_refused, 1);
	ck_assert_uint_eq(kept.report.n_cut, 2);
	lasting_says(&kept, "! lost: the data of all 2 tensors, as what was being written has no cell");
}

TEST(results_of_nobody_go)
{
	struct results_cell cell = {.session = 999, .request = 1, .kind = RESULTS_FREED};
	size_t bytes;
	lasting_begin(&kept, &kept.session);
	kept.session.request = 5;
	world_tensor(&kept.world, &kept.session, "a");
	results_put(&kept.session, (struct results_cell){.kind = RESULTS_FREED, .number = 3});
	persist_commit(&kept.world.service.persist);
	ck_assert_int_eq(store_prepare(kept.store, STORE_RESULTS, 9, 3), 0);
	store_put(kept.store, STORE_RESULTS, 7, &cell, sizeof(cell));
	store_put(kept.store, STORE_RESULTS, 8, &cell, sizeof(cell) / 2);
	store_commit(kept.store);
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_results, 1);
	ck_assert_uint_eq(results_next(&kept.found[0], 5, NULL)->kept.number, 3);
	ck_assert_ptr_null(results_next(&kept.found[0], 1, NULL));
	ck_assert_ptr_null(store_cell(kept.store, STORE_RESULTS, 7, &bytes));
	ck_assert_ptr_null(store_cell(kept.store, STORE_RESULTS, 8, &bytes));
}

TEST(a_session_s_number_is_none_that_made_something)
{
	for (unsigned i = 0; i < 5; i++)
		session_init(&kept.session, &kept.world.service, 1001, 1, NULL), session_deinit(&kept.session);
	lasting_begin(&kept, &kept.session);
	kept.session.request = 7;
	world_tensor(&kept.world, &kept.session, "made");
	session_deinit(&kept.session);
	lasting_restart(&kept);
	session_init(&kept.session, &kept.world.service, 1001, 1, NULL);
	ck_assert_uint_gt(kept.session.id, 6);
}

static struct session *found_of(uint64_t id)
{
	for (unsigned i = 0; i < kept.n_found; i++)
		if (kept.found[i].id == id)
			return &kept.found[i];
	ck_abort_msg("session %lu has not come back", (unsigned long)id);
}

TEST(for_a_replay_every_session_waits_under_its_number)
{
	static struct session session, other, empty;
	uint64_t ids[3], handles[3];
	uint8_t token[PERSIST_TOKEN_BYTES] = {0};
	struct session *found;
	lasting_begin(&kept, &session);
	session_init(&other, &kept.world.service, 1002, 2, NULL);
	session_init(&empty, &kept.world.service, 1003, 3, NULL);
	session.request = 7;
	handles[0] = world_tensor(&kept.world, &session, "")->handle;
	handles[1] = world_tensor(&kept.world, &other, "")->handle;
	handles[2] = world_tensor(&kept.world, &other, "")->handle;
	world_tensor(&kept.world, &empty, "named");
	ck_assert_ptr_nonnull(session.made);
	ids[0] = session.id;
	ids[1] = other.id;
	ids[2] = empty.id;
	kept.is_replay = true;
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_sessions, 2);
	ck_assert_uint_eq(kept.report.n_ended, 0);
	ck_assert_uint_eq(kept.report.n_tensors, 4);
	for (unsigned i = 0; i < 2; i++) {
		found = found_of(ids[i]);
		token[0] = (uint8_t)ids[i];
		ck_assert(found->has_token);
		ck_assert_mem_eq(found->token, token, sizeof(token));
		ck_assert_uint_eq(found->uid, 1001 + i);
		ck_assert_uint_eq(found->unnamed->n, 1 + i);
		ck_assert_ptr_null(found->made);
		ck_assert_uint_eq(found->forgotten_below, 0);
	}
	found = found_of(ids[1]);
	/* The latest first, as where they were made. */
	ck_assert_uint_eq(record_tensor(found->unnamed->first)->handle, handles[2]);
	ck_assert_uint_eq(record_tensor(found->unnamed->first->next)->handle, handles[1]);
	ck_assert_ptr_eq(record_of(device_find(kept.world.device, handles[0]))->unnamed,
			 found_of(ids[0])->unnamed);
	/* What nobody has is nobody's. */
	session_init(&session, &kept.world.service, 1001, 1, NULL);
	ck_assert_uint_gt(session.id, ids[2]);
	session_deinit(found);
	ck_assert_ptr_null(device_find(kept.world.device, handles[1]));
	lasting_restart(&kept);
	ck_assert_uint_eq(kept.report.n_sessions, 1);
}
