/* The bytes of a tensor's cell: what is packed is unpacked, of every size, and nothing else is. */
#include "daemon/service/kept/tensor_cell.h"

#include <sys/mman.h>

#include "tests/support/test.h"

static const struct npumem_dims most = {INT32_MAX, 64, 4, 1};

/* A reshaped view with the longest name and all grants: each number as long as it can be. */
static struct persist_tensor largest(void)
{
	struct persist_tensor tensor = {
		.saved = {.handle = (uint64_t)UINT32_MAX << 32 | 7,
			  .base = UINT64_MAX,
			  .address = 1 << 30,
			  .start_npu = 1023,
			  .shape = {128, 128, 128, 1 << 19},
			  .stride = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX},
			  .range = {{127, 127, 127, (1 << 19) - 1}, {128, 128, 128, 1 << 19}},
			  .frac_bits = NPUMEM_ANY,
			  .dtype = 255,
			  .layout = 255,
			  .mode = 255,
			  .reuse = 255,
			  .is_reshaped = 1},
		.session = INT64_MAX,
		.request = UINT64_MAX,
		.index = UINT32_MAX,
		.uid = UINT32_MAX,
		.n_grants = RECORD_GRANTS_MAX,
	};
	memset(tensor.name, 'x', NPUMEM_NAME_BYTES_MAX);
	for (unsigned i = 0; i < RECORD_GRANTS_MAX; i++) {
		tensor.grants[i].uid = UINT32_MAX - i;
		tensor.grants[i].access = i % 3 ? RECORD_READ : RECORD_WRITE;
	}
	return tensor;
}

static struct persist_tensor ordinary(void)
{
	return (struct persist_tensor){
		.saved = {.handle = (uint64_t)3 << 32 | 7,
			  .address = 12800,
			  .shape = {1, 8, 4, 16},
			  .frac_bits = 3,
			  .dtype = 2,
			  .layout = 1,
			  .mode = 1,
			  .reuse = 1,
			  .is_sealed = 1,
			  .is_guest = 1},
		.name = "tensor12345",
		.session = 12,
		.request = 100000,
		.uid = 1001,
	};
}

/* Unpacks bytes that end where no memory is. */
static bool unpack_exactly(const uint8_t *bytes, size_t n, struct persist_tensor *tensor)
{
	enum { PAGE = 65536 };
	static uint8_t *pages;
	if (!pages) {
		pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ck_assert(pages != MAP_FAILED);
		ck_assert_int_eq(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
	}
	memcpy(pages + PAGE - n, bytes, n);
	return tensor_cell_unpack(pages + PAGE - n, n, 6, tensor);
}

static size_t check(const struct persist_tensor *tensor)
{
	uint8_t bytes[STORE_TENSOR_BYTES_MAX], longer[STORE_TENSOR_BYTES_MAX + 1];
	size_t n = tensor_cell_pack(tensor, bytes);
	struct persist_tensor again;
	ck_assert(tensor_cell_unpack(bytes, n, 6, &again));
	ck_assert_mem_eq(&again, tensor, sizeof(again));
	/* Of a beginning at most the name or label may seem whole. */
	size_t name = strlen(tensor->name), label = strnlen(tensor->name + 1, NPUMEM_NAME_BYTES_MAX);
	for (size_t i = 0; i < n - (name || !label ? name : label + 1); i++)
		ck_assert(!unpack_exactly(bytes, i, &again));
	memcpy(longer, bytes, n);
	longer[n] = 0;
	ck_assert(!tensor_cell_unpack(longer, n + 1, 6, &again));
	return n;
}

TEST(what_is_packed_is_unpacked)
{
	struct persist_tensor tensor = ordinary(), empty = {.saved = {.handle = 7}};
	ck_assert_uint_le(check(&tensor), 64);
	check(&empty);
	tensor.saved.shape = (struct npumem_dims){0};
	tensor.saved.rows = 5;
	tensor.saved.cols = 1000;
	tensor.saved.w = 16;
	check(&tensor);
	tensor.saved.stride = most;
	tensor.saved.is_dma_only = tensor.saved.is_pinned = 1;
	check(&tensor);
}

TEST(the_largest_tensor_has_room)
{
	struct persist_tensor tensor = largest();
	ck_assert_uint_le(check(&tensor), STORE_TENSOR_BYTES_MAX);
}

/* It fills what a name has room for. */
TEST(the_longest_label_has_room)
{
	struct persist_tensor tensor = ordinary();
	tensor.name[0] = 0;
	memset(tensor.name + 1, 'x', NPUMEM_NAME_BYTES_MAX);
	check(&tensor);
}

/* The struct as it is, up to its last grant. */
TEST(a_cell_of_version_1_is_unpacked)
{
	struct persist_tensor tensor = ordinary(), again;
	for (unsigned i = 0; i <= RECORD_GRANTS_MAX; i++) {
		size_t n = PERSIST_TENSOR_BYTES_MIN + i * sizeof(tensor.grants[0]);
		tensor.n_grants = i;
		ck_assert(tensor_cell_unpack((const uint8_t *)&tensor, n, 6, &again));
		ck_assert_mem_eq(&again, &tensor, sizeof(again));
		ck_assert(!tensor_cell_unpack((const uint8_t *)&tensor, n + 4, 6, &again));
		ck_assert(!tensor_cell_unpack((const uint8_t *)&tensor, n, 5, &again));
		if (i < RECORD_GRANTS_MAX)
			tensor.grants[i].access = RECORD_READ;
	}
	tensor.grants[3].access = 77;
	ck_assert(!tensor_cell_unpack((const uint8_t *)&tensor, sizeof(tensor), 6, &again));
	tensor.n_grants = UINT32_MAX;
	ck_assert(!tensor_cell_unpack((const uint8_t *)&tensor, PERSIST_TENSOR_BYTES_MIN, 6, &again));
	tensor.n_grants = 0;
	memset(tensor.name, 'x', sizeof(tensor.name));
	ck_assert(!tensor_cell_unpack((const uint8_t *)&tensor, PERSIST_TENSOR_BYTES_MIN, 6, &again));
}

/* Random bytes are refused, or are a tensor that needs no more of them. */
TEST(any_bytes_are_a_tensor_or_none)
{
	uint32_t random = 1;
	for (unsigned round = 0; round < 100000; round++) {
		struct persist_tensor again;
		uint8_t bytes[STORE_TENSOR_BYTES_MAX], packed[STORE_TENSOR_BYTES_MAX];
		size_t n = 0;
		for (; n < round % STORE_TENSOR_BYTES_MAX; n++) {
			random = random * 1664525 + 1013904223;
			bytes[n] = (uint8_t)(random >> 24 & (random & 1 << 20 ? 127 : 255));
		}
		if (tensor_cell_unpack(bytes, n, 6, &again))
			ck_assert_uint_le(tensor_cell_pack(&again, packed), n);
	}
}
