/* What protobuf lets through and the layers below take for granted. Changes nothing. */
#include "proto/wire.h"

#include <inttypes.h>

#include "proto/convert.h"

int wire_check_enum(const ProtobufCEnumDescriptor *descriptor, const char *what, int value,
		    struct npumem_error *error)
{
	if (protobuf_c_enum_descriptor_get_value(descriptor, value))
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID, "%s %d is not one that this daemon knows", what, value);
}

/* -1 stands for "not given" below; given, it is a mistake like any other negative number. */
static int check_given(bool given, const char *what, int64_t value, struct npumem_error *error)
{
	if (!given || value >= 0)
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID, "%s %" PRId64 " is below 0", what, value);
}

int wire_spec(const Npumem__V1__Spec *message, struct npumem_spec *spec, struct npumem_error *error)
{
	int status;

	if (!message)
		return npumem_error_set(error, NPUMEM_INVALID, "a tensor without a spec");
	status = wire_check_enum(&npumem__v1__dtype__descriptor, "dtype", (int)message->dtype, error);
	if (!status)
		status = wire_check_enum(&npumem__v1__layout__descriptor, "layout", (int)message->layout, error);
	if (!status)
		status = wire_check_enum(&npumem__v1__mode__descriptor, "mode", (int)message->mode, error);
	if (!status)
		status = check_given(message->frac_bits_given_case, "frac_bits", message->frac_bits, error);
	if (!status)
		status = check_given(message->start_npu_given_case, "start NPU", message->start_npu, error);
	if (!status)
		status = check_given(message->address_given_case, "address", message->address, error);
	if (!status)
		convert_spec_from(message, spec);
	return status;
}
