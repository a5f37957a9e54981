/* Recording to a file, against a daemon of prepared answers. */
#include "client/lib/record/record.h"

#include <fcntl.h>

#include "tests/unit/client/lib/failing.h"
#include "tests/unit/client/lib/script.h"

static void answer_info(const struct peer *peer, uint64_t id)
{
	Npumem__V1__Info info = {MESSAGE(info), .n_npus = 4,	 .npu_bytes = 1024,
				 .n_banks = 4,	.eu_bytes = 128, .rounding = NPUMEM__V1__ROUNDING__UP};
	PEER_ANSWER(peer, id, info, INFO, &info);
}

/* Session ends `first` to `last`; none where first > last. */
static void answer_recorded(const struct peer *peer, uint64_t id, uint64_t first, uint64_t last, bool lost)
{
	Npumem__V1__Recorded recorded = NPUMEM__V1__RECORDED__INIT;
	Npumem__V1__RecordEntry entries[4], *list[4];
	uint32_t local[] = {1, 2, 3, 4};
	for (uint64_t number = first; number <= last; number++) {
		list[recorded.n_entries] = &entries[recorded.n_entries];
		npumem__v1__record_entry__init(&entries[recorded.n_entries]);
		entries[recorded.n_entries++].number = number;
	}
	recorded.entries = list;
	recorded.lost = lost;
	recorded.reason = (char *)(uintptr_t)(lost ? "too\nslow" : "");
	recorded.hash = 42;
	recorded.n_local = 4;
	recorded.local = local;
	PEER_ANSWER(peer, id, recorded, RECORDED, &recorded);
}

static char path[] = "/tmp/npumem-record-XXXXXX";

/* A recording of 5 entries. */
static void answer_whole(const struct peer *peer, uint64_t n, const void *ctx)
{
	static const uint64_t parts[][2] = {{1, 0}, {1, 3}, {1, 0}, {4, 5}, {1, 0}};
	(void)ctx;
	if (n == 1)
		answer_info(peer, n);
	else
		answer_recorded(peer, n, parts[n - 2][0], parts[n - 2][1], false);
}

/* All of it, until something fails. */
static int record_all(const struct script *script, int fd, const struct npumem_record **record,
		      struct npumem_error *error)
{
	int status = npumem_record_start(script->peer.npumem, fd, record, error);
	if (!status)
		status = npumem_record_take(script->peer.npumem, *record, error);
	ck_assert(status || ((*record)->taken == 3 && (*record)->entries == 3));
	return status ? status : npumem_record_stop(script->peer.npumem, *record, error);
}

static int new_file(void)
{
	strcpy(path, "/tmp/npumem-record-XXXXXX");
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	return fd;
}

TEST(what_is_written_can_be_read)
{
	struct script script;
	const struct npumem_record *record;
	struct record_file file;
	struct npumem_error error;
	int fd = new_file();
	script_open(&script, &memory_libc, answer_whole, NULL);
	ck_assert_msg(!record_all(&script, fd, &record, &error), "%s", error.message);
	close(fd);
	ck_assert(!record->lost);
	ck_assert_uint_eq(record->entries, 5);
	npumem_error_clear(&error);
	ck_assert_msg(!record_file_read(&memory_libc, path, &file, &error), "%s", error.message);
	ck_assert_uint_eq(file.n_entries, 5);
	ck_assert_uint_eq(file.hash, 42);
	ck_assert_uint_eq(file.n_local, 4);
	ck_assert_uint_eq(file.local[3], 4);
	ck_assert_int_eq(file.info.geometry.n_npus, 4);
	ck_assert_int_eq(file.info.rounding, NPUMEM_UP);
	record_file_deinit(&file);
	unlink(path);
	script_close(&script);
}

static void answer_lost(const struct peer *peer, uint64_t n, const void *ctx)
{
	(void)ctx;
	if (n == 1)
		answer_info(peer, n);
	else
		answer_recorded(peer, n, 1, n == 4 ? 2 : 0, n > 2);
}

TEST(what_is_lost_has_no_end)
{
	struct script script;
	const struct npumem_record *record;
	struct record_file file;
	struct npumem_error error;
	int fd = new_file();
	script_open(&script, &memory_libc, answer_lost, NULL);
	ck_assert_int_eq(npumem_record_start(script.peer.npumem, fd, &record, &error), 0);
	ck_assert_int_eq(npumem_record_stop(script.peer.npumem, record, &error), 0);
	close(fd);
	ck_assert(record->lost);
	ck_assert_str_eq(record->reason, "too?slow");
	npumem_error_clear(&error);
	ck_assert_int_eq(record_file_read(&memory_libc, path, &file, &error), 0);
	ck_assert_uint_eq(file.n_entries, record->entries);
	ck_assert_uint_gt(file.cut_at, 0);
	record_file_deinit(&file);
	unlink(path);
	script_close(&script);
}

TEST(a_file_that_cannot_be_written)
{
	struct script script;
	const struct npumem_record *record;
	struct npumem_error error;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	script_open(&script, &memory_libc, answer_whole, NULL);
	ck_assert_int_eq(npumem_record_start(script.peer.npumem, fd, &record, &error), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_str_eq(error.message, "cannot write the recording: No space left on device");
	close(fd);
	script_close(&script);
}

static void answer_refusing(const struct peer *peer, uint64_t n, const void *ctx)
{
	(void)ctx;
	if (n == 1)
		answer_info(peer, n);
	else
		peer_refuse(peer, n, n == 2 ? NPUMEM_FAILED_PRECONDITION : NPUMEM_PERMISSION_DENIED,
			    "there are 3");
}

TEST(a_refusal_is_told)
{
	struct script script;
	const struct npumem_record *record;
	const struct record_sums *sums;
	struct npumem_error error;
	int fd = new_file();
	script_open(&script, &memory_libc, answer_refusing, NULL);
	ck_assert_int_eq(npumem_record_start(script.peer.npumem, fd, &record, &error), NPUMEM_FAILED_PRECONDITION);
	ck_assert_str_eq(error.message, "there are 3");
	ck_assert_int_eq(record_sums(script.peer.npumem, &sums, &error), NPUMEM_PERMISSION_DENIED);
	ck_assert_ptr_null(sums);
	close(fd);
	unlink(path);
	script_close(&script);
}

TEST(every_allocation_may_fail)
{
	int status = NPUMEM_UNAVAILABLE;
	for (unsigned i = 1; status; i++) {
		struct failing failing = {.fail_at = i};
		const struct memory memory = {failing_resize, &failing};
		struct script script;
		const struct npumem_record *record;
		int fd = new_file();
		script_open(&script, &memory, answer_whole, NULL);
		if (script.peer.npumem)
			status = record_all(&script, fd, &record, NULL);
		ck_assert(!status || status == NPUMEM_RESOURCE_EXHAUSTED || status == NPUMEM_UNAVAILABLE);
		ck_assert(status || failing.calls < i);
		close(fd);
		unlink(path);
		script_close(&script);
		ck_assert_int_eq(failing.live, 0);
		ck_assert_uint_lt(i, 1000);
	}
}
