/* Read off what is counted anyway, so that asking costs the same whatever there is. */
#include "daemon/service/usage.h"

void usage_of_session(const struct session *session, struct usage_held *held)
{
	*held = session->held;
}

static void add(const struct limits_user *user, struct usage_held *held)
{
	held->device_bytes += (int64_t)user->now[LIMITS_DEVICE_BYTES];
	held->tensors += (int64_t)user->now[LIMITS_TENSORS];
}

void usage_of_uid(const struct service *service, uint32_t uid, struct usage_held *held)
{
	*held = (struct usage_held){.tensors = 0};
	for (const struct limits_user *user = service->limits.users; user; user = user->next)
		if (user->uid == uid)
			add(user, held);
}

void usage_of_all(const struct service *service, struct usage_held *held)
{
	*held = (struct usage_held){.tensors = 0};
	for (const struct limits_user *user = service->limits.users; user; user = user->next)
		add(user, held);
}
