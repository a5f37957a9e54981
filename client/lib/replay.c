/* A record, read whole and checked before anything is sent; then its requests again, in the order of their
 * answers. That order is one in which they could have run one by one: what conflicts is answered in turn.
 * Invariant: handles of the record never reach a daemon, only those that they became. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/call.h"
#include "client/lib/record.h"
#include "client/lib/reply.h"
#include "proto/digest.h"
#include "proto/frame.h"

enum { REPLAY_HANDLES_MAX = 256 };

struct peer {
	uint64_t session;
	struct npumem *npumem;
	struct peer *next;
};

struct npumem_replay {
	uint8_t *bytes;
	size_t n_bytes;
	Npumem__V1__RecordEntry **entries; /* without header and end */
	size_t n_entries;
	uint64_t hash;
	uint64_t *from, *to; /* handles: open addressing, 0 is free */
	size_t n_slots;	     /* a power of two above all handles */
	struct peer *peers;
};

/* ---- reading ---- */

static int refuse(struct npumem_error *error, const char *path, const char *why)
{
	return npumem_error_set(error, NPUMEM_INVALID, "%.200s: %s", path, why);
}

static int read_file(const char *path, struct npumem_replay *replay, struct npumem_error *error)
{
	FILE *file = fopen(path, "rb");
	size_t room = 1 << 16, n = 1;
	if (!file)
		return refuse(error, path, strerror(errno));
	while (n) {
		uint8_t *grown = replay->n_bytes + room / 2 < room && replay->bytes
					 ? replay->bytes
					 : realloc(replay->bytes, room *= 2);
		if (!grown)
			break;
		replay->bytes = grown;
		n = fread(grown + replay->n_bytes, 1, room - replay->n_bytes, file);
		replay->n_bytes += n;
	}
	bool failed = n || ferror(file);
	fclose(file);
	return failed ? refuse(error, path, "cannot be read, or not kept in memory") : 0;
}

static int keep(struct npumem_replay *replay, Npumem__V1__RecordEntry *entry)
{
	/* Doubling at the powers of two. */
	if (!(replay->n_entries & (replay->n_entries - 1))) {
		size_t room = replay->n_entries ? 2 * replay->n_entries : 1;
		void *grown = realloc(replay->entries, room * sizeof(*replay->entries));
		if (!grown)
			return -1;
		replay->entries = grown;
	}
	replay->entries[replay->n_entries++] = entry;
	return 0;
}

/* One entry of the file; NULL and `why` where it is none. `*done` after the end. */
static const char *read_entry(struct npumem_replay *replay, const uint8_t *bytes, size_t n,
			      struct npumem_info *info, bool *begun, bool *done)
{
	Npumem__V1__RecordEntry *entry = npumem__v1__record_entry__unpack(NULL, n, bytes);
	const char *why = NULL;
	if (!entry)
		return "an entry is garbage";
	if (!*begun)
		why = entry->header && !reply_info(entry->header, info) ? NULL
									: "it does not tell what was recorded";
	else if (entry->end)
		why = entry->end->entries == replay->n_entries ? NULL : "entries are missing";
	else if (entry->number != replay->n_entries + 1)
		why = "entries are missing";
	else if (keep(replay, entry))
		why = "no memory in this process for it";
	else
		return NULL;
	if (*begun && entry->end) {
		replay->hash = entry->end->hash;
		*done = true;
	}
	*begun = true;
	npumem__v1__record_entry__free_unpacked(entry, NULL);
	return why;
}

static const char *read_entries(struct npumem_replay *replay, struct npumem_info *info)
{
	bool begun = false, done = false;
	const char *why = NULL;
	size_t at = RECORD_MAGIC_BYTES;
	if (replay->n_bytes < RECORD_MAGIC_BYTES || memcmp(replay->bytes, RECORD_MAGIC, RECORD_MAGIC_BYTES - 2))
		return "this is no record";
	if (memcmp(replay->bytes, RECORD_MAGIC, RECORD_MAGIC_BYTES))
		return "a record of a version that is not 1";
	while (!why && !done) {
		size_t header, bytes;
		enum frame_result result =
			frame_parse(replay->bytes + at, replay->n_bytes - at, FRAME_BYTES_MAX, &header, &bytes);
		if (result == FRAME_MORE)
			return "it is cut off, or was not whole when it ended";
		if (result != FRAME_COMPLETE)
			return "an entry is garbage";
		why = read_entry(replay, replay->bytes + at + header, bytes, info, &begun, &done);
		at += header + bytes;
	}
	return why ? why : at < replay->n_bytes ? "there is something behind its end" : NULL;
}

static int make_table(struct npumem_replay *replay)
{
	size_t n = 0;
	for (size_t i = 0; i < replay->n_entries; i++)
		n += replay->entries[i]->n_handles;
	for (replay->n_slots = 16; replay->n_slots < 2 * n;)
		replay->n_slots *= 2;
	replay->from = calloc(replay->n_slots, sizeof(*replay->from));
	replay->to = calloc(replay->n_slots, sizeof(*replay->to));
	return replay->from && replay->to ? 0 : -1;
}

int npumem_replay_open(const char *path, struct npumem_replay **out, struct npumem_info *info,
		       struct npumem_error *error)
{
	struct npumem_replay *replay = calloc(1, sizeof(*replay));
	call_clear(error);
	*out = NULL;
	if (!replay)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory in this process");
	int status = read_file(path, replay, error);
	const char *why = status ? NULL : read_entries(replay, info);
	if (!status && !why && make_table(replay))
		why = "no memory in this process for it";
	if (why)
		status = refuse(error, path, why);
	if (status)
		npumem_replay_close(replay);
	else
		*out = replay;
	return status;
}

void npumem_replay_close(struct npumem_replay *replay)
{
	if (!replay)
		return;
	while (replay->peers) {
		struct peer *peer = replay->peers;
		replay->peers = peer->next;
		npumem_close(peer->npumem);
		free(peer);
	}
	for (size_t i = 0; i < replay->n_entries; i++)
		npumem__v1__record_entry__free_unpacked(replay->entries[i], NULL);
	free(replay->entries);
	free(replay->from);
	free(replay->to);
	free(replay->bytes);
	free(replay);
}

/* ---- handles ---- */

static size_t slot_of(const struct npumem_replay *replay, uint64_t handle)
{
	size_t slot = (size_t)(handle * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (replay->n_slots - 1);
	while (replay->from[slot] && replay->from[slot] != handle)
		slot = (slot + 1) & (replay->n_slots - 1);
	return slot;
}

/* A handle that the record does not know becomes one that no daemon gives. */
static uint64_t new_handle(const struct npumem_replay *replay, uint64_t handle)
{
	size_t slot = slot_of(replay, handle);
	return !handle ? 0 : replay->from[slot] ? replay->to[slot] : UINT64_MAX;
}

static void map_message(const struct npumem_replay *replay, ProtobufCMessage *message);

static void map_field(const struct npumem_replay *replay, ProtobufCMessage *message,
		      const ProtobufCFieldDescriptor *field)
{
	char *base = (char *)message;
	if (field->type != PROTOBUF_C_TYPE_MESSAGE)
		return;
	if (field->label == PROTOBUF_C_LABEL_REPEATED) {
		size_t n = *(size_t *)(void *)(base + field->quantifier_offset);
		ProtobufCMessage **list = *(ProtobufCMessage ***)(void *)(base + field->offset);
		for (size_t i = 0; i < n; i++)
			map_message(replay, list[i]);
		return;
	}
	/* Members of a oneof share their place. */
	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
	    *(uint32_t *)(void *)(base + field->quantifier_offset) != field->id)
		return;
	ProtobufCMessage *one = *(ProtobufCMessage **)(void *)(base + field->offset);
	if (one)
		map_message(replay, one);
}

static void map_message(const struct npumem_replay *replay, ProtobufCMessage *message)
{
	if (message->descriptor == &npumem__v1__ref__descriptor) {
		Npumem__V1__Ref *ref = (Npumem__V1__Ref *)message;
		ref->handle = new_handle(replay, ref->handle);
		return;
	}
	for (unsigned i = 0; i < message->descriptor->n_fields; i++)
		map_field(replay, message, &message->descriptor->fields[i]);
}

/* ---- sending ---- */

struct answer {
	uint64_t digest, handles[REPLAY_HANDLES_MAX];
	size_t n_handles;
};

static int take_any(struct call *call, const Npumem__V1__Response *response)
{
	struct answer *answer = call->result;
	answer->digest = digest_response(response);
	answer->n_handles = digest_handles(response, answer->handles, REPLAY_HANDLES_MAX);
	return 0;
}

__attribute__((format(printf, 3, 4))) static void differ(struct npumem_replay_result *result, uint64_t number,
							 const char *format, ...)
{
	va_list arguments;
	if (result->differences++)
		return;
	result->first = number;
	va_start(arguments, format);
	vsnprintf(result->what, sizeof(result->what), format, arguments);
	va_end(arguments);
}

static const char *name_of(int status)
{
	return npumem_status_name(status) ? npumem_status_name(status) : "?";
}

static void compare(struct npumem_replay *replay, const Npumem__V1__RecordEntry *entry, int status,
		    const struct answer *answer, const struct npumem_error *error,
		    struct npumem_replay_result *result)
{
	if (status != (int)entry->status)
		differ(result, entry->number, "answered %s, and %s in the record%s%.150s", name_of(status),
		       name_of((int)entry->status), status ? ": " : "", status ? error->message : "");
	else if (answer->digest != entry->digest || answer->n_handles != entry->n_handles)
		differ(result, entry->number, "the data or the counts of its answer differ");
	for (size_t i = 0; i < entry->n_handles && i < answer->n_handles && i < REPLAY_HANDLES_MAX; i++) {
		size_t slot = slot_of(replay, entry->handles[i]);
		replay->from[slot] = entry->handles[i];
		replay->to[slot] = answer->handles[i];
	}
}

/* What was cut short changed nothing; what makes no sense alone has nothing to compare. */
static bool is_skipped(const Npumem__V1__RecordEntry *entry, const Npumem__V1__Request *request)
{
	return !request || !request->id || entry->status == NPUMEM__V1__STATUS__CANCELLED ||
	       entry->status == NPUMEM__V1__STATUS__DEADLINE_EXCEEDED ||
	       entry->status == NPUMEM__V1__STATUS__UNAVAILABLE ||
	       request->call_case == NPUMEM__V1__REQUEST__CALL_CANCEL ||
	       request->call_case == NPUMEM__V1__REQUEST__CALL_SUBSCRIBE ||
	       request->call_case == NPUMEM__V1__REQUEST__CALL_DUMP;
}

static int send_again(struct npumem_replay *replay, struct npumem *npumem, const Npumem__V1__RecordEntry *entry,
		      struct npumem_replay_result *result, struct npumem_error *error)
{
	Npumem__V1__Request *request = npumem__v1__request__unpack(NULL, entry->request.len, entry->request.data);
	struct answer answer = {.n_handles = 0};
	struct call call = {.take = take_any, .result = &answer};
	int status = 0;
	if (is_skipped(entry, request)) {
		result->skipped++;
	} else {
		map_message(replay, &request->base);
		status = call_run(npumem, request, PENDING_ANY, &call, error);
		if (status != NPUMEM_UNAVAILABLE) {
			result->requests++;
			compare(replay, entry, status, &answer, error, result);
			status = 0;
		}
	}
	if (request)
		npumem__v1__request__free_unpacked(request, NULL);
	return status;
}

static struct peer **find_peer(struct npumem_replay *replay, uint64_t session)
{
	struct peer **at = &replay->peers;
	while (*at && (*at)->session != session)
		at = &(*at)->next;
	return at;
}

/* Closes, and waits until its tensors are gone: a session's end is told by nobody. */
static void end_peer(struct npumem_replay *replay, uint64_t session, struct npumem *admin)
{
	struct peer **at = find_peer(replay, session), *peer = *at;
	struct npumem_stat before, after;
	if (!peer)
		return;
	*at = peer->next;
	int status = npumem_stat(admin, &before, NULL);
	npumem_close(peer->npumem);
	free(peer);
	for (unsigned i = 0; i < 10000 && !status; i++) {
		status = npumem_stat(admin, &after, NULL);
		if (after.sessions < before.sessions)
			return;
	}
}

int npumem_replay_run(struct npumem_replay *replay, uint32_t admin_uid,
		      int (*open)(void *ctx, uint32_t uid, struct npumem **out, struct npumem_error *error),
		      void *ctx, struct npumem_replay_result *result, struct npumem_error *error)
{
	struct npumem *admin = NULL;
	uint64_t hash;
	*result = (struct npumem_replay_result){.requests = 0};
	int status = open(ctx, admin_uid, &admin, error);
	for (size_t i = 0; i < replay->n_entries && !status; i++) {
		const Npumem__V1__RecordEntry *entry = replay->entries[i];
		struct peer **at = find_peer(replay, entry->session);
		if (!entry->request.len && !entry->status) {
			end_peer(replay, entry->session, admin);
			continue;
		}
		if (!*at) {
			struct peer *peer = calloc(1, sizeof(*peer));
			if (!peer)
				status = npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
							  "no memory in this process");
			else if ((status = open(ctx, entry->uid, &peer->npumem, error)))
				free(peer);
			else
				*at = peer;
			if (status)
				break;
			peer->session = entry->session;
		}
		status = send_again(replay, (*at)->npumem, entry, result, error);
	}
	if (!status)
		status = record_hash(admin, &hash, error);
	if (!status && hash != replay->hash)
		differ(result, 0, "the data of the tensors in the end differ");
	npumem_close(admin);
	return status;
}
