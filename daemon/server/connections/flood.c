/* A list of the uids of the present second: there are few of them. */
#include "daemon/server/connections/flood.h"

enum { NS_PER_SECOND = 1000000000 };

static struct flood_uid *find(struct flood *flood, uint32_t uid)
{
	for (unsigned i = 0; i < flood->n_uids; i++)
		if (flood->uids[i].uid == uid)
			return &flood->uids[i];
	if (flood->n_uids == FLOOD_UIDS_MAX)
		return &flood->uids[FLOOD_UIDS_MAX];
	flood->uids[flood->n_uids].uid = uid;
	return &flood->uids[flood->n_uids++];
}

/* Begins a new second. */
static void restart(struct flood *flood, uint64_t now_ns, struct flood_loss *loss)
{
	uint64_t most = 0;

	for (unsigned i = 0; i <= FLOOD_UIDS_MAX; i++) {
		uint64_t n = flood->uids[i].n;

		if (n > FLOOD_LINES_MAX)
			loss->n += n - FLOOD_LINES_MAX;
		if (n > most) {
			most = n;
			loss->uid = flood->uids[i].uid;
		}
	}
	*flood = (struct flood){.since_ns = now_ns};
}

bool flood_admit(struct flood *flood, uint32_t uid, uint64_t now_ns, struct flood_loss *loss)
{
	*loss = (struct flood_loss){.n = 0};
	if (now_ns - flood->since_ns >= NS_PER_SECOND)
		restart(flood, now_ns, loss);
	return find(flood, uid)->n++ < FLOOD_LINES_MAX;
}
