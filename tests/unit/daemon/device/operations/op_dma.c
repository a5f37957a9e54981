/* Write, read, fill and copy: every layout against an independent map of where elements lie, system memory with
 * strides, and every refusal with its value and its limit. */
#include <math.h>

#include "tests/support/bytemap.h"
#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/rig.h"

FIXTURE_OBJECT(struct rig, rig, rig_open(&rig, 2, 4096), rig_close(&rig))

/* ---- layouts ---- */

static struct device_request random_request(uint64_t *random, int64_t n_npus, const struct npumem_dims *logical)
{
	static const struct {
		int mode, dtype;
	} types[] = {{NPUMEM_MODE_PLAIN, NPUMEM_UINT8}, {NPUMEM_MODE_4N, NPUMEM_UINT8}};
	unsigned type = oracle_random(random) % 2;
	struct device_request request =
		rig_request(types[type].dtype, logical->n, logical->c, logical->h, logical->w);
	struct npumem_spec *spec = &request.spec;
	spec->mode = types[type].mode;
	spec->start_npu = oracle_between(random, 0, n_npus - 1);
	spec->layout = (int)oracle_between(random, 1, 4);
	if (spec->layout == NPUMEM_MATRIX && logical->h * logical->w != 1)
		spec->layout = NPUMEM_COMPACT;
	if (spec->layout == NPUMEM_MATRIX) {
		spec->rows = logical->n;
		spec->cols = logical->c;
		spec->w = oracle_between(random, 1, spec->cols);
		spec->shape = (struct npumem_dims){0, 0, 0, 0};
	}
	if (spec->layout == NPUMEM_STRIDED) {
		int64_t w = oracle_between(random, 1, 3), h = w * logical->w + oracle_between(random, 0, 2);
		int64_t c = h * logical->h + oracle_between(random, 0, 2);
		spec->stride = (struct npumem_dims){c * 10, c, h, w};
	}
	return request;
}

/* Every element lies where the map has it. */
static void lies_as_drawn(const struct tensor *tensor, const uint8_t *elements)
{
	struct bytemap map;
	static uint8_t lane[8192];
	int64_t npu = -1, fp = tensor_place(tensor).bytes_per_npu;
	bytemap_init(&map, &rig.options.geometry);
	struct bytemap_tensor *t = bytemap_draw(&map, TENSOR_PLACE(tensor));
	for (int64_t i = 0; i < t->n_elements; i++) {
		if (t->byte[i] / fp != npu) {
			npu = t->byte[i] / fp;
			device_peek(rig.device, npu, 0, map.npu_bytes, lane);
		}
		if (memcmp(&lane[tensor_place(tensor).offset + t->byte[i] % fp], elements + i * t->element_bytes,
			   (size_t)t->element_bytes))
			ck_abort_msg("element %ld is not there", (long)i);
	}
	bytemap_forget_drawing(t);
	bytemap_deinit(&map);
}

TEST(copies_between_all_layouts)
{
	uint8_t bytes[512], back[512];
	for (uint64_t seed = 1; seed <= 150; seed++) {
		uint64_t random = seed;
		int64_t n_npus = oracle_between(&random, 1, 5);
		rig_reopen(&rig, n_npus, 8192);
		struct npumem_dims logical = {oracle_between(&random, 1, 6), oracle_between(&random, 1, 9), 1, 1};
		if (oracle_random(&random) % 2) {
			logical.h = oracle_between(&random, 1, 3);
			logical.w = oracle_between(&random, 1, 3);
		}
		struct device_request one = random_request(&random, n_npus, &logical);
		struct device_request two = random_request(&random, n_npus, &logical);
		struct tensor *a = rig_place(&rig, &one), *b = rig_place(&rig, &two);
		for (int64_t i = 0; i < rig_bytes(a); i++)
			bytes[i] = (uint8_t)oracle_between(&random, 1, 255);
		ck_assert_int_eq(rig_write(&rig, a, bytes), 0);
		lies_as_drawn(a, bytes);
		ck_assert_int_eq(rig_copy(&rig, b, a), 0);
		lies_as_drawn(b, bytes);
		ck_assert_int_eq(rig_read(&rig, b, back), 0);
		ck_assert_int_eq(memcmp(bytes, back, (size_t)rig_bytes(b)), 0);
	}
}

/* Any piece, in any layout. */
TEST(pieces)
{
	uint8_t bytes[512], image[512], back[512];
	for (uint64_t seed = 1; seed <= 100; seed++) {
		uint64_t random = seed;
		rig_reopen(&rig, 3, 8192);
		struct npumem_dims logical = {oracle_between(&random, 1, 6), oracle_between(&random, 1, 7), 1, 1};
		logical.h = logical.w = seed % 3;
		if (seed % 3 == 0)
			logical.h = logical.w = 1;
		struct device_request request = random_request(&random, 3, &logical);
		struct tensor *tensor = rig_place(&rig, &request);
		int64_t n = rig_bytes(tensor);
		ck_assert_int_eq(rig_fill(&rig, tensor, 0), 0);
		memset(image, 0, sizeof(image));
		for (int i = 0; i < 12; i++) {
			int64_t first = oracle_between(&random, 0, n - 1),
				count = oracle_between(&random, 1, n - first);
			for (int64_t k = 0; k < count; k++)
				bytes[k] = image[first + k] = (uint8_t)oracle_random(&random);
			ck_assert_int_eq(rig_write_some(&rig, tensor, first, count, bytes), 0);
			first = oracle_between(&random, 0, n - 1);
			count = oracle_between(&random, 1, n - first);
			ck_assert_int_eq(rig_read_some(&rig, tensor, first, count, back), 0);
			ck_assert_int_eq(memcmp(back, image + first, (size_t)count), 0);
		}
		lies_as_drawn(tensor, image);
	}
}

/* ---- system memory ---- */

/* Elements of 16 bits at n*n_stride + c*c_stride + … of `off` bytes into the buffer, and not a byte beside them.
 */
TEST(strides_on_the_systems_side)
{
	uint16_t buffer[200], back[200];
	struct device_request request = rig_request(NPUMEM_INT16, 2, 3, 2, 4);
	struct tensor *tensor = rig_place(&rig, &request);
	for (int i = 0; i < 200; i++)
		buffer[i] = (uint16_t)(i * 257);
	struct op_system system = {.base = (uint8_t *)buffer, .bytes = sizeof(buffer), .off = 6, .strided = true};
	system.stride = (struct npumem_dims){60, 19, 9, 2};
	rig.op = (struct op){.kind = OP_WRITE, .tensor = tensor, .count = -1, .system = system};
	ck_assert_int_eq(rig_op(&rig), 0);
	ck_assert_int_eq(rig_read(&rig, tensor, back), 0);
	for (int i = 0; i < 48; i++)
		ck_assert_int_eq(back[i], buffer[3 + i / 24 * 60 + i / 8 % 3 * 19 + i / 4 % 2 * 9 + i % 4 * 2]);
	memset(back, 0xee, sizeof(back));
	system.base = (uint8_t *)back;
	rig.op = (struct op){.kind = OP_READ, .tensor = tensor, .count = -1, .system = system};
	ck_assert_int_eq(rig_op(&rig), 0);
	unsigned n = 0;
	for (int i = 0; i < 200; i++) {
		ck_assert(back[i] == 0xeeee || back[i] == buffer[i]);
		n += back[i] != 0xeeee;
	}
	ck_assert_uint_eq(n, 48);
	/* The last element ends at 3 + 60 + 2*19 + 9 + 3*2 + 1 = 117 elements. */
	rig.op.system.bytes = 2 * 117;
	ck_assert_int_eq(rig_op(&rig), 0);
	rig.op.system.bytes--;
	rig_fails(&rig, rig_op(&rig), NPUMEM_INVALID,
		  "228 bytes from 6 on are needed of system memory, which has 233");
}

/* The stride of an extent of 1 is left out, or is anything. */
TEST(strides_that_make_no_sense)
{
	static const int64_t senseless[] = {0, 1, 7777, -1, INT64_MAX, INT64_MIN};
	uint16_t buffer[20], back[20];
	struct device_request request = rig_request(NPUMEM_INT16, 1, 1, 3, 1);
	struct tensor *tensor = rig_place(&rig, &request);
	for (unsigned i = 0; i < sizeof(senseless) / sizeof(senseless[0]); i++) {
		int64_t any = senseless[i];
		for (unsigned k = 0; k < 20; k++)
			buffer[k] = (uint16_t)(1000 * i + k);
		struct op_system system = {.base = (uint8_t *)buffer, .bytes = 30, .strided = true};
		system.stride = (struct npumem_dims){any, any, 7, any};
		rig.op = (struct op){.kind = OP_WRITE, .tensor = tensor, .count = -1, .system = system};
		ck_assert_int_eq(rig_op(&rig), 0);
		memset(back, 0xee, sizeof(back));
		system.base = (uint8_t *)back;
		rig.op = (struct op){.kind = OP_READ, .tensor = tensor, .count = -1, .system = system};
		ck_assert_int_eq(rig_op(&rig), 0);
		for (unsigned k = 0; k < 20; k++)
			ck_assert_int_eq(back[k], k < 15 && k % 7 == 0 ? buffer[k] : 0xeeee);
		rig.op.system.stride.h = 0;
		rig_fails(&rig, rig_op(&rig), NPUMEM_INVALID, "stride of 0");
	}
}

/* A matrix has its rows in n and its columns in c. */
TEST(strides_of_a_matrix)
{
	uint8_t buffer[100], back[22];
	rig_reopen(&rig, 4, 4096);
	struct device_request request = rig_matrix(NPUMEM_INT8, 2, 11, 4);
	struct tensor *tensor = rig_place(&rig, &request);
	for (int i = 0; i < 100; i++)
		buffer[i] = (uint8_t)i;
	struct op_system system = {.base = buffer, .bytes = 1 + 40 + 10 * 3 + 1, .off = 1, .strided = true};
	system.stride = (struct npumem_dims){40, 3, 0, 1};
	rig.op = (struct op){.kind = OP_WRITE, .tensor = tensor, .count = -1, .system = system};
	ck_assert_int_eq(rig_op(&rig), 0);
	ck_assert_int_eq(rig_read(&rig, tensor, back), 0);
	for (int i = 0; i < 22; i++)
		ck_assert_int_eq(back[i], 1 + i / 11 * 40 + i % 11 * 3);
	rig.op = (struct op){.kind = OP_WRITE, .tensor = tensor, .count = -1, .system = system};
	rig.op.system.bytes--;
	ck_assert_int_eq(rig_op(&rig), NPUMEM_INVALID);
	for (int i = 0; i < 2; i++) {
		rig.op.system = system;
		*(i ? &rig.op.system.stride.h : &rig.op.system.stride.w) = i ? -1 : 3;
		rig_fails(&rig, rig_op(&rig), NPUMEM_INVALID, "its strides of h and w are 0 or 1");
	}
}

TEST(bad_transfers)
{
	uint8_t bytes[64] = {0};
	struct device_request request = rig_request(NPUMEM_INT16, 2, 3, 2, 1);
	struct tensor *tensor = rig_place(&rig, &request);
	tensor->owner = "x";
	static const int64_t ranges[][2] = {{-1, 2},	    {12, 1},	    {0, 13},  {11, 2}, {0, 0},
					    {3, INT64_MAX}, {INT64_MIN, 1}, {12, -1}, {13, -1}};
	for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		char part[128];
		ck_assert_int_eq(rig_write_some(&rig, tensor, ranges[i][0], ranges[i][1], bytes), NPUMEM_INVALID);
		snprintf(part, sizeof(part),
			 "elements from %" PRId64 ", %" PRId64 " of them, are not within the 12 elements of x",
			 ranges[i][0], ranges[i][1]);
		rig_said(&rig, NPUMEM_INVALID, part);
		rig_fails(&rig, rig_read_some(&rig, tensor, ranges[i][0], ranges[i][1], bytes), NPUMEM_INVALID,
			  part);
	}
	struct op_system system = {.base = bytes, .bytes = 23};
	rig.op = (struct op){.kind = OP_WRITE, .tensor = tensor, .count = -1, .system = system};
	rig_fails(&rig, rig_op(&rig), NPUMEM_INVALID,
		  "24 bytes from 0 on are needed of system memory, which has 23");
	rig.op.system = (struct op_system){.base = bytes, .bytes = 64, .off = 41};
	rig_fails(&rig, rig_op(&rig), NPUMEM_INVALID,
		  "24 bytes from 41 on are needed of system memory, which has 64");
	rig.op.system.off = UINT64_MAX;
	ck_assert_int_eq(rig_op(&rig), NPUMEM_INVALID);
	static const struct npumem_dims strides[] = {{-6, 2, 1, 1},
						     {6, 2, -1, 1},
						     {INT64_MAX, 2, 1, 1},
						     {1, INT64_MAX / 2, 1, 1},
						     {INT64_MAX / 2, INT64_MAX / 4, 1, 1}};
	for (unsigned i = 0; i < sizeof(strides) / sizeof(strides[0]); i++) {
		rig.op.system =
			(struct op_system){.base = bytes, .bytes = 64, .strided = true, .stride = strides[i]};
		rig_fails(&rig, rig_op(&rig), NPUMEM_INVALID, i < 2 ? "is negative" : "system memory");
	}
	rig.op.system = (struct op_system){.base = bytes, .bytes = 64, .strided = true, .stride = {6, 2, 1, 1}};
	rig.op.first = 2;
	rig.op.count = 5;
	rig_fails(&rig, rig_op(&rig), NPUMEM_INVALID,
		  "a strided transfer moves all 12 elements of x, not 5 from 2");
	struct device_state state;
	device_state(rig.device, tensor, &state);
	ck_assert_int_eq(state.unwritten_bytes, 24);
}

/* ---- fill ---- */

static struct tensor *tensor_of(int dtype)
{
	struct device_request request = rig_request(dtype, 1, 2, 2, 2);
	return rig_place(&rig, &request);
}

TEST(fills)
{
	static const struct {
		int dtype;
		int64_t low, high;
	} types[] = {{NPUMEM_INT8, -128, 127},
		     {NPUMEM_UINT8, 0, 255},
		     {NPUMEM_INT16, -32768, 32767},
		     {NPUMEM_UINT16, 0, 65535},
		     {NPUMEM_INT32, INT32_MIN, INT32_MAX},
		     {NPUMEM_UINT32, 0, UINT32_MAX},
		     {NPUMEM_FX8, -128, 127},
		     {NPUMEM_FX16, -32768, 32767}};
	uint8_t bytes[32];
	char part[96];
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct tensor *tensor = tensor_of(types[i].dtype);
		int64_t value, size = npumem_dtype_bytes(types[i].dtype);
		for (int end = 0; end < 2; end++) {
			value = end ? types[i].high : types[i].low;
			ck_assert_int_eq(rig_fill(&rig, tensor, value), 0);
			ck_assert_int_eq(rig_read(&rig, tensor, bytes), 0);
			for (int k = 0; k < 8; k++)
				ck_assert_int_eq(memcmp(bytes + k * size, &value, (size_t)size), 0);
			value += end ? 1 : -1;
			ck_assert_int_eq(rig_fill(&rig, tensor, value), NPUMEM_INVALID);
			snprintf(part, sizeof(part),
				 "fill value %" PRId64 " is not within %s's %" PRId64 " to %" PRId64, value,
				 npumem_dtype_name(types[i].dtype), types[i].low, types[i].high);
			rig_said(&rig, NPUMEM_INVALID, part);
		}
		rig.op = (struct op){.kind = OP_FILL, .tensor = tensor, .value_is_float = true, .float_value = 1};
		rig_fails(&rig, rig_op(&rig), NPUMEM_INVALID, "takes its container's integers, from ");
	}
}

TEST(fills_of_fp32)
{
	float reals[8];
	struct tensor *tensor = tensor_of(NPUMEM_FP32);
	static const double good[] = {0, -0.0, 0.1, 3.4e38, -1e-45, INFINITY, NAN};
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		float expected = (float)good[i];
		rig.op = (struct op){.kind = OP_FILL, .tensor = tensor, .value_is_float = true};
		rig.op.float_value = good[i];
		ck_assert_int_eq(rig_op(&rig), 0);
		ck_assert_int_eq(rig_read(&rig, tensor, reals), 0);
		ck_assert(memcmp(&reals[7], &expected, 4) == 0 || (isnan(expected) && isnan(reals[7])));
	}
	rig.op = (struct op){.kind = OP_FILL, .tensor = tensor, .value_is_float = true, .float_value = 3.5e38};
	rig_fails(&rig, rig_op(&rig), NPUMEM_INVALID, "fill value 3.5e+38 is beyond fp32's 3.40282e+38");
	/* An integer, where fp32 has it. */
	static const int64_t exact[] = {0, -7, 1 << 24, (1 << 24) + 2, INT64_MIN, INT64_C(1) << 62};
	for (unsigned i = 0; i < sizeof(exact) / sizeof(exact[0]); i++) {
		ck_assert_int_eq(rig_fill(&rig, tensor, exact[i]), 0);
		ck_assert_int_eq(rig_read(&rig, tensor, reals), 0);
		ck_assert(reals[0] == (float)exact[i]);
	}
	static const int64_t inexact[] = {(1 << 24) + 1, -(1 << 24) - 1, INT64_MAX, (INT64_C(1) << 60) + 1};
	for (unsigned i = 0; i < sizeof(inexact) / sizeof(inexact[0]); i++) {
		rig_fails(&rig, rig_fill(&rig, tensor, inexact[i]), NPUMEM_INVALID, "is not an fp32");
	}
}

/* ---- copy ---- */

TEST(bad_copies)
{
	struct tensor *a = tensor_of(NPUMEM_FX8), *b = tensor_of(NPUMEM_INT8);
	ck_assert_int_eq(rig_fill(&rig, a, 1), 0);
	rig_fails(&rig, rig_copy(&rig, b, a), NPUMEM_INVALID,
		  "the destination is int8, the source fx8: use convert_tensor");
	struct device_request request = rig_request(NPUMEM_FX8, 1, 2, 2, 2);
	request.spec.frac_bits = 5;
	b = rig_place(&rig, &request);
	rig_fails(&rig, rig_copy(&rig, b, a), NPUMEM_INVALID,
		  "the destination has 5 frac_bits, the source 7: use convert_tensor");
	request = rig_request(NPUMEM_FX8, 1, 2, 1, 4);
	b = rig_place(&rig, &request);
	rig_fails(&rig, rig_copy(&rig, b, a), NPUMEM_INVALID, "the destination is 1,2,1,4, the source 1,2,2,2");
	/* A matrix is rows by columns, whatever its width. */
	request = rig_matrix(NPUMEM_FX8, 2, 8, 3);
	b = rig_place(&rig, &request);
	rig_fails(&rig, rig_copy(&rig, b, a), NPUMEM_INVALID, "the destination is 2,8,1,1, the source 1,2,2,2");
	struct device_state state;
	device_state(rig.device, b, &state);
	ck_assert_int_eq(state.unwritten_bytes, 16);
}
