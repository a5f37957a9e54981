/* Sums over the live tensors. Keeps nothing; what is asked rarely costs the allocations nothing. */
#include "daemon/service/usage.h"

static void add(const struct service *service, const struct tensor *tensor, struct usage_held *held)
{
	held->tensors++;
	if (!tensor->base)
		held->device_bytes +=
			tensor->place.bytes_per_npu * device_options(service->device)->geometry.n_npus;
}

void usage_of_session(const struct session *session, struct usage_held *held)
{
	*held = (struct usage_held){.tensors = 0};
	for (const struct record *record = session->anonymous; record; record = record->next)
		add(session->service, record->tensor, held);
}

static void sum(const struct service *service, const uint32_t *uid, struct usage_held *held)
{
	*held = (struct usage_held){.tensors = 0};
	for (struct tensor *t = device_next(service->device, NULL); t; t = device_next(service->device, t))
		if (!uid || record_of(t)->uid == *uid)
			add(service, t, held);
}

void usage_of_uid(const struct service *service, uint32_t uid, struct usage_held *held)
{
	sum(service, &uid, held);
}

void usage_of_all(const struct service *service, struct usage_held *held)
{
	sum(service, NULL, held);
}

void usage_of_npus(const struct service *service, int64_t *npus)
{
	int64_t n_npus = device_options(service->device)->geometry.n_npus, all = 0;

	for (struct tensor *t = device_next(service->device, NULL); t; t = device_next(service->device, t)) {
		const struct npumem_place *place = &t->place;
		int64_t bytes = place->words_n * place->shape.h * place->shape.w * place->word_bytes;

		if (t->base)
			continue;
		/* Whole rounds of channels are the same on every NPU. */
		all += place->shape.c / n_npus * bytes;
		for (int64_t c = 0; c < place->shape.c % n_npus; c++)
			npus[(place->start_npu + c) % n_npus] += bytes;
	}
	for (int64_t npu = 0; npu < n_npus; npu++)
		npus[npu] += all;
}
