/* Whatever the bytes of a file are, it is refused with a reason that names the entry, or can be relied on. */
#include "client/lib/record/record.h"

#include "client/lib/messages/payload.h"
#include "tests/support/test.h"
#include "tests/unit/client/lib/failing.h"
#include "tests/unit/client/lib/records.h"

/* Two sessions; a write from a segment told in two parts, a request in two, a read, both ends. */
static void sample(struct records *records)
{
	Npumem__V1__InfoRequest info = NPUMEM__V1__INFO_REQUEST__INIT;
	Npumem__V1__Shared shared = NPUMEM__V1__SHARED__INIT;
	struct records_transfer transfer;
	uint8_t data[12] = "abcdefghijkl";
	uint32_t local[] = {5, 6};
	records_begin(records);
	Npumem__V1__Request request = {MESSAGE(request), .call_case = NPUMEM__V1__REQUEST__CALL_INFO,
				       .info = &info};
	records_request(records, 1, &request, 0, 7, 0);
	Npumem__V1__RecordEntry entry = {MESSAGE(record_entry), .session = 2, .shared = &shared};
	shared.segment = 3;
	shared.bytes = 4096;
	records_add(records, &entry);
	records_transfer_init(&transfer);
	transfer.message.data = (ProtobufCBinaryData){8, data};
	records_part(records, &transfer.message);
	transfer.message.first = 8;
	transfer.message.data = (ProtobufCBinaryData){4, data + 8};
	records_part(records, &transfer.message);
	records_transfer_init(&transfer);
	transfer.message.is_read = true;
	transfer.message.crc32 = 99;
	records_part(records, &transfer.message);
	entry.shared = NULL;
	entry.part = true;
	entry.session = 0;
	entry.request = (ProtobufCBinaryData){3, data};
	records_add(records, &entry);
	records_request(records, 2, &request, NPUMEM_INVALID, 8, 55);
	records_end_session(records, 1);
	records_end(records, 77, local, 2);
}

static int parse(const uint8_t *bytes, size_t n, struct record_file *file, struct npumem_error *error)
{
	/* A copy that ends where the bytes end, for sanitizers. */
	uint8_t *copy = malloc(n + !n);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, bytes, n);
	npumem_error_clear(error);
	int status = record_file_parse(&memory_libc, "f", copy, n, file, error);
	free(copy);
	ck_assert(!status || status == NPUMEM_INVALID);
	ck_assert_int_eq(status, error->status);
	return status;
}

TEST(what_is_whole_is_read)
{
	struct records records;
	struct record_file file;
	struct npumem_error error;
	sample(&records);
	ck_assert_msg(!parse(records.bytes, records.n, &file, &error), "%s", error.message);
	ck_assert_uint_eq(file.n_entries, 8);
	ck_assert_uint_eq(file.hash, 77);
	ck_assert_uint_eq(file.n_local, 2);
	ck_assert_uint_eq(file.local[1], 6);
	ck_assert_int_eq(file.info.geometry.npu_bytes, 1024);
	ck_assert_uint_eq(file.entries[6]->handles[0], 55);
	ck_assert_uint_eq(file.entries[6]->number, 3);
	record_file_deinit(&file);
}

/* Of the sample cut anywhere there is what is whole: never a part without the entry that it is of. */
TEST(every_cut_leaves_whole_entries)
{
	struct records records;
	struct record_file file;
	struct npumem_error error;
	size_t begin = 0, n_cuts = 0, last = 0;
	sample(&records);
	for (size_t n = 0; n < records.n; n++) {
		if (parse(records.bytes, n, &file, &error)) {
			ck_assert_uint_eq(begin, 0);
			ck_assert(strstr(error.message, n < RECORD_MAGIC_BYTES ? "not a recording" : "cut off"));
			continue;
		}
		begin = begin ? begin : n;
		ck_assert_uint_ge(file.cut_at, begin);
		ck_assert_uint_le(file.cut_at, n);
		ck_assert(!file.n_entries || !file.entries[file.n_entries - 1]->part);
		ck_assert_uint_eq(file.n_local, 0);
		n_cuts += file.cut_at != last;
		last = file.cut_at;
		record_file_deinit(&file);
	}
	/* Behind the header, and behind each of the four entries that are no parts. */
	ck_assert_uint_eq(n_cuts, 5);
	ck_assert(!parse(records.bytes, records.n, &file, &error));
	ck_assert_uint_eq(file.cut_at, 0);
	record_file_deinit(&file);
}

/* Each entry left out, and each told twice. Without the end it is one that was cut there. */
TEST(every_gap_is_found)
{
	struct records records, other;
	struct record_file file;
	struct npumem_error error;
	sample(&records);
	for (size_t at = RECORD_MAGIC_BYTES, n; at < records.n; at += n) {
		size_t header, bytes;
		ck_assert_int_eq(frame_parse(records.bytes + at, records.n - at, 4096, &header, &bytes),
				 FRAME_COMPLETE);
		n = header + bytes;
		other = records;
		memmove(other.bytes + at, other.bytes + at + n, records.n - at - n);
		if (at + n < records.n) {
			ck_assert_int_eq(parse(other.bytes, records.n - n, &file, &error), NPUMEM_INVALID);
		} else {
			ck_assert(!parse(other.bytes, records.n - n, &file, &error));
			ck_assert_uint_eq(file.cut_at, at);
			record_file_deinit(&file);
		}
		memcpy(other.bytes, records.bytes, at + n);
		memcpy(other.bytes + at + n, records.bytes + at, records.n - at);
		ck_assert_int_eq(parse(other.bytes, records.n + n, &file, &error), NPUMEM_INVALID);
	}
}

/* What one entry lacks is said of that entry, not of the end. */
TEST(the_entry_is_named)
{
	struct records records;
	struct record_file file;
	struct npumem_error error;
	records_begin(&records);
	records_end_session(&records, 1);
	records.number++;
	records_end_session(&records, 1);
	records_end(&records, 0, NULL, 0);
	ck_assert_int_eq(parse(records.bytes, records.n, &file, &error), NPUMEM_INVALID);
	ck_assert_msg(strstr(error.message, "f: entry 2, at byte") &&
			      strstr(error.message, "before it are missing"),
		      "%s", error.message);
	/* A part without the rest. */
	struct records_transfer transfer;
	records_begin(&records);
	records_transfer_init(&transfer);
	transfer.message.is_read = true;
	records_part(&records, &transfer.message);
	records_end(&records, 0, NULL, 0);
	ck_assert_int_eq(parse(records.bytes, records.n, &file, &error), NPUMEM_INVALID);
	ck_assert(strstr(error.message, "entries before the end are missing"));
}

/* Of a write of 12 bytes, told in two parts. */
TEST(transfers_that_do_not_fit)
{
	static const struct {
		size_t first[2], n[2];
		const char *why;
	} cases[] = {
		{{0, 8}, {8, 4}, NULL},
		{{0, 0}, {12, 0}, "whole elements"},
		{{0, 8}, {8, 6}, "whole elements"},
		{{0, 0}, {14, 0}, "whole elements"},
		{{0, 8}, {8, 3}, "whole elements"},
		{{0, 6}, {8, 4}, "missing"},
		{{0, 10}, {8, 2}, "missing"},
		{{2, 0}, {8, 2}, "missing"},
		{{0, 8}, {8, 2}, "missing"},
	};
	uint8_t data[16] = {0};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct records records;
		struct records_transfer transfer;
		struct record_file file;
		struct npumem_error error;
		records_begin(&records);
		for (unsigned k = 0; k < 2; k++) {
			records_transfer_init(&transfer);
			transfer.message.first = cases[i].first[k];
			transfer.message.data = (ProtobufCBinaryData){cases[i].n[k], data};
			records_part(&records, &transfer.message);
		}
		records_end_session(&records, 1);
		records_end(&records, 0, NULL, 0);
		int status = parse(records.bytes, records.n, &file, &error);
		ck_assert_msg(status ? cases[i].why && strstr(error.message, cases[i].why) : !cases[i].why,
			      "case %zu: %s", i, error.message);
		if (!status)
			record_file_deinit(&file);
	}
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* What the rest of the library relies on. */
static void rely_on(const struct record_file *file)
{
	uint8_t room[256] = {0};
	for (size_t i = 0; i < file->n_entries; i++) {
		const Npumem__V1__RecordEntry *entry = file->entries[i];
		struct region region;
		if (!entry->transfer)
			continue;
		ck_assert(entry->part && region_of(entry->transfer, &region));
		if (region.end > sizeof(room))
			continue;
		ck_assert_uint_le(entry->transfer->first + entry->transfer->data.len, region.bytes);
		region_put(&region, room, entry->transfer->first, entry->transfer->data.data,
			   entry->transfer->data.len);
	}
}

TEST(random_damage)
{
	struct records records, other;
	struct record_file file;
	struct npumem_error error;
	uint32_t state = 1, refused = 0;
	sample(&records);
	for (unsigned round = 0; round < 4000; round++) {
		other = records;
		for (unsigned n = 1 + next_random(&state) % 3; n > 0; n--) {
			uint8_t *at = other.bytes + next_random(&state) % records.n;
			*at = next_random(&state) % 2 ? (uint8_t)next_random(&state)
						      : (uint8_t)(*at ^ 1 << next_random(&state) % 8);
		}
		if (parse(other.bytes, records.n, &file, &error)) {
			refused++;
			continue;
		}
		rely_on(&file);
		record_file_deinit(&file);
	}
	/* The rest changed what a digest or a name is. */
	ck_assert_uint_gt(refused, 2000);
	ck_assert_uint_lt(refused, 4000);
}

TEST(every_allocation_may_fail)
{
	struct records records;
	struct npumem_error error;
	char path[32];
	int status = NPUMEM_RESOURCE_EXHAUSTED;
	sample(&records);
	records_file(&records, path);
	for (unsigned i = 1; status; i++) {
		struct failing failing = {.fail_at = i};
		const struct memory memory = {failing_resize, &failing};
		struct record_file file;
		status = record_file_read(&memory, path, &file, &error);
		ck_assert_int_eq(status, failing.calls >= i ? NPUMEM_RESOURCE_EXHAUSTED : 0);
		if (!status)
			record_file_deinit(&file);
		ck_assert_int_eq(failing.live, 0);
		ck_assert_uint_lt(i, 1000);
	}
	unlink(path);
}

TEST(files_that_cannot_be_read)
{
	struct record_file file;
	struct npumem_error error;
	npumem_error_clear(&error);
	ck_assert_int_eq(record_file_read(&memory_libc, "/nowhere/r", &file, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "/nowhere/r: No such file or directory");
	npumem_error_clear(&error);
	ck_assert_int_eq(record_file_read(&memory_libc, "/tmp", &file, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "/tmp: it cannot be read");
	/* Longer than what is read at once. */
	char path[] = "/tmp/npumem-record-XXXXXX";
	int fd = mkstemp(path);
	ck_assert_int_eq((int)write(fd, RECORD_MAGIC, RECORD_MAGIC_BYTES), RECORD_MAGIC_BYTES);
	ck_assert_int_eq(ftruncate(fd, 1 << 18), 0);
	close(fd);
	npumem_error_clear(&error);
	ck_assert_int_eq(record_file_read(&memory_libc, path, &file, &error), NPUMEM_INVALID);
	ck_assert(strstr(error.message, "entry 0, at byte 16: it does not tell what was recorded"));
	unlink(path);
}
