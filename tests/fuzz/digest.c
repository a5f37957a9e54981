/* Members one by one, as structs have bytes between them. */
#include "tests/fuzz/digest.h"

#include <string.h>
#include <zlib.h>

#include "daemon/rpc/rpc.h"
#include "daemon/service/observed/events.h"
#include "daemon/service/segments.h"
#include "daemon/service/tensors/record.h"
#include "tests/random/daemon.h"

static void add(uint64_t *digest, uint64_t value)
{
	*digest = (*digest ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	*digest ^= *digest >> 29;
}

static void add_bytes(uint64_t *digest, const void *bytes, size_t n)
{
	add(digest, crc32_z(0, bytes, n));
}

static void add_record(uint64_t *digest, const struct record *record)
{
	const struct record_grants *grants = record_grants(record);

	add_bytes(digest, record->name, strlen(record->name));
	add(digest, record->uid);
	add(digest, record->session_id);
	add(digest, record_device_bytes(record));
	add(digest, record->is_going);
	add(digest, record->is_gone);
	for (unsigned i = 0; grants && i < grants->n; i++) {
		add(digest, grants->to[i].uid);
		add(digest, grants->to[i].access);
	}
}

static void add_tensor(uint64_t *digest, const struct tensor *tensor)
{
	const struct npumem_place *place = TENSOR_PLACE(tensor);

	add(digest, tensor->handle);
	add(digest, tensor->base ? tensor->base->handle : 0);
	add(digest, (uint64_t)place->dtype << 32 | (uint64_t)place->layout << 16 | (uint64_t)place->mode);
	add(digest, (uint64_t)place->frac_bits);
	add_bytes(digest, &place->shape, sizeof(place->shape));
	add_bytes(digest, &place->stride, sizeof(place->stride));
	add(digest, (uint64_t)place->address);
	add(digest, (uint64_t)place->bytes_per_npu);
	add(digest, (uint64_t)tensor->reuse);
	add(digest, (uint64_t)tensor->sealed | (uint64_t)tensor->dma_only << 1 | (uint64_t)tensor->pinned << 2 |
			    (uint64_t)tensor->placing << 3 | (uint64_t)tensor_is_guest(tensor) << 4);
	add(digest, tensor->n_meetings);
	add_record(digest, record_of(tensor));
}

static void add_service(uint64_t *digest, const struct service *service)
{
	struct device_counts counts;

	for (const struct limits_user *user = service->limits.users; user; user = user->next)
		for (unsigned key = 0; key < LIMITS_N; key++)
			if (user->now[key])
				add(digest,
				    user->uid * UINT64_C(1000003) + key * 1009 + user->now[key] * LIMITS_N);
	for (const struct session *session = service->sessions; session; session = session->next) {
		add(digest, session->id);
		add(digest, session->unnamed->device_bytes);
		add(digest, session->unnamed->n);
		for (const struct segment *segment = session->segments; segment; segment = segment->next)
			add(digest, segment->id);
	}
	for (const struct events_subscriber *of = service->events.subscribers; of; of = of->next)
		add(digest, of->kinds);
	add(digest, service->names.n);
	add(digest, service->recorder.owner ? service->recorder.owner->id : 0);
	device_stat(service->device, &counts);
	counts.packs = 0;
	add_bytes(digest, &counts, sizeof(counts));
}

uint64_t digest_of(struct daemon *daemon)
{
	const struct service *service = daemon_rpc(daemon)->service;
	uint64_t digest = 1;
	size_t bytes;
	const uint8_t *memory = daemon_memory(daemon, &bytes);

	for (struct tensor *tensor = device_next(service->device, NULL); tensor;
	     tensor = device_next(service->device, tensor))
		add_tensor(&digest, tensor);
	add_service(&digest, service);
	add_bytes(&digest, memory, bytes);
	return digest;
}
