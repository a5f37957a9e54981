/* Requests that wait and run elsewhere, step by step: every order of their ends that matters, and every end of a
 * client in between. */
#include "daemon/rpc/calls/life.h"
#include "daemon/rpc/handlers/operations/operate.h"

#include <stdio.h>

#include "tests/support/loop_turns.h"
#include "tests/unit/daemon/rpc/crowd.h"

static void start(const char *names)
{
	for (const char *c = names; *c; c++) {
		char name[2] = {*c, 0};
		/* Capitals take long. */
		ck_assert_int_eq(crowd_status(0, crowd_alloc(0, name, *c < 'a' ? LONG_W : SHORT_W)), 0);
		ck_assert_int_lt(crowd_status(0, crowd_fill(0, name, 0)), 1);
		crowd_finish_all();
	}
}

TEST(conflicting_ones_run_in_the_order_sent)
{
	start("A");
	uint64_t first = crowd_fill(0, "A", 1);
	uint64_t second = crowd_fill(1, "A", 2);
	uint64_t read = crowd_read(0, "A");
	ck_assert_uint_eq(crowd.n_tasks, 1);
	crowd_finish(0);
	ck_assert_int_eq(crowd_status(0, first), 0);
	ck_assert_int_eq(crowd_status(1, second), -1);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	crowd_finish(0);
	ck_assert_int_eq(crowd_status(1, second), 0);
	ck_assert_int_eq(crowd_value(0, read), 2);
}

TEST(independent_ones_run_side_by_side)
{
	uint64_t a, b, c, reads[2];
	start("ABc");
	a = crowd_fill(0, "A", 1);
	b = crowd_fill(1, "B", 2);
	ck_assert_uint_eq(crowd.n_tasks, 2);
	/* A short one passes them. */
	c = crowd_fill(0, "c", 3);
	ck_assert_int_eq(crowd_status(0, c), 0);
	crowd_finish(1);
	ck_assert_int_eq(crowd_status(0, a), -1);
	ck_assert_int_eq(crowd_status(1, b), 0);
	/* Reads of one tensor do not wait for each other. */
	crowd_finish_all();
	crowd_copy(0, "B", "A");
	reads[0] = crowd_read(1, "A");
	reads[1] = crowd_read(1, "B");
	ck_assert_int_eq(crowd_value(1, reads[0]), 1);
	ck_assert_int_eq(crowd_status(1, reads[1]), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_value(1, reads[1]), 1);
}

TEST(what_follows_a_change_waits_for_it_and_others_do_not)
{
	uint64_t freed, alloc, fill, read, open, stat;
	Npumem__V1__StatRequest request = NPUMEM__V1__STAT_REQUEST__INIT;
	start("AB");
	stat = CROWD_SEND(0, stat, STAT, &request);
	int64_t before = crowd_reply(0, stat)->stat->free;
	crowd_fill(0, "A", 1);
	freed = crowd_free(0, "A");
	alloc = crowd_alloc(0, "A", SHORT_W);
	fill = crowd_fill(0, "A", 7);
	read = crowd_read(0, "A");
	open = crowd_open(0, "A");
	stat = CROWD_SEND(0, stat, STAT, &request);
	ck_assert_int_eq(crowd_status(0, freed), -1);
	ck_assert_int_eq(crowd_status(0, alloc), -1);
	ck_assert_int_eq(crowd_status(0, fill), -1);
	ck_assert_int_eq(crowd_status(0, open), -1);
	ck_assert_int_eq(crowd_status(0, stat), -1);
	/* Nobody else is held up. */
	ck_assert_int_eq(crowd_status(1, crowd_alloc(1, "x", SHORT_W)), 0);
	ck_assert_int_eq(crowd_status(1, crowd_fill(1, "x", 1)), 0);
	ck_assert_int_eq(crowd_status(1, crowd_free(1, "x")), 0);
	crowd_fill(1, "B", 1);
	ck_assert_uint_eq(crowd.n_tasks, 2);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, freed), 0);
	ck_assert_int_eq(crowd_status(0, alloc), 0);
	ck_assert_int_eq(crowd_status(0, fill), 0);
	ck_assert_int_eq(crowd_value(0, read), 7);
	ck_assert_int_eq(crowd_reply(0, open)->tensor->place->shape->w, SHORT_W);
	ck_assert_int_gt(crowd_reply(0, stat)->stat->free, before);
}

TEST(what_comes_into_being_is_protected_at_once)
{
	start("A");
	crowd_fill(0, "A", 1);
	crowd_free(0, "A");
	crowd_alloc(0, "N", LONG_W);
	uint64_t fill = crowd_fill(0, "N", 5);
	uint64_t read = crowd_read(0, "N");
	crowd_finish(0);
	crowd_finish(0); /* what A held is forgotten */
	/* The fill of the new tensor is at work: neither its reader nor who frees it may pass. */
	ck_assert_uint_eq(crowd.n_tasks, 1);
	ck_assert_int_eq(crowd_status(0, read), -1);
	uint64_t freed = crowd_free(1, "N");
	ck_assert_int_eq(crowd_status(1, freed), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, fill), 0);
	ck_assert_int_eq(crowd_value(0, read), 5);
	ck_assert_int_eq(crowd_status(1, freed), 0);
}

/* While a list waits for one tensor, the name of another comes to mean a new one. */
TEST(what_is_born_after_a_request_does_not_exist_for_it)
{
	static const struct crowd_op ops[] = {{0, 'f', "B", NULL, 1}, {0, 'f', "A", NULL, 9}};
	start("AB");
	crowd_fill(0, "B", 1);
	uint64_t list = crowd_list(0, ops, 2);
	uint64_t freed = crowd_free(1, "A");
	/* Who comes now waits to see it go, and the list still has it. */
	uint64_t late = crowd_list(2, ops, 2);
	uint64_t again = crowd_alloc(2, "A", LONG_W);
	ck_assert_int_eq(crowd_status(2, late), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, list), 0);
	ck_assert_int_eq(crowd_status(1, freed), 0);
	ck_assert_int_eq(crowd_status(2, late), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(crowd_status(2, again), 0);
	ck_assert_int_eq(crowd_status(2, crowd_read(2, "A")), NPUMEM_FAILED_PRECONDITION);
}

TEST(views_and_seals_take_their_turn)
{
	start("A");
	crowd_fill(0, "A", 1);
	uint64_t view = crowd_view(0, "v", 0, "A", LONG_W);
	uint64_t fill = crowd_fill(0, "v", 4);
	uint64_t seal = crowd_seal(0, "A");
	uint64_t late = crowd_fill(1, "A", 5);
	ck_assert_int_eq(crowd_status(0, view), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, view), 0);
	ck_assert_int_eq(crowd_status(0, fill), 0);
	ck_assert_int_eq(crowd_status(0, seal), 0);
	ck_assert_int_eq(crowd_status(1, late), NPUMEM_FAILED_PRECONDITION);
	ck_assert_int_eq(crowd_value(1, crowd_read(1, "A")), 4);
}

TEST(after_a_compaction_places_are_compared_anew)
{
	start("ABC");
	crowd_fill(0, "B", 1);
	crowd_free(0, "A");
	uint64_t compact = crowd_compact(0);
	uint64_t fill = crowd_fill(0, "C", 6);
	ck_assert_int_eq(crowd_status(0, compact), -1);
	ck_assert_uint_eq(crowd.n_tasks, 2);
	crowd_finish(1);
	crowd_finish(0);
	/* Under way it has the device for itself: nobody sees a place whose bytes are not there yet. */
	ck_assert_uint_eq(crowd.n_tasks, 1);
	uint64_t open = crowd_open(1, "B");
	uint64_t other = crowd_alloc(1, "Y", SHORT_W);
	ck_assert_int_eq(crowd_status(1, open), -1);
	ck_assert_int_eq(crowd_status(1, other), -1);
	crowd_finish(0);
	ck_assert_int_eq(crowd_status(1, open), 0);
	ck_assert_int_eq(crowd_status(1, other), 0);
	ck_assert_int_eq(crowd_status(0, compact), 0);
	ck_assert_uint_ge(crowd_reply(0, compact)->compacted->n_moves, 2);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	uint64_t read = crowd_read(1, "C");
	ck_assert_int_eq(crowd_value(1, crowd_read(1, "B")), 1);
	ck_assert_int_eq(crowd_status(1, read), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, fill), 0);
	ck_assert_int_eq(crowd_value(1, read), 6);
}

/* A short one that nobody goes before is over when its message has been read, and only then. */
TEST(a_short_one_passes_nobody_it_has_to_wait_for)
{
	start("ABc");
	crowd_view(1, "v", 0, "B", SHORT_W);
	uint64_t at_once = crowd_fill(0, "c", 3);
	ck_assert_int_eq(crowd_status(0, at_once), 0);
	ck_assert_ptr_null(crowd.world.service.scheduler.first);
	/* Of the view's base. */
	crowd_fill(0, "B", 1);
	uint64_t of_view = crowd_fill(1, "v", 2);
	ck_assert_int_eq(crowd_status(1, of_view), -1);
	at_once = crowd_read(2, "c");
	ck_assert_int_eq(crowd_value(2, at_once), 3);
	/* Of whoever is to have the device for itself. */
	uint64_t compact = crowd_compact(2);
	uint64_t behind = crowd_fill(0, "c", 4);
	ck_assert_int_eq(crowd_status(0, behind), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(2, compact), 0);
	ck_assert_int_eq(crowd_status(1, of_view), 0);
	ck_assert_int_eq(crowd_status(0, behind), 0);
	ck_assert_int_eq(crowd_value(1, crowd_read(1, "v")), 2);
	ck_assert_int_eq(crowd_value(1, crowd_read(1, "c")), 4);
}

TEST(a_dump_waits_for_its_own_bytes)
{
	Npumem__V1__DumpRequest request = NPUMEM__V1__DUMP_REQUEST__INIT;
	start("AB");
	crowd.peers[1].session.uid = crowd.peers[2].session.uid = 500;
	crowd_fill(0, "A", 1);
	request.bytes = 4;
	uint64_t waits = CROWD_SEND(2, dump, DUMP, &request);
	request.offset = LONG_W;
	uint64_t passes = CROWD_SEND(1, dump, DUMP, &request);
	ck_assert_uint_eq(crowd.n_tasks, 2);
	crowd_finish(1);
	ck_assert_int_eq(crowd_status(2, waits), -1);
	ck_assert_int_eq(crowd_status(1, passes), 0);
	crowd_finish_all();
	ck_assert_uint_eq(crowd_reply(2, waits)->dump->data.data[3], 1);
}

/* ---- submits ---- */

TEST(both_lanes_of_a_group_run_at_once)
{
	static const struct crowd_op ops[] = {
		{1, 'k', "A", "B", 0}, {1, 'f', "C", NULL, 3}, {1, 'k', "A", "D", 0}, {0, 'r', "C", NULL, 0}};
	const Npumem__V1__Response *response;
	uint64_t list;
	for (unsigned first = 0; first < 2; first++) {
		crowd_again();
		start("ABCD");
		list = crowd_list(0, ops, 4);
		ck_assert_uint_eq(crowd.n_tasks, 2);
		crowd_work(1 - first);
		crowd_finish(first);
		crowd_finish_all();
		response = crowd_reply(0, list);
		ck_assert_int_eq(crowd_status(0, list), 0);
		ck_assert_uint_eq(response->submitted->n_done, 4);
		/* In the order of the list, whatever ended first. */
		ck_assert_int_eq(response->submitted->done[3]->data.data[0], 3);
		for (unsigned i = 0; i < 3; i++)
			ck_assert_uint_eq(response->submitted->done[i]->data.len, 0);
	}
}

TEST(a_refusal_in_one_queue_lets_the_other_run_to_its_end)
{
	static const struct crowd_op ops[] = {
		{1, 'f', "C", NULL, 3}, {1, 'k', "A", "s", 0}, {1, 'f', "D", NULL, 3}, {0, 'f', "A", NULL, 3}};
	start("ABCDs");
	uint64_t list = crowd_list(0, ops, 4);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	ck_assert_int_eq(crowd_status(0, list), -1);
	crowd_finish(0);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	crowd_finish(0);
	ck_assert_uint_eq(crowd.n_tasks, 0);
	const Npumem__V1__Response *response = crowd_reply(0, list);
	ck_assert_int_eq(crowd_status(0, list), NPUMEM_INVALID);
	ck_assert_ptr_nonnull(strstr(response->message, "operation 1 "));
	ck_assert_uint_eq(response->submitted->n_done, 2);
	ck_assert_uint_eq(response->submitted->done[1]->operation, 2);
	ck_assert_int_eq(crowd_value(0, crowd_read(0, "D")), 3);
	ck_assert_int_eq(crowd_value(0, crowd_read(0, "A")), 0);
}

/* Looking at what was written takes as long as reading it, so it is done where that is. */
TEST(what_was_never_written_is_found_elsewhere)
{
	static const struct crowd_op ops[] = {
		{1, 'f', "A", NULL, 3}, {1, 'k', "N", "B", 0}, {1, 'f', "A", NULL, 4}, {0, 'f', "B", NULL, 5}};
	static const char said[] = "N has bytes that were never written";
	uint64_t copy, fill, list;
	start("AB");
	ck_assert_int_eq(crowd_status(0, crowd_alloc(0, "N", LONG_W)), 0);
	copy = crowd_copy(0, "A", "N");
	fill = crowd_fill(0, "A", 7);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	ck_assert_int_eq(crowd_status(0, copy), -1);
	crowd_finish(0);
	ck_assert_int_eq(crowd_status(0, copy), NPUMEM_FAILED_PRECONDITION);
	ck_assert_ptr_nonnull(strstr(crowd_reply(0, copy)->message, said));
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, fill), 0);
	/* In a group it refuses its operation and ends the list when the other queue is done. */
	list = crowd_list(0, ops, 4);
	ck_assert_uint_eq(crowd.n_tasks, 2);
	crowd_finish(1);
	crowd_finish_all();
	const Npumem__V1__Response *response = crowd_reply(0, list);
	ck_assert_int_eq(crowd_status(0, list), NPUMEM_FAILED_PRECONDITION);
	ck_assert_ptr_nonnull(strstr(response->message, "operation 1 "));
	ck_assert_ptr_nonnull(strstr(response->message, said));
	ck_assert_uint_eq(response->submitted->n_done, 2);
	ck_assert_int_eq(crowd_value(0, crowd_read(0, "A")), 4);
	ck_assert_int_eq(crowd_value(0, crowd_read(0, "B")), 0);
}

TEST(a_group_that_cannot_be_prepared_or_conflicts_does_not_run)
{
	static const struct crowd_op missing[] = {{1, 'f', "none", NULL, 3},
						  {1, 'f', "A", NULL, 3},
						  {1, 'f', "B", NULL, 3}},
				     conflict[] = {{0, 'f', "C", NULL, 2},
						   {1, 'f', "A", NULL, 3},
						   {1, 'k', "A", "B", 3}};
	start("ABC");
	uint64_t list = crowd_list(0, missing, 3);
	ck_assert_int_eq(crowd_status(0, list), NPUMEM_NOT_FOUND);
	ck_assert_ptr_null(crowd_reply(0, list)->submitted);
	list = crowd_list(0, conflict, 3);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, list), NPUMEM_ABORTED);
	ck_assert_uint_eq(crowd_reply(0, list)->submitted->n_done, 1);
	ck_assert_ptr_nonnull(strstr(crowd_reply(0, list)->message, "operations 1"));
	ck_assert_int_eq(crowd_value(0, crowd_read(0, "A")), 0);
}

/* A list of many short operations lets the loop go now and then. */
TEST(a_long_list_of_short_ones_is_not_done_in_one_go)
{
	struct crowd_op ops[1000];
	unsigned n_turns = 0;
	start("a");
	loop_turns_begin(crowd.rpc);
	for (unsigned i = 0; i < 1000; i++)
		ops[i] = (struct crowd_op){0, 'f', "a", NULL, (int)(i % 100)};
	uint64_t list = crowd_list(0, ops, 1000);
	n_turns += loop_turns_all(crowd.rpc);
	ck_assert_uint_ge(n_turns, 2);
	ck_assert_uint_eq(crowd_reply(0, list)->submitted->n_done, 1000);
	loop_turns_end(crowd.rpc);
}

/* ---- ends ---- */

/* All kinds of what may be under way. */
static void script(bool with_others)
{
	static const struct crowd_op ops[] = {{1, 'k', "A", "B", 0},
					      {1, 'f', "C", NULL, 3},
					      {1, 'w', "c", NULL, 3},
					      {0, 'f', "B", NULL, 0},
					      {0, 'r', "c", NULL, 0}};
	crowd_alloc(1, "", SHORT_W);
	crowd_fill(1, "A", 1);
	crowd_list(1, ops, 5);
	crowd_view(1, "w", 0, "B", LONG_W);
	crowd_write(1, "w", 1, 3);
	crowd_free(1, "A");
	crowd_alloc(1, "E", LONG_W);
	crowd_write(1, "E", 8 * LONG_W, 3);
	if (with_others) {
		crowd_compact(2);
		crowd_fill(2, "C", 8);
		crowd_alloc(2, "", SHORT_W);
	}
	crowd_seal(1, "E");
	crowd_open(1, "E");
}

TEST(a_client_may_end_at_every_moment)
{
	for (unsigned steps = 0; steps < 14; steps++) {
		for (unsigned worked = 0; worked < 3; worked++) {
			int64_t before;
			crowd_again();
			start("ABCc");
			before = world_n_tensors(&crowd.world);
			ck_assert_int_eq(before, 4);
			script(true);
			for (unsigned i = 0; i < steps && crowd.n_tasks; i++)
				crowd_finish(i % crowd.n_tasks);
			/* The threads have done their work, or one has, and the loop does not know it. */
			for (unsigned i = 0; i < crowd.n_tasks && i < worked; i++)
				crowd_work(i);
			crowd_close(1);
			ck_assert(!crowd.peers[1].n_drained || !crowd.peers[1].rpc.n_calls);
			crowd_finish_all();
			ck_assert_uint_eq(crowd.peers[1].n_drained, 1);
			ck_assert_ptr_null(crowd.peers[1].session.unnamed);
			world_check(&crowd.world);
		}
	}
}

/* Another session runs on a view, by name, of a tensor that dies with its client. */
TEST(what_dies_with_a_client_is_not_taken_from_under_others)
{
	struct device_counts counts;
	start("");
	uint64_t alloc = crowd_alloc(1, "", LONG_W);
	crowd_view(1, "v", crowd_reply(1, alloc)->allocated->tensors[0]->handle, "", 2 * LONG_W);
	uint64_t fill = crowd_fill(0, "v", 3);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	crowd_close(1);
	ck_assert_uint_eq(crowd.peers[1].n_drained, 0);
	ck_assert_int_eq(world_n_tensors(&crowd.world), 2);
	/* A tensor that comes meanwhile makes the end look again at what it takes, not wait for everything. */
	crowd_alloc(2, "X", LONG_W);
	crowd_fill(2, "X", 1);
	uint64_t late = crowd_fill(0, "v", 4);
	ck_assert_uint_eq(crowd.n_tasks, 2);
	crowd_finish(0);
	ck_assert_int_eq(crowd_status(0, fill), 0);
	/* What it held is forgotten elsewhere before it goes. */
	ck_assert_uint_eq(crowd.n_tasks, 2);
	ck_assert_uint_eq(crowd.peers[1].n_drained, 0);
	crowd_finish(1);
	ck_assert_uint_eq(crowd.peers[1].n_drained, 1);
	ck_assert_int_eq(crowd_status(0, late), NPUMEM_NOT_FOUND);
	device_stat(crowd.world.device, &counts);
	ck_assert_int_eq(counts.tensors, 1);
	ck_assert_int_eq(counts.views, 0);
}

TEST(what_runs_for_a_client_that_ends_is_cancelled)
{
	struct device_state state;
	start("A");
	crowd_alloc(0, "B", LONG_W);
	crowd_relu(1, "A", "B");
	crowd_close(1);
	crowd_finish_all();
	struct tensor *out = record_tensor(names_find(&crowd.world.service.names, 1001, "B"));
	device_state(crowd.world.device, out, &state);
	ck_assert_int_eq(state.unwritten_bytes, tensor_place(out).blocks.data);
}

TEST(what_waits_is_counted_until_it_is_answered)
{
	start("A");
	crowd_fill(1, "A", 1);
	size_t one = crowd.peers[1].rpc.call_bytes;
	ck_assert_uint_gt(one, 0);
	crowd_fill(1, "A", 1);
	ck_assert_uint_eq(crowd.peers[1].rpc.call_bytes, 2 * one);
	crowd_read(1, "A");
	ck_assert_uint_gt(crowd.peers[1].rpc.call_bytes, 2 * one);
	ck_assert_uint_eq(crowd.peers[1].rpc.n_calls, 3);
	crowd_finish_all();
	ck_assert_uint_eq(crowd.peers[1].rpc.call_bytes, 0);
	ck_assert_uint_eq(crowd.peers[1].rpc.n_calls, 0);
}

TEST(without_memory_for_a_task_it_is_refused)
{
	start("A");
	crowd.no_threads = true;
	uint64_t fill = crowd_fill(1, "A", 1);
	ck_assert_int_eq(crowd_status(1, fill), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_ptr_null(crowd.world.service.scheduler.first);
}

TEST(host_memory_may_run_out_anywhere)
{
	bool hit = true;
	for (size_t i = 1; hit; i++) {
		uint64_t first;
		crowd_again();
		start("ABCc");
		life_pool_deinit(crowd.rpc);
		operate_pool_deinit(crowd.rpc);
		first = crowd.last_id + 1;
		crowd.world.fail_at = crowd.world.n_allocs + i;
		script(true);
		crowd_finish_all();
		hit = crowd.world.n_allocs >= crowd.world.fail_at;
		for (uint64_t id = first; id <= crowd.last_id; id++) {
			int status = crowd_status(1, id) >= 0 ? crowd_status(1, id) : crowd_status(2, id);
			ck_assert(status >= 0 || crowd.peers[1].is_broken || crowd.peers[2].is_broken);
			ck_assert_msg(status < 1 || status == NPUMEM_RESOURCE_EXHAUSTED ||
					      status == NPUMEM_NOT_FOUND || status == NPUMEM_FAILED_PRECONDITION ||
					      status == NPUMEM_ALREADY_EXISTS,
				      "request %d of failure %zu: status %d", (int)id, i, status);
			ck_assert(hit || status == 0);
		}
		world_check(&crowd.world);
		crowd.world.fail_at = 0;
	}
}

static void make_columns(const char *name, const char *base, int64_t from, int64_t to)
{
	struct device_slice slice = {.from = {0, 0, 0, from}, .to = {1, 8, 1, to}};
	struct tensor *view;
	ck_assert_int_eq(tensors_view(&crowd.peers[0].session,
				      record_tensor(names_find(&crowd.world.service.names, 1001, base)), name, "",
				      &slice, NULL, NULL, &view, &crowd.world.error),
			 0);
}

/* What was held and has no place yet where something has started that came later, but a place where others wait
 * for it. */
TEST(nobody_waits_in_a_circle)
{
	Npumem__V1__ListRequest list = NPUMEM__V1__LIST_REQUEST__INIT;
	start("ABC");
	make_columns("few", "A", 0, SHORT_W);
	make_columns("many", "A", SHORT_W, LONG_W);
	make_columns("part", "B", 0, SHORT_W);
	crowd_fill(1, "C", 1);
	CROWD_SEND(1, list, LIST, &list);
	uint64_t held = crowd_copy(1, "part", "v");
	make_columns("v", "A", 0, SHORT_W);
	uint64_t copy = crowd_copy(0, "few", "part");
	uint64_t fill = crowd_fill(2, "many", 3);
	ck_assert_uint_eq(crowd.n_tasks, 2);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(1, held), 0);
	ck_assert_int_eq(crowd_status(0, copy), 0);
	ck_assert_int_eq(crowd_status(2, fill), 0);
}

/* However long a write waits, and wherever it runs, it writes what was sent (crowd_send spoils its bytes). */
TEST(payloads_live_as_long_as_their_requests)
{
	static const struct crowd_op queued[] = {{0, 'w', "A", NULL, 4}, {0, 'w', "C", NULL, 5}},
				     group[] = {{1, 'k', "A", "B", 0},
						{1, 'w', "C", NULL, 6},
						{1, 'w', "c", NULL, 7}},
				     brief[] = {{1, 'w', "a", NULL, 8},
						{1, 'k', "b", "c", 0},
						{0, 'w', "b", NULL, 9}};
	static const struct {
		const char *name;
		int value;
	} want[] = {{"A", 4}, {"C", 6}, {"D", 3}, {"E", 2}, {"a", 8}, {"b", 9}, {"c", 0}};
	start("ABCDEabc");
	uint64_t last = crowd.last_id;
	crowd_fill(0, "A", 1);
	crowd_write(0, "A", 1, 2);	    /* waits */
	crowd_write(1, "D", 8 * LONG_W, 3); /* on a thread at once */
	crowd_list(0, queued, 2);	    /* waits */
	crowd_list(0, group, 3);	    /* runs in parts */
	crowd_write(2, "a", 1, 1);	    /* is done at once */
	crowd_fill(1, "E", 1);
	crowd_free(1, "E"); /* holds what follows */
	crowd_alloc(1, "E", SHORT_W);
	crowd_write(1, "E", 8 * SHORT_W, 2);
	crowd_finish_all();
	crowd_list(2, brief, 3); /* is done at once */
	crowd_finish_all();
	for (uint64_t id = last + 1; id <= crowd.last_id; id++)
		for (unsigned from = 0; from < PEERS; from++)
			ck_assert_int_le(crowd_status(from, id), 0);
	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		ck_assert_int_eq(crowd_value(0, crowd_read(0, want[i].name)), want[i].value);
}

/* A microsecond passes between two looks. */
static uint64_t passing_ns(void)
{
	static uint64_t ns = 1000000;
	return ns += 1000;
}

TEST(many_that_were_held_are_let_go_in_turns)
{
	enum { READS = 600 };
	uint64_t reads[READS], list_id;
	unsigned n_turns = 0;
	Npumem__V1__ListRequest list = NPUMEM__V1__LIST_REQUEST__INIT;
	start("AB");
	crowd_fill(1, "A", 1);
	crowd_fill(2, "B", 5);
	list_id = CROWD_SEND(1, list, LIST, &list);
	for (unsigned i = 0; i < READS; i++)
		reads[i] = crowd_read(1, "B");
	crowd.rpc->now_ns = passing_ns;
	loop_turns_begin(crowd.rpc);
	crowd_finish(0);
	while (crowd_status(1, list_id) < 0)
		ck_assert(loop_turns_one(crowd.rpc));
	ck_assert_ptr_nonnull(crowd.peers[1].rpc.first_held);
	n_turns += loop_turns_all(crowd.rpc);
	ck_assert_uint_gt(n_turns, 1);
	ck_assert_ptr_null(crowd.peers[1].rpc.first_held);
	crowd_finish(0);
	n_turns += loop_turns_all(crowd.rpc);
	for (unsigned i = 0; i < READS; i++)
		ck_assert_int_eq(crowd_value(1, reads[i]), 5);
	loop_turns_end(crowd.rpc);
}

/* ---- anything, in any order ---- */

/* Requests of three clients, each against a plain sequence: what a client sends takes effect in the order sent. */
enum { FULL = 2, OWN = 2 }; /* tensors of a client: with values all the time; that come and go */

struct model {
	bool exists;
	bool written;
	int value;
};

struct expected {
	unsigned from;
	uint64_t id;
	int status, value; /* value -1: none */
};

static void random_request(struct model full[PEERS][FULL], struct model own[PEERS][OWN], struct expected *expected)
{
	unsigned from = (unsigned)rand() % PEERS, s = (unsigned)rand() % FULL, o = (unsigned)rand() % OWN;
	bool is_own = rand() % 2;
	char name[16], other[16];
	struct model *model = is_own ? &own[from][o] : &full[from][s];
	struct model *source = &full[from][(s + 1) % FULL];
	int value = rand() % 100;
	if (is_own)
		snprintf(name, sizeof(name), "p%uo%u", from, o);
	else
		snprintf(name, sizeof(name), "p%us%u", from, s);
	snprintf(other, sizeof(other), "p%us%u", from, (s + 1) % FULL);
	*expected = (struct expected){.from = from, .value = -1};
	expected->status = model->exists ? 0 : NPUMEM_NOT_FOUND;
	switch (rand() % (is_own ? 6 : 4)) {
	case 0:
		expected->id = crowd_fill(from, name, value);
		model->written |= model->exists;
		model->value = value;
		break;
	case 1:
	case 2:
		if (model->exists && !model->written)
			expected->status = NPUMEM_FAILED_PRECONDITION;
		else
			expected->value = model->exists ? model->value : -1;
		expected->id = crowd_read(from, name);
		break;
	case 3:
		if (is_own) {
			expected->id = crowd_open(from, name);
			break;
		}
		expected->id = crowd_copy(from, name, other);
		model->value = source->value;
		break;
	case 4:
		expected->id = crowd_free(from, name);
		model->exists = model->written = false;
		break;
	default:
		expected->status = model->exists ? NPUMEM_ALREADY_EXISTS : 0;
		expected->id = crowd_alloc(from, name, SHORT_W);
		model->exists = true;
	}
}

TEST(effects_come_in_the_order_sent, .to = 2)
{
	enum { ROUNDS = 12, REQUESTS = 120 };
	srand((unsigned)_i);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct model full[PEERS][FULL], own[PEERS][OWN] = {{{false, false, 0}}};
		struct expected expected[REQUESTS];
		crowd_again();
		start("");
		for (unsigned i = 0; i < PEERS * FULL; i++) {
			char name[16];
			snprintf(name, sizeof(name), "p%us%u", i / FULL, i % FULL);
			crowd_alloc(i / FULL, name, LONG_W);
			crowd_fill(i / FULL, name, 0);
			full[i / FULL][i % FULL] = (struct model){true, true, 0};
		}
		for (unsigned i = 0; i < REQUESTS; i++) {
			random_request(full, own, &expected[i]);
			if (rand() % 16 == 0)
				crowd_compact((unsigned)rand() % PEERS);
			while (crowd.n_tasks && rand() % 2)
				crowd_finish((unsigned)rand() % crowd.n_tasks);
		}
		crowd_finish_all();
		for (unsigned i = 0; i < REQUESTS; i++) {
			const struct expected *e = &expected[i];
			ck_assert_msg(crowd_status(e->from, e->id) == e->status,
				      "round %u, request %u: status %d, not %d: %s", round, i,
				      crowd_status(e->from, e->id), e->status,
				      crowd_reply(e->from, e->id)->message);
			if (e->value >= 0)
				ck_assert_int_eq(crowd_value(e->from, e->id), e->value);
		}
		world_check(&crowd.world);
	}
}
