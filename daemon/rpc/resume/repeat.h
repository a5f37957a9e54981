/* Whether a data request does the same when it is done twice: not where it reads something that it changes later,
 * or with the same operation. Of requests whose session may send them again. */
#ifndef RPC_REPEAT_H
#define RPC_REPEAT_H

#include "daemon/device/operations/op.h"
#include "daemon/service/session.h"

struct repeat {
	uint64_t stamp;	    /* no other request's; 0: nobody asks */
	size_t n;	    /* operations so far */
	size_t first_final; /* once this one was done the request cannot be done again; SIZE_MAX: always */
};

void repeat_begin(struct repeat *repeat, const struct session *session);
/* The next operation, as it was prepared. */
void repeat_look(struct repeat *repeat, const struct op *op);

/* It is not to be done again, whatever it does. */
static inline void repeat_never(struct repeat *repeat)
{
	repeat->first_final = 0;
}

static inline bool repeat_is_safe(const struct repeat *repeat)
{
	return repeat->first_final == SIZE_MAX;
}

#endif
