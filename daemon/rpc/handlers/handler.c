#include "daemon/rpc/handlers/handler.h"

#define METHOD(name, CALL, Message, kind, keeps, record, handler, resolver)                                       \
	static int resolve_row_##name(struct call *call)                                                          \
	{                                                                                                         \
		return resolver(call, call->request->name);                                                       \
	}                                                                                                         \
	static int handle_row_##name(struct call *call)                                                           \
	{                                                                                                         \
		return handler(call, call->request->name);                                                        \
	}
#include "proto/methods.def"
#undef METHOD

/* A request that is of no row has been refused when it was decoded. */
static const struct {
	int (*resolve)(struct call *call);
	int (*handle)(struct call *call);
} rows[] = {
#define METHOD(name, ...) {resolve_row_##name, handle_row_##name},
#include "proto/methods.def"
#undef METHOD
};

int handler_resolve(struct call *call)
{
	return rows[call->method].resolve(call);
}

int handler_handle(struct call *call)
{
	return rows[call->method].handle(call);
}
