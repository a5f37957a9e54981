/* Numbers of any file NumPy writes, as doubles: exact for all that a tensor can hold. Invariant: shape and strides
 * are those after the permutation, in elements of the file. */
#include "client/ctl/core/arrays/values.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "client/ctl/core/arrays/stream.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/vectors/vectors.h"
#include "client/ctl/core/words/words.h"

/* ---- one number ---- */

/* An element type of NumPy's: 'f', 'i' or 'u', and its bytes. */
struct element {
	char kind;
	unsigned bytes;
	bool big_endian;
};

static int element_of(const char *descr, struct element *element, struct npumem_error *error)
{
	unsigned bytes = descr[0] && descr[1] && isdigit((unsigned char)descr[2]) && !descr[3]
				 ? (unsigned)(descr[2] - '0')
				 : 0;
	*element = (struct element){.kind = descr[1], .bytes = bytes, .big_endian = descr[0] == '>'};
	bool known = descr[0] && strchr("<>=|", descr[0]);
	if (known && element->kind == 'f' && (bytes == 2 || bytes == 4 || bytes == 8))
		return 0;
	if (known && (element->kind == 'i' || element->kind == 'u') &&
	    (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8))
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID,
				"the array has element type %s; integers and float16, 32 and 64 are read", descr);
}

static double half(uint64_t bits)
{
	int exponent = (int)(bits >> 10 & 31);
	double fraction = (double)(bits & 1023), sign = bits >> 15 ? -1 : 1;
	if (exponent == 31)
		return fraction > 0 ? NAN : sign * INFINITY;
	return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static double number(const uint8_t *at, const struct element *element)
{
	uint64_t bits = 0;
	for (unsigned i = 0; i < element->bytes; i++)
		bits |= (uint64_t)at[i] << 8 * (element->big_endian ? element->bytes - 1 - i : i);
	if (element->kind == 'f' && element->bytes == 8) {
		double real;
		memcpy(&real, &bits, sizeof(real));
		return real;
	}
	if (element->kind == 'f' && element->bytes == 4) {
		uint32_t low = (uint32_t)bits;
		float real;
		memcpy(&real, &low, sizeof(real));
		return (double)real;
	}
	if (element->kind == 'f')
		return half(bits);
	if (element->kind == 'u')
		return (double)bits;
	unsigned unused = 64 - 8 * element->bytes;
	return (double)((int64_t)(bits << unused) >> unused);
}

static int dtype_of(const struct element *element)
{
	char descr[4] = {element->bytes == 1 ? '|' : '<', element->kind, (char)('0' + element->bytes), 0};
	for (int dtype = 1; npumem_dtype_name(dtype); dtype++)
		if (!npumem_dtype_is_fixed(dtype) && !strcmp(npy_descr(dtype), descr))
			return dtype;
	return 0;
}

/* ---- order ---- */

/* Strides of the file's dimensions, in elements; n is checked against overflow. */
static int lay_out(const struct npy *npy, struct values *values, size_t *stride, struct npumem_error *error)
{
	values->n = 1;
	values->n_dims = npy->n_dims;
	for (unsigned k = 0; k < npy->n_dims; k++) {
		unsigned i = npy->fortran ? k : npy->n_dims - 1 - k;
		values->shape[i] = npy->shape[i];
		stride[i] = values->n;
		if (__builtin_mul_overflow(values->n, (size_t)npy->shape[i], &values->n) ||
		    values->n > SIZE_MAX / sizeof(double))
			return npumem_error_set(error, NPUMEM_INVALID,
						"the array has more elements than memory has bytes");
	}
	return values->n ? 0 : npumem_error_set(error, NPUMEM_INVALID, "the array is empty");
}

static int permute(const char *perm, struct values *values, size_t *stride, struct npumem_error *error)
{
	int64_t from[NPY_DIMS_MAX], shape[NPY_DIMS_MAX];
	size_t old[NPY_DIMS_MAX];
	unsigned n, seen = 0;
	int status = numbers_list("--perm", perm, from, NPY_DIMS_MAX, &n, error);
	if (status)
		return status;
	for (unsigned i = 0; i < n; i++)
		seen |= from[i] < (int64_t)n ? 1U << from[i] : 0;
	if (n != values->n_dims || seen != (1U << n) - 1)
		return npumem_error_set(error, NPUMEM_INVALID,
					"--perm %.40s does not name each of the array's %u dimensions once", perm,
					values->n_dims);
	memcpy(shape, values->shape, sizeof(shape));
	memcpy(old, stride, sizeof(old));
	for (unsigned i = 0; i < n; i++) {
		values->shape[i] = shape[from[i]];
		stride[i] = old[from[i]];
	}
	return 0;
}

static void gather(const uint8_t *raw, const struct element *element, const size_t *stride, struct values *values)
{
	int64_t index[NPY_DIMS_MAX] = {0};
	size_t at = 0;
	for (size_t i = 0; i < values->n; i++) {
		values->data[i] = number(raw + at * element->bytes, element);
		for (unsigned d = values->n_dims; d-- > 0;) {
			at += stride[d];
			if (++index[d] < values->shape[d])
				break;
			at -= stride[d] * (size_t)values->shape[d];
			index[d] = 0;
		}
	}
}

/* ---- files ---- */

static int read_file(FILE *file, const char *perm, struct values *values, struct npumem_error *error)
{
	size_t stride[NPY_DIMS_MAX];
	struct element element;
	struct npy npy;
	int status = npy_read_header(file, &npy, error);
	if (!status)
		status = element_of(npy.descr, &element, error);
	if (!status)
		status = lay_out(&npy, values, stride, error);
	if (!status && perm)
		status = permute(perm, values, stride, error);
	if (status)
		return status;
	uint8_t *raw = memory_data(values->n, element.bytes);
	values->data = memory_data(values->n, sizeof(*values->data));
	values->is_real = element.kind == 'f';
	values->dtype = dtype_of(&element);
	if (!raw || !values->data)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory for %zu numbers", values->n);
	status = npy_read_data(file, raw, values->n * element.bytes, error);
	if (!status)
		gather(raw, &element, stride, values);
	memory_free(raw);
	return status;
}

bool values_is_file(const char *word)
{
	size_t length = strlen(word);
	return zip_path_end(word) || (length > 4 && !strcmp(word + length - 4, ".npy")) || strchr(word, '/');
}

static int read_archive(FILE *archive, const char *name, const char *perm, struct values *values,
			struct npumem_error *error)
{
	FILE *member;
	int status = zip_open(archive, name, &member, error);
	if (status)
		return status;
	status = read_file(member, perm, values, error);
	fclose(member);
	return status;
}

int values_read(const char *path, const char *perm, struct values *values, struct npumem_error *error)
{
	struct npumem_error why = {.status = 0};
	const char *end = zip_path_end(path);
	bool piped = !strcmp(path, "-");
	FILE *file = piped ? stdin : fopen(end ? memory_text("%.*s", (int)(end - path), path) : path, "rb");
	*values = (struct values){.n = 0};
	if (!file)
		return npumem_error_set(error, NPUMEM_INVALID, "%.200s: %s", path, strerror(errno));
	int status = end ? read_archive(file, *end ? end + 1 : NULL, perm, values, &why)
			 : read_file(file, perm, values, &why);
	if (!piped)
		fclose(file);
	return status ? npumem_error_set(error, why.status, "%.200s: %.280s", path, why.message) : 0;
}

int values_shape(const struct values *values, struct npumem_dims *shape, struct npumem_error *error)
{
	int64_t to[4] = {1, 1, 1, 1};
	unsigned n = values->n_dims;
	/* A bias, or C,H,W: without N. */
	unsigned at = n == 1 || n == 3 ? 1 : 0;
	if (n > 4)
		return npumem_error_set(error, NPUMEM_INVALID,
					"an array of %u dimensions is not a tensor, which has four: N,C,H,W", n);
	memcpy(to + at, values->shape, n * sizeof(*to));
	*shape = (struct npumem_dims){to[0], to[1], to[2], to[3]};
	return 0;
}

/* ---- containers ---- */

static int refuse_at(const struct values *values, size_t i, const char *why, struct npumem_error *error)
{
	char text[200];
	return npumem_error_set(error, NPUMEM_INVALID, "the element at %s is %.9g, %s",
				npy_index_text(values->shape, values->n_dims, i, text, sizeof(text)),
				values->data[i], why);
}

static void store(void *containers, int dtype, size_t i, int64_t value)
{
	switch (npumem_dtype_bytes(dtype)) {
	case 1:
		((uint8_t *)containers)[i] = (uint8_t)value;
		return;
	case 2:
		((uint16_t *)containers)[i] = (uint16_t)value;
		return;
	default:
		((uint32_t *)containers)[i] = (uint32_t)value;
	}
}

static int encode_integers(const struct values *values, int dtype, void *containers, struct npumem_error *error)
{
	int64_t low, high;
	char why[96];
	if (!npumem_dtype_range(dtype, &low, &high))
		return npumem_error_set(error, NPUMEM_INVALID, "the array has integers; %s takes real numbers",
					npumem_dtype_name(dtype));
	snprintf(why, sizeof(why), "which is not within %s's %" PRId64 " to %" PRId64, npumem_dtype_name(dtype),
		 low, high);
	for (size_t i = 0; i < values->n; i++) {
		double value = values->data[i];
		if (value < (double)low || value > (double)high)
			return refuse_at(values, i, why, error);
		store(containers, dtype, i, (int64_t)value);
	}
	return 0;
}

int values_encode(const struct values *values, int dtype, int64_t frac_bits, int rounding, void *containers,
		  int64_t *saturated, struct npumem_error *error)
{
	int64_t low, high;
	*saturated = 0;
	if (!values->is_real)
		return encode_integers(values, dtype, containers, error);
	if (dtype == NPUMEM_FP32) {
		for (size_t i = 0; i < values->n; i++)
			((float *)containers)[i] = (float)values->data[i];
		return 0;
	}
	if (!npumem_dtype_is_fixed(dtype))
		return npumem_error_set(error, NPUMEM_INVALID, "the array has real numbers; %s takes integers",
					npumem_dtype_name(dtype));
	npumem_dtype_range(dtype, &low, &high);
	for (size_t i = 0; i < values->n; i++) {
		if (isnan(values->data[i]))
			return refuse_at(values, i, "which has no fixed-point value", error);
		store(containers, dtype, i,
		      quantize_one(values->data[i], frac_bits, rounding, low, high, saturated));
	}
	return 0;
}

void values_decode(const void *containers, int dtype, int64_t frac_bits, struct values *values)
{
	values->is_real = dtype == NPUMEM_FP32 || npumem_dtype_is_fixed(dtype);
	values->dtype = dtype;
	for (size_t i = 0; i < values->n; i++) {
		if (dtype == NPUMEM_FP32)
			values->data[i] = (double)((const float *)containers)[i];
		else
			values->data[i] = ldexp((double)mapping_value(dtype, containers, i),
						npumem_dtype_is_fixed(dtype) ? -(int)frac_bits : 0);
	}
}

/* ---- as text and as JSON ---- */

enum { VALUES_TEXT_BYTES = 32 };

static int number_text(const struct values *values, size_t i, char *text)
{
	return snprintf(text, VALUES_TEXT_BYTES, values->is_real ? "%.9g" : "%.0f", values->data[i]);
}

static void print_index(FILE *out, const struct values *values, size_t plane)
{
	int64_t index[NPY_DIMS_MAX] = {0};
	for (unsigned d = values->n_dims - 2; d-- > 0; plane /= (size_t)values->shape[d])
		index[d] = (int64_t)(plane % (size_t)values->shape[d]);
	for (unsigned d = 0; d < values->n_dims - 2; d++)
		fprintf(out, "%s%" PRId64, d ? "," : "[", index[d]);
	fputs("]\n", out);
}

void values_print(FILE *out, const struct values *values)
{
	size_t cols = (size_t)values->shape[values->n_dims - 1], rows = (size_t)values->shape[values->n_dims - 2];
	char text[VALUES_TEXT_BYTES];
	int width = 0;
	for (size_t i = 0; i < values->n; i++) {
		int length = number_text(values, i, text);
		width = length > width ? length : width;
	}
	for (size_t i = 0; i < values->n; i++) {
		if (values->n_dims > 2 && i % (rows * cols) == 0)
			print_index(out, values, i / (rows * cols));
		number_text(values, i, text);
		fprintf(out, "%s%*s%s", i % cols ? " " : "", width, text, (i + 1) % cols ? "" : "\n");
	}
}

static json_t *nested(const struct values *values, unsigned dim, size_t *at)
{
	if (dim == values->n_dims) {
		double value = values->data[(*at)++];
		if (!isfinite(value))
			return json_null();
		return values->is_real ? json_real(value) : json_integer((json_int_t)value);
	}
	json_t *array = json_array();
	for (int64_t i = 0; i < values->shape[dim]; i++)
		json_array_append_new(array, nested(values, dim + 1, at));
	return array;
}

json_t *values_json(const struct values *values)
{
	size_t at = 0;
	return nested(values, 0, &at);
}
