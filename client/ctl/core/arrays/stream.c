/* Pieces of .npy files. Invariant: at <= n; real numbers pass through a buffer of fixed size. Only a file whose
 * dims are permuted is held as a whole. */
#include "client/ctl/core/arrays/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/ctl/core/memory.h"

enum { STREAM_REALS = 4096 };

static int about(const struct stream *stream, const struct npumem_error *why, struct npumem_error *error)
{
	return npumem_error_set(error, why->status, "%.200s: %.280s", stream->path, why->message);
}

unsigned stream_shape(const struct npumem_place *place, int64_t shape[4])
{
	const struct npumem_dims *s = &place->shape;
	if (place->layout == NPUMEM_MATRIX) {
		shape[0] = place->rows;
		shape[1] = place->cols;
		return 2;
	}
	shape[0] = s->n;
	shape[1] = s->c;
	shape[2] = s->h;
	shape[3] = s->w;
	return 4;
}

static void init(struct stream *stream, const char *path, const struct npumem_place *place, bool converts)
{
	*stream = (struct stream){.dtype = place->dtype, .frac_bits = place->frac_bits, .converts = converts};
	snprintf(stream->path, sizeof(stream->path), "%s", path);
	stream->element_bytes = npumem_dtype_bytes(place->dtype);
	stream->n = 1;
	stream->n_dims = stream_shape(place, stream->shape);
	for (unsigned i = 0; i < stream->n_dims; i++)
		stream->n *= (size_t)stream->shape[i];
}

static int check_shape(const struct npy *npy, const struct npumem_place *place, struct npumem_error *error)
{
	int64_t shape[4];
	return npy_check_shape(npy, shape, stream_shape(place, shape), error);
}

static int check_type(struct stream *stream, const struct npy *npy, struct npumem_error *error)
{
	bool is_real = !strcmp(npy->descr, "<f4") || !strcmp(npy->descr, "<f8");
	/* The types of pictures, masks and indices. int8 and int16 may be numbers of fixed point. */
	bool is_whole = !strcmp(npy->descr, "|u1") || !strcmp(npy->descr, "|b1") || !strcmp(npy->descr, "<i4") ||
			!strcmp(npy->descr, "<i8");
	if (!stream->converts && is_real && npumem_dtype_is_fixed(stream->dtype))
		return npumem_error_set(error, NPUMEM_INVALID,
					"the array has real numbers (%s); \"quantize\": true takes them",
					npy->descr);
	if (!stream->converts)
		return npy_check_type(npy, npy_descr(stream->dtype), error);
	if (!npumem_dtype_is_fixed(stream->dtype))
		return npumem_error_set(error, NPUMEM_INVALID, "only fx8 and fx16 are quantized");
	char type[NPY_TYPE_BYTES];
	stream->is_double = !strcmp(npy->descr, "<f8");
	stream->whole_bytes = is_whole ? (unsigned)(npy->descr[2] - '0') : 0;
	if (is_real || is_whole)
		return 0;
	return npumem_error_set(
		error, NPUMEM_INVALID,
		"the array has element type %s; real numbers are expected (float32, float64), or uint8, "
		"bool, int32, int64",
		npy_type_text(npy->descr, type));
}

/* stdin stays open for what follows, as commands do; stdout for its next writer. */
static int end(FILE *file)
{
	if (file == stdin)
		return 0;
	return file == stdout ? fflush(file) : fclose(file);
}

/* The header of the file as if its dims were permuted, and how to walk it so. */
static int permute(struct stream *stream, const struct stream_perm *perm, struct npy *npy,
		   struct npumem_error *error)
{
	const struct npy file = *npy;
	size_t step[STREAM_PERM_MAX], all = 1;
	if (!perm->n)
		return 0;
	if (file.n_dims != perm->n)
		return npumem_error_set(error, NPUMEM_INVALID, "the array has %u dimensions, \"perm\" has %u",
					file.n_dims, perm->n);
	for (unsigned i = perm->n; i-- > 0; all *= (size_t)file.shape[i])
		step[i] = all;
	stream->turn.n = perm->n;
	for (unsigned i = 0; i < perm->n; i++) {
		npy->shape[i] = file.shape[perm->dim[i]];
		stream->turn.extent[i] = (size_t)npy->shape[i];
		stream->turn.step[i] = step[perm->dim[i]];
	}
	return 0;
}

/* A file that is opened several times, first to be checked, as those that a list names: a FIFO or a terminal would
 * make us wait, and has its data once. NULL: errno says why, or is 0 where it is not a regular file. */
static FILE *open_regular(const char *path)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	bool is_regular = !fstat(fd, &status) && S_ISREG(status.st_mode);
	FILE *file = is_regular ? fdopen(fd, "rb") : NULL;
	if (!file)
		close(fd);
	if (!is_regular)
		errno = 0;
	return file;
}

/* All but its shape is checked. `file` is NULL where errno says why, as of open_regular; where this fails there is
 * none. */
static int open_file(struct stream *stream, FILE *file, const char *path, const struct npumem_place *place,
		     bool quantize, int rounding, struct npy *npy, struct npumem_error *error)
{
	init(stream, path, place, quantize);
	stream->rounding = rounding;
	stream->file = file;
	if (!file)
		return npumem_error_set(error, NPUMEM_INVALID, "%.200s: %s", path,
					errno ? strerror(errno) : "it is not a regular file");
	struct npumem_error why = {.status = 0};
	if (!npy_read_header(stream->file, npy, &why) && !npy_check_order(npy, &why) &&
	    !check_type(stream, npy, &why))
		return 0;
	end(stream->file);
	return about(stream, &why, error);
}

static int open_array(struct stream *stream, FILE *file, const char *path, const struct npumem_place *place,
		      const struct stream_perm *perm, bool quantize, int rounding, struct npumem_error *error)
{
	struct npumem_error why = {.status = 0};
	struct npy npy;
	int status = open_file(stream, file, path, place, quantize, rounding, &npy, error);
	if (status || (!permute(stream, perm, &npy, &why) && !check_shape(&npy, place, &why)))
		return status;
	end(stream->file);
	return about(stream, &why, error);
}

int stream_open_perm(struct stream *stream, const char *path, const struct npumem_place *place,
		     const struct stream_perm *perm, bool quantize, int rounding, struct npumem_error *error)
{
	return open_array(stream, open_regular(path), path, place, perm, quantize, rounding, error);
}

int stream_open(struct stream *stream, const char *path, const struct npumem_place *place, bool quantize,
		int rounding, struct npumem_error *error)
{
	const struct stream_perm none = {.n = 0};
	FILE *file = strcmp(path, "-") ? fopen(path, "rb") : stdin;
	return open_array(stream, file, path, place, &none, quantize, rounding, error);
}

static int check_samples(const struct stream *stream, const struct npy *npy, size_t *n, struct npumem_error *error)
{
	size_t all = 1;
	for (unsigned i = 0; i < npy->n_dims; i++)
		if (__builtin_mul_overflow(all, (size_t)npy->shape[i], &all))
			all = 0;
	*n = all / stream->n;
	if (all && !(all % stream->n))
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID, "%zu elements are no samples of %zu", all, stream->n);
}

static int check_shape_of_samples(const struct npy *npy, const struct npumem_place *place, size_t *n,
				  struct npumem_error *error)
{
	struct npy one = *npy;
	struct npumem_error why;
	*n = 1;
	if (!check_shape(npy, place, &why) || npy->n_dims < 2 || npy->shape[0] < 1)
		return check_shape(npy, place, error);
	one.n_dims--;
	memmove(one.shape, npy->shape + 1, one.n_dims * sizeof(*one.shape));
	*n = (size_t)npy->shape[0];
	return check_shape(&one, place, &why) ? check_shape(npy, place, error) : 0;
}

/* Bytes of a number in the file, which is quantized. */
static size_t real_bytes(const struct stream *stream)
{
	return stream->whole_bytes ? stream->whole_bytes : stream->is_double ? sizeof(double) : sizeof(float);
}

static int open_one(struct stream *stream, const char *path, const struct npumem_place *place, bool is_shaped,
		    size_t sample, int rounding, size_t *n, struct npumem_error *error)
{
	struct npumem_error why = {.status = 0};
	struct npy npy;
	const char *archive_end = zip_path_end(path);
	bool inside = archive_end && *archive_end;
	off_t member_end = 0;
	FILE *file = open_regular(inside ? memory_text("%.*s", (int)(archive_end - path), path) : path);
	if (file && inside && zip_seek(file, archive_end + 1, &member_end, &why)) {
		fclose(file);
		return npumem_error_set(error, why.status, "%.200s: %.280s", path, why.message);
	}
	int status = open_file(stream, file, path, place, true, rounding, &npy, error);
	if (status)
		return status;
	status = is_shaped ? check_shape_of_samples(&npy, place, n, &why) : check_samples(stream, &npy, n, &why);
	if (!status && sample >= *n)
		status = npumem_error_set(&why, NPUMEM_INVALID, "it has %zu samples, and not number %zu", *n,
					  sample + 1);
	/* Else it would go on in the next array of the archive. */
	if (!status && inside && member_end - ftello(file) != (off_t)(*n * stream->n * real_bytes(stream)))
		status = npumem_error_set(
			&why, NPUMEM_INVALID,
			"its header says %zu samples, and the archive has another number of bytes for them", *n);
	stream->goes_on = !status && (inside || sample + 1 < *n);
	if (!status && fseeko(stream->file, (off_t)(sample * stream->n * real_bytes(stream)), SEEK_CUR))
		status = npumem_error_set(&why, NPUMEM_INVALID, "%s", strerror(errno));
	if (!status)
		return 0;
	end(stream->file);
	return about(stream, &why, error);
}

int stream_open_sample(struct stream *stream, const char *path, const struct npumem_place *place, size_t sample,
		       int rounding, size_t *n, struct npumem_error *error)
{
	return open_one(stream, path, place, false, sample, rounding, n, error);
}

int stream_open_of_samples(struct stream *stream, const char *path, const struct npumem_place *place,
			   size_t sample, int rounding, size_t *n, struct npumem_error *error)
{
	return open_one(stream, path, place, true, sample, rounding, n, error);
}

/* The next n elements of `each` bytes, in the order of the permuted dims. */
static int take_permuted(struct stream *stream, void *data, size_t n, size_t each, struct npumem_error *error)
{
	struct npumem_error why = {.status = 0};
	char *to = data;
	if (!stream->turn.data) {
		stream->turn.data = memory_data(stream->n, each);
		if (!stream->turn.data)
			return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
						"%.200s: no memory for its %zu elements", stream->path, stream->n);
		if (npy_read_data(stream->file, stream->turn.data, stream->n * each, &why))
			return about(stream, &why, error);
	}
	stream->at += n;
	for (; n; n--, to += each) {
		size_t from = 0;
		for (unsigned d = 0; d < stream->turn.n; d++)
			from += stream->turn.index[d] * stream->turn.step[d];
		memcpy(to, stream->turn.data + from * each, each);
		for (unsigned d = stream->turn.n; d-- > 0 && ++stream->turn.index[d] == stream->turn.extent[d];)
			stream->turn.index[d] = 0;
	}
	return 0;
}

/* `data` of the file, after which it ends with the last element. */
static int take(struct stream *stream, void *data, size_t n, size_t bytes, struct npumem_error *error)
{
	struct npumem_error why = {.status = 0};
	if (stream->turn.n)
		return take_permuted(stream, data, n, bytes / n, error);
	stream->at += n;
	if (stream->at == stream->n && !stream->goes_on)
		return npy_read_data(stream->file, data, bytes, &why) ? about(stream, &why, error) : 0;
	if (fread(data, 1, bytes, stream->file) == bytes)
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID,
				"%.200s: the file ends in its data, before element %zu of %zu", stream->path,
				stream->at, stream->n);
}

static int refuse_nan(const struct stream *stream, size_t at, struct npumem_error *error)
{
	char text[128];
	return npumem_error_set(error, NPUMEM_INVALID,
				"%.200s: the element at %s is NaN, which has no fixed-point value", stream->path,
				npy_index_text(stream->shape, stream->n_dims, at, text, sizeof(text)));
}

/* Integers as float64, in place: from the last on, as they may be smaller. */
static void widen(double *reals, size_t n, unsigned bytes)
{
	for (size_t i = n; i-- > 0;) {
		const char *at = (const char *)reals + i * bytes;
		int64_t whole = *(const uint8_t *)at;
		int32_t narrow;
		if (bytes == sizeof(narrow)) {
			memcpy(&narrow, at, sizeof(narrow));
			whole = narrow;
		} else if (bytes == sizeof(whole)) {
			memcpy(&whole, at, sizeof(whole));
		}
		reals[i] = (double)whole;
	}
}

static int take_reals(struct stream *stream, void *data, size_t n, struct npumem_error *error)
{
	double reals[STREAM_REALS]; /* or twice as many floats' room */
	bool is_double = stream->is_double || stream->whole_bytes;
	size_t nan_at = 0;
	int status = take(stream, reals, n, n * real_bytes(stream), error);
	if (!status && stream->whole_bytes)
		widen(reals, n, stream->whole_bytes);
	if (!status && quantize_array(reals, is_double, n, stream->dtype, stream->frac_bits, stream->rounding,
				      data, &stream->saturated, &nan_at))
		return refuse_nan(stream, stream->at - n + nan_at, error);
	for (size_t i = 0; stream->reals && i < n && !status; i++)
		*stream->reals++ = is_double ? (float)reals[i] : ((const float *)reals)[i];
	return status;
}

int stream_read(struct stream *stream, void *data, size_t n, struct npumem_error *error)
{
	char *to = data;
	int status = 0;
	if (!stream->converts)
		return take(stream, data, n, n * stream->element_bytes, error);
	for (size_t part; n && !status; n -= part) {
		part = n < STREAM_REALS ? n : STREAM_REALS;
		status = take_reals(stream, to, part, error);
		to += part * stream->element_bytes;
	}
	return status;
}

int stream_create(struct stream *stream, FILE *file, const char *path, const struct npumem_place *place,
		  bool dequantize, const struct stream_dims *dims, struct npumem_error *error)
{
	struct npumem_error why = {.status = 0};
	int status = 0;
	init(stream, path, place, dequantize);
	stream->file = file;
	if (dequantize && !npumem_dtype_is_fixed(place->dtype))
		status = npumem_error_set(&why, NPUMEM_INVALID, "only fx8 and fx16 are dequantized");
	if (!status && dims)
		status = npy_write(file, dequantize ? "<f4" : npy_descr(place->dtype), dims->extent, dims->n, "",
				   0, &why);
	if (!status)
		return 0;
	end(stream->file);
	return about(stream, &why, error);
}

static int put(struct stream *stream, const void *data, size_t n, size_t bytes, struct npumem_error *error)
{
	stream->at += n;
	if (fwrite(data, 1, bytes, stream->file) == bytes)
		return 0;
	return npumem_error_set(error, NPUMEM_INTERNAL, "%.200s: writing failed: %s", stream->path,
				strerror(errno));
}

int stream_write(struct stream *stream, const void *data, size_t n, struct npumem_error *error)
{
	const char *from = data;
	float reals[STREAM_REALS];
	int status = 0;
	if (!stream->converts)
		return put(stream, data, n, n * stream->element_bytes, error);
	for (size_t part; n && !status; n -= part) {
		part = n < STREAM_REALS ? n : STREAM_REALS;
		quantize_back(from, part, stream->dtype, stream->frac_bits, reals);
		status = put(stream, reals, part, part * sizeof(*reals), error);
		from += part * stream->element_bytes;
	}
	return status;
}

int stream_close(struct stream *stream, int status, struct npumem_error *error)
{
	memory_free(stream->turn.data);
	if (!end(stream->file) || status)
		return status;
	return npumem_error_set(error, NPUMEM_INTERNAL, "%.200s: writing failed: %s", stream->path,
				strerror(errno));
}

/* ---- Tensors and .npy files: streams in one piece. ---- */

int array_of(const struct npumem_tensor *tensor, struct array *array, struct npumem_error *error)
{
	const struct npumem_place *p = &tensor->place;
	if (!p->dtype)
		return npumem_error_set(error, NPUMEM_INVALID, "%s is not this uid's to see", tensor->name);
	array->n_dims = stream_shape(p, array->shape);
	array->n = (size_t)npumem_place_elements(p);
	array->bytes = array->n * npumem_dtype_bytes(p->dtype);
	return 0;
}

int array_save(const char *path, const struct npumem_place *place, const struct array *array, bool dequantize,
	       const void *data, struct npumem_error *error)
{
	struct stream_dims dims = {.n = array->n_dims};
	struct stream stream;
	FILE *file = strcmp(path, "-") ? fopen(path, "wb") : stdout;
	if (!file)
		return npumem_error_set(error, NPUMEM_INVALID, "%.200s: %s", path, strerror(errno));
	memcpy(dims.extent, array->shape, sizeof(array->shape));
	int status = stream_create(&stream, file, path, place, dequantize, &dims, error);
	if (status)
		return status;
	status = stream_write(&stream, data, array->n, error);
	return stream_close(&stream, status, error);
}
