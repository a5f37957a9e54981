/* System memory: a memfd that both processes map.
 * It is sealed before it is shared, so that the daemon can trust its size. */
#define _GNU_SOURCE /* memfd_create and its seals */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/lib/call.h"
#include "client/lib/reply.h"
#include "client/lib/request.h"
#include "client/lib/segments.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static int take_shared(struct call *call, const Npumem__V1__Response *response)
{
	struct npumem_segment *segment = call->result;
	if (response->shared->bytes != segment->bytes || !response->shared->segment)
		return -1;
	segment->id = response->shared->segment;
	return 0;
}

static int share(struct npumem *npumem, int fd, struct npumem_segment *segment, struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__ShareRequest message = NPUMEM__V1__SHARE_REQUEST__INIT;
	struct call call = {.take = take_shared, .result = segment};
	int status = engine_drain(npumem, error);
	if (status)
		return status;
	engine_attach(npumem, fd);
	request.call_case = NPUMEM__V1__REQUEST__CALL_SHARE;
	request.share = &message;
	status = call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_SHARED, &call, error);
	engine_attach(npumem, -1);
	return status;
}

static int map_sealed(int fd, bool writable, struct npumem_segment *segment)
{
	if (ftruncate(fd, (off_t)segment->bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return -errno;
	segment->base = mmap(NULL, segment->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (segment->base == MAP_FAILED)
		return -errno;
	if (writable || !fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE))
		return 0;
	int err = -errno;
	munmap(segment->base, segment->bytes);
	return err;
}

int segments_create(struct npumem *npumem, size_t bytes, bool writable, struct npumem_segment *segment,
		    struct npumem_error *error)
{
	int status = call_begin(npumem, error);
	*segment = (struct npumem_segment){.bytes = bytes};
	if (status)
		return status;
	if (!bytes || bytes > (size_t)1 << 40)
		return npumem_error_set(error, NPUMEM_INVALID, "a segment of %zu bytes", bytes);
	int fd = memfd_create("npumem", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err = fd < 0 ? -errno : map_sealed(fd, writable, segment);
	if (err)
		status = npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "a segment of %zu bytes: %s", bytes,
					  strerror(-err));
	else
		status = share(npumem, fd, segment, error);
	if (fd >= 0)
		close(fd);
	if (status && !err)
		munmap(segment->base, bytes);
	return status;
}

int npumem_segment_create(struct npumem *npumem, size_t bytes, struct npumem_segment *segment,
			  struct npumem_error *error)
{
	return segments_create(npumem, bytes, true, segment, error);
}

int npumem_segment_close(struct npumem *npumem, struct npumem_segment *segment, struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__UnshareRequest message = NPUMEM__V1__UNSHARE_REQUEST__INIT;
	struct call call = {.take = NULL};
	int status = call_begin(npumem, error);
	message.segment = segment->id;
	request.call_case = NPUMEM__V1__REQUEST__CALL_UNSHARE;
	request.unshare = &message;
	if (!status)
		status = call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_UNSHARED, &call, error);
	if (segment->base)
		munmap(segment->base, segment->bytes);
	*segment = (struct npumem_segment){.id = 0};
	return status;
}

int npumem_write_segment(struct npumem *npumem, uint64_t handle, const struct npumem_segment *segment,
			 uint64_t offset, const struct npumem_dims *stride, int64_t first, int64_t count,
			 struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__WriteRequest message = NPUMEM__V1__WRITE_REQUEST__INIT;
	Npumem__V1__Dims dims;
	Npumem__V1__Ref ref;
	struct call call = {.take = NULL};
	int status = call_begin(npumem, error);
	message.tensor = request_ref(handle, &ref);
	message.first = first;
	message.count = count;
	message.segment = segment->id;
	message.segment_offset = offset;
	message.segment_stride = request_stride(stride, &dims);
	request.call_case = NPUMEM__V1__REQUEST__CALL_WRITE;
	request.write = &message;
	return status ? status : call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_DONE, &call, error);
}

static int take_done(struct call *call, const Npumem__V1__Response *response)
{
	if (call->result)
		reply_done(response->done, call->result);
	return 0;
}

int npumem_read_segment(struct npumem *npumem, uint64_t handle, const struct npumem_segment *segment,
			uint64_t offset, const struct npumem_dims *stride, int64_t first, int64_t count,
			struct npumem_done *done, struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__ReadRequest message = NPUMEM__V1__READ_REQUEST__INIT;
	Npumem__V1__Dims dims;
	Npumem__V1__Ref ref;
	struct call call = {.take = take_done, .result = done};
	int status = call_begin(npumem, error);
	message.tensor = request_ref(handle, &ref);
	message.first = first;
	message.count = count;
	message.segment = segment->id;
	message.segment_offset = offset;
	message.segment_stride = request_stride(stride, &dims);
	request.call_case = NPUMEM__V1__REQUEST__CALL_READ;
	request.read = &message;
	return status ? status : call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_DONE, &call, error);
}
