/* A record's requests again, in the order of their answers. That order is one in which they could have run one by
 * one: what conflicts is answered in turn. Before each, what its writes take of system memory is put there, and
 * after it, what its reads delivered there is looked at.
 * Invariant: handles of the record never reach a daemon, only those that they became. */
#include "client/lib/record/record.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/connection/connection.h"
#include "client/lib/connection/engine/engine.h"
#include "client/lib/messages/message.h"
#include "client/lib/messages/payload.h"
#include "proto/digest.h"
#include "proto/methods.h"

enum { REPLAY_HANDLES_MAX = 256, REPLAY_TOKEN_BYTES = 16 };

struct npumem_replay {
	struct record_file file;
	struct replay_handles handles;
	struct replay_peer *peers;
	struct npumem_replay_result result;
};

/* What is sent next: an entry with the parts before it. */
struct step {
	Npumem__V1__RecordEntry *const *parts;
	size_t n_parts;
	const Npumem__V1__RecordEntry *entry;
};

static int no_memory(struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory in this process for the replay");
}

int replay_new(const struct memory *memory, const char *path, struct npumem_replay **out,
	       struct npumem_error *error)
{
	struct npumem_replay *replay = memory_alloc(memory, sizeof(*replay));
	size_t n_handles = 0;
	request_clear(error);
	*out = NULL;
	if (!replay)
		return no_memory(error);
	memset(replay, 0, sizeof(*replay));
	int status = record_file_read(memory, path, &replay->file, error);
	if (status) {
		memory_free(memory, replay);
		return status;
	}
	for (size_t i = 0; i < replay->file.n_entries; i++)
		n_handles += replay->file.entries[i]->n_handles;
	if (replay_handles_init(&replay->handles, memory, n_handles)) {
		npumem_replay_close(replay);
		return no_memory(error);
	}
	*out = replay;
	return 0;
}

int npumem_replay_open(const char *path, struct npumem_replay **out, struct npumem_error *error)
{
	return replay_new(&memory_libc, path, out, error);
}

const struct npumem_info *npumem_replay_info(const struct npumem_replay *replay)
{
	return &replay->file.info;
}

bool npumem_replay_has_snapshot(const struct npumem_replay *replay)
{
	return replay->file.snapshot || (replay->file.cut_at && replay->file.has_tensors);
}

uint64_t npumem_replay_cut(const struct npumem_replay *replay, uint64_t *entries)
{
	const struct record_file *file = &replay->file;
	*entries = file->n_entries ? file->entries[file->n_entries - 1]->number : 0;
	return file->cut_at;
}

const struct record_file *replay_file(const struct npumem_replay *replay)
{
	return &replay->file;
}

void npumem_replay_close(struct npumem_replay *replay)
{
	if (!replay)
		return;
	const struct memory *memory = replay->file.memory;
	while (replay->peers)
		replay_peer_close(&replay->peers, memory);
	replay_handles_deinit(&replay->handles, memory);
	record_file_deinit(&replay->file);
	memory_free(memory, replay);
}

/* ---- answers ---- */

struct answer {
	uint64_t digest, handles[REPLAY_HANDLES_MAX];
	size_t n_handles;
};

static int take_any(struct npumem_request *request, const Npumem__V1__Response *response,
		    struct npumem_error *error)
{
	struct answer *answer = request->state;
	(void)error;
	answer->digest = digest_response(response);
	answer->n_handles = digest_handles(response, answer->handles, REPLAY_HANDLES_MAX);
	return 0;
}

__attribute__((format(printf, 3, 4))) static void
differ(struct npumem_replay_result *result, const Npumem__V1__RecordEntry *entry, const char *format, ...)
{
	va_list arguments;
	if (result->differences++)
		return;
	if (entry) {
		result->first = entry->number;
		result->session = entry->session;
		result->uid = entry->uid;
		result->pid = entry->pid;
	}
	va_start(arguments, format);
	vsnprintf(result->what, sizeof(result->what), format, arguments);
	va_end(arguments);
}

static const char *name_of(int status)
{
	return npumem_status_name(status) ? npumem_status_name(status) : "?";
}

static bool compare(struct npumem_replay *replay, const Npumem__V1__RecordEntry *entry, int status,
		    const struct answer *answer, const struct npumem_error *error,
		    struct npumem_replay_result *result)
{
	uint64_t before = result->differences;
	if (status != (int)entry->status)
		differ(result, entry, "answered %s, and %s in the recording%s%.150s", name_of(status),
		       name_of((int)entry->status), status ? ": " : "", status ? error->message : "");
	else if (answer->digest != entry->digest || answer->n_handles != entry->n_handles)
		differ(result, entry, "the data or the counts of its answer differ");
	for (size_t i = 0; i < entry->n_handles && i < answer->n_handles && i < REPLAY_HANDLES_MAX; i++)
		replay_handles_add(&replay->handles, entry->handles[i], answer->handles[i]);
	return result->differences == before;
}

/* ---- system memory ---- */

/* NULL where the segment is none of the replay's: sharing it again was refused, or the file is not the daemon's.
 */
static uint8_t *memory_of(const struct replay_peer *peer, const Npumem__V1__RecordTransfer *transfer,
			  struct region *region)
{
	const struct npumem_segment *segment = replay_peer_segment(peer, transfer->segment);
	if (!segment || !region_of(transfer, region) || region->end > segment->bytes)
		return NULL;
	return segment->base;
}

/* The last ones first: where two writes of a submit take the same byte and a read between them changes it, it is
 * the first one's that has to be there. */
static void put_sources(const struct replay_peer *peer, const struct step *step)
{
	for (size_t i = step->n_parts; i-- > 0;) {
		const Npumem__V1__RecordTransfer *transfer = step->parts[i]->transfer;
		struct region region;
		uint8_t *base = transfer && !transfer->is_read ? memory_of(peer, transfer, &region) : NULL;
		if (base)
			region_put(&region, base, transfer->first, transfer->data.data, transfer->data.len);
	}
}

/* Whether a later read of the same submit delivered to where this one did. */
static bool is_covered(const struct step *step, size_t index, const struct region *region)
{
	const Npumem__V1__RecordTransfer *transfer = step->parts[index]->transfer, *later;
	struct region other;
	for (size_t i = index + 1; i < step->n_parts; i++) {
		later = step->parts[i]->transfer;
		if (later && later->is_read && later->segment == transfer->segment && region_of(later, &other) &&
		    other.offset < region->end && region->offset < other.end)
			return true;
	}
	return false;
}

static void compare_delivered(const struct replay_peer *peer, const struct step *step,
			      struct npumem_replay_result *result)
{
	for (size_t i = 0; i < step->n_parts; i++) {
		const Npumem__V1__RecordTransfer *transfer = step->parts[i]->transfer;
		struct region region;
		uint8_t *base = transfer && transfer->is_read ? memory_of(peer, transfer, &region) : NULL;
		if (!base || is_covered(step, i, &region) || region_crc(&region, base) == transfer->crc32)
			continue;
		differ(result, step->entry,
		       "the data that operation %" PRIu32 " delivered to system memory differ",
		       transfer->operation);
		return;
	}
}

/* ---- sending ---- */

/* Sends a message and waits for its answer, whatever it is. */
static int ask(struct npumem *npumem, Npumem__V1__Request *message, struct answer *answer,
	       struct npumem_error *error)
{
	static const struct request_kind kind = {.result = REQUEST_ANY, .take = take_any};
	struct npumem_request *made;
	struct call call;
	int status = call_begin(npumem, &call, error);
	if (!status)
		status = request_new(npumem, &kind, 0, call_answered, &call, &made, error);
	if (!status) {
		made->state = answer;
		status = request_start(made, message, NULL, NULL, error);
	}
	return call_wait(&call, status);
}

/* Whether room was kept for allocations that waited: in a replay none waits. */
static bool was_kept_for_others(struct npumem_replay *replay, const Npumem__V1__RecordEntry *entry)
{
	ProtobufCAllocator *allocator = &replay->file.allocator;
	bool was_kept = false;
	if (entry->status != NPUMEM__V1__STATUS__RESOURCE_EXHAUSTED)
		return false;
	Npumem__V1__Response *answer =
		npumem__v1__response__unpack(allocator, entry->answer.len, entry->answer.data);
	for (size_t i = 0; answer && i < answer->n_fields; i++)
		was_kept |= !strcmp(answer->fields[i]->key, "waiting");
	npumem__v1__response__free_unpacked(answer, allocator);
	return was_kept;
}

/* What was cut short changed nothing; what makes no sense alone has nothing to compare. */
static bool is_skipped(struct npumem_replay *replay, const Npumem__V1__RecordEntry *entry,
		       const Npumem__V1__Request *request)
{
	return !request || was_kept_for_others(replay, entry) || entry->status == NPUMEM__V1__STATUS__CANCELLED ||
	       entry->status == NPUMEM__V1__STATUS__DEADLINE_EXCEEDED ||
	       entry->status == NPUMEM__V1__STATUS__UNAVAILABLE ||
	       methods_rows[methods_number(request->call_case)].record < METHODS_RECORD_REPLAYED;
}

/* A view is there as soon as its request is in its place: one that is in the snapshot may be answered after it. */
static bool is_there(const struct npumem_replay *replay, const Npumem__V1__RecordEntry *entry,
		     const Npumem__V1__Request *request)
{
	return request->call_case == NPUMEM__V1__REQUEST__CALL_VIEW && entry->n_handles &&
	       replay_handles_know(&replay->handles, entry->handles[0]);
}

/* The request's message, put together from its parts; the caller frees it by `allocator`. NULL: none, or
 * (*starved) no memory. */
static Npumem__V1__Request *unpack(struct npumem_replay *replay, const struct step *step, bool *starved)
{
	struct record_file *file = &replay->file;
	size_t bytes = step->entry->request.len, at = 0;
	for (size_t i = 0; i < step->n_parts; i++)
		bytes += step->parts[i]->request.len;
	uint8_t *message = memory_alloc(file->memory, bytes);
	*starved = !message;
	if (!message)
		return NULL;
	for (size_t i = 0; i <= step->n_parts; i++) {
		const Npumem__V1__RecordEntry *entry = i < step->n_parts ? step->parts[i] : step->entry;
		if (entry->request.len)
			memcpy(message + at, entry->request.data, entry->request.len);
		at += entry->request.len;
	}
	file->starved = false;
	Npumem__V1__Request *request = npumem__v1__request__unpack(&file->allocator, bytes, message);
	*starved = file->starved;
	memory_free(file->memory, message);
	return request;
}

static int share_again(struct npumem_replay *replay, struct replay_peer *peer,
		       const Npumem__V1__RecordEntry *entry, struct npumem_replay_result *result,
		       struct npumem_error *error)
{
	int status = replay_peer_share(peer, replay->file.memory, entry->shared, error);
	result->requests++;
	if (status == NPUMEM_UNAVAILABLE)
		return status;
	if (status)
		differ(result, entry, "%" PRIu64 " bytes of system memory could not be shared: %.150s",
		       entry->shared->bytes, error->message);
	return 0;
}

static int send_again(struct npumem_replay *replay, struct replay_peer *peer, const struct step *step,
		      struct npumem_replay_result *result, struct npumem_error *error)
{
	struct answer answer = {.n_handles = 0};
	bool starved;
	if (step->entry->shared)
		return share_again(replay, peer, step->entry, result, error);
	Npumem__V1__Request *request = unpack(replay, step, &starved);
	if (!request && starved)
		return no_memory(error);
	int status = 0;
	answer.digest = digest_begin();
	if (is_skipped(replay, step->entry, request) || is_there(replay, step->entry, request)) {
		result->skipped++;
	} else {
		uint64_t unshared =
			request->call_case == NPUMEM__V1__REQUEST__CALL_UNSHARE ? request->unshare->segment : 0;
		put_sources(peer, step);
		replay_handles_map(&replay->handles, peer, &request->base);
		status = ask(peer->npumem, request, &answer, error);
		if (status != NPUMEM_UNAVAILABLE) {
			result->requests++;
			if (compare(replay, step->entry, status, &answer, error, result))
				compare_delivered(peer, step, result);
			if (!status && unshared)
				replay_peer_unshare(peer, replay->file.memory, unshared);
			status = 0;
		}
	}
	if (request)
		npumem__v1__request__free_unpacked(request, &replay->file.allocator);
	return status;
}

/* ---- sessions ---- */

/* Closes, and waits until its tensors are freed: no message announces the end of a session. */
static void end_peer(struct npumem_replay *replay, uint64_t session, struct npumem *admin)
{
	struct replay_peer **at = replay_peer_find(&replay->peers, session);
	const struct npumem_stat *before, *after;
	if (!*at)
		return;
	int status = npumem_stat(admin, &before, NULL);
	replay_peer_close(at, replay->file.memory);
	for (unsigned i = 0; i < 10000 && !status; i++) {
		status = npumem_stat(admin, &after, NULL);
		bool is_gone = !status && after->sessions < before->sessions;
		npumem_release(after);
		if (is_gone)
			break;
	}
	npumem_release(before);
}

typedef int open_function(void *ctx, uint32_t uid, struct npumem **out, struct npumem_error *error);

/* A session of the snapshot waits for its client under its number; any other begins as what it is. */
static int come_back(struct npumem *npumem, uint64_t session, struct npumem_error *error)
{
	Npumem__V1__ResumeRequest resume = NPUMEM__V1__RESUME_REQUEST__INIT;
	uint8_t token[REPLAY_TOKEN_BYTES] = {0};
	struct answer answer;
	for (unsigned i = 0; i < sizeof(session); i++)
		token[i] = (uint8_t)(session >> 8 * i);
	resume.token = (ProtobufCBinaryData){sizeof(token), token};
	int status = ask(npumem, &MESSAGE_REQUEST(RESUME, resume, &resume), &answer, error);
	return status == NPUMEM_NOT_FOUND ? 0 : status;
}

static int add_peer(struct npumem_replay *replay, const Npumem__V1__RecordEntry *entry, struct replay_peer **at,
		    open_function *open, void *ctx, struct npumem_error *error)
{
	struct npumem *npumem = NULL;
	int status = open(ctx, entry->uid, &npumem, error);
	if (status)
		return status;
	*at = replay_peer_new(replay->file.memory, entry->session, npumem);
	if (!*at)
		return no_memory(error);
	return npumem_replay_has_snapshot(replay) ? come_back(npumem, entry->session, error) : 0;
}

/* Tensors of the snapshot keep their handles. An entry that names them may be behind requests that use them. */
static void add_before(struct npumem_replay *replay)
{
	for (size_t i = 0; i < replay->file.n_entries; i++) {
		const Npumem__V1__RecordEntry *entry = replay->file.entries[i];
		for (size_t k = 0; k < entry->n_handles && entry->before; k++)
			replay_handles_add(&replay->handles, entry->handles[k], entry->handles[k]);
	}
}

static int run_step(struct npumem_replay *replay, const struct step *step, struct npumem *admin,
		    open_function *open, void *ctx, struct npumem_replay_result *result,
		    struct npumem_error *error)
{
	const Npumem__V1__RecordEntry *entry = step->entry;
	struct replay_peer **at = replay_peer_find(&replay->peers, entry->session);
	bool is_end = !step->n_parts && !entry->request.len && !entry->status && !entry->shared;
	if (entry->before)
		return 0;
	int status = *at || (is_end && !npumem_replay_has_snapshot(replay))
			     ? 0
			     : add_peer(replay, entry, at, open, ctx, error);
	if (status)
		return status;
	if (!is_end)
		return send_again(replay, *at, step, result, error);
	end_peer(replay, entry->session, admin);
	return 0;
}

/* ---- the end ---- */

static void compare_local(const struct record_file *file, const struct record_sums *sums,
			  struct npumem_replay_result *result)
{
	for (size_t i = 0; i < sums->n_local && i < file->n_local; i++)
		if (sums->local[i] != file->local[i]) {
			result->npu = (int64_t)i;
			differ(result, NULL,
			       "the local memory of NPU %zu is the first that differs in the end: CRC-32 "
			       "%08" PRIx32 ", and %08" PRIx32 " in the recording",
			       i, sums->local[i], file->local[i]);
			return;
		}
}

static int compare_end(const struct npumem_replay *replay, struct npumem *admin,
		       struct npumem_replay_result *result, struct npumem_error *error)
{
	const struct record_file *file = &replay->file;
	const struct npumem_geometry *recorded = &file->info.geometry;
	const struct record_sums *sums = NULL;
	const struct npumem_info *info = NULL;
	int status = npumem_info(admin, &info, error);
	if (!status)
		status = record_sums(admin, &sums, error);
	if (!status) {
		result->same_geometry = info->geometry.n_npus == recorded->n_npus &&
					info->geometry.npu_bytes == recorded->npu_bytes &&
					info->geometry.eu_bytes == recorded->eu_bytes;
		if (sums->hash != file->hash)
			differ(result, NULL, "the data of the tensors in the end differ");
		if (result->same_geometry)
			compare_local(file, sums, result);
	}
	npumem_release(info);
	npumem_release(sums);
	return status;
}

int npumem_replay_run(struct npumem_replay *replay, uint32_t admin_uid, open_function *open, void *ctx,
		      const struct npumem_replay_result **out, struct npumem_error *error)
{
	const struct record_file *file = &replay->file;
	struct npumem_replay_result *result = &replay->result;
	struct npumem *admin = NULL;
	struct step step = {.n_parts = 0};
	struct npumem_error own;
	if (!error)
		error = &own;
	*result = (struct npumem_replay_result){.npu = -1};
	*out = result;
	if (file->has_tensors && !npumem_replay_has_snapshot(replay))
		return npumem_error_set(
			error, NPUMEM_INVALID,
			"the recording began on a device with tensors and without a snapshot of it: it is "
			"for a report alone");
	add_before(replay);
	int status = open(ctx, admin_uid, &admin, error);
	for (size_t i = 0; i < file->n_entries && !status; i++) {
		if (file->entries[i]->part) {
			step.n_parts++;
			continue;
		}
		step.parts = file->entries + i - step.n_parts;
		step.entry = file->entries[i];
		status = run_step(replay, &step, admin, open, ctx, result, error);
		step.n_parts = 0;
	}
	if (!status && !file->cut_at)
		status = compare_end(replay, admin, result, error);
	npumem_close(admin);
	return status;
}
