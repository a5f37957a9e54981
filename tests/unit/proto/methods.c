/* Each member of Request.call has one row of its own name, and no row has none. */
#include "proto/methods.h"

#include "tests/support/test.h"

static const ProtobufCFieldDescriptor *member_of(const char *name)
{
	return protobuf_c_message_descriptor_get_field_by_name(&npumem__v1__request__descriptor, name);
}

TEST(a_row_has_its_member)
{
	for (unsigned i = 0; i < METHODS_NONE; i++) {
		const ProtobufCFieldDescriptor *member = member_of(methods_rows[i].name);
		ck_assert_msg(member && member->flags & PROTOBUF_C_FIELD_FLAG_ONEOF, "%s", methods_rows[i].name);
		ck_assert_uint_eq(methods_number((Npumem__V1__Request__CallCase)member->id), i);
	}
}

TEST(a_member_has_its_row)
{
	const ProtobufCMessageDescriptor *request = &npumem__v1__request__descriptor;
	for (unsigned i = 0; i < request->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &request->fields[i];
		unsigned number = methods_number((Npumem__V1__Request__CallCase)field->id);
		ck_assert_msg(!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) || number < METHODS_NONE, "%s",
			      field->name);
	}
	ck_assert_uint_eq(methods_number(NPUMEM__V1__REQUEST__CALL__NOT_SET), METHODS_NONE);
}
