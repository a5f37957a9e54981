/* The linker puts this in the place of perform_begin (--wrap). */
#include "tests/random/begun.h"

#include <stddef.h>

#include "daemon/rpc/calls/perform.h"

static void (*told)(void *ctx, const struct session *session, uint64_t id);
static void *told_ctx;

void begun_tell(void (*to)(void *ctx, const struct session *session, uint64_t id), void *ctx)
{
	told = to;
	told_ctx = ctx;
}

void __real_perform_begin(struct call *call);
void __wrap_perform_begin(struct call *call);

void __wrap_perform_begin(struct call *call)
{
	if (told)
		told(told_ctx, call->session, call->id);
	__real_perform_begin(call);
}
