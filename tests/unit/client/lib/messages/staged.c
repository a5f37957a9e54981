/* What is remembered of tensors, and segments with references. */
#include <stdlib.h>
#include <string.h>

#include "client/lib/messages/staged.h"
#include "tests/support/test.h"

static struct npumem_tensor tensor_of(uint64_t handle)
{
	struct npumem_tensor tensor = {.handle = handle};
	tensor.place.dtype = NPUMEM_INT16;
	tensor.place.shape = (struct npumem_dims){1, (int64_t)(handle % 1000) + 1, 3, 4};
	return tensor;
}

/* Beside a plain array of what is known. */
TEST(notes)
{
	enum { HANDLES = 3000, STEPS = 200000 };
	struct staged staged = {.tensors = NULL};
	static bool known[HANDLES + 1];
	unsigned seed = 1, n = 0;
	ck_assert_ptr_null(staged_find(&staged, 1));
	staged_forget(&staged, 1);
	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t handle = (uint64_t)rand_r(&seed) % HANDLES + 1;
		struct npumem_tensor tensor = tensor_of(handle);
		if (rand_r(&seed) % 2)
			staged_note(&staged, &memory_libc, &tensor);
		else
			staged_forget(&staged, handle);
		bool now = staged_find(&staged, handle) != NULL;
		n += (unsigned)now - (unsigned)known[handle];
		known[handle] = now;
		ck_assert_uint_eq(staged.used, n);
	}
	for (uint64_t handle = 1; handle <= HANDLES; handle++) {
		const struct staged_tensor *found = staged_find(&staged, handle);
		ck_assert_int_eq(found != NULL, known[handle]);
		if (found)
			ck_assert(found->extent[1] == (int64_t)(handle % 1000) + 1 && found->element_bytes == 2);
	}
	ck_assert_ptr_null(staged_find(&staged, 0));
	staged_deinit(&staged, &memory_libc);
}

TEST(shapes)
{
	struct staged staged = {.tensors = NULL};
	struct npumem_tensor tensor = tensor_of(1);
	tensor.place.layout = NPUMEM_MATRIX;
	tensor.place.shape = (struct npumem_dims){5, 3, 1, 8};
	tensor.place.last_w = 2;
	staged_note(&staged, &memory_libc, &tensor);
	const struct staged_tensor *found = staged_find(&staged, 1);
	ck_assert(found->is_matrix && found->extent[0] == 5 && found->extent[1] == 18 && found->extent[3] == 1);
	/* Another uid's, and what a daemon could make up. */
	tensor = (struct npumem_tensor){.handle = 2};
	staged_note(&staged, &memory_libc, &tensor);
	tensor = tensor_of(3);
	tensor.place.shape.n = INT64_MAX;
	staged_note(&staged, &memory_libc, &tensor);
	tensor = tensor_of(4);
	tensor.place.shape.w = -1;
	staged_note(&staged, &memory_libc, &tensor);
	tensor = tensor_of(0);
	staged_note(&staged, &memory_libc, &tensor);
	ck_assert_uint_eq(staged.used, 1);
	staged_deinit(&staged, &memory_libc);
}

TEST(segments)
{
	struct staged staged = {.tensors = NULL};
	struct staged_segment *first, *second;
	ck_assert_int_eq(staged_share(&staged, &memory_libc, 100, &first), 0);
	ck_assert_int_eq(staged_share(&staged, &memory_libc, 1 << 20, &second), 0);
	ck_assert(first->id && second->id && first->id != second->id && !first->base[99]);
	ck_assert_ptr_eq(staged_segment(&staged, first->id), first);
	ck_assert(staged_unshare(&staged, first->id));
	ck_assert(!staged_unshare(&staged, first->id));
	ck_assert_ptr_null(staged_segment(&staged, first->id));
	/* As long as anybody has it. */
	staged_keep(first);
	staged_drop(first);
	first->base[99] = 1;
	staged_drop(first);
	staged_deinit(&staged, &memory_libc);
	second->base[0] = 1;
	staged_drop(second);
	staged_drop(NULL);
	ck_assert_int_lt(staged_share(&staged, &memory_libc, SIZE_MAX / 2, &first), 0);
	ck_assert_ptr_null(staged.segments);
}
