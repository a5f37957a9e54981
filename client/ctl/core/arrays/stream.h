/* An .npy file read or written a piece at a time, in the container of a tensor: files larger than memory. */
#ifndef CTL_CORE_STREAM_H
#define CTL_CORE_STREAM_H

#include <stdio.h>

#include <npumem/layout.h>

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
	bool converts;	/* the file has real numbers */
	bool is_double; /* float64 */
	bool goes_on;	/* the file has more behind the last element */
	size_t n, at;	/* elements in all, and those that went by */
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
 * multiple of the place's. *n: how many there are. As stream_open. */
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

#endif
