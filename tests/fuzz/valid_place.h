/* Where the tensors of a valid run lie: any layout, storage mode and start NPU, slices and reshapes of others. */
#ifndef TESTS_FUZZ_VALID_PLACE_H
#define TESTS_FUZZ_VALID_PLACE_H

#include "tests/fuzz/valid.h"

/* A tensor of its own, or a view of one: a slice that begins at `from`, or a reshape. */
struct valid_place {
	struct npumem_spec spec; /* of the tensor itself, or of the base */
	enum { VALID_WHOLE, VALID_SLICE, VALID_RESHAPE } how;
	struct npumem_dims from;
	int64_t bytes_per_npu;
};

/* As plain as can be. */
void valid_place_plain(const struct valid_tensor *tensor, int64_t n_npus, struct valid_place *place);
/* As the bytes have it; what no device can have becomes plain. */
void valid_place_read(struct valid_run *run, const struct valid_tensor *tensor, int64_t n_npus,
		      struct valid_place *place);

#endif
