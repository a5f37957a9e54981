/* Random queues of own and borrowed bytes and fds, against the same bytes in one piece. */
#define _GNU_SOURCE /* pipe2 */
#include "client/lib/connection/engine/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test.h"
#include "tests/unit/client/lib/failing.h"

static uint32_t random_next(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	return *state ^= *state << 5;
}

/* What should arrive: bytes, and before which of them an fd. */
struct expected {
	uint8_t bytes[1 << 20];
	size_t n, read, fd_at[64];
	unsigned n_fds, fds_read;
};

static void put_own(struct outbox *outbox, struct expected *expected, size_t n, uint8_t value)
{
	ck_assert_int_eq(outbox_reserve(outbox, &memory_libc, n, 0), 0);
	memset(outbox->bytes.bytes + outbox->bytes.end, value, n);
	outbox->bytes.end += n;
	memset(expected->bytes + expected->n, value, n);
	expected->n += n;
}

/* An fd arrives with the byte that it was put before. */
static void read_some(int fd, struct expected *expected, size_t most)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 4)];
	} control;
	static uint8_t got[1 << 16];
	struct iovec iov = {got, most < sizeof(got) ? most : sizeof(got)};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	message.msg_control = control.bytes;
	message.msg_controllen = sizeof(control.bytes);
	ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return;
	ck_assert_mem_eq(got, expected->bytes + expected->read, (size_t)n);
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (header) {
		int passed;
		ck_assert_uint_eq(header->cmsg_len, CMSG_LEN(sizeof(int)));
		memcpy(&passed, CMSG_DATA(header), sizeof(passed));
		close(passed);
		ck_assert_uint_lt(expected->fds_read, expected->n_fds);
		/* The kernel may put bytes of an earlier write in front, but none of a later one behind. */
		size_t at = expected->fd_at[expected->fds_read++];
		ck_assert(expected->read <= at && at < expected->read + (size_t)n);
	}
	expected->read += (size_t)n;
}

TEST(any_order_of_pieces)
{
	static struct expected expected;
	for (uint32_t seed = 1; seed < 60; seed++) {
		struct outbox outbox = {.consumed = 0};
		uint32_t state = seed * 7919;
		static uint8_t lent[64][5000];
		unsigned n_lent = 0, value = 0;
		int ends[2], small = 4608;
		expected.n = expected.read = expected.n_fds = expected.fds_read = 0;
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
		setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
		for (unsigned step = 0; step < 200; step++) {
			uint32_t what = random_next(&state) % 8;
			size_t n = 1 + random_next(&state) % (what == 1 ? 5000 : 300);
			if (what == 0 && expected.n_fds < 20) {
				ck_assert_int_eq(outbox_reserve(&outbox, &memory_libc, 0, 1), 0);
				outbox_fd(&outbox, fcntl(0, F_DUPFD_CLOEXEC, 0));
				expected.fd_at[expected.n_fds++] = expected.n;
				put_own(&outbox, &expected, n, (uint8_t)value++);
			} else if (what == 1 && n_lent < 64) {
				memset(lent[n_lent], (int)value, n);
				memset(expected.bytes + expected.n, (int)value++, n);
				expected.n += n;
				ck_assert_int_eq(outbox_reserve(&outbox, &memory_libc, 0, 1), 0);
				outbox_borrow(&outbox, lent[n_lent], n, lent[n_lent]);
				n_lent++;
			} else if (what == 2 && n_lent) {
				/* It goes, and what was lent may be anything afterwards. */
				unsigned i = random_next(&state) % n_lent;
				ck_assert_int_eq(outbox_disown(&outbox, &memory_libc, lent[i]), 0);
				memset(lent[i], 0xee, sizeof(lent[i]));
			} else if (what < 5) {
				put_own(&outbox, &expected, n, (uint8_t)value++);
			} else {
				ck_assert_int_eq(outbox_write(&outbox, &memory_libc, ends[0]), 0);
				read_some(ends[1], &expected, 1 + random_next(&state) % 4000);
			}
		}
		while (expected.read < expected.n) {
			ck_assert_int_eq(outbox_write(&outbox, &memory_libc, ends[0]), 0);
			read_some(ends[1], &expected, 1 << 16);
		}
		ck_assert(outbox_is_empty(&outbox));
		ck_assert_uint_eq(expected.fds_read, expected.n_fds);
		close(ends[1]);
		put_own(&outbox, &expected, 1, 0);
		ck_assert_int_eq(outbox_write(&outbox, &memory_libc, ends[0]), -EPIPE);
		outbox_deinit(&outbox, &memory_libc);
		close(ends[0]);
	}
}

TEST(without_memory)
{
	for (unsigned i = 1; i <= 3; i++) {
		struct failing failing = {.fail_at = i};
		const struct memory memory = {failing_resize, &failing};
		struct outbox outbox = {.consumed = 0};
		uint8_t lent[10] = {0};
		int result = outbox_reserve(&outbox, &memory, 100, 2);
		ck_assert_int_eq(result, i < 3 ? -ENOMEM : 0);
		if (!result) {
			outbox_borrow(&outbox, lent, sizeof(lent), &lent);
			ck_assert_int_eq(outbox_disown(&outbox, &memory, &lent), -ENOMEM);
			ck_assert_int_eq(outbox_disown(&outbox, &memory, &lent), 0);
			outbox_fd(&outbox, fcntl(0, F_DUPFD_CLOEXEC, 0));
		}
		outbox_deinit(&outbox, &memory);
		ck_assert_int_eq(failing.live, 0);
	}
}
