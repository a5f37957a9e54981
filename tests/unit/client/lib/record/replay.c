/* Replays against daemons of prepared answers: what is sent again, what is compared, and what a difference is
 * called. */
#include "client/lib/record/record.h"

#include <stdio.h>
#include <sys/mman.h>

#include "proto/digest.h"
#include "tests/unit/client/lib/failing.h"
#include "tests/unit/client/lib/records.h"
#include "tests/unit/client/lib/script.h"

enum { ADMIN = 4711, PEERS = 3 };

static void answer_info(const struct peer *peer, uint64_t id, int64_t n_npus)
{
	Npumem__V1__Info info = {MESSAGE(info), .n_npus = n_npus, .npu_bytes = 1024, .n_banks = 2,
				 .eu_bytes = 128};
	PEER_ANSWER(peer, id, info, INFO, &info);
}

static void answer_stat(const struct peer *peer, uint64_t id, int64_t sessions)
{
	Npumem__V1__Stat stat = NPUMEM__V1__STAT__INIT;
	stat.sessions = sessions;
	PEER_ANSWER(peer, id, stat, STAT, &stat);
}

static void answer_sums(const struct peer *peer, uint64_t id, uint64_t hash, uint32_t second)
{
	uint32_t local[] = {5, second};
	Npumem__V1__Recorded recorded = {MESSAGE(recorded), .hash = hash, .n_local = 2, .local = local};
	PEER_ANSWER(peer, id, recorded, RECORDED, &recorded);
}

/* What differs from the record; zero: nothing. */
struct twist {
	int64_t macs, n_npus;
	int status;
	uint64_t hash;
	uint32_t local;
};

/* Connections that are opened in this order; each is closed by the replay. */
struct daemons {
	struct script scripts[PEERS];
	uint32_t uids[PEERS];
	unsigned n, refused; /* the how manieth is not opened; 0: none */
};

static int open_next(void *ctx, uint32_t uid, struct npumem **out, struct npumem_error *error)
{
	struct daemons *daemons = ctx;
	if (daemons->n + 1 == daemons->refused || !daemons->scripts[daemons->n].peer.npumem)
		return npumem_error_set(error, NPUMEM_UNAVAILABLE, "no daemon for uid %u", (unsigned)uid);
	daemons->uids[daemons->n] = uid;
	*out = daemons->scripts[daemons->n].peer.npumem;
	daemons->scripts[daemons->n++].peer.npumem = NULL;
	return 0;
}

static void answer_admin(const struct peer *peer, uint64_t n, const void *ctx)
{
	const struct twist *twist = ctx;
	if (n <= 3)
		answer_stat(peer, n, n == 3 ? 2 : 3);
	else if (n == 4)
		answer_info(peer, n, 2 + twist->n_npus);
	else
		answer_sums(peer, n, 77 + twist->hash, 6 + twist->local);
}

static void answer_first(const struct peer *peer, uint64_t n, const void *ctx)
{
	const struct twist *twist = ctx;
	if (n == 1)
		peer_allocated(peer, n, 1);
	else
		peer_done(peer, n, 1 + twist->macs);
}

static void answer_second(const struct peer *peer, uint64_t n, const void *ctx)
{
	const struct twist *twist = ctx;
	peer_refuse(peer, n, NPUMEM_NOT_FOUND + twist->status, "is none");
}

static void daemons_open(struct daemons *daemons, const struct memory *memory, const struct twist *twist)
{
	*daemons = (struct daemons){.n = 0};
	script_open(&daemons->scripts[0], memory, answer_admin, twist);
	script_open(&daemons->scripts[1], memory, answer_first, twist);
	script_open(&daemons->scripts[2], memory, answer_second, twist);
}

static void daemons_close(struct daemons *daemons)
{
	for (unsigned i = 0; i < PEERS; i++)
		script_close(&daemons->scripts[i]);
}

static uint64_t allocated_digest(void)
{
	return digest_number(digest_begin(), 1);
}

static uint64_t done_digest(int64_t macs)
{
	Npumem__V1__Done done = NPUMEM__V1__DONE__INIT;
	done.macs = macs;
	return digest_number(digest_begin(), digest_done(&done, 0));
}

/* Session 1 allocates (handle 900), fills it (1 mac), frees nothing that it knows; session 2 is refused; 1 ends.
 */
static void sample(struct records *records)
{
	Npumem__V1__Request alloc = NPUMEM__V1__REQUEST__INIT, fill = alloc, unknown = alloc;
	Npumem__V1__AllocRequest allocation = NPUMEM__V1__ALLOC_REQUEST__INIT;
	Npumem__V1__FillRequest filling = NPUMEM__V1__FILL_REQUEST__INIT;
	Npumem__V1__SealRequest sealing = NPUMEM__V1__SEAL_REQUEST__INIT;
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT, other = NPUMEM__V1__REF__INIT;
	uint32_t local[] = {5, 6};
	records_begin(records);
	alloc.call_case = NPUMEM__V1__REQUEST__CALL_ALLOC;
	alloc.alloc = &allocation;
	records_request(records, 1, &alloc, 0, allocated_digest(), 900);
	fill.call_case = NPUMEM__V1__REQUEST__CALL_FILL;
	fill.fill = &filling;
	filling.tensor = &ref;
	ref.handle = 900;
	records_request(records, 1, &fill, 0, done_digest(1), 0);
	unknown.call_case = NPUMEM__V1__REQUEST__CALL_SEAL;
	unknown.seal = &sealing;
	sealing.tensor = &other;
	other.handle = 901;
	records_request(records, 2, &unknown, NPUMEM_NOT_FOUND, digest_begin(), 0);
	/* Not sent again. */
	records_request(records, 2, &fill, NPUMEM_CANCELLED, digest_begin(), 0);
	records_end_session(records, 1);
	records_end(records, 77, local, 2);
}

static int run(const struct records *records, const struct memory *memory, struct daemons *daemons,
	       struct npumem_replay_result *result, struct npumem_error *error)
{
	struct npumem_replay *replay;
	char path[32];
	records_file(records, path);
	int status = replay_new(memory, path, &replay, error);
	unlink(path);
	if (status)
		return status;
	ck_assert_int_eq(npumem_replay_info(replay)->geometry.npu_bytes, 1024);
	const struct npumem_replay_result *got;
	status = npumem_replay_run(replay, ADMIN, open_next, daemons, &got, error);
	*result = *got;
	npumem_replay_close(replay);
	return status;
}

TEST(all_of_it_again)
{
	static struct records records;
	struct daemons daemons;
	struct npumem_replay_result result;
	struct npumem_error error;
	sample(&records);
	daemons_open(&daemons, &memory_libc, &(struct twist){0});
	ck_assert_msg(!run(&records, &memory_libc, &daemons, &result, &error), "%s", error.message);
	ck_assert_uint_eq(result.requests, 3);
	ck_assert_uint_eq(result.skipped, 1);
	ck_assert_msg(!result.differences, "%s", result.what);
	ck_assert(result.same_geometry);
	ck_assert_int_eq(result.npu, -1);
	ck_assert_uint_eq(daemons.uids[0], ADMIN);
	ck_assert_uint_eq(daemons.uids[1], 1001);
	ck_assert_uint_eq(daemons.uids[2], 1002);
	daemons_close(&daemons);
}

/* The requests have the handles that were given now, and never one of the record. */
TEST(handles_become_others)
{
	static struct records records;
	struct daemons daemons;
	struct npumem_replay_result result;
	sample(&records);
	daemons_open(&daemons, &memory_libc, &(struct twist){0});
	ck_assert_int_eq(run(&records, &memory_libc, &daemons, &result, NULL), 0);
	for (unsigned i = 0; i < PEERS; i++)
		script_end(&daemons.scripts[i]);
	ck_assert_uint_eq(daemons.scripts[1].n, 2);
	ck_assert_uint_eq(daemons.scripts[1].requests[1]->fill->tensor->handle, 100);
	ck_assert_uint_eq(daemons.scripts[2].n, 1);
	ck_assert_uint_eq(daemons.scripts[2].requests[0]->seal->tensor->handle, UINT64_MAX);
	daemons_close(&daemons);
}

TEST(a_difference_is_named)
{
	static const struct {
		struct twist twist;
		uint64_t first;
		int64_t npu;
		const char *what;
	} cases[] = {
		{{.macs = 1}, 2, -1, "the data or the counts of its answer differ"},
		{{.status = NPUMEM_ALREADY_EXISTS - NPUMEM_NOT_FOUND},
		 3,
		 -1,
		 "answered ALREADY_EXISTS, and NOT_FOUND"},
		{{.hash = 1}, 0, -1, "the data of the tensors in the end differ"},
		{{.local = 9}, 0, 1, "NPU 1 is the first that differs in the end: CRC-32 0000000f, and 00000006"},
	};
	static struct records records;
	sample(&records);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct daemons daemons;
		struct npumem_replay_result result;
		daemons_open(&daemons, &memory_libc, &cases[i].twist);
		ck_assert_int_eq(run(&records, &memory_libc, &daemons, &result, NULL), 0);
		ck_assert_uint_eq(result.differences, 1);
		ck_assert_uint_eq(result.first, cases[i].first);
		ck_assert_int_eq(result.npu, cases[i].npu);
		ck_assert_msg(strstr(result.what, cases[i].what), "%s", result.what);
		daemons_close(&daemons);
	}
}

/* Local memory lies otherwise on another geometry. */
TEST(another_geometry)
{
	static struct records records;
	struct daemons daemons;
	struct npumem_replay_result result;
	sample(&records);
	daemons_open(&daemons, &memory_libc, &(struct twist){.n_npus = 2, .local = 1});
	ck_assert_int_eq(run(&records, &memory_libc, &daemons, &result, NULL), 0);
	ck_assert_uint_eq(result.differences, 0);
	ck_assert(!result.same_geometry);
	daemons_close(&daemons);
}

static void answer_nothing(const struct peer *peer, uint64_t n, const void *ctx)
{
	(void)n, (void)ctx;
	shutdown(peer->fd, SHUT_RDWR);
}

TEST(a_connection_that_breaks)
{
	static struct records records;
	struct daemons daemons;
	struct npumem_replay_result result;
	struct npumem_error error;
	sample(&records);
	for (unsigned i = 0; i < 2 * PEERS; i++) {
		daemons_open(&daemons, &memory_libc, &(struct twist){0});
		if (i < PEERS)
			daemons.scripts[i].answer = answer_nothing;
		else
			daemons.refused = i - PEERS + 1;
		npumem_error_clear(&error);
		ck_assert_int_eq(run(&records, &memory_libc, &daemons, &result, &error), NPUMEM_UNAVAILABLE);
		ck_assert_str_ne(error.message, "");
		daemons_close(&daemons);
	}
}

/* With one allocator for the replay and its connections. What is tried again by nobody ends the replay, or is an
 * answer that differs; nothing stays behind. */
TEST(every_allocation_may_fail)
{
	static struct records records;
	bool hit = true;
	sample(&records);
	for (unsigned i = 1; hit; i++) {
		struct failing failing = {.fail_at = 0};
		const struct memory memory = {failing_resize, &failing};
		struct daemons daemons;
		struct npumem_replay_result result = {.differences = 0};
		daemons_open(&daemons, &memory, &(struct twist){0});
		failing.fail_at = failing.calls + i;
		int status = run(&records, &memory, &daemons, &result, NULL);
		hit = failing.calls >= failing.fail_at;
		ck_assert(!status || status == NPUMEM_RESOURCE_EXHAUSTED || status == NPUMEM_UNAVAILABLE);
		ck_assert(hit ? status || result.differences : !status && !result.differences);
		daemons_close(&daemons);
		ck_assert_int_eq(failing.live, 0);
		ck_assert_uint_lt(i, 1000);
	}
}

/* ---- segments, handles ---- */

TEST(segments_by_the_number_of_the_record)
{
	struct peer peer = peer_open();
	struct replay_peer *list = replay_peer_new(&memory_libc, 9, peer.npumem);
	struct replay_handles handles;
	Npumem__V1__Operation operations[2] = {NPUMEM__V1__OPERATION__INIT, NPUMEM__V1__OPERATION__INIT},
			      *pointers[] = {&operations[0], &operations[1]};
	Npumem__V1__ReadRequest read = NPUMEM__V1__READ_REQUEST__INIT;
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT;
	ck_assert_ptr_null(*replay_peer_find(&list, 8));
	ck_assert_ptr_eq(*replay_peer_find(&list, 9), list);
	Npumem__V1__Shared shared = {MESSAGE(shared), .segment = 31, .bytes = 4096, .writable = true};
	PEER_ANSWER(&peer, 1, shared, SHARED, &shared);
	Npumem__V1__Shared recorded = shared;
	recorded.segment = 7;
	ck_assert_int_eq(replay_peer_share(list, &memory_libc, &recorded, NULL), 0);
	ck_assert_uint_eq(replay_peer_segment(list, 7)->id, 31);
	ck_assert_ptr_null(replay_peer_segment(list, 31));
	/* In a request, however deep. */
	ck_assert_int_eq(replay_handles_init(&handles, &memory_libc, 300), 0);
	for (uint64_t i = 1; i <= 300; i++)
		replay_handles_add(&handles, i << 20, i);
	Npumem__V1__WriteRequest write = {MESSAGE(write_request), .segment = 7, .tensor = &ref};
	ref.handle = UINT64_C(299) << 20;
	read.segment = 8;
	operations[0].kind_case = NPUMEM__V1__OPERATION__KIND_WRITE;
	operations[0].write = &write;
	operations[1].kind_case = NPUMEM__V1__OPERATION__KIND_READ;
	operations[1].read = &read;
	Npumem__V1__SubmitRequest submit = {MESSAGE(submit_request), .n_operations = 2, .operations = pointers};
	request.call_case = NPUMEM__V1__REQUEST__CALL_SUBMIT;
	request.submit = &submit;
	replay_handles_map(&handles, list, &request.base);
	ck_assert_uint_eq(write.segment, 31);
	ck_assert_uint_eq(ref.handle, 299);
	ck_assert_uint_eq(read.segment, UINT64_MAX);
	/* None stays none. */
	write.segment = ref.handle = 0;
	replay_handles_map(&handles, list, &request.base);
	ck_assert_uint_eq(write.segment, 0);
	ck_assert_uint_eq(ref.handle, 0);
	replay_peer_unshare(list, &memory_libc, 7);
	replay_peer_unshare(list, &memory_libc, 7);
	ck_assert_ptr_null(replay_peer_segment(list, 7));
	replay_handles_deinit(&handles, &memory_libc);
	replay_peer_close(&list, &memory_libc);
	ck_assert_ptr_null(list);
	close(peer.fd);
}
