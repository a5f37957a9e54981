/* FNV-1a over values, not over the wire's bytes: their order there is nobody's promise. */
#include "proto/digest.h"

static uint64_t add_bytes(uint64_t hash, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t add_number(uint64_t hash, uint64_t number)
{
	for (unsigned i = 0; i < 8; i++)
		hash = (hash ^ (number >> 8 * i & 0xff)) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t add_done(uint64_t hash, const Npumem__V1__Done *done)
{
	hash = add_number(hash, (uint64_t)done->saturated);
	hash = add_number(hash, (uint64_t)done->wrapped);
	hash = add_number(hash, (uint64_t)done->divided_by_zero);
	hash = add_number(hash, (uint64_t)done->macs);
	hash = add_number(hash, done->data.len);
	return add_bytes(hash, done->data.data, done->data.len);
}

uint64_t digest_response(const Npumem__V1__Response *response)
{
	uint64_t hash = add_number(UINT64_C(0xcbf29ce484222325), response->result_case);

	switch (response->result_case) {
	case NPUMEM__V1__RESPONSE__RESULT_DONE:
		return add_done(hash, response->done);
	case NPUMEM__V1__RESPONSE__RESULT_SUBMITTED:
		hash = add_number(hash, response->submitted->n_done);
		for (size_t i = 0; i < response->submitted->n_done; i++)
			hash = add_done(hash, response->submitted->done[i]);
		return hash;
	case NPUMEM__V1__RESPONSE__RESULT_FREED:
		return add_number(hash, (uint64_t)response->freed->tensors);
	case NPUMEM__V1__RESPONSE__RESULT_ALLOCATED:
		return add_number(hash, response->allocated->n_tensors);
	default:
		return hash;
	}
}

size_t digest_handles(const Npumem__V1__Response *response, uint64_t *handles, size_t most)
{
	if (response->result_case == NPUMEM__V1__RESPONSE__RESULT_TENSOR) {
		if (most)
			handles[0] = response->tensor->handle;
		return 1;
	}
	if (response->result_case != NPUMEM__V1__RESPONSE__RESULT_ALLOCATED)
		return 0;
	for (size_t i = 0; i < response->allocated->n_tensors && i < most; i++)
		handles[i] = response->allocated->tensors[i]->handle;
	return response->allocated->n_tensors;
}
