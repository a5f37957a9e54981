/* Reads tensors by operations and local memory by device_peek, in chunks. Only checksum_run walks the table of
 * tensors, as many tensors take long. */
#include "daemon/service/checksum.h"

#include <zlib.h>

#include "daemon/service/operations.h"
#include "daemon/service/tables.h"

enum { CHUNK_ELEMENTS = 4096, CHUNK_BYTES = 4 * CHUNK_ELEMENTS /* on a thread's stack */ };

int64_t checksum_cost(const struct service *service)
{
	const struct npumem_geometry *geometry = &device_options(service->device)->geometry;

	return geometry->n_npus * geometry->npu_bytes;
}

void checksum_free(struct checksum *checksum)
{
	const struct heap *heap = checksum->session->service->heap;

	heap_free(heap, checksum->local);
	heap_free(heap, checksum);
}

static int take_local(struct checksum *checksum)
{
	const struct service *service = checksum->session->service;

	if (checksum_cost(service) > CHECKSUM_LOCAL_BYTES_MAX)
		return 0;
	checksum->n_local = (size_t)device_options(service->device)->geometry.n_npus;
	checksum->local = heap_zalloc(service->heap, checksum->n_local, sizeof(*checksum->local));
	return checksum->local ? 0 : -1;
}

int checksum_new(struct session *session, struct checksum **out, struct npumem_error *error)
{
	struct checksum *checksum;

	if (!session_is_admin(session))
		return npumem_error_set(error, NPUMEM_PERMISSION_DENIED,
					"uid %u may not ask for a hash of everybody's tensors: that is for root "
					"and the daemon's own uid",
					(unsigned)session->uid);
	checksum = heap_zalloc(session->service->heap, 1, sizeof(*checksum));
	if (!checksum)
		return heap_exhausted(error);
	checksum->session = session;
	if (take_local(checksum)) {
		checksum_free(checksum);
		return heap_exhausted(error);
	}
	*out = checksum;
	return 0;
}

/* A chunk that cannot be read is hashed as the word "unwritten". */
static uint32_t chunk_crc(struct session *session, struct tensor *tensor, int64_t first, int64_t count,
			  uint32_t crc)
{
	struct op op = {.kind = OP_READ, .tensor = tensor, .first = first, .count = count};
	uint8_t room[CHUNK_BYTES];
	int status;

	op.system.base = room;
	op.system.bytes = (size_t)count * npumem_dtype_bytes(tensor_dtype(tensor));
	status = operations_check(session, &op, NULL);
	if (!status)
		status = operations_run(session, &op, NULL);
	op_deinit(session->service->device, &op);
	return status ? (uint32_t)crc32_z(crc, (const uint8_t *)"unwritten", 9)
		      : (uint32_t)crc32_z(crc, room, op.system.bytes);
}

static uint64_t tensor_hash(struct session *session, struct tensor *tensor)
{
	const struct npumem_place *place = TENSOR_PLACE(tensor);
	const char *name = record_of(tensor)->name;
	bool matrix = place->layout == NPUMEM_MATRIX;
	/* A matrix's shape depends on its W, whose default depends on the geometry. */
	struct npumem_dims shape = matrix ? (struct npumem_dims){place->rows, place->cols, 0, 0} : place->shape;
	int64_t facts[] = {place->dtype, place->frac_bits, matrix, shape.n, shape.c, shape.h, shape.w};
	int64_t n = npumem_place_elements(place);
	uint32_t crc = (uint32_t)crc32_z(0, (const uint8_t *)facts, sizeof(facts));
	uint64_t hash;

	crc = (uint32_t)crc32_z(crc, (const uint8_t *)name, strlen(name));
	for (int64_t at = 0; at < n; at += CHUNK_ELEMENTS)
		crc = chunk_crc(session, tensor, at, n - at < CHUNK_ELEMENTS ? n - at : CHUNK_ELEMENTS, crc);
	/* A sum of CRCs would let two differences cancel each other. */
	hash = (uint64_t)crc * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

static uint32_t npu_crc(const struct device *device, int64_t npu)
{
	int64_t bytes = device_options(device)->geometry.npu_bytes;
	uint8_t room[CHUNK_BYTES];
	uint32_t crc = 0;

	for (int64_t at = 0; at < bytes; at += CHUNK_BYTES) {
		int64_t n = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;

		device_peek(device, npu, at, n, room);
		crc = (uint32_t)crc32_z(crc, room, (size_t)n);
	}
	return crc;
}

void checksum_run(void *arg)
{
	struct checksum *checksum = arg;
	struct device *device = checksum->session->service->device;

	checksum->hash = 0;
	/* A sum does not depend on the order of the table. */
	for (struct tensor *t = device_next(device, NULL); t; t = device_next(device, t))
		if (!t->base)
			checksum->hash += tensor_hash(checksum->session, t);
	for (size_t i = 0; i < checksum->n_local; i++)
		checksum->local[i] = npu_crc(device, (int64_t)i);
}
