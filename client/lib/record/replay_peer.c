/* Lists and a table; what is in a request is found by its descriptors, so that a new call needs nothing here. */
#include "client/lib/record/record.h"

#include <string.h>

#include "client/lib/calls/calls.h"
#include "client/lib/connection/connection.h"

struct replay_peer *replay_peer_new(const struct memory *memory, uint64_t session, struct npumem *npumem)
{
	struct replay_peer *peer = memory_alloc(memory, sizeof(*peer));
	if (peer)
		*peer = (struct replay_peer){.session = session, .npumem = npumem};
	else
		npumem_close(npumem);
	return peer;
}

struct replay_peer **replay_peer_find(struct replay_peer **list, uint64_t session)
{
	while (*list && (*list)->session != session)
		list = &(*list)->next;
	return list;
}

static void drop_segment(struct replay_segment **at, const struct memory *memory)
{
	struct replay_segment *segment = *at;
	*at = segment->next;
	npumem_release(segment->segment);
	memory_free(memory, segment);
}

void replay_peer_close(struct replay_peer **at, const struct memory *memory)
{
	struct replay_peer *peer = *at;
	*at = peer->next;
	while (peer->segments)
		drop_segment(&peer->segments, memory);
	npumem_close(peer->npumem);
	memory_free(memory, peer);
}

int replay_peer_share(struct replay_peer *peer, const struct memory *memory, const Npumem__V1__Shared *shared,
		      struct npumem_error *error)
{
	struct replay_segment *segment = memory_alloc(memory, sizeof(*segment));
	if (!segment)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"no memory in this process for a segment");
	struct call call;
	int status = call_begin(peer->npumem, &call, error);
	if (!status)
		status = segments_create_async(peer->npumem, shared->bytes, shared->writable, call_answered, &call,
					       NULL, error);
	status = call_wait(&call, status);
	if (status) {
		memory_free(memory, segment);
		return status;
	}
	segment->segment = call.result;
	segment->recorded = shared->segment;
	segment->next = peer->segments;
	peer->segments = segment;
	return 0;
}

static struct replay_segment **find_segment(const struct replay_peer *peer, uint64_t recorded)
{
	struct replay_segment **at = (struct replay_segment **)(uintptr_t)&peer->segments;
	while (*at && (*at)->recorded != recorded)
		at = &(*at)->next;
	return at;
}

const struct npumem_segment *replay_peer_segment(const struct replay_peer *peer, uint64_t recorded)
{
	const struct replay_segment *segment = *find_segment(peer, recorded);
	return segment ? segment->segment : NULL;
}

void replay_peer_unshare(struct replay_peer *peer, const struct memory *memory, uint64_t recorded)
{
	struct replay_segment **at = find_segment(peer, recorded);
	if (*at)
		drop_segment(at, memory);
}

/* ---- handles ---- */

int replay_handles_init(struct replay_handles *handles, const struct memory *memory, size_t n)
{
	for (handles->n_slots = 16; handles->n_slots / 2 < n;)
		handles->n_slots *= 2;
	handles->from = memory_array(memory, handles->n_slots, sizeof(*handles->from));
	handles->to = memory_array(memory, handles->n_slots, sizeof(*handles->to));
	if (!handles->from || !handles->to) {
		replay_handles_deinit(handles, memory);
		return -1;
	}
	memset(handles->from, 0, handles->n_slots * sizeof(*handles->from));
	return 0;
}

void replay_handles_deinit(struct replay_handles *handles, const struct memory *memory)
{
	memory_free(memory, handles->from);
	memory_free(memory, handles->to);
	handles->from = handles->to = NULL;
}

static size_t slot_of(const struct replay_handles *handles, uint64_t handle)
{
	size_t slot = (size_t)(handle * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (handles->n_slots - 1);
	while (handles->from[slot] && handles->from[slot] != handle)
		slot = (slot + 1) & (handles->n_slots - 1);
	return slot;
}

bool replay_handles_know(const struct replay_handles *handles, uint64_t handle)
{
	return handles->from[slot_of(handles, handle)] == handle;
}

void replay_handles_add(struct replay_handles *handles, uint64_t from, uint64_t to)
{
	size_t slot = slot_of(handles, from);
	handles->from[slot] = from;
	handles->to[slot] = to;
}

static uint64_t new_handle(const struct replay_handles *handles, uint64_t handle)
{
	size_t slot = slot_of(handles, handle);
	return !handle ? 0 : handles->from[slot] ? handles->to[slot] : UINT64_MAX;
}

static uint64_t new_segment(const struct replay_peer *peer, uint64_t recorded)
{
	const struct npumem_segment *segment = replay_peer_segment(peer, recorded);
	return !recorded ? 0 : segment ? segment->id : UINT64_MAX;
}

static void map_field(const struct replay_handles *handles, const struct replay_peer *peer,
		      ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	char *base = (char *)message;
	if (field->type != PROTOBUF_C_TYPE_MESSAGE)
		return;
	if (field->label == PROTOBUF_C_LABEL_REPEATED) {
		size_t n = *(size_t *)(void *)(base + field->quantifier_offset);
		ProtobufCMessage **list = *(ProtobufCMessage ***)(void *)(base + field->offset);
		for (size_t i = 0; i < n; i++)
			replay_handles_map(handles, peer, list[i]);
		return;
	}
	/* Members of a oneof share their place. */
	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
	    *(uint32_t *)(void *)(base + field->quantifier_offset) != field->id)
		return;
	ProtobufCMessage *one = *(ProtobufCMessage **)(void *)(base + field->offset);
	if (one)
		replay_handles_map(handles, peer, one);
}

void replay_handles_map(const struct replay_handles *handles, const struct replay_peer *peer,
			ProtobufCMessage *message)
{
	const ProtobufCMessageDescriptor *descriptor = message->descriptor;
	if (descriptor == &npumem__v1__ref__descriptor) {
		Npumem__V1__Ref *ref = (Npumem__V1__Ref *)message;
		ref->handle = new_handle(handles, ref->handle);
		return;
	}
	const ProtobufCFieldDescriptor *segment =
		protobuf_c_message_descriptor_get_field_by_name(descriptor, "segment");
	if (segment && segment->type == PROTOBUF_C_TYPE_FIXED64 && segment->label == PROTOBUF_C_LABEL_NONE) {
		uint64_t *at = (uint64_t *)(void *)((char *)message + segment->offset);
		*at = new_segment(peer, *at);
	}
	for (unsigned i = 0; i < descriptor->n_fields; i++)
		map_field(handles, peer, message, &descriptor->fields[i]);
}
