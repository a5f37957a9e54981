/* System memory: a memfd that both processes map.
 * It is sealed before it is shared, so that the daemon can trust its size; it is unmapped with its last reference.
 */
#define _GNU_SOURCE /* memfd_create and its seals */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/lib/connection/engine.h"
#include "client/lib/connection/message.h"
#include "client/lib/calls/operations.h"
#include "client/lib/calls/segments.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define SEGMENT_BYTES_MOST ((size_t)1 << 40)

/* ---- creating ---- */

static void unmap(void *object)
{
	struct npumem_segment *segment = object;
	if (segment->base)
		munmap(segment->base, segment->bytes);
}

static int take_shared(struct npumem_request *request, const Npumem__V1__Response *response,
		       struct npumem_error *error)
{
	struct npumem_segment *segment = request->state;
	(void)error;
	if (response->shared->bytes != segment->bytes || !response->shared->segment)
		return -1;
	segment->id = response->shared->segment;
	request->answer = segment;
	return 0;
}

static int map_sealed(int fd, bool writable, struct npumem_segment *segment)
{
	if (ftruncate(fd, (off_t)segment->bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return -errno;
	void *base = mmap(NULL, segment->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	segment->base = base;
	return writable || !fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) ? 0 : -errno;
}

/* Makes it, and asks the daemon to map it, too. */
static int share(struct npumem_request *made, struct npumem_segment *segment, bool writable,
		 struct npumem_request **request, struct npumem_error *error)
{
	Npumem__V1__Request message = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__ShareRequest share_message = NPUMEM__V1__SHARE_REQUEST__INIT;
	int fd = memfd_create("npumem", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err = fd < 0 ? -errno : map_sealed(fd, writable, segment);
	struct request_extra extra = {.has_fd = true, .fd = fd};
	int status;
	message.call_case = NPUMEM__V1__REQUEST__CALL_SHARE;
	message.share = &share_message;
	if (!err) {
		status = request_start(made, &message, &extra, request, error);
	} else {
		status = npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "a segment of %zu bytes: %s",
					  segment->bytes, strerror(-err));
		request_end(made);
	}
	if (fd >= 0)
		close(fd);
	return status;
}

int segments_create_async(struct npumem *npumem, size_t bytes, bool writable, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_SHARED, .take = take_shared};
	struct npumem_request *made;
	int status = request_new(npumem, &kind, 0, callback, context, &made, error);
	if (status)
		return status;
	if (!bytes || bytes > SEGMENT_BYTES_MOST) {
		request_end(made);
		return npumem_error_set(error, NPUMEM_INVALID, "a segment of %zu bytes", bytes);
	}
	struct npumem_segment *segment = made->state = result_take(made->results, sizeof(*segment));
	segment->bytes = bytes;
	made->results->destroy = unmap;
	return share(made, segment, writable, request, error);
}

int npumem_segment_create_async(struct npumem *npumem, size_t bytes, NPUMEM_ASYNC)
{
	return segments_create_async(npumem, bytes, true, callback, context, request, error);
}

/* ---- closing ---- */

int npumem_segment_close_async(struct npumem *npumem, const struct npumem_segment *segment, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {.result = NPUMEM__V1__RESPONSE__RESULT_UNSHARED};
	Npumem__V1__Request message = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__UnshareRequest unshare = NPUMEM__V1__UNSHARE_REQUEST__INIT;
	struct npumem_request *made;
	int status = request_new(npumem, &kind, 0, callback, context, &made, error);
	unshare.segment = segment->id;
	message.call_case = NPUMEM__V1__REQUEST__CALL_UNSHARE;
	message.unshare = &unshare;
	if (!status)
		status = request_start(made, &message, NULL, request, error);
	result_release(segment);
	return status;
}

/* ---- moving data ---- */

int npumem_write_segment_async(struct npumem *npumem, uint64_t handle, const struct npumem_segment *segment,
			       uint64_t offset, const struct npumem_dims *stride, int64_t first, int64_t count,
			       NPUMEM_ASYNC)
{
	Npumem__V1__Request message = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__WriteRequest write_message = NPUMEM__V1__WRITE_REQUEST__INIT;
	Npumem__V1__Dims dims;
	Npumem__V1__Ref ref;
	write_message.tensor = message_ref(handle, &ref);
	write_message.first = first;
	write_message.count = count;
	write_message.segment = segment->id;
	write_message.segment_offset = offset;
	write_message.segment_stride = message_dims(stride, &dims);
	message.call_case = NPUMEM__V1__REQUEST__CALL_WRITE;
	message.write = &write_message;
	return operations_start(npumem, &message, callback, context, request, error);
}

int npumem_read_segment_async(struct npumem *npumem, uint64_t handle, const struct npumem_segment *segment,
			      uint64_t offset, const struct npumem_dims *stride, int64_t first, int64_t count,
			      NPUMEM_ASYNC)
{
	Npumem__V1__Request message = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__ReadRequest read_message = NPUMEM__V1__READ_REQUEST__INIT;
	Npumem__V1__Dims dims;
	Npumem__V1__Ref ref;
	read_message.tensor = message_ref(handle, &ref);
	read_message.first = first;
	read_message.count = count;
	read_message.segment = segment->id;
	read_message.segment_offset = offset;
	read_message.segment_stride = message_dims(stride, &dims);
	message.call_case = NPUMEM__V1__REQUEST__CALL_READ;
	message.read = &read_message;
	return operations_start(npumem, &message, callback, context, request, error);
}
