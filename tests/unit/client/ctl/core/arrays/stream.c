#include "client/ctl/core/arrays/stream.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/test.h"

enum { N = 10000 };

static char path[64];

static const struct npumem_place fx16 = {
	.dtype = NPUMEM_FX16, .frac_bits = 4, .layout = NPUMEM_ALIGNED, .shape = {1, 100, 1, 100}};

static const struct stream_dims fx16_dims = {4, {1, 100, 1, 100}};

static void setup(void)
{
	snprintf(path, sizeof(path), "/tmp/npumem-stream-XXXXXX");
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void teardown(void)
{
	unlink(path);
}

static void make(const char *descr, const int64_t *shape, unsigned n_dims, const void *data, size_t bytes)
{
	FILE *file = fopen(path, "wb");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(npy_write(file, descr, shape, n_dims, data, bytes, NULL), 0);
	fclose(file);
}

static int open_error(const struct npumem_place *place, bool quantize, char *message)
{
	struct npumem_error error = {.status = 0};
	struct stream stream;
	int status = stream_open(&stream, path, place, quantize, NPUMEM_CONVERGENT, &error);
	snprintf(message, NPUMEM_MESSAGE_BYTES, "%s", error.message);
	return status;
}

/* Pieces that are no multiple of anything, there and back. */
TEST(pieces)
{
	static int16_t data[N], again[N];
	struct stream stream;
	for (unsigned i = 0; i < N; i++)
		data[i] = (int16_t)(i * 7 - 30000);
	ck_assert_int_eq(stream_create(&stream, fopen(path, "wb"), path, &fx16, false, &fx16_dims, NULL), 0);
	for (size_t at = 0, n; at < N; at += n) {
		n = N - at < 777 ? N - at : 777;
		ck_assert_int_eq(stream_write(&stream, data + at, n, NULL), 0);
	}
	ck_assert_int_eq(stream_close(&stream, 0, NULL), 0);
	ck_assert_int_eq(stream_open(&stream, path, &fx16, false, 0, NULL), 0);
	ck_assert_uint_eq(stream.n, N);
	for (size_t at = 0, n; at < N; at += n) {
		n = N - at < 4097 ? N - at : 4097;
		ck_assert_int_eq(stream_read(&stream, again + at, n, NULL), 0);
	}
	ck_assert_int_eq(stream_close(&stream, 0, NULL), 0);
	ck_assert_mem_eq(data, again, sizeof(data));
}

TEST(real_numbers)
{
	static const int64_t shape[] = {1, 100, 1, 100};
	static float reals[N];
	static double doubles[N];
	static int16_t data[N];
	struct stream stream;
	for (unsigned i = 0; i < N; i++)
		doubles[i] = reals[i] = (float)i / 32;
	make("<f4", shape, 4, reals, sizeof(reals));
	for (int twice = 0; twice < 2; twice++) {
		ck_assert_int_eq(stream_open(&stream, path, &fx16, true, NPUMEM_UP, NULL), 0);
		ck_assert_int_eq(stream_read(&stream, data, N, NULL), 0);
		ck_assert_int_eq(stream_close(&stream, 0, NULL), 0);
		for (unsigned i = 0; i < N; i++)
			ck_assert_int_eq(data[i], (int)((i + 1) / 2)); /* i / 2, half up */
		ck_assert_int_eq(stream.saturated, 0);
		make("<f8", shape, 4, doubles, sizeof(doubles));
	}
	ck_assert_int_eq(stream_create(&stream, fopen(path, "wb"), path, &fx16, true, &fx16_dims, NULL), 0);
	ck_assert_int_eq(stream_write(&stream, data, N, NULL), 0);
	ck_assert_int_eq(stream_close(&stream, 0, NULL), 0);
	const struct npumem_place fp32 = {
		.dtype = NPUMEM_FP32, .layout = NPUMEM_ALIGNED, .shape = {1, 100, 1, 100}};
	ck_assert_int_eq(stream_open(&stream, path, &fp32, false, 0, NULL), 0);
	ck_assert_int_eq(stream_read(&stream, reals, N, NULL), 0);
	ck_assert_int_eq(stream_close(&stream, 0, NULL), 0);
	for (unsigned i = 0; i < N; i++)
		ck_assert(reals[i] == (float)data[i] / 16);
}

TEST(extents_of_one_may_be_left_out)
{
	static const int64_t flat[] = {100, 100}, more[] = {1, 100, 1, 1, 100, 1}, other[] = {10000};
	static int16_t data[N];
	char message[NPUMEM_MESSAGE_BYTES];
	make("<i2", flat, 2, data, sizeof(data));
	struct stream stream;
	ck_assert_int_eq(stream_open(&stream, path, &fx16, false, 0, NULL), 0);
	stream_close(&stream, 0, NULL);
	make("<i2", more, 6, data, sizeof(data));
	ck_assert_int_eq(stream_open(&stream, path, &fx16, false, 0, NULL), 0);
	stream_close(&stream, 0, NULL);
	make("<i2", other, 1, data, sizeof(data));
	ck_assert_int_eq(open_error(&fx16, false, message), NPUMEM_INVALID);
	ck_assert_msg(strstr(message, "the array has shape (10000,); (1, 100, 1, 100) is expected"), "%s",
		      message);
	const struct npumem_place matrix = {
		.dtype = NPUMEM_INT16, .layout = NPUMEM_MATRIX, .rows = 100, .cols = 100};
	make("<i2", flat, 2, data, sizeof(data));
	ck_assert_int_eq(stream_open(&stream, path, &matrix, false, 0, NULL), 0);
	stream_close(&stream, 0, NULL);
}

/* uint8, bool, int32 and int64 are quantized as the numbers that they are; int8 and int16 may be fixed point. */
TEST(whole_numbers)
{
	static const char *const descrs[] = {"|u1", "|b1", "<i4", "<i8"};
	static const int64_t shape[] = {1, 100, 1, 100};
	static uint8_t bytes[N];
	static int32_t halves[N];
	static int64_t words[N];
	static int16_t got[N];
	char message[NPUMEM_MESSAGE_BYTES];
	const void *data[] = {bytes, bytes, halves, words};
	const size_t n_bytes[] = {N, N, sizeof(halves), sizeof(words)};
	for (int i = 0; i < N; i++) {
		bytes[i] = (uint8_t)i;
		words[i] = halves[i] = i % 2 ? i / 5 : -i / 5;
	}
	for (unsigned k = 0; k < 4; k++) {
		struct stream stream;
		make(descrs[k], shape, 4, data[k], n_bytes[k]);
		ck_assert_int_eq(stream_open(&stream, path, &fx16, true, NPUMEM_UP, NULL), 0);
		ck_assert_int_eq(stream_read(&stream, got, N, NULL), 0);
		ck_assert_int_eq(stream_close(&stream, 0, NULL), 0);
		for (int i = 0; i < N; i++)
			ck_assert_int_eq(got[i], 16 * (k < 2 ? bytes[i] : halves[i]));
	}
	make("|i1", shape, 4, bytes, N);
	ck_assert_int_eq(open_error(&fx16, true, message), NPUMEM_INVALID);
}

TEST(refusals)
{
	static const int64_t shape[] = {1, 100, 1, 100};
	static float reals[N];
	char message[NPUMEM_MESSAGE_BYTES];
	struct npumem_error error = {.status = 0};
	static int16_t data[N];
	struct stream stream;
	make("<f4", shape, 4, reals, sizeof(reals));
	ck_assert_int_eq(open_error(&fx16, false, message), NPUMEM_INVALID);
	ck_assert_msg(strstr(message, "real numbers (<f4); \"quantize\": true takes them"), "%s", message);
	reals[5000] = __builtin_nanf("");
	make("<f4", shape, 4, reals, sizeof(reals));
	ck_assert_int_eq(stream_open(&stream, path, &fx16, true, NPUMEM_UP, NULL), 0);
	ck_assert_int_eq(stream_read(&stream, data, N, &error), NPUMEM_INVALID);
	ck_assert_msg(strstr(error.message, "the element at (0, 50, 0, 0) is NaN"), "%s", error.message);
	stream_close(&stream, 0, NULL);
	make("<i2", shape, 4, data, sizeof(data));
	ck_assert_int_eq(open_error(&fx16, true, message), NPUMEM_INVALID);
	ck_assert_msg(strstr(message, "real numbers are expected"), "%s", message);
	/* Too short, in the middle and in the last piece; too long. */
	for (size_t bytes = sizeof(data) - 2; bytes <= sizeof(data) + 2; bytes += 2) {
		npumem_error_clear(&error);
		make("<i2", shape, 4, data, sizeof(data));
		ck_assert_int_eq(truncate(path, (off_t)(128 + bytes)), 0);
		ck_assert_int_eq(stream_open(&stream, path, &fx16, false, 0, NULL), 0);
		ck_assert_int_eq(stream_read(&stream, data, 1, NULL), 0);
		int status = stream_read(&stream, data, N - 1, &error);
		ck_assert_msg(status == (bytes == sizeof(data) ? 0 : NPUMEM_INVALID), "%zu: %s", bytes,
			      error.message);
		stream_close(&stream, 0, NULL);
	}
	npumem_error_clear(&error);
	ck_assert_int_eq(truncate(path, 200), 0);
	ck_assert_int_eq(stream_open(&stream, path, &fx16, false, 0, NULL), 0);
	ck_assert_int_eq(stream_read(&stream, data, 100, &error), NPUMEM_INVALID);
	ck_assert_msg(strstr(error.message, "the file ends in its data, before element 100 of 10000"), "%s",
		      error.message);
	stream_close(&stream, 0, NULL);
}

/* A file of [2,3,4] as [3,4,2]: dim i of the tensor is dim perm[i] of the file. In pieces; real numbers, too. */
TEST(permuted_dims)
{
	static const int64_t shape[] = {2, 3, 4};
	static const struct stream_perm perm = {3, {1, 2, 0}}, flat = {2, {1, 0}};
	const struct npumem_place place = {
		.dtype = NPUMEM_FX16, .frac_bits = 1, .layout = NPUMEM_ALIGNED, .shape = {1, 3, 4, 2}};
	int16_t data[24], is[24];
	float reals[24];
	struct npumem_error error = {.status = 0};
	struct stream stream;
	for (int i = 0; i < 24; i++)
		reals[i] = (float)(data[i] = (int16_t)(i * 100)) / 2;
	for (int real = 0; real < 2; real++) {
		memset(is, 0, sizeof(is));
		make(real ? "<f4" : "<i2", shape, 3, real ? (void *)reals : data,
		     real ? sizeof(reals) : sizeof(data));
		ck_assert_int_eq(stream_open_perm(&stream, path, &place, &perm, real, NPUMEM_UP, NULL), 0);
		for (size_t at = 0; at < 24; at += 5)
			ck_assert_int_eq(stream_read(&stream, is + at, 24 - at < 5 ? 24 - at : 5, NULL), 0);
		ck_assert_int_eq(stream_close(&stream, 0, NULL), 0);
		for (int c = 0; c < 3; c++)
			for (int h = 0; h < 4; h++)
				for (int w = 0; w < 2; w++)
					ck_assert_int_eq(is[(c * 4 + h) * 2 + w], 100 * ((w * 3 + c) * 4 + h));
	}
	ck_assert_int_ne(stream_open_perm(&stream, path, &place, &flat, true, NPUMEM_UP, &error), 0);
	ck_assert_msg(strstr(error.message, "the array has 3 dimensions, \"perm\" has 2"), "%s", error.message);
	ck_assert_int_ne(stream_open_perm(&stream, path, &place, &(struct stream_perm){3, {2, 1, 0}}, true,
					  NPUMEM_UP, NULL),
			 0);
	/* A file that is cut off. */
	npumem_error_clear(&error);
	make("<i2", shape, 3, data, sizeof(data));
	ck_assert_int_eq(truncate(path, 128 + sizeof(data) - 1), 0);
	ck_assert_int_eq(stream_open_perm(&stream, path, &place, &perm, false, 0, NULL), 0);
	ck_assert_int_eq(stream_read(&stream, is, 1, &error), NPUMEM_INVALID);
	stream_close(&stream, 0, NULL);
}

TEST(a_full_disk)
{
	static int16_t data[N];
	struct npumem_error error = {.status = 0};
	struct stream stream;
	int status =
		stream_create(&stream, fopen("/dev/full", "wb"), "/dev/full", &fx16, false, &fx16_dims, &error);
	if (!status) {
		stream_write(&stream, data, N, &error);
		status = stream_close(&stream, 0, &error);
	}
	ck_assert_int_eq(error.status, NPUMEM_INTERNAL);
	ck_assert_msg(strstr(error.message, "No space left"), "%s", error.message);
}

FIXTURE(setup, teardown)
