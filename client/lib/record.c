/* Writing a record to a file. Invariant: a file has its end only where nothing of it is missing; without one it is
 * refused by npumem_replay_open. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/call.h"
#include "client/lib/record.h"
#include "client/lib/reply.h"
#include "proto/frame.h"

static int write_all(struct npumem_record *record, const void *bytes, size_t n, struct npumem_error *error)
{
	const char *at = bytes;
	while (n) {
		ssize_t written = write(record->fd, at, n);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "cannot write the record: %s",
						strerror(written ? errno : ENOSPC));
		at += written;
		n -= (size_t)written;
	}
	return 0;
}

static int write_entry(const struct memory *memory, struct npumem_record *record,
		       const Npumem__V1__RecordEntry *entry, struct npumem_error *error)
{
	size_t bytes = npumem__v1__record_entry__get_packed_size(entry);
	uint8_t *room = memory_alloc(memory, FRAME_HEADER_BYTES_MAX + bytes);
	if (!room)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"no memory in this process for an entry");
	size_t header = frame_header(bytes, room);
	npumem__v1__record_entry__pack(entry, room + header);
	int status = write_all(record, room, header + bytes, error);
	memory_free(memory, room);
	return status;
}

struct taking {
	const struct memory *memory;
	struct npumem_record *record;
	struct npumem_error error;
	struct record_sums *sums; /* NULL: nobody wants to know */
	unsigned n;
};

static void take_sums(struct taking *taking, const Npumem__V1__Recorded *recorded)
{
	struct record_sums *sums = taking->sums;
	*sums = (struct record_sums){.hash = recorded->hash};
	sums->local = memory_array(taking->memory, recorded->n_local, sizeof(*sums->local));
	if (!sums->local) {
		npumem_error_set(&taking->error, NPUMEM_RESOURCE_EXHAUSTED,
				 "no memory in this process for checksums");
		return;
	}
	sums->n_local = recorded->n_local;
	if (sums->n_local)
		memcpy(sums->local, recorded->local, sums->n_local * sizeof(*sums->local));
}

static int take_entries(struct call *call, const Npumem__V1__Response *response)
{
	struct taking *taking = call->result;
	const Npumem__V1__Recorded *recorded = response->recorded;
	taking->n = (unsigned)recorded->n_entries;
	if (taking->sums)
		take_sums(taking, recorded);
	for (size_t i = 0; i < recorded->n_entries && !taking->error.status; i++) {
		taking->record->entries++;
		write_entry(taking->memory, taking->record, recorded->entries[i], &taking->error);
	}
	if (recorded->lost && !taking->record->lost) {
		taking->record->lost = true;
		reply_text(recorded->reason, taking->record->reason, sizeof(taking->record->reason));
	}
	return 0;
}

static int ask(struct npumem *npumem, int action, struct taking *taking, struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__RecordRequest message = NPUMEM__V1__RECORD_REQUEST__INIT;
	struct call call = {.take = take_entries, .result = taking};
	message.action = (Npumem__V1__RecordAction)action;
	request.call_case = NPUMEM__V1__REQUEST__CALL_RECORD;
	request.record = &message;
	taking->memory = npumem->memory;
	npumem_error_clear(&taking->error);
	int status = call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_RECORDED, &call, error);
	if (!status && taking->error.status && error)
		*error = taking->error;
	return status ? status : taking->error.status;
}

int record_sums(struct npumem *npumem, struct record_sums *sums, struct npumem_error *error)
{
	struct npumem_record none = {.fd = -1};
	struct taking taking = {.record = &none, .sums = sums};
	*sums = (struct record_sums){.hash = 0};
	return ask(npumem, NPUMEM__V1__RECORD_ACTION__RECORD_HASH, &taking, error);
}

static int write_header(struct npumem *npumem, struct npumem_record *record, struct npumem_error *error)
{
	Npumem__V1__RecordEntry entry = NPUMEM__V1__RECORD_ENTRY__INIT;
	Npumem__V1__Info header = NPUMEM__V1__INFO__INIT;
	struct npumem_info info;
	int status = npumem_info(npumem, &info, error);
	if (status)
		return status;
	header.version = info.version;
	header.n_npus = info.geometry.n_npus;
	header.npu_bytes = info.geometry.npu_bytes;
	header.n_banks = info.geometry.n_banks;
	header.eu_bytes = info.geometry.eu_bytes;
	header.rounding = (Npumem__V1__Rounding)info.rounding;
	header.uninitialized = (Npumem__V1__Uninitialized)info.uninitialized;
	header.unchecked_reuse = info.unchecked_reuse;
	header.uid = info.uid;
	entry.header = &header;
	status = write_all(record, RECORD_MAGIC, RECORD_MAGIC_BYTES, error);
	return status ? status : write_entry(npumem->memory, record, &entry, error);
}

int npumem_record_start(struct npumem *npumem, int fd, struct npumem_record *record, struct npumem_error *error)
{
	struct taking taking = {.record = record};
	*record = (struct npumem_record){.fd = fd};
	int status = write_header(npumem, record, error);
	return status ? status : ask(npumem, NPUMEM__V1__RECORD_ACTION__RECORD_START, &taking, error);
}

int npumem_record_take(struct npumem *npumem, struct npumem_record *record, unsigned *n,
		       struct npumem_error *error)
{
	struct taking taking = {.record = record};
	int status = ask(npumem, NPUMEM__V1__RECORD_ACTION__RECORD_TAKE, &taking, error);
	*n = taking.n;
	return status;
}

static int write_end(struct npumem *npumem, struct npumem_record *record, const struct record_sums *sums,
		     struct npumem_error *error)
{
	Npumem__V1__RecordEntry entry = NPUMEM__V1__RECORD_ENTRY__INIT;
	Npumem__V1__RecordEnd end = NPUMEM__V1__RECORD_END__INIT;
	end.entries = record->entries;
	end.hash = sums->hash;
	end.n_local = sums->n_local;
	end.local = sums->local;
	entry.end = &end;
	return write_entry(npumem->memory, record, &entry, error);
}

int npumem_record_stop(struct npumem *npumem, struct npumem_record *record, struct npumem_error *error)
{
	struct record_sums sums = {.hash = 0};
	struct taking taking = {.record = record, .sums = &sums};
	unsigned n = 1;
	int status = ask(npumem, NPUMEM__V1__RECORD_ACTION__RECORD_STOP, &taking, error);
	while (!status && n)
		status = npumem_record_take(npumem, record, &n, error);
	if (!status && !record->lost)
		status = write_end(npumem, record, &sums, error);
	memory_free(npumem->memory, sums.local);
	return status;
}
