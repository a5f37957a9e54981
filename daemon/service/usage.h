/* Who holds how much of the device. */
#ifndef SERVICE_USAGE_H
#define SERVICE_USAGE_H

#include "daemon/service/session.h"

/* What the session's anonymous tensors hold. */
void usage_of_session(const struct session *session, struct usage_held *held);
/* What a uid's tensors hold, named and anonymous. */
void usage_of_uid(const struct service *service, uint32_t uid, struct usage_held *held);
/* Of everybody. */
void usage_of_all(const struct service *service, struct usage_held *held);

#endif
