/* Who holds how much of the device, and where: counted when somebody asks. */
#ifndef SERVICE_USAGE_H
#define SERVICE_USAGE_H

#include "daemon/service/session.h"

struct usage_held {
	int64_t device_bytes; /* whole footprints, over all NPUs; views have none */
	int64_t tensors;      /* views included */
};

/* What the session's anonymous tensors hold. */
void usage_of_session(const struct session *session, struct usage_held *held);
/* What a uid's tensors hold, named and anonymous. */
void usage_of_uid(const struct service *service, uint32_t uid, struct usage_held *held);
/* Of everybody. */
void usage_of_all(const struct service *service, struct usage_held *held);
/* Adds up per NPU the bytes that hold data or dummies: `npus` has one for each NPU, zero at first. */
void usage_of_npus(const struct service *service, int64_t *npus);

#endif
