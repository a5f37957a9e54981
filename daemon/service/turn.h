/* Whose turn it is, where requests wait for room: whether an allocation may keep what it has just got. */
#ifndef SERVICE_TURN_H
#define SERVICE_TURN_H

#include "daemon/service/tensors.h"

/* `claims`: of others, before the allocation. What lies in a range that another one claims is allocated again
 * elsewhere. 0; RESOURCE_EXHAUSTED: the device has released the tensors again. */
int turn_check(struct tensors_alloc *alloc, struct waiting_claims claims, struct npumem_error *error);

#endif
