/* A daemon at an address, in the test's own hands: it can end the connection, be away, and take the next one. */
#ifndef TESTS_CLIENT_DOOR_H
#define TESTS_CLIENT_DOOR_H

#include <poll.h>
#include <stdio.h>
#include <sys/un.h>
#include <time.h>

#include "tests/unit/client/lib/peer.h"
#include "tests/unit/client/lib/skip.h"

enum { DOOR_SESSION = 7, DOOR_PATIENCE_MS = 20000 };
#define DOOR_TOKEN "0123456789abcdef"

struct door {
	char directory[32];
	struct sockaddr_un name;
	int listener; /* -1: nobody is there */
	struct peer peer;
};

static inline void door_listen(struct door *door)
{
	unlink(door->name.sun_path);
	door->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ck_assert_int_eq(bind(door->listener, (struct sockaddr *)&door->name, sizeof(door->name)), 0);
	ck_assert_int_eq(listen(door->listener, 100), 0);
}

/* peer.npumem is NULL where `memory` has none for it. */
static inline void door_open_with(struct door *door, const struct memory *memory, uint64_t resume_ms)
{
	struct npumem_options options = NPUMEM_OPTIONS_INIT;
	struct address address;
	int fd;
	*door = (struct door){.directory = "/tmp/npumem-door-XXXXXX", .name = {.sun_family = AF_UNIX}};
	ck_assert_ptr_nonnull(mkdtemp(door->directory));
	snprintf(door->name.sun_path, sizeof(door->name.sun_path), "%s/s", door->directory);
	door_listen(door);
	ck_assert_int_eq(address_parse(door->name.sun_path, &address, NULL), 0);
	ck_assert_int_eq(address_connect(&address, INT64_MAX, &fd, NULL), 0);
	options.resume_ms = resume_ms;
	connection_at(memory, &address, fd, &options, &door->peer.npumem, NULL);
	door->peer.fd = accept(door->listener, NULL, NULL);
	ck_assert_int_ge(door->peer.fd, 0);
}

/* Each of these moves the connection on, which may be over by then. */
static inline int door_process(const struct door *door)
{
	return npumem_process(door->peer.npumem, NULL);
}

static inline Npumem__V1__Request *door_request(const struct door *door)
{
	struct pollfd pollfd = {.fd = door->peer.fd, .events = POLLIN};
	door_process(door);
	ck_assert_int_eq(poll(&pollfd, 1, DOOR_PATIENCE_MS), 1);
	return peer_request(&door->peer);
}

static inline void door_resumed(const struct door *door, uint64_t id, const char *token, uint32_t seconds)
{
	Npumem__V1__Resumed resumed = {MESSAGE(resumed),
				       .token = (ProtobufCBinaryData){strlen(token), (uint8_t *)(uintptr_t)token},
				       .session = DOOR_SESSION, .resume_seconds = seconds};
	PEER_ANSWER(&door->peer, id, resumed, RESUMED, &resumed);
}

/* The next request, which is for a token (none yet) or with it. Returns its id. */
static inline uint64_t door_knock(const struct door *door, bool has_token)
{
	Npumem__V1__Request *request = door_request(door);
	uint64_t id = request->id;
	ck_assert_int_eq(request->call_case, NPUMEM__V1__REQUEST__CALL_RESUME);
	ck_assert_uint_eq(request->resume->token.len, has_token ? strlen(DOOR_TOKEN) : 0);
	ck_assert(!has_token || !memcmp(request->resume->token.data, DOOR_TOKEN, strlen(DOOR_TOKEN)));
	ck_assert(!request->again && !request->answered_below);
	npumem__v1__request__free_unpacked(request, NULL);
	return id;
}

/* A connection whose daemon has given a token. */
static inline void door_open(struct door *door)
{
	door_open_with(door, &memory_libc, 0);
	door_resumed(door, door_knock(door, false), DOOR_TOKEN, 30);
	ck_assert_int_eq(door_process(door), 0);
}

static inline void door_cut(struct door *door)
{
	close(door->peer.fd);
	door->peer.fd = -1;
}

/* Until the connection comes back, which the library looks for as time passes. */
static inline void door_accept(struct door *door)
{
	struct pollfd pollfd = {.fd = door->listener, .events = POLLIN};
	for (int waited = 0; !poll(&pollfd, 1, 0); waited++) {
		ck_assert_int_lt(waited, DOOR_PATIENCE_MS);
		skip_ms(1);
		door_process(door);
	}
	door->peer.fd = accept(door->listener, NULL, NULL);
	ck_assert_int_ge(door->peer.fd, 0);
}

/* The same, and the session goes on. */
static inline void door_let_in(struct door *door)
{
	door_accept(door);
	door_resumed(door, door_knock(door, true), DOOR_TOKEN, 30);
	ck_assert_int_eq(door_process(door), 0);
}

static inline void door_close(struct door *door)
{
	npumem_close(door->peer.npumem);
	if (door->peer.fd >= 0)
		close(door->peer.fd);
	if (door->listener >= 0)
		close(door->listener);
	unlink(door->name.sun_path);
	rmdir(door->directory);
	*door = (struct door){.listener = -1, .peer = {.fd = -1}};
}

#endif
