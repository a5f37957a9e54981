/* System memory: a memfd that both processes map.
 * It is sealed before it is shared, so that the daemon can trust its size; it is unmapped with its last reference.
 */
#define _GNU_SOURCE /* memfd_create and its seals */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/lib/calls/calls.h"
#include "client/lib/connection/engine/engine.h"
#include "client/lib/messages/message.h"

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

/* The daemon takes no memory with holes. In parts, as a signal undoes the one under way. */
static int allocate(int fd, size_t bytes)
{
	enum { PART_BYTES = 16 << 20 };
	size_t off = 0;
	while (off < bytes) {
		size_t n = bytes - off < PART_BYTES ? bytes - off : PART_BYTES;
		if (!fallocate(fd, 0, (off_t)off, (off_t)n))
			off += n;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static int map_sealed(int fd, bool writable, struct npumem_segment *segment)
{
	if (ftruncate(fd, (off_t)segment->bytes))
		return -errno;
	int err = allocate(fd, segment->bytes);
	if (err)
		return err;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
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
	Npumem__V1__ShareRequest share_message = NPUMEM__V1__SHARE_REQUEST__INIT;
	int fd = memfd_create("npumem", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err = fd < 0 ? -errno : map_sealed(fd, writable, segment);
	struct request_extra extra = {.has_fd = true, .fd = fd};
	int status;
	if (!err) {
		status = request_start(made, &MESSAGE_REQUEST(SHARE, share, &share_message), &extra, request,
				       error);
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

/* ---- without shared memory ---- */

struct own_segment {
	struct npumem_segment segment;
	struct staged_segment *memory;
};

static void drop_own(void *object)
{
	staged_drop(((struct own_segment *)object)->memory);
}

static int take_own(struct npumem_request *request, const Npumem__V1__Response *response,
		    struct npumem_error *error)
{
	(void)response;
	(void)error;
	request->answer = request->state;
	return 0;
}

static void failed_own(struct npumem_request *request)
{
	struct own_segment *own = request->state;
	if (own)
		staged_unshare(&request->npumem->staged, own->segment.id);
}

/* The daemon has nothing to say to it but that it is there. */
static int ask_nothing(struct npumem_request *made, struct npumem_request **request, struct npumem_error *error)
{
	Npumem__V1__InfoRequest info = NPUMEM__V1__INFO_REQUEST__INIT;
	return request_start(made, &MESSAGE_REQUEST(INFO, info, &info), NULL, request, error);
}

static int create_own(struct npumem *npumem, size_t bytes, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_INFO, .take = take_own,
						 .failed = failed_own};
	struct npumem_request *made;
	int status = request_new(npumem, &kind, 0, callback, context, &made, error);
	if (status)
		return status;
	struct own_segment *own = result_take(made->results, sizeof(*own));
	if (!bytes || bytes > SEGMENT_BYTES_MOST)
		status = npumem_error_set(error, NPUMEM_INVALID, "a segment of %zu bytes", bytes);
	else if (staged_share(&npumem->staged, npumem->memory, bytes, &own->memory))
		status = npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "a segment of %zu bytes: %s", bytes,
					  strerror(ENOMEM));
	if (status) {
		request_end(made);
		return status;
	}
	own->segment = (struct npumem_segment){own->memory->id, own->memory->base, bytes};
	made->state = own;
	made->results->destroy = drop_own;
	status = ask_nothing(made, request, error);
	if (status)
		staged_unshare(&npumem->staged, npumem->staged.last_id);
	return status;
}

static int close_own(struct npumem *npumem, uint64_t id, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {.result = NPUMEM__V1__RESPONSE__RESULT_INFO};
	struct npumem_request *made;
	int status = request_new(npumem, &kind, 0, callback, context, &made, error);
	if (status)
		return status;
	if (staged_unshare(&npumem->staged, id))
		return ask_nothing(made, request, error);
	request_end(made);
	return npumem_error_set(error, NPUMEM_NOT_FOUND, "this session shares no segment %llu",
				(unsigned long long)id);
}

int npumem_segment_create_async(struct npumem *npumem, size_t bytes, NPUMEM_ASYNC)
{
	if (address_is_remote(&npumem->remote))
		return create_own(npumem, bytes, callback, context, request, error);
	return segments_create_async(npumem, bytes, true, callback, context, request, error);
}

/* ---- closing ---- */

int npumem_segment_close_async(struct npumem *npumem, const struct npumem_segment *segment, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {.result = NPUMEM__V1__RESPONSE__RESULT_UNSHARED};
	Npumem__V1__UnshareRequest unshare = NPUMEM__V1__UNSHARE_REQUEST__INIT;
	int status;
	unshare.segment = segment->id;
	if (address_is_remote(&npumem->remote))
		status = close_own(npumem, segment->id, callback, context, request, error);
	else
		status = request_call(npumem, &kind, &MESSAGE_REQUEST(UNSHARE, unshare, &unshare), NULL, callback,
				      context, request, error);
	result_release(segment);
	return status;
}

/* ---- moving data ---- */

int npumem_write_segment_async(struct npumem *npumem, uint64_t handle, const struct npumem_segment *segment,
			       uint64_t offset, const struct npumem_dims *stride, int64_t first, int64_t count,
			       NPUMEM_ASYNC)
{
	const struct staging_ask ask = {handle, segment, offset, stride, first, count, false};
	Npumem__V1__WriteRequest write_message = NPUMEM__V1__WRITE_REQUEST__INIT;
	Npumem__V1__Dims dims;
	Npumem__V1__Ref ref;
	if (address_is_remote(&npumem->remote))
		return staging_start(npumem, &ask, callback, context, request, error);
	write_message.tensor = message_ref(handle, &ref);
	write_message.first = first;
	write_message.count = count;
	write_message.segment = segment->id;
	write_message.segment_offset = offset;
	write_message.segment_stride = message_dims(stride, &dims);
	return operations_start(npumem, &MESSAGE_REQUEST(WRITE, write, &write_message), callback, context, request,
				error);
}

int npumem_read_segment_async(struct npumem *npumem, uint64_t handle, const struct npumem_segment *segment,
			      uint64_t offset, const struct npumem_dims *stride, int64_t first, int64_t count,
			      NPUMEM_ASYNC)
{
	const struct staging_ask ask = {handle, segment, offset, stride, first, count, true};
	Npumem__V1__ReadRequest read_message = NPUMEM__V1__READ_REQUEST__INIT;
	Npumem__V1__Dims dims;
	Npumem__V1__Ref ref;
	if (address_is_remote(&npumem->remote))
		return staging_start(npumem, &ask, callback, context, request, error);
	read_message.tensor = message_ref(handle, &ref);
	read_message.first = first;
	read_message.count = count;
	read_message.segment = segment->id;
	read_message.segment_offset = offset;
	read_message.segment_stride = message_dims(stride, &dims);
	return operations_start(npumem, &MESSAGE_REQUEST(READ, read, &read_message), callback, context, request,
				error);
}
