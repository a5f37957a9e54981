/* FNV-1a over values, not over the wire's bytes: their order there is nobody's promise. */
#include "proto/digest.h"

#include <zlib.h>

uint64_t digest_begin(void)
{
	return UINT64_C(0xcbf29ce484222325);
}

uint64_t digest_number(uint64_t digest, uint64_t number)
{
	for (unsigned i = 0; i < 8; i++)
		digest = (digest ^ (number >> 8 * i & 0xff)) * UINT64_C(0x100000001b3);
	return digest;
}

uint64_t digest_bytes(uint64_t digest, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < n; i++)
		digest = (digest ^ at[i]) * UINT64_C(0x100000001b3);
	return digest;
}

uint32_t digest_crc(uint32_t crc, const void *bytes, size_t n)
{
	return (uint32_t)crc32_z(crc, n ? bytes : (const void *)"", n);
}

uint64_t digest_done(const Npumem__V1__Done *done, uint32_t data_crc)
{
	uint64_t digest = digest_number(digest_begin(), (uint64_t)done->saturated);

	digest = digest_number(digest, (uint64_t)done->wrapped);
	digest = digest_number(digest, (uint64_t)done->divided_by_zero);
	digest = digest_number(digest, (uint64_t)done->macs);
	digest = digest_number(digest, done->data.len);
	return digest_number(digest, data_crc);
}

static uint64_t add_done(uint64_t digest, const Npumem__V1__Done *done)
{
	return digest_number(digest, digest_done(done, digest_crc(0, done->data.data, done->data.len)));
}

uint64_t digest_response(const Npumem__V1__Response *response)
{
	uint64_t digest = digest_begin();

	switch (response->result_case) {
	case NPUMEM__V1__RESPONSE__RESULT_DONE:
		return add_done(digest, response->done);
	case NPUMEM__V1__RESPONSE__RESULT_SUBMITTED:
		for (size_t i = 0; i < response->submitted->n_done; i++)
			digest = add_done(digest, response->submitted->done[i]);
		return digest;
	case NPUMEM__V1__RESPONSE__RESULT_FREED:
		return digest_number(digest, (uint64_t)response->freed->tensors);
	case NPUMEM__V1__RESPONSE__RESULT_ALLOCATED:
		return digest_number(digest, response->allocated->n_tensors);
	default:
		return digest;
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
