/* NumPy's .npy files (numpy.lib.format): a magic number, a header that is a Python dictionary, the data.
 * Reads versions 1 to 3. The header is parsed as the literal that NumPy writes, not as Python; its length is
 * bounded before memory is taken for it. Does not convert: type, byte order, order and shape must be those of the
 * tensor. */
#include "client/ctl/core/arrays/stream.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/memory.h"

enum {
	NPY_MAGIC_BYTES = 6,
	NPY_HEADER_BYTES_MAX = 64 << 10, /* NumPy's own take a few hundred */
	NPY_ALIGN = 64,
	NPY_TEXT_BYTES = 256,
};

static const char npy_magic[NPY_MAGIC_BYTES] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

const char *npy_descr(int dtype)
{
	switch (dtype) {
	case NPUMEM_INT8:
	case NPUMEM_FX8:
		return "|i1";
	case NPUMEM_UINT8:
		return "|u1";
	case NPUMEM_INT16:
	case NPUMEM_FX16:
		return "<i2";
	case NPUMEM_UINT16:
		return "<u2";
	case NPUMEM_INT32:
		return "<i4";
	case NPUMEM_UINT32:
		return "<u4";
	case NPUMEM_FP32:
		return "<f4";
	}
	return "";
}

const char *npy_shape_text(const int64_t *shape, unsigned n_dims, char *text, size_t bytes)
{
	size_t at = (size_t)snprintf(text, bytes, "(");
	for (unsigned i = 0; i < n_dims && at < bytes; i++)
		at += (size_t)snprintf(text + at, bytes - at, i ? ", %" PRId64 : "%" PRId64, shape[i]);
	if (at < bytes)
		snprintf(text + at, bytes - at, n_dims == 1 ? ",)" : ")");
	return text;
}

const char *npy_index_text(const int64_t *shape, unsigned n_dims, size_t at, char *text, size_t bytes)
{
	int64_t index[NPY_DIMS_MAX] = {0}, rest = (int64_t)at;
	for (unsigned i = n_dims; i-- > 0; rest /= shape[i])
		index[i] = rest % shape[i];
	return npy_shape_text(index, n_dims, text, bytes);
}

/* ---- the dictionary ---- */

static const char *skip(const char *at)
{
	return at + strspn(at, " \t\n");
}

static int bad_header(const char *at, const char *expected, struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_INVALID, "the .npy header has \"%.20s\" where %s was expected", at,
				expected);
}

/* A string in quotes at *at, moved past it. */
static int parse_string(const char **at, char *to, size_t bytes, const char *what, struct npumem_error *error)
{
	const char quote = **at;
	const char *end = quote == '\'' || quote == '"' ? strchr(*at + 1, quote) : NULL;
	if (!end || (size_t)(end - *at) > bytes)
		return bad_header(*at, what, error);
	memcpy(to, *at + 1, (size_t)(end - *at) - 1);
	to[end - *at - 1] = 0;
	*at = skip(end + 1);
	return 0;
}

static int parse_shape(const char **at, struct npy *npy, struct npumem_error *error)
{
	if (**at != '(')
		return bad_header(*at, "the shape", error);
	*at = skip(*at + 1);
	while (**at != ')') {
		char *end;
		if (npy->n_dims == NPY_DIMS_MAX)
			return npumem_error_set(error, NPUMEM_INVALID, "the array has more than %d dimensions",
						NPY_DIMS_MAX);
		if (!isdigit((unsigned char)**at))
			return bad_header(*at, "an extent", error);
		errno = 0;
		npy->shape[npy->n_dims++] = strtoll(*at, &end, 10);
		if (errno)
			return bad_header(*at, "an extent of at most 64 bits", error);
		*at = skip(end);
		if (**at == ',')
			*at = skip(*at + 1);
		else if (**at != ')')
			return bad_header(*at, "\",\" or \")\"", error);
	}
	*at = skip(*at + 1);
	return 0;
}

static int parse_order(const char **at, struct npy *npy, struct npumem_error *error)
{
	if (!strncmp(*at, "False", 5)) {
		*at = skip(*at + 5);
		return 0;
	}
	if (!strncmp(*at, "True", 4)) {
		*at = skip(*at + 4);
		npy->fortran = true;
		return 0;
	}
	return bad_header(*at, "True or False", error);
}

enum { SEEN_DESCR = 1, SEEN_ORDER = 2, SEEN_SHAPE = 4, SEEN_ALL = 7 };

/* One entry, "'key': value". */
static int parse_entry(const char **at, struct npy *npy, unsigned *seen, struct npumem_error *error)
{
	const char *start = *at;
	char key[NPY_DESCR_BYTES];
	int status = parse_string(at, key, sizeof(key), "a key", error);
	if (status)
		return status;
	if (**at != ':')
		return bad_header(*at, "\":\"", error);
	*at = skip(*at + 1);
	unsigned which = !strcmp(key, "descr")		 ? SEEN_DESCR
			 : !strcmp(key, "fortran_order") ? SEEN_ORDER
			 : !strcmp(key, "shape")	 ? SEEN_SHAPE
							 : 0;
	if (!which || (*seen & which))
		return bad_header(start, "descr, fortran_order or shape, once each,", error);
	*seen |= which;
	if (which == SEEN_DESCR)
		return parse_string(at, npy->descr, sizeof(npy->descr), "a plain element type", error);
	return which == SEEN_ORDER ? parse_order(at, npy, error) : parse_shape(at, npy, error);
}

static int parse_header(const char *text, struct npy *npy, struct npumem_error *error)
{
	unsigned seen = 0;
	const char *at = skip(text);
	if (*at != '{')
		return bad_header(at, "\"{\"", error);
	at = skip(at + 1);
	while (*at != '}') {
		int status = parse_entry(&at, npy, &seen, error);
		if (status)
			return status;
		if (*at == ',')
			at = skip(at + 1);
		else if (*at != '}')
			return bad_header(at, "\",\" or \"}\"", error);
	}
	at = skip(at + 1);
	if (*at)
		return bad_header(at, "the end of the header", error);
	if (seen != SEEN_ALL)
		return npumem_error_set(error, NPUMEM_INVALID, "the .npy header lacks %s",
					!(seen & SEEN_DESCR)   ? "descr"
					: !(seen & SEEN_SHAPE) ? "shape"
							       : "fortran_order");
	return 0;
}

/* ---- files ---- */

static int read_exactly(FILE *file, void *to, size_t bytes, const char *what, struct npumem_error *error)
{
	size_t n = fread(to, 1, bytes, file);
	if (n == bytes)
		return 0;
	if (ferror(file))
		return npumem_error_set(error, NPUMEM_INVALID, "reading failed: %s", strerror(errno));
	return npumem_error_set(error, NPUMEM_INVALID, "the file ends in its %s: %zu of %zu bytes are there", what,
				n, bytes);
}

int npy_read_header(FILE *file, struct npy *npy, struct npumem_error *error)
{
	uint8_t start[NPY_MAGIC_BYTES + 2], length[4] = {0};
	*npy = (struct npy){.n_dims = 0};
	int status = read_exactly(file, start, sizeof(start), "magic number", error);
	if (status)
		return status;
	if (memcmp(start, npy_magic, NPY_MAGIC_BYTES))
		return npumem_error_set(error, NPUMEM_INVALID,
					"not a .npy file: it does not begin with \\x93NUMPY");
	if (start[6] < 1 || start[6] > 3 || start[7])
		return npumem_error_set(error, NPUMEM_INVALID, ".npy version %u.%u; 1.0, 2.0 and 3.0 are read",
					start[6], start[7]);
	status = read_exactly(file, length, start[6] == 1 ? 2 : 4, "header", error);
	if (status)
		return status;
	size_t bytes = length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24;
	if (bytes > NPY_HEADER_BYTES_MAX)
		return npumem_error_set(error, NPUMEM_INVALID,
					"a .npy header of %zu bytes is over the limit of %d", bytes,
					NPY_HEADER_BYTES_MAX);
	char *text = memory_new(bytes + 1, 1);
	status = read_exactly(file, text, bytes, "header", error);
	if (!status && memchr(text, 0, bytes))
		status = npumem_error_set(error, NPUMEM_INVALID, "the .npy header has a zero byte in it");
	if (!status)
		status = parse_header(text, npy, error);
	memory_free(text);
	return status;
}

int npy_check_order(const struct npy *npy, struct npumem_error *error)
{
	unsigned n = 0;
	for (unsigned i = 0; i < npy->n_dims; i++)
		n += npy->shape[i] != 1;
	if (!npy->fortran || n < 2)
		return 0;
	return npumem_error_set(
		error, NPUMEM_INVALID,
		"the array is in Fortran order; C order is expected (numpy.ascontiguousarray, or load)");
}

const char *npy_type_text(const char *descr, char *text)
{
	static const struct {
		char letter;
		const char *name;
	} kinds[] = {{'i', "int"}, {'u', "uint"}, {'f', "float"}, {'c', "complex"}};
	unsigned bytes;
	snprintf(text, NPY_TYPE_BYTES, "%.*s", NPY_TYPE_BYTES - 1, descr);
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (descr[0] && descr[1] == kinds[i].letter && sscanf(descr + 2, "%2u", &bytes) == 1)
			snprintf(text, NPY_TYPE_BYTES, "%s%u", kinds[i].name, 8 * bytes);
	return text;
}

int npy_check_type(const struct npy *npy, const char *descr, struct npumem_error *error)
{
	/* Single bytes have no order, and are written in several ways. */
	bool bytes = descr[2] == '1' && strchr("|<>=", npy->descr[0]) && npy->descr[0];
	if (!strcmp(npy->descr, descr) || (bytes && !strcmp(npy->descr + 1, descr + 1)))
		return 0;
	if (npy->descr[0] == '>' && !strcmp(npy->descr + 1, descr + 1))
		return npumem_error_set(error, NPUMEM_INVALID, "the array is big-endian (%s); %s is expected",
					npy->descr, descr);
	char has[NPY_TYPE_BYTES], expected[NPY_TYPE_BYTES];
	return npumem_error_set(error, NPUMEM_INVALID, "the array has element type %s; %s is expected",
				npy_type_text(npy->descr, has), npy_type_text(descr, expected));
}

static unsigned squeeze(const int64_t *shape, unsigned n_dims, int64_t *to)
{
	unsigned n = 0;
	for (unsigned i = 0; i < n_dims; i++)
		if (shape[i] != 1)
			to[n++] = shape[i];
	return n;
}

bool npy_same_extents(const int64_t *a, unsigned n_a, const int64_t *b, unsigned n_b)
{
	int64_t left[NPY_DIMS_MAX], right[NPY_DIMS_MAX];
	unsigned n = squeeze(a, n_a, left);
	return squeeze(b, n_b, right) == n && !memcmp(left, right, n * sizeof(*left));
}

int npy_check_shape(const struct npy *npy, const int64_t *shape, unsigned n_dims, struct npumem_error *error)
{
	char has[NPY_TEXT_BYTES], expected[NPY_TEXT_BYTES];
	if (npy_same_extents(npy->shape, npy->n_dims, shape, n_dims))
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID, "the array has shape %s; %s is expected",
				npy_shape_text(npy->shape, npy->n_dims, has, sizeof(has)),
				npy_shape_text(shape, n_dims, expected, sizeof(expected)));
}

int npy_read_data(FILE *file, void *data, size_t bytes, struct npumem_error *error)
{
	int status = read_exactly(file, data, bytes, "data", error);
	if (status)
		return status;
	if (fgetc(file) != EOF)
		return npumem_error_set(error, NPUMEM_INVALID, "the file goes on after the %zu bytes of its array",
					bytes);
	return 0;
}

int npy_write(FILE *file, const char *descr, const int64_t *shape, unsigned n_dims, const void *data, size_t bytes,
	      struct npumem_error *error)
{
	char shape_text[NPY_TEXT_BYTES], header[2 * NPY_TEXT_BYTES + NPY_ALIGN];
	int n = snprintf(header, sizeof(header) - NPY_ALIGN,
			 "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr,
			 npy_shape_text(shape, n_dims, shape_text, sizeof(shape_text)));
	/* Magic, version, length and header together end at a multiple of 64, with a line feed. */
	size_t length = (size_t)n, start = NPY_MAGIC_BYTES + 4;
	size_t padded = (start + length + 1 + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN - start;
	memset(header + length, ' ', padded - length - 1);
	header[padded - 1] = '\n';
	const uint8_t version[] = {1, 0, (uint8_t)(padded & 0xff), (uint8_t)(padded >> 8)};
	if (fwrite(npy_magic, 1, sizeof(npy_magic), file) == sizeof(npy_magic) &&
	    fwrite(version, 1, sizeof(version), file) == sizeof(version) &&
	    fwrite(header, 1, padded, file) == padded && fwrite(data, 1, bytes, file) == bytes && !fflush(file))
		return 0;
	return npumem_error_set(error, NPUMEM_INTERNAL, "writing failed: %s", strerror(errno));
}
