/* Goes by the descriptors, and as deep as types are nested. Nothing is freed: it is all of one budget. */
#include "proto/merge.h"

#include <string.h>

#include "proto/member.h"

static bool join_lists(struct budget *budget, const ProtobufCFieldDescriptor *field, ProtobufCMessage *earlier,
		       ProtobufCMessage *later)
{
	size_t n = *member_count(later, field), bytes = member_bytes(field);
	void *end = member_extend(budget, earlier, field, n);

	if (!end)
		return false;
	if (n)
		memcpy(end, *(void **)member_of(later, field), n * bytes);
	memcpy(member_of(later, field), member_of(earlier, field), sizeof(void *));
	*member_count(later, field) += *member_count(earlier, field);
	return true;
}

/* Of a oneof, by the member that `earlier` has. protobuf-c 1.4.1 refuses what has none in either. */
static bool keep_oneof(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *earlier,
		       ProtobufCMessage *later)
{
	uint32_t *chosen = member_case(later, field);

	if (*chosen)
		return true;
	if (*member_case(earlier, field) != field->id)
		return *member_case(earlier, field) != 0;
	*chosen = field->id;
	memcpy(member_of(later, field), member_of(earlier, field), member_bytes(field));
	return true;
}

static bool keep_bytes(struct budget *budget, struct borrowed **borrowed, ProtobufCBinaryData *earlier,
		       ProtobufCBinaryData *later)
{
	if (later->data || !earlier->data)
		return true;
	*later = *earlier;
	return borrowed_add(borrowed, budget, later);
}

static bool merge_inner(struct budget *budget, struct borrowed **borrowed, ProtobufCMessage *earlier,
			ProtobufCMessage **later)
{
	if (!earlier)
		return true;
	if (*later)
		return merge_messages(budget, borrowed, earlier, *later);
	*later = earlier;
	return true;
}

static bool merge_member(struct budget *budget, struct borrowed **borrowed, const ProtobufCFieldDescriptor *field,
			 ProtobufCMessage *earlier, ProtobufCMessage *later)
{
	void *from = member_of(earlier, field), *to = member_of(later, field);

	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		return !*member_count(earlier, field) || join_lists(budget, field, earlier, later);
	if (member_is_of_oneof(field))
		return keep_oneof(field, earlier, later);
	switch (field->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		return merge_inner(budget, borrowed, *(ProtobufCMessage **)from, to);
	case PROTOBUF_C_TYPE_BYTES:
		return keep_bytes(budget, borrowed, from, to);
	case PROTOBUF_C_TYPE_STRING:
		if (*(const char **)to == field->default_value)
			*(char **)to = *(char **)from;
		return true;
	default:
		return true;
	}
}

bool merge_messages(struct budget *budget, struct borrowed **borrowed, ProtobufCMessage *earlier,
		    ProtobufCMessage *later)
{
	const ProtobufCMessageDescriptor *type = later->descriptor;

	for (unsigned i = 0; i < type->n_fields; i++)
		if (!merge_member(budget, borrowed, &type->fields[i], earlier, later))
			return false;
	return true;
}
