/* Records put together by hand: entries as messages, and a file of them as bytes. */
#ifndef TESTS_CLIENT_RECORDS_H
#define TESTS_CLIENT_RECORDS_H

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/message.h"
#include "client/lib/record/record.h"
#include "proto/frame.h"
#include "proto/npumem.pb-c.h"

struct records {
	uint8_t bytes[1 << 14];
	size_t n, n_entries;
	uint64_t number;
	uint64_t snapshot; /* that its end tells of */
};

static inline void records_put(struct records *records, const Npumem__V1__RecordEntry *entry)
{
	size_t bytes = npumem__v1__record_entry__get_packed_size(entry);
	ck_assert_uint_lt(records->n + bytes + FRAME_HEADER_BYTES_MAX, sizeof(records->bytes));
	records->n += frame_header(bytes, records->bytes + records->n);
	records->n += npumem__v1__record_entry__pack(entry, records->bytes + records->n);
}

/* The magic and a header: 2 NPUs of 1024 bytes. */
static inline void records_begin(struct records *records)
{
	Npumem__V1__RecordEntry entry = NPUMEM__V1__RECORD_ENTRY__INIT;
	*records = (struct records){.n = RECORD_MAGIC_BYTES};
	memcpy(records->bytes, RECORD_MAGIC, RECORD_MAGIC_BYTES);
	Npumem__V1__Info info = {MESSAGE(info), .n_npus = 2, .npu_bytes = 1024, .n_banks = 2, .eu_bytes = 128};
	entry.header = &info;
	records_put(records, &entry);
}

/* Counts it as an entry. */
static inline void records_add(struct records *records, Npumem__V1__RecordEntry *entry)
{
	entry->number = records->number + 1;
	records->number += !entry->part;
	records->n_entries++;
	records_put(records, entry);
}

/* A request, answered with `status`, of session `session`, in one piece; `handle` 0: none. */
static inline void records_request(struct records *records, uint64_t session, Npumem__V1__Request *request,
				   int status, uint64_t digest, uint64_t handle)
{
	uint8_t bytes[1024];
	request->id = 1;
	ck_assert_uint_le(npumem__v1__request__get_packed_size(request), sizeof(bytes));
	Npumem__V1__RecordEntry entry = {
		MESSAGE(record_entry),
		.session = session,
		.uid = 1000 + (uint32_t)session,
		.status = (Npumem__V1__Status)status,
		.digest = digest,
		.n_handles = handle != 0,
		.handles = &handle,
		.request = (ProtobufCBinaryData){npumem__v1__request__pack(request, bytes), bytes}};
	records_add(records, &entry);
}

static inline void records_end_session(struct records *records, uint64_t session)
{
	Npumem__V1__RecordEntry entry = NPUMEM__V1__RECORD_ENTRY__INIT;
	entry.session = session;
	records_add(records, &entry);
}

/* `transfer` of 6 int16 elements [1,1,2,3] at 10, each row 8 elements apart, in segment 3. */
struct records_transfer {
	Npumem__V1__RecordTransfer message;
	Npumem__V1__Dims extent, stride;
};

static inline void records_transfer_init(struct records_transfer *transfer)
{
	npumem__v1__record_transfer__init(&transfer->message);
	npumem__v1__dims__init(&transfer->extent);
	npumem__v1__dims__init(&transfer->stride);
	transfer->message.extent = &transfer->extent;
	transfer->message.stride = &transfer->stride;
	transfer->message.segment = 3;
	transfer->message.offset = 10;
	transfer->message.element_bytes = 2;
	transfer->extent.n = transfer->extent.c = 1;
	transfer->extent.h = 2;
	transfer->extent.w = 3;
	transfer->stride.h = 8;
	transfer->stride.w = 1;
}

static inline void records_part(struct records *records, Npumem__V1__RecordTransfer *transfer)
{
	Npumem__V1__RecordEntry entry = {MESSAGE(record_entry), .part = true, .transfer = transfer};
	records_add(records, &entry);
}

static inline void records_end(struct records *records, uint64_t hash, uint32_t *local, size_t n_local)
{
	Npumem__V1__RecordEntry entry = NPUMEM__V1__RECORD_ENTRY__INIT;
	Npumem__V1__RecordEnd end = {MESSAGE(record_end), .entries = records->n_entries,
				     .hash = hash,	  .local = local,
				     .n_local = n_local,  .snapshot = records->snapshot};
	entry.end = &end;
	records_put(records, &entry);
}

/* A file of them; the caller unlinks. */
static inline void records_file(const struct records *records, char path[32])
{
	strcpy(path, "/tmp/npumem-record-XXXXXX");
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq((int)write(fd, records->bytes, records->n), (int)records->n);
	close(fd);
}

#endif
