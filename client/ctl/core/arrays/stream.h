/* .npy and .npz files, whole or a piece at a time, and tensors as such arrays. */
#ifndef CTL_CORE_ARRAYS_STREAM_H
#define CTL_CORE_ARRAYS_STREAM_H

#include <stddef.h>
#include <stdio.h>

#include <npumem/client.h>
#include <npumem/layout.h>
#include <npumem/types.h>

/* npy.c. NumPy's .npy files: one dense array. */

enum { NPY_DIMS_MAX = 8, NPY_DESCR_BYTES = 16, NPY_TYPE_BYTES = 16 };

/* What a file's header says. */
struct npy {
	char descr[NPY_DESCR_BYTES]; /* "<i2" */
	unsigned n_dims;
	int64_t shape[NPY_DIMS_MAX];
	bool fortran; /* the first dimension runs fastest */
};

/* NumPy's name of an element type's container: "<i2" for fx16. */
const char *npy_descr(int dtype);

/* Reads the header; the data follows. 0 or INVALID, with what is wrong and what was expected. */
int npy_read_header(FILE *file, struct npy *npy, struct npumem_error *error);
/* The array must be in C order. 0 or INVALID. */
int npy_check_order(const struct npy *npy, struct npumem_error *error);
/* Whether two shapes are equal apart from extents of 1. Those do not change where an element lies in a dense
 * array. At most NPY_DIMS_MAX extents each. */
bool npy_same_extents(const int64_t *a, unsigned n_a, const int64_t *b, unsigned n_b);
/* The array must have this element type, and this shape apart from extents of 1. 0 or INVALID, naming both. */
int npy_check_type(const struct npy *npy, const char *descr, struct npumem_error *error);
/* "int16" of "<i2"; another descr as it is. Returns `text`, NPY_TYPE_BYTES long. */
const char *npy_type_text(const char *descr, char *text);
int npy_check_shape(const struct npy *npy, const int64_t *shape, unsigned n_dims, struct npumem_error *error);
/* Reads exactly `bytes` bytes of data, after which the file must end. */
int npy_read_data(FILE *file, void *data, size_t bytes, struct npumem_error *error);

/* Writes version 1. 0 or INTERNAL: the file could not be written. */
int npy_write(FILE *file, const char *descr, const int64_t *shape, unsigned n_dims, const void *data, size_t bytes,
	      struct npumem_error *error);

/* "(1, 2, 3, 4)", as Python writes it. */
const char *npy_shape_text(const int64_t *shape, unsigned n_dims, char *text, size_t bytes);
/* The same of the index of element `at` of a dense array of this shape. */
const char *npy_index_text(const int64_t *shape, unsigned n_dims, size_t at, char *text, size_t bytes);

/* zip.c. .npz files: .npy files in a ZIP archive, stored or deflated. */

enum { ZIP_BYTES_MAX = 1 << 30 }; /* of one array */

/* Where ".npz" ends in the path of an archive, or of one of its arrays (FILE.npz:NAME); NULL: it is neither. */
const char *zip_path_end(const char *path);
/* The array `name` (with or without .npy; NULL: the only one) of the archive, as a file to read, which the caller
 * closes. 0; INVALID: no archive, a damaged one, no such array (with the names that there are);
 * RESOURCE_EXHAUSTED. */
int zip_open(FILE *archive, const char *name, FILE **member, struct npumem_error *error);

/* Moves to the first byte of an array that is stored as it is, in the archive itself. *end: the offset behind its
 * last one. As zip_open; INVALID: it is packed. */
int zip_seek(FILE *archive, const char *name, off_t *end, struct npumem_error *error);

/* quantize.c. Between real numbers and fixed point: fx = Round(real * 2^frac_bits), real = fx / 2^frac_bits
 * ("Data Format Conversion" of the vendor's fixed-point text). */

/* One number, rounded by `rounding` and then saturated to [low, high]; *saturated is raised where that changed it.
 * `real` is no NaN. */
int64_t quantize_one(double real, int64_t frac_bits, int rounding, int64_t low, int64_t high, int64_t *saturated);

/* n numbers, float32 or float64, into the containers of fx8 or fx16. 0, or INVALID for a NaN, whose index is then
 * in *nan_at. */
int quantize_array(const void *reals, bool is_double, size_t n, int dtype, int64_t frac_bits, int rounding,
		   void *containers, int64_t *saturated, size_t *nan_at);
/* The other way, exact. */
void quantize_back(const void *containers, size_t n, int dtype, int64_t frac_bits, float *reals);

/* stream.c. An .npy file read or written a piece at a time, in the container of a tensor: files larger than
 * memory. */

enum { STREAM_PERM_MAX = 4 };

/* The dims of a tensor's array by those of the file: dim i is the file's dim[i]. n 0: as they are. */
struct stream_perm {
	unsigned n, dim[STREAM_PERM_MAX];
};

struct stream {
	FILE *file;
	char path[256]; /* for messages; cut where it is longer */
	unsigned n_dims;
	int64_t shape[4]; /* of the array; extents of 1 in the file may be more or fewer */
	int dtype;
	int64_t frac_bits;
	int rounding;
	bool converts;	      /* the file has real numbers */
	bool is_double;	      /* float64 */
	unsigned whole_bytes; /* of an integer; 0: they are real numbers */
	bool goes_on;	      /* the file has more behind the last element */
	size_t n, at;	      /* elements in all, and those that went by */
	size_t element_bytes;
	int64_t saturated;
	float *reals; /* where numbers also go before they are quantized; NULL: nowhere */
	struct {      /* of a file whose dims are permuted, which is read as a whole */
		unsigned n;
		size_t extent[STREAM_PERM_MAX], step[STREAM_PERM_MAX], index[STREAM_PERM_MAX];
		char *data; /* NULL: not read yet */
	} turn;
};

/* Opens an array of the place's type and shape; extents of 1 in it may be more or fewer, as (8,) for [1,8,1,1].
 * `quantize`: real numbers, rounded by `rounding`. A path of "-" is stdin. 0 or INVALID, naming the file; then
 * nothing is to be closed. */
int stream_open(struct stream *stream, const char *path, const struct npumem_place *place, bool quantize,
		int rounding, struct npumem_error *error);
/* The same of a file whose dims are permuted; perm->dim are the numbers from 0 to perm->n - 1. */
int stream_open_perm(struct stream *stream, const char *path, const struct npumem_place *place,
		     const struct stream_perm *perm, bool quantize, int rounding, struct npumem_error *error);
/* Real numbers of one sample out of a file that has several, one after the other: their extents' product is a
 * multiple of the place's. *n: how many there are. "X.npz:NAME" is an array of an archive. As stream_open. */
int stream_open_sample(struct stream *stream, const char *path, const struct npumem_place *place, size_t sample,
		       int rounding, size_t *n, struct npumem_error *error);
/* The same of a file that has the place's shape, or an extent before it: the samples. */
int stream_open_of_samples(struct stream *stream, const char *path, const struct npumem_place *place,
			   size_t sample, int rounding, size_t *n, struct npumem_error *error);
/* The next n elements, in the tensor's container; after the last the file must end. 0, INVALID,
 * RESOURCE_EXHAUSTED. */
int stream_read(struct stream *stream, void *data, size_t n, struct npumem_error *error);

/* The shape in an array's file. */
enum { STREAM_DIMS_MAX = 8 };
struct stream_dims {
	unsigned n;
	int64_t extent[STREAM_DIMS_MAX];
};
/* Begins the place's array in an empty file, float32 with `dequantize`; `path` is for messages. `dims`: what the
 * file says; NULL: nothing, as it has begun and goes on. As stream_open; `file`, which may be
 * stdout, is closed where it fails. */
int stream_create(struct stream *stream, FILE *file, const char *path, const struct npumem_place *place,
		  bool dequantize, const struct stream_dims *dims, struct npumem_error *error);
int stream_write(struct stream *stream, const void *data, size_t n, struct npumem_error *error);

/* Ends reading or writing, which came to `status`. Only a 0 from here says that the file was written. `status`, or
 * INTERNAL. */
int stream_close(struct stream *stream, int status, struct npumem_error *error);

/* N,C,H,W of a place's array, or rows, cols; how many. */
unsigned stream_shape(const struct npumem_place *place, int64_t shape[4]);

/* A tensor as an .npy array: its shape, its size, its container. */

struct array {
	int64_t shape[4];
	unsigned n_dims; /* 2 for a matrix: rows, cols */
	size_t n, bytes; /* elements, and their bytes in the tensor's container */
};

/* 0, or INVALID where the tensor cannot be seen. */
int array_of(const struct npumem_tensor *tensor, struct array *array, struct npumem_error *error);

/* A path of "-" is stdin, or stdout. */

/* Writes `data` (array->bytes long) into a file; with `dequantize`, as float32. 0, INVALID or RESOURCE_EXHAUSTED;
 * the message names the file. */
int array_save(const char *path, const struct npumem_place *place, const struct array *array, bool dequantize,
	       const void *data, struct npumem_error *error);

#endif
