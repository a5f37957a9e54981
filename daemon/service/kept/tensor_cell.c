/* One function describes the bytes for both directions, so that what is read is what was written.
 *
 * The largest cell is that of a reshaped view with the longest name and all grants. Dimensions and strides are
 * below 2^31, and the product of the dimensions is at most 2^40: 236 bytes (the unit test has them). */
#include "daemon/service/kept/tensor_cell.h"

#include <assert.h>
#include <string.h>

enum { HAS_BASE = 1, HAS_SHAPE = 2, HAS_STRIDE = 4, HAS_MATRIX = 8 };
enum { IS_SEALED = 1, IS_DMA_ONLY = 2, IS_PINNED = 4, IS_GUEST = 8, IS_RESHAPED = 16 };

struct coder {
	uint8_t *at, *end;
	bool writes, is_bad;
};

static void code_bytes(struct coder *coder, void *bytes, size_t n)
{
	if ((size_t)(coder->end - coder->at) < n) {
		coder->is_bad = true;
		return;
	}
	if (coder->writes)
		memcpy(coder->at, bytes, n);
	else
		memcpy(bytes, coder->at, n);
	coder->at += n;
}

static void write_number(struct coder *coder, uint64_t number)
{
	uint8_t byte;

	do {
		byte = (uint8_t)(number > 127 ? number | 128 : number);
		code_bytes(coder, &byte, 1);
		number >>= 7;
	} while (byte & 128);
}

static uint64_t read_number(struct coder *coder)
{
	uint64_t number = 0;
	uint8_t byte = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		code_bytes(coder, &byte, 1);
		number |= (uint64_t)(byte & 127) << shift;
		if (!(byte & 128) || coder->is_bad)
			return number;
	}
	coder->is_bad = true;
	return number;
}

static void code_number(struct coder *coder, uint64_t *number)
{
	if (coder->writes)
		write_number(coder, *number);
	else
		*number = read_number(coder);
}

static void code_signed(struct coder *coder, int64_t *number)
{
	uint64_t bits = (uint64_t)*number;

	code_number(coder, &bits);
	*number = (int64_t)bits;
}

static void code_small(struct coder *coder, uint32_t *number)
{
	uint64_t wide = *number;

	code_number(coder, &wide);
	*number = (uint32_t)wide;
	coder->is_bad = coder->is_bad || wide > UINT32_MAX;
}

static void code_dims(struct coder *coder, struct npumem_dims *dims)
{
	code_signed(coder, &dims->n);
	code_signed(coder, &dims->c);
	code_signed(coder, &dims->h);
	code_signed(coder, &dims->w);
}

static bool has_any(const struct npumem_dims *dims)
{
	return dims->n || dims->c || dims->h || dims->w;
}

static void code_flags(struct coder *coder, struct device_saved *saved)
{
	uint8_t flags = (uint8_t)((saved->is_sealed ? IS_SEALED : 0) | (saved->is_dma_only ? IS_DMA_ONLY : 0) |
				  (saved->is_pinned ? IS_PINNED : 0) | (saved->is_guest ? IS_GUEST : 0) |
				  (saved->is_reshaped ? IS_RESHAPED : 0));

	code_bytes(coder, &flags, 1);
	saved->is_sealed = (flags & IS_SEALED) != 0;
	saved->is_dma_only = (flags & IS_DMA_ONLY) != 0;
	saved->is_pinned = (flags & IS_PINNED) != 0;
	saved->is_guest = (flags & IS_GUEST) != 0;
	saved->is_reshaped = (flags & IS_RESHAPED) != 0;
	coder->is_bad = coder->is_bad || flags >= 2 * IS_RESHAPED;
}

static void code_groups(struct coder *coder, struct device_saved *saved)
{
	uint8_t groups = (uint8_t)((saved->base ? HAS_BASE : 0) | (has_any(&saved->shape) ? HAS_SHAPE : 0) |
				   (has_any(&saved->stride) ? HAS_STRIDE : 0) | (saved->rows ? HAS_MATRIX : 0));

	code_bytes(coder, &groups, 1);
	coder->is_bad = coder->is_bad || groups >= 2 * HAS_MATRIX;
	if (groups & HAS_BASE) {
		code_number(coder, &saved->base);
		code_dims(coder, &saved->range.from);
		code_dims(coder, &saved->range.to);
	}
	if (groups & HAS_SHAPE)
		code_dims(coder, &saved->shape);
	if (groups & HAS_STRIDE)
		code_dims(coder, &saved->stride);
	if (groups & HAS_MATRIX) {
		code_signed(coder, &saved->rows);
		code_signed(coder, &saved->cols);
		code_signed(coder, &saved->w);
	}
}

static void code_saved(struct coder *coder, struct device_saved *saved, uint32_t slot)
{
	uint32_t generation = (uint32_t)(saved->handle >> 32);

	code_small(coder, &generation);
	saved->handle = (uint64_t)generation << 32 | ((uint64_t)slot + 1);
	code_flags(coder, saved);
	code_bytes(coder, &saved->frac_bits, sizeof(saved->frac_bits));
	code_bytes(coder, &saved->dtype, 1);
	code_bytes(coder, &saved->layout, 1);
	code_bytes(coder, &saved->mode, 1);
	code_bytes(coder, &saved->reuse, 1);
	code_signed(coder, &saved->address);
	code_signed(coder, &saved->start_npu);
	code_groups(coder, saved);
}

static void code_grants(struct coder *coder, struct persist_tensor *tensor)
{
	uint16_t writers = 0;

	code_small(coder, &tensor->n_grants);
	coder->is_bad = coder->is_bad || tensor->n_grants > RECORD_GRANTS_MAX;
	if (!tensor->n_grants || coder->is_bad)
		return;
	for (unsigned i = 0; i < tensor->n_grants; i++)
		writers = (uint16_t)(writers | (tensor->grants[i].access == RECORD_WRITE) << i);
	code_bytes(coder, &writers, sizeof(writers));
	for (unsigned i = 0; i < tensor->n_grants; i++) {
		code_bytes(coder, &tensor->grants[i].uid, sizeof(tensor->grants[i].uid));
		tensor->grants[i].access = writers >> i & 1 ? RECORD_WRITE : RECORD_READ;
	}
}

/* Without a name, the bytes are a zero and the label. */
static size_t name_length(const char *name)
{
	size_t label = name[0] ? 0 : strnlen(name + 1, NPUMEM_NAME_BYTES_MAX);

	return name[0] ? strnlen(name, NPUMEM_NAME_BYTES_MAX) : label ? label + 1 : 0;
}

static void code_name(struct coder *coder, char *name)
{
	size_t n = coder->writes ? name_length(name) : (size_t)(coder->end - coder->at);

	coder->is_bad = coder->is_bad || n > NPUMEM_NAME_BYTES_MAX + 1;
	if (!coder->is_bad)
		code_bytes(coder, name, n);
	coder->is_bad = coder->is_bad || name_length(name) != n;
}

static void code_tensor(struct coder *coder, struct persist_tensor *tensor, uint32_t slot)
{
	code_saved(coder, &tensor->saved, slot);
	code_number(coder, &tensor->session);
	code_number(coder, &tensor->request);
	code_small(coder, &tensor->index);
	code_small(coder, &tensor->uid);
	code_grants(coder, tensor);
	code_name(coder, tensor->name);
}

size_t tensor_cell_pack(const struct persist_tensor *tensor, uint8_t to[STORE_TENSOR_BYTES_MAX])
{
	struct coder coder = {to, to + STORE_TENSOR_BYTES_MAX, true, false};
	struct persist_tensor copy;

	memcpy(&copy, tensor, PERSIST_TENSOR_BYTES_MIN + tensor->n_grants * sizeof(tensor->grants[0]));
	code_tensor(&coder, &copy, device_handle_slot(tensor->saved.handle));
	assert(!coder.is_bad);
	return (size_t)(coder.at - to);
}

/* Version 1 has the struct itself, of 296 bytes or more. */
static bool unpack_version_1(const uint8_t *from, size_t bytes, uint32_t slot, struct persist_tensor *tensor)
{
	if (bytes > sizeof(*tensor))
		return false;
	memcpy(tensor, from, bytes);
	if (tensor->n_grants > RECORD_GRANTS_MAX ||
	    bytes != PERSIST_TENSOR_BYTES_MIN + tensor->n_grants * sizeof(tensor->grants[0]))
		return false;
	for (uint32_t i = 0; i < tensor->n_grants; i++)
		if (tensor->grants[i].access != RECORD_READ && tensor->grants[i].access != RECORD_WRITE)
			return false;
	return device_handle_slot(tensor->saved.handle) == slot && !tensor->name[NPUMEM_NAME_BYTES_MAX];
}

bool tensor_cell_unpack(const uint8_t *from, size_t bytes, uint32_t slot, struct persist_tensor *tensor)
{
	_Static_assert(PERSIST_TENSOR_BYTES_MIN > STORE_TENSOR_BYTES_MAX, "the size tells the versions apart");
	struct coder coder = {(uint8_t *)(uintptr_t)from, (uint8_t *)(uintptr_t)from + bytes, false, false};

	memset(tensor, 0, sizeof(*tensor));
	if (bytes >= PERSIST_TENSOR_BYTES_MIN)
		return unpack_version_1(from, bytes, slot, tensor);
	code_tensor(&coder, tensor, slot);
	return !coder.is_bad;
}
