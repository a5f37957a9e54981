#include "daemon/rpc/handlers/handler.h"

/* A request that is of no row has been refused when it was decoded. */
static const struct {
	int (*resolve)(struct call *call);
	int (*handle)(struct call *call);
} rows[] = {
#define METHOD(name, CALL, Message, kind, keeps, record, handler, resolver) {resolver, handler},
#include "proto/methods.def"
#undef METHOD
};

int handler_nothing(struct call *call)
{
	(void)call;
	return 0;
}

int handler_resolve(struct call *call)
{
	return rows[call->method].resolve(call);
}

int handler_handle(struct call *call)
{
	return rows[call->method].handle(call);
}
