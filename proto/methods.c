#include "proto/methods.h"

const struct methods_row methods_rows[METHODS_N] = {
#define METHOD(name, CALL, Message, kind, keeps, record, handler, resolver)                                       \
	{#name, METHODS_KIND_##kind, METHODS_KEEPS_##keeps, METHODS_RECORD_##record},
#include "proto/methods.def"
#undef METHOD
	{"none", METHODS_KIND_FREE_STANDING, METHODS_KEEPS_NOTHING, METHODS_RECORD_REPLAYED},
};

unsigned methods_number(Npumem__V1__Request__CallCase call)
{
	switch (call) {
#define METHOD(name, CALL, ...)                                                                                   \
	case NPUMEM__V1__REQUEST__CALL_##CALL:                                                                    \
		return METHODS_##CALL;
#include "proto/methods.def"
#undef METHOD
	default:
		return METHODS_NONE;
	}
}
