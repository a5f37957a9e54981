#include "tests/conformance/vendor.h"

#include <zlib.h>

#include "daemon/device/internal.h"

void vendor_open(struct vendor *vendor, uint8_t poison)
{
	*vendor = (struct vendor){.poison = poison};
	ck_assert(npumem_geometry_chip("bm1684", &vendor->geometry));
	struct device_options options = {.geometry = vendor->geometry};
	size_t bytes = ((size_t)device_memory_bytes(&vendor->geometry) + 63) / 64 * 64;
	size_t local = (size_t)(vendor->geometry.n_npus * vendor->geometry.npu_bytes);
	vendor->memory = aligned_alloc(64, bytes);
	vendor->expected = malloc(local);
	ck_assert(vendor->memory && vendor->expected);
	memset(vendor->memory, 0, bytes);
	memset(vendor->expected, poison, local);
	ck_assert_int_eq(device_new(&options, &heap_libc, vendor->memory, &vendor->device), 0);
	for (int64_t npu = 0; npu < vendor->geometry.n_npus; npu++)
		memset(local_at(&vendor->device->local, npu, 0), poison, (size_t)vendor->geometry.npu_bytes);
}

void vendor_close(struct vendor *vendor)
{
	vendor_reset(vendor);
	const char *wrong = device_check(vendor->device);
	ck_assert_msg(!wrong, "%s", wrong);
	device_free(vendor->device);
	free(vendor->memory);
	free(vendor->expected);
}

int vendor_try(struct vendor *vendor, const struct npumem_spec *spec, struct tensor **tensor,
	       struct npumem_error *error)
{
	struct error_context context = {.error = error};
	struct device_request request = {.spec = *spec};
	return device_alloc(vendor->device, &request, 1, tensor, &context);
}

struct tensor *vendor_place(struct vendor *vendor, const struct npumem_spec *spec)
{
	struct npumem_error error = {0};
	struct tensor *tensor;
	ck_assert_uint_lt(vendor->n_tensors, VENDOR_TENSORS_MAX);
	ck_assert_msg(vendor_try(vendor, spec, &tensor, &error) == 0, "refused: %s", error.message);
	vendor->tensors[vendor->n_tensors++] = tensor;
	return tensor;
}

void vendor_drop(struct vendor *vendor, struct tensor *tensor)
{
	const struct npumem_place place = tensor_place(tensor);
	device_release(vendor->device, tensor, NULL, NULL);
	for (int64_t npu = 0; npu < vendor->geometry.n_npus; npu++) {
		size_t at = (size_t)(npu * vendor->geometry.npu_bytes + place.offset);
		memset(local_at(&vendor->device->local, npu, place.offset), vendor->poison,
		       (size_t)place.bytes_per_npu);
		memset(vendor->expected + at, vendor->poison, (size_t)place.bytes_per_npu);
	}
	for (unsigned i = 0; i < vendor->n_tensors; i++) {
		if (vendor->tensors[i] == tensor)
			vendor->tensors[i--] = vendor->tensors[--vendor->n_tensors];
	}
}

void vendor_reset(struct vendor *vendor)
{
	while (vendor->n_tensors)
		vendor_drop(vendor, vendor->tensors[0]);
}

static void run(struct vendor *vendor, struct op *op)
{
	struct npumem_error error = {0};
	struct error_context context = {.error = &error};
	ck_assert_msg(op_check(vendor->device, op, &context) == 0, "refused: %s", error.message);
	ck_assert_msg(op_run(vendor->device, op, &context) == 0, "failed: %s", error.message);
	op_deinit(vendor->device, op);
}

static struct op_system system_of(const void *base, size_t bytes, const struct npumem_dims *stride)
{
	struct op_system system = {.base = (uint8_t *)base, .bytes = bytes, .strided = stride != NULL};
	if (stride)
		system.stride = *stride;
	return system;
}

void vendor_write(struct vendor *vendor, struct tensor *tensor, const void *from, size_t bytes,
		  const struct npumem_dims *stride)
{
	struct op op = {.kind = OP_WRITE, .tensor = tensor, .count = -1, .system = system_of(from, bytes, stride)};
	run(vendor, &op);
}

void vendor_read(struct vendor *vendor, struct tensor *tensor, void *to, size_t bytes,
		 const struct npumem_dims *stride)
{
	struct op op = {.kind = OP_READ, .tensor = tensor, .count = -1, .system = system_of(to, bytes, stride)};
	run(vendor, &op);
}

void vendor_copy(struct vendor *vendor, struct tensor *to, struct tensor *from)
{
	struct op op = {.kind = OP_COPY, .tensor = to, .source = from};
	run(vendor, &op);
}

void vendor_run(struct vendor *vendor, const struct npumem_kernel_row *kernel, struct tensor *in1,
		struct tensor *in2, struct tensor *out, struct npumem_param *param)
{
	struct op_operand operands[] = {{"in1", in1}, {"in2", in2}, {"out", out}};
	struct op op = {
		.kind = OP_RUN,
		.kernel = kernel->number,
		.operands = operands,
		.n_operands = 3,
		.params = param,
		.n_params = 1,
	};
	run(vendor, &op);
}

/* ---- images ---- */

static uint8_t *expected_at(struct vendor *vendor, int64_t npu, int64_t offset, int64_t n)
{
	ck_assert(npu >= 0 && npu < vendor->geometry.n_npus);
	ck_assert(offset >= 0 && n >= 0 && offset + n <= vendor->geometry.npu_bytes);
	return vendor->expected + npu * vendor->geometry.npu_bytes + offset;
}

void vendor_expect(struct vendor *vendor, int64_t npu, int64_t offset, const void *bytes, int64_t n)
{
	memcpy(expected_at(vendor, npu, offset, n), bytes, (size_t)n);
}

void vendor_expect_crc(struct vendor *vendor, int64_t npu, int64_t offset, int64_t n, uint32_t crc)
{
	uint8_t *expected = expected_at(vendor, npu, offset, n);
	const uint8_t *actual = local_at(&vendor->device->local, npu, offset);
	if (crc32(0, actual, (uInt)n) == crc)
		memcpy(expected, actual, (size_t)n);
	else
		*expected = (uint8_t) ~*actual; /* a difference to be found */
}

void vendor_expect_runs(struct vendor *vendor, const json_t *npus)
{
	size_t i, j;
	json_t *npu, *one;
	json_array_foreach(npus, i, npu)
	{
		json_array_foreach(json_object_get(npu, "runs"), j, one) vendor_expect_crc(
			vendor, vendor_int(npu, "npu"), json_integer_value(json_array_get(one, 0)),
			json_integer_value(json_array_get(one, 1)),
			(uint32_t)json_integer_value(json_array_get(one, 2)));
	}
}

static uint8_t hex_byte(const char *hex)
{
	unsigned value;
	ck_assert_int_eq(sscanf(hex, "%2x", &value), 1);
	return (uint8_t)value;
}

int64_t vendor_expect_image(struct vendor *vendor, const json_t *image)
{
	int64_t total = 0;
	size_t i, j;
	json_t *npu, *one;
	json_array_foreach(image, i, npu)
	{
		json_array_foreach(json_object_get(npu, "bytes"), j, one)
		{
			const char *hex = json_string_value(json_array_get(one, 1));
			int64_t offset = json_integer_value(json_array_get(one, 0));
			for (; *hex; hex += 2, total++) {
				uint8_t byte = hex_byte(hex);
				vendor_expect(vendor, vendor_int(npu, "npu"), offset++, &byte, 1);
			}
		}
	}
	return total;
}

int64_t vendor_difference(struct vendor *vendor)
{
	const int64_t s = vendor->geometry.npu_bytes;
	for (int64_t npu = 0; npu < vendor->geometry.n_npus; npu++) {
		const uint8_t *actual = local_at(&vendor->device->local, npu, 0);
		const uint8_t *expected = vendor->expected + npu * s;
		if (!memcmp(actual, expected, (size_t)s))
			continue;
		for (int64_t offset = 0; offset < s; offset++) {
			if (actual[offset] != expected[offset])
				return npu * s + offset;
		}
	}
	return -1;
}

void vendor_compare(struct vendor *vendor, const char *what, int64_t id)
{
	int64_t at = vendor_difference(vendor);
	if (at >= 0)
		ck_abort_msg("%s case %ld: NPU %ld offset %ld differs", what, (long)id,
			     (long)(at / vendor->geometry.npu_bytes), (long)(at % vendor->geometry.npu_bytes));
}

/* ---- the files ---- */

json_t *vendor_load(const char *name)
{
	char path[128];
	json_error_t error;
	snprintf(path, sizeof(path), "tests/conformance/vectors/vendor/%s.json", name);
	json_t *json = json_load_file(path, 0, &error);
	ck_assert_msg(json != NULL, "%s: %s (run from the source tree)", path, error.text);
	ck_assert_int_eq(vendor_int(json, "npu_num"), 64);
	ck_assert_int_eq(vendor_int(json, "local_mem_size_per_npu"), 524288);
	return json;
}

int64_t vendor_int(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	ck_assert_msg(json_is_integer(value), "%s is no integer", key);
	return json_integer_value(value);
}

const char *vendor_text(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	ck_assert_msg(json_is_string(value), "%s is no text", key);
	return json_string_value(value);
}

bool vendor_bool(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	ck_assert_msg(json_is_boolean(value), "%s is neither true nor false", key);
	return json_boolean_value(value);
}

struct npumem_dims vendor_dims(const json_t *object, const char *key)
{
	const json_t *dims = json_object_get(object, key);
	return (struct npumem_dims){
		.n = vendor_int(dims, "n"),
		.c = vendor_int(dims, "c"),
		.h = vendor_int(dims, "h"),
		.w = vendor_int(dims, "w"),
	};
}

int vendor_dtype(int64_t bits)
{
	return bits == 8 ? NPUMEM_UINT8 : bits == 16 ? NPUMEM_UINT16 : NPUMEM_UINT32;
}

struct npumem_spec vendor_spec(int dtype, int mode, const char *layout, int64_t address,
			       const struct npumem_dims *shape, const struct npumem_dims *stride)
{
	struct npumem_spec spec;
	npumem_spec_init(&spec);
	spec.dtype = dtype;
	spec.mode = mode;
	spec.shape = *shape;
	spec.address = address;
	spec.layout = npumem_layout_parse(layout);
	int64_t align = spec.layout == NPUMEM_ALIGNED ? 128 : 4;
	if (!spec.layout || spec.layout == NPUMEM_STRIDED || address % align != 0) {
		spec.layout = NPUMEM_STRIDED;
		spec.stride = *stride;
	}
	return spec;
}

void vendor_stride_eq(const struct npumem_dims *stride, const struct npumem_dims *expected, int64_t id)
{
	ck_assert_msg(!memcmp(stride, expected, sizeof(*stride)),
		      "case %ld: strides %ld %ld %ld %ld, not %ld %ld %ld %ld", (long)id, (long)stride->n,
		      (long)stride->c, (long)stride->h, (long)stride->w, (long)expected->n, (long)expected->c,
		      (long)expected->h, (long)expected->w);
}

int main(void)
{
	SRunner *runner = srunner_create(vendor_suite_layout());
	srunner_add_suite(runner, vendor_suite_placement());
	srunner_add_suite(runner, vendor_suite_modes());
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
