/* Reads a NumPy array file: the magic, a header that is a Python dictionary in ASCII, then the elements. Only the
 * keys and forms that numpy.save writes are understood; anything else is refused, never guessed. */
#include "tests/demo/npy.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAGIC_BYTES = 10, /* "\x93NUMPY", two version bytes, the header's length in 16 bits */
	HEADER_BYTES_MAX = 512,
	ELEMENTS_MAX = 1 << 24,
};

static int refuse(const char *path, const char *why)
{
	fprintf(stderr, "%s: %s\n", path, why);
	return -1;
}

/* Where the value of `key` starts in the header, or NULL. */
static const char *value_of(const char *header, const char *key)
{
	const char *at = strstr(header, key);

	return at ? at + strlen(key) : NULL;
}

static int shape_parse(const char *text, struct npy *npy)
{
	npy->n_elements = 1;
	for (unsigned i = 0; i < NPY_DIMS_MAX; i++)
		npy->dims[i] = 1;
	while (*text != ')') {
		char *end;
		unsigned long long extent = strtoull(text, &end, 10);

		if (end == text || npy->n_dims == NPY_DIMS_MAX || extent == 0 ||
		    extent > ELEMENTS_MAX / npy->n_elements)
			return -1;
		npy->dims[npy->n_dims++] = (size_t)extent;
		npy->n_elements *= (size_t)extent;
		text = end;
		while (*text == ',' || *text == ' ')
			text++;
	}
	return 0;
}

static int header_parse(const char *path, const char *header, const char *type, struct npy *npy)
{
	const char *descr = value_of(header, "'descr': '");
	const char *order = value_of(header, "'fortran_order': ");
	const char *shape = value_of(header, "'shape': (");
	size_t letters = strlen(type);

	/* One byte has no order: numpy writes '|' there and '<' before wider elements. */
	if (!descr || !strchr("<|", descr[0]) || strncmp(descr + 1, type, letters) != 0 ||
	    descr[1 + letters] != '\'' || letters >= sizeof(npy->type))
		return refuse(path, "not an array of the expected element type");
	if (!order || strncmp(order, "False", 5) != 0)
		return refuse(path, "not in C order");
	if (!shape || shape_parse(shape, npy) != 0)
		return refuse(path, "the shape has more than four dimensions or too many elements");
	memcpy(npy->type, type, letters);
	npy->bytes = npy->n_elements * (size_t)(type[1] - '0');
	return 0;
}

static int file_parse(const char *path, FILE *file, const char *type, struct npy *npy)
{
	unsigned char magic[MAGIC_BYTES];
	char header[HEADER_BYTES_MAX + 1];
	size_t header_bytes;

	if (fread(magic, 1, sizeof(magic), file) != sizeof(magic) || memcmp(magic, "\x93NUMPY\x01\x00", 8) != 0)
		return refuse(path, "not a NumPy array file of format 1.0");
	header_bytes = magic[8] | (size_t)magic[9] << 8;
	if (header_bytes > HEADER_BYTES_MAX || fread(header, 1, header_bytes, file) != header_bytes)
		return refuse(path, "the header is cut off or too long");
	header[header_bytes] = 0;
	if (header_parse(path, header, type, npy) != 0)
		return -1;
	npy->data = malloc(npy->bytes);
	if (!npy->data)
		return refuse(path, "out of memory");
	if (fread(npy->data, 1, npy->bytes, file) != npy->bytes || fgetc(file) != EOF)
		return refuse(path, "not as many elements as the shape says");
	return 0;
}

int npy_read(const char *path, const char *type, struct npy *npy)
{
	FILE *file = fopen(path, "rb");
	int result;

	memset(npy, 0, sizeof(*npy));
	if (!file) {
		perror(path);
		return -1;
	}
	result = file_parse(path, file, type, npy);
	fclose(file);
	if (result != 0)
		npy_deinit(npy);
	return result;
}

void npy_deinit(struct npy *npy)
{
	free(npy->data);
	npy->data = NULL;
}
