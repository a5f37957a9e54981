/* Requests as they are kept, compared with what protobuf-c makes of them. */
#include "client/lib/connection/engine/engine.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/messages/payload.h"
#include "tests/support/message.h"
#include "tests/support/test.h"
#include "tests/unit/client/lib/failing.h"

static Npumem__V1__Request *unpacked(const struct kept *kept, uint64_t id, bool again)
{
	size_t bytes = kept_size(kept, id, again);
	uint8_t *message = malloc(bytes);
	size_t n = kept_put(kept, id, again, message);
	ck_assert_uint_eq(n + kept->data_bytes, bytes);
	if (kept->data_bytes)
		memcpy(message + n, kept->data, kept->data_bytes);
	Npumem__V1__Request *request = npumem__v1__request__unpack(NULL, bytes, message);
	ck_assert_ptr_nonnull(request);
	free(message);
	return request;
}

TEST(the_message_is_what_it_was)
{
	static const uint64_t ids[] = {1, 127, 128, UINT64_C(1) << 40, UINT64_MAX};
	uint8_t data[5000];
	memset(data, 0x5a, sizeof(data));
	for (unsigned i = 0; i < 5 * 5 * 8; i++) {
		Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
		Npumem__V1__WriteRequest write = NPUMEM__V1__WRITE_REQUEST__INIT;
		bool again = i & 1, lends = i & 2;
		request.id = ids[i / 8 % 5];
		request.answered_below = i & 4 ? request.id - 1 : 0;
		request.call_case = NPUMEM__V1__REQUEST__CALL_WRITE;
		request.write = &write;
		write.first = 77;
		if (!lends)
			write.data = (ProtobufCBinaryData){100, data};
		struct kept *kept =
			kept_new(&memory_libc, &request, npumem__v1__request__get_packed_size(&request), lends,
				 data, lends ? sizeof(data) : 0, -1);
		ck_assert_ptr_nonnull(kept);
		/* Also as another request. */
		Npumem__V1__Request *got = unpacked(kept, ids[i / 40], again);
		ck_assert_uint_eq(got->id, ids[i / 40]);
		ck_assert_int_eq(got->again, again);
		ck_assert_uint_eq(got->answered_below, request.answered_below);
		ck_assert_int_eq(got->write->first, 77);
		ck_assert_uint_eq(got->write->data.len, lends ? sizeof(data) : 100);
		ck_assert_mem_eq(got->write->data.data, data, got->write->data.len);
		ck_assert_uint_le(kept_size(kept, request.id, true),
				  kept_size(kept, request.id, false) + KEPT_AGAIN_BYTES);
		npumem__v1__request__free_unpacked(got, NULL);
		kept_free(kept, &memory_libc);
	}
}

TEST(what_was_lent_goes_back)
{
	Npumem__V1__WriteRequest write = NPUMEM__V1__WRITE_REQUEST__INIT;
	struct failing failing = {.fail_at = 2};
	const struct memory memory = {failing_resize, &failing};
	uint8_t *data = malloc(5000);
	memset(data, 0x5a, 5000);
	Npumem__V1__Request request = {MESSAGE(request), .id = 3, .call_case = NPUMEM__V1__REQUEST__CALL_WRITE,
				       .write = &write};
	struct kept *kept =
		kept_new(&memory, &request, npumem__v1__request__get_packed_size(&request), true, data, 5000, -1);
	ck_assert_int_lt(kept_disown(kept, &memory), 0);
	ck_assert_ptr_eq(kept->data, data);
	ck_assert_int_eq(kept_disown(kept, &memory), 0);
	ck_assert_int_eq(kept_disown(kept, &memory), 0);
	memset(data, 0, 5000);
	free(data);
	Npumem__V1__Request *got = unpacked(kept, 3, true);
	ck_assert(got->write->data.len == 5000 && got->write->data.data[4999] == 0x5a);
	npumem__v1__request__free_unpacked(got, NULL);
	kept_free(kept, &memory);
	kept_free(NULL, &memory);
	ck_assert_int_eq(failing.live, 0);
}

TEST(an_fd_of_its_own)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__UnshareRequest unshare = NPUMEM__V1__UNSHARE_REQUEST__INIT;
	struct failing failing = {.fail_at = 0};
	const struct memory memory = {failing_resize, &failing};
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	request.id = 3;
	unshare.segment = 99;
	request.call_case = NPUMEM__V1__REQUEST__CALL_UNSHARE;
	request.unshare = &unshare;
	struct kept *kept = kept_new(&memory, &request, 100, false, NULL, 0, fd);
	ck_assert(kept->fd >= 0 && kept->fd != fd);
	ck_assert_int_eq(fcntl(kept->fd, F_GETFD), FD_CLOEXEC);
	ck_assert_uint_eq(kept->gives_back, 99);
	int its = kept->fd;
	kept_free(kept, &memory);
	ck_assert_int_lt(fcntl(its, F_GETFD), 0);
	close(fd);
	/* One that is not there. */
	ck_assert_ptr_null(kept_new(&memory, &request, 100, false, NULL, 0, 1000000));
	ck_assert_int_eq(failing.live, 0);
}
