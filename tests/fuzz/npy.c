/* .npy and .npz files as npumemctl reads them: in one piece, in pieces of a tensor's array, as numbers. What is
 * read is encoded for a type and comes back, and is what a file of it holds. */
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/arrays/stream.h"
#include "client/ctl/core/arrays/values.h"
#include "client/ctl/core/memory.h"
#include "tests/fuzz/file.h"
#include "tests/fuzz/fuzz.h"

enum { ELEMENTS_MAX = 1 << 16, PIECE = 100 };

static void check_refused(int status, const struct npumem_error *error)
{
	if (status && (!error->message[0] || error->status != status))
		fuzz_fail("refused with %d and without a reason", status);
}

/* A tensor that the array may be of. */
static struct npumem_place place_of(struct fuzz_bytes *input)
{
	struct npumem_place place = {.dtype = 1 + fuzz_byte(input) % 9, .layout = NPUMEM_ALIGNED};

	place.frac_bits =
		place.dtype == NPUMEM_FX8 || place.dtype == NPUMEM_FX16 ? fuzz_byte(input) % 20 : NPUMEM_ANY;
	place.shape = (struct npumem_dims){1 + fuzz_byte(input) % 4, 1 + fuzz_byte(input) % 8,
					   1 + fuzz_byte(input) % 4, 1 + fuzz_byte(input) % 16};
	place.rows = place.shape.n;
	place.cols = place.shape.c;
	if (fuzz_byte(input) % 8 == 0)
		place.layout = NPUMEM_MATRIX;
	return place;
}

static void read_stream(struct fuzz_bytes *input, bool permuted)
{
	struct npumem_place place = place_of(input);
	static const struct stream_perm perms[] = {{0, {0}}, {4, {0, 2, 3, 1}}, {2, {1, 0}}, {3, {2, 0, 1}}};
	struct stream_perm perm = perms[permuted ? fuzz_byte(input) % 4 : 0];
	bool quantize = fuzz_byte(input) % 2;
	const char *path = file_of(input->at, fuzz_left(input));
	struct npumem_error error = {.status = 0};
	struct stream stream;
	uint8_t *data;
	int status = stream_open_perm(&stream, path, &place, &perm, quantize, NPUMEM_UP, &error);

	check_refused(status, &error);
	if (status)
		return;
	/* Of its own size: what is read beyond it is seen. */
	data = malloc(stream.n * stream.element_bytes);
	for (size_t at = 0; at < stream.n && !status; at += PIECE) {
		size_t n = stream.n - at < PIECE ? stream.n - at : PIECE;

		status = stream_read(&stream, data + at * stream.element_bytes, n, &error);
		check_refused(status, &error);
	}
	stream_close(&stream, status, &error);
	free(data);
}

static void encode(const struct values *values)
{
	static const int dtypes[] = {NPUMEM_INT8, NPUMEM_UINT16, NPUMEM_FP32, NPUMEM_FX8, NPUMEM_FX16};

	for (unsigned i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
		struct npumem_error error = {.status = 0};
		struct formats_candidate candidate;
		int64_t saturated, frac_bits;
		void *containers = malloc(values->n * npumem_dtype_bytes(dtypes[i]));

		check_refused(values_encode(values, dtypes[i], 3, NPUMEM_NEAREST, containers, &saturated, &error),
			      &error);
		free(containers);
		if (!npumem_dtype_is_fixed(dtypes[i]) || !values->is_real ||
		    formats_auto(values, dtypes[i], NPUMEM_CONVERGENT, &frac_bits, &error))
			continue;
		formats_judge(values, dtypes[i], frac_bits, NPUMEM_CONVERGENT, &candidate);
		if (candidate.clipped)
			fuzz_fail("the format that fits clips %lld", (long long)candidate.clipped);
	}
}

static void read_values(struct fuzz_bytes *input, const char *end)
{
	static const char *const perms[] = {NULL, "1,0", "0,2,3,1", "2,1,0", "0"};
	const char *perm = perms[fuzz_byte(input) % 5];
	const char *path = file_named(input->at, fuzz_left(input), end);
	struct npumem_error error = {.status = 0};
	struct npumem_dims shape;
	struct values values;
	int status = values_read(path, perm, &values, &error);

	check_refused(status, &error);
	if (status)
		return;
	check_refused(values_shape(&values, &shape, &error), &error);
	if (values.n <= ELEMENTS_MAX)
		encode(&values);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct fuzz_bytes input = {bytes, bytes + n};

	switch (fuzz_byte(&input) % 4) {
	case 0:
		read_stream(&input, false);
		break;
	case 1:
		read_stream(&input, true);
		break;
	case 2:
		read_values(&input, ".npy");
		break;
	default:
		read_values(&input, ".npz");
		break;
	}
	memory_end();
	return 0;
}
