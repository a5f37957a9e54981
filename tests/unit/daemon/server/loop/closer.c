/* Descriptors and mappings are closed, in order for each user, and charges end then. What keeps a thread for ever:
 * integration/test_attack_closing.py. */
#include "daemon/server/loop/closer.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/test.h"

enum { ALICE = 1, BOB = 2, WEEK = 604800, N = 300, HANGS_MS = 60000 };

static const struct npumem_geometry geometry = {.n_npus = 4, .npu_bytes = 4096, .n_banks = 8, .eu_bytes = 128};

struct desk {
	uv_loop_t loop;
	struct limits_table limits;
	struct closer closer;
	struct closer_user *alice, *bob;
};

static void desk_open(struct desk *desk)
{
	memset(desk, 0, sizeof(*desk));
	ck_assert_int_eq(uv_loop_init(&desk->loop), 0);
	limits_init(&desk->limits, &heap_libc, &geometry, 0);
	ck_assert_int_eq(closer_open(&desk->closer, &desk->loop, &heap_libc, &desk->limits), 0);
	desk->alice = closer_take_user(&desk->closer, ALICE);
	desk->bob = closer_take_user(&desk->closer, BOB);
	ck_assert_ptr_ne(desk->alice, desk->bob);
	ck_assert_ptr_eq(closer_take_user(&desk->closer, BOB), desk->bob);
	closer_drop_user(desk->bob);
}

static void desk_close(struct desk *desk)
{
	closer_close(&desk->closer);
	uv_run(&desk->loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&desk->loop), 0);
	limits_deinit(&desk->limits);
}

FIXTURE_OBJECT(struct desk, desk, desk_open(&desk), desk_close(&desk))

/* Until so many are not closed yet. */
static void run_until(unsigned n)
{
	uint64_t end = uv_hrtime() + (uint64_t)HANGS_MS * 1000000;
	/* Else the loop has nothing to wait for. */
	uv_ref((uv_handle_t *)&desk.closer.closed);
	while (desk.closer.n_pending > n && uv_hrtime() < end) {
		uv_run(&desk.loop, UV_RUN_NOWAIT);
		uv_sleep(1);
	}
	uv_unref((uv_handle_t *)&desk.closer.closed);
	ck_assert_uint_eq(desk.closer.n_pending, n);
}

static void run(void)
{
	run_until(0);
}

static uint64_t charged(const struct closer_user *user, enum limits_key key)
{
	return user->limits->now[key];
}

static struct closer_mapping *map_pages(uint64_t bytes)
{
	struct closer_mapping *mapping = heap_zalloc(&heap_libc, 1, sizeof(*mapping));
	mapping->bytes = bytes;
	mapping->base = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return mapping;
}

TEST(a_charge_ends_with_what_it_is_for)
{
	int ends[2];
	ck_assert_int_eq(pipe(ends), 0);
	closer_count(desk.alice, 2);
	closer_add_received(desk.alice, ends[0]);
	closer_add_connection(desk.alice, ends[1]);
	closer_add_mapping(desk.alice, map_pages(1 << 20));
	ck_assert_uint_eq(charged(desk.alice, LIMITS_DESCRIPTORS), 1);
	ck_assert_uint_eq(charged(desk.alice, LIMITS_SESSIONS), 1);
	ck_assert_uint_eq(charged(desk.alice, LIMITS_SEGMENT_BYTES), 1 << 20);
	run();
	for (int key = 0; key < LIMITS_N; key++)
		ck_assert_uint_eq(charged(desk.alice, key), 0);
	ck_assert_uint_eq(desk.closer.n_fds, 0);
	ck_assert(fcntl(ends[0], F_GETFD) < 0 && fcntl(ends[1], F_GETFD) < 0);
}

TEST(a_user_goes_when_all_of_its_is_closed)
{
	int ends[2];
	ck_assert_int_eq(pipe(ends), 0);
	closer_count(desk.alice, 1);
	closer_add_received(desk.alice, ends[0]);
	closer_drop_user(desk.alice);
	ck_assert_uint_eq(desk.limits.n_uids, 2);
	run();
	ck_assert_uint_eq(desk.limits.n_uids, 1);
	close(ends[1]);
}

TEST(too_many_at_once_are_too_many)
{
	struct npumem_error error = {.status = 0};
	for (int i = 0; i < CLOSER_PENDING_MAX; i++) {
		ck_assert(closer_may_pass(desk.alice));
		closer_count(desk.alice, 1);
		closer_add_received(desk.alice, open("/dev/null", O_RDONLY));
	}
	ck_assert(!closer_may_pass(desk.alice) && closer_may_pass(desk.bob));
	ck_assert_int_eq(closer_refuse(desk.alice, &error), NPUMEM_RESOURCE_EXHAUSTED);
	run();
	ck_assert(closer_may_pass(desk.alice));
}

/* Its last close sleeps for a week, unless a signal ends that. */
static int lingering(int listener, int *peer)
{
	static char bytes[1 << 16];
	struct linger linger = {1, WEEK};
	struct sockaddr_in address;
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0), small = 4096;
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, length), 0);
	*peer = accept(listener, NULL, NULL);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return fd;
}

TEST(lingers_end_together)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), small = 4096;
	static int peers[N];
	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(listener, N), 0);
	closer_count(desk.alice, N);
	for (int i = 0; i < N; i++)
		closer_add_connection(desk.alice, lingering(listener, &peers[i]));
	run();
	/* None was lost, and none was needed. */
	ck_assert_uint_le(desk.closer.threads.n, 2);
	for (int i = 0; i < N; i++)
		close(peers[i]);
	close(listener);
}

TEST(a_connection_does_not_wait_for_a_mapping)
{
	int ends[2];
	ck_assert_int_eq(pipe(ends), 0);
	/* As if a thread unmapped it. */
	desk.alice->queues[CLOSER_MAPPINGS].is_running = true;
	closer_add_mapping(desk.alice, map_pages(4096));
	closer_count(desk.alice, 2);
	closer_add_connection(desk.alice, ends[0]);
	closer_add_turned_away(desk.alice, ends[1]);
	run_until(1);
	ck_assert(fcntl(ends[0], F_GETFD) < 0 && fcntl(ends[1], F_GETFD) < 0);
	desk.alice->queues[CLOSER_MAPPINGS].is_running = false;
	closer_add_mapping(desk.alice, map_pages(4096));
	run();
}

TEST(who_pays_for_stops_keeps_its_mappings)
{
	enum { MS = 1000000 };
	struct limits_user *alice = desk.alice->limits;
	uint64_t until_ns = uv_hrtime() + 50 * MS;
	alice->stops_until_ns[STOPS_MAPPINGS] = until_ns;
	closer_add_mapping(desk.alice, map_pages(1 << 20));
	closer_add_mapping(desk.bob, map_pages(1 << 20));
	run_until(1);
	ck_assert_uint_eq(charged(desk.bob, LIMITS_SEGMENT_BYTES), 0);
	ck_assert(charged(desk.alice, LIMITS_SEGMENT_BYTES) || uv_hrtime() >= until_ns);
	limits_hold(alice);
	closer_drop_user(desk.alice);
	run();
	ck_assert_uint_ge(uv_hrtime(), until_ns);
	ck_assert_uint_eq(alice->now[LIMITS_SEGMENT_BYTES], 0);
	ck_assert_uint_eq(desk.closer.n_paused, 0);
	limits_drop(&desk.limits, alice);
	desk.alice = NULL;
}

TEST(half_of_the_descriptors_are_turned_away_at_most)
{
	enum { MOST = 100 };
	desk.closer.n_fds_max = 2 * MOST;
	for (int i = 0; i <= MOST; i++) {
		ck_assert(closer_may_turn_away(&desk.closer));
		closer_count(desk.alice, 1);
		closer_add_turned_away(desk.alice, open("/dev/null", O_RDONLY));
	}
	ck_assert(!closer_may_turn_away(&desk.closer));
	ck_assert_uint_eq(charged(desk.alice, LIMITS_SESSIONS), 0);
	ck_assert_uint_eq(charged(desk.alice, LIMITS_DESCRIPTORS), MOST + 1);
	run();
	ck_assert(closer_may_turn_away(&desk.closer));
	ck_assert_uint_eq(charged(desk.alice, LIMITS_DESCRIPTORS), 0);
}
