/* The counters: copied row by row. */
#include "tests/unit/client/lib/failing.h"
#include "tests/unit/client/lib/script.h"

enum { ROWS = 3 };

/* Two NPUs, ROWS uids, clients and calls. `ctx` not NULL: one row has more numbers than this library knows. */
static void answer_stat(const struct peer *peer, uint64_t n, const void *ctx)
{
	Npumem__V1__Activity activity = NPUMEM__V1__ACTIVITY__INIT;
	Npumem__V1__Usage all = NPUMEM__V1__USAGE__INIT, uids[ROWS], clients[ROWS], *uid_list[ROWS],
			  *client_list[ROWS];
	Npumem__V1__CallStat calls[ROWS], *call_list[ROWS];
	uint64_t numbers[100];
	int64_t npu_data[2] = {11, 12};
	for (unsigned i = 0; i < 100; i++)
		numbers[i] = i + 1;
	for (unsigned i = 0; i < ROWS; i++) {
		npumem__v1__usage__init(uid_list[i] = &uids[i]);
		npumem__v1__usage__init(client_list[i] = &clients[i]);
		npumem__v1__call_stat__init(call_list[i] = &calls[i]);
		uids[i].uid = 1000 + i;
		uids[i].sessions = 2;
		clients[i].session = 50 + i;
		clients[i].pid = 60 + i;
		clients[i].bytes_in = 70 + i;
		calls[i].call =
			(char *)(uintptr_t)(i ? "wri\nte" : "a name that is longer than any call of ours has");
		calls[i].n_statuses = ctx ? 100 : 2;
		calls[i].statuses = numbers;
		calls[i].n_buckets = ctx ? 100 : i;
		calls[i].buckets = numbers;
		calls[i].total_ns = 5;
	}
	Npumem__V1__Stat stat = {MESSAGE(stat), .total = 4096, .tensors = 3, .now_ns = 99};
	activity.macs = 7;
	Npumem__V1__LoopStat loop = {MESSAGE(loop_stat), .longest_ns = 8, .longest_cpu_ns = 6,
				     .longest_wait_ns = 4};
	all.requests = 9;
	stat.activity = &activity;
	stat.loop = &loop;
	stat.all = &all;
	stat.n_npu_data = 2;
	stat.npu_data = npu_data;
	stat.n_uids = stat.n_clients = stat.n_calls = ROWS;
	stat.uids = uid_list;
	stat.clients = client_list;
	stat.calls = call_list;
	PEER_ANSWER(peer, n, stat, STAT, &stat);
}

TEST(all_rows_are_copied)
{
	struct script script;
	const struct npumem_details *details;
	const struct npumem_stat *stat;
	script_open(&script, &memory_libc, answer_stat, NULL);
	ck_assert_int_eq(npumem_stat(script.peer.npumem, &stat, NULL), 0);
	ck_assert_int_eq(stat->total, 4096);
	ck_assert_int_eq(npumem_stat_details(script.peer.npumem, false, &details, NULL), 0);
	ck_assert_int_eq(details->stat->tensors, 3);
	ck_assert_uint_eq(details->now_ns, 99);
	ck_assert_uint_eq(details->activity->macs, 7);
	ck_assert_uint_eq(details->loop->longest_ns, 8);
	ck_assert_uint_eq(details->loop->longest_cpu_ns, 6);
	ck_assert_uint_eq(details->loop->longest_wait_ns, 4);
	ck_assert_uint_eq(details->all->requests, 9);
	ck_assert(details->n_npus == 2 && details->n_uids == ROWS && details->n_clients == ROWS &&
		  details->n_calls == ROWS);
	ck_assert_int_eq(details->npu_data[1], 12);
	ck_assert_uint_eq(details->uids[2]->uid, 1002);
	ck_assert_uint_eq(details->uids[2]->sessions, 2);
	ck_assert_uint_eq(details->clients[2]->session, 52);
	ck_assert_uint_eq(details->clients[2]->pid, 62);
	ck_assert_uint_eq(details->clients[2]->bytes_in, 72);
	ck_assert_str_eq(details->calls[1]->call, "wri?te");
	ck_assert_uint_eq(strlen(details->calls[0]->call), sizeof(details->calls[0]->call) - 1);
	ck_assert_uint_eq(details->calls[2]->statuses[1], 2);
	ck_assert_uint_eq(details->calls[2]->statuses[2], 0);
	ck_assert_uint_eq(details->calls[2]->buckets[1], 2);
	ck_assert_uint_eq(details->calls[2]->buckets[2], 0);
	npumem_release(details);
	ck_assert_int_eq(npumem_stat_details(script.peer.npumem, true, &details, NULL), 0);
	npumem_release(details);
	script_end(&script);
	ck_assert(!script.requests[0]->stat->details && script.requests[1]->stat->details);
	ck_assert(!script.requests[1]->stat->reset && script.requests[2]->stat->reset);
	script_close(&script);
}

TEST(a_newer_daemon_has_more_numbers)
{
	struct script script;
	const struct npumem_details *details;
	script_open(&script, &memory_libc, answer_stat, "more");
	ck_assert_int_eq(npumem_stat_details(script.peer.npumem, false, &details, NULL), 0);
	ck_assert_uint_eq(details->calls[0]->statuses[NPUMEM_STATUSES - 1], NPUMEM_STATUSES);
	ck_assert_uint_eq(details->calls[0]->buckets[NPUMEM_BUCKETS - 1], NPUMEM_BUCKETS);
	ck_assert_uint_eq(details->calls[2]->total_ns, 5);
	npumem_release(details);
	script_close(&script);
}

static void answer_refusing(const struct peer *peer, uint64_t n, const void *ctx)
{
	(void)ctx;
	peer_refuse(peer, n, NPUMEM_PERMISSION_DENIED, "not you");
}

TEST(a_refusal_has_no_details)
{
	struct script script;
	const struct npumem_details *details = (void *)&script;
	struct npumem_error error;
	script_open(&script, &memory_libc, answer_refusing, NULL);
	ck_assert_int_eq(npumem_stat_details(script.peer.npumem, true, &details, &error),
			 NPUMEM_PERMISSION_DENIED);
	ck_assert_ptr_null(details);
	ck_assert_str_eq(error.message, "not you");
	script_close(&script);
}

TEST(every_allocation_may_fail)
{
	int status = NPUMEM_UNAVAILABLE;
	for (unsigned i = 1; status; i++) {
		struct failing failing = {.fail_at = i};
		const struct memory memory = {failing_resize, &failing};
		const struct npumem_details *details = NULL;
		struct script script;
		script_open(&script, &memory, answer_stat, NULL);
		if (script.peer.npumem) {
			status = npumem_stat_details(script.peer.npumem, false, &details, NULL);
			ck_assert_int_eq(status == 0, details != NULL);
		}
		ck_assert(!status || status == NPUMEM_RESOURCE_EXHAUSTED || status == NPUMEM_UNAVAILABLE);
		ck_assert(status || failing.calls < i);
		script_close(&script);
		ck_assert_int_eq(failing.live, 0);
		ck_assert_uint_lt(i, 1000);
	}
}
