/* A daemon for calls that wait for one answer after the other: a thread that answers each request as the test
 * says.
 */
#ifndef TESTS_CLIENT_SCRIPT_H
#define TESTS_CLIENT_SCRIPT_H

#include <pthread.h>

#include "tests/unit/client/lib/peer.h"

enum { SCRIPT_REQUESTS_MAX = 8 };

struct script {
	struct peer peer;
	/* The n-th request, from 1 on, which is its id. */
	void (*answer)(const struct peer *peer, uint64_t n, const void *ctx);
	const void *ctx;
	pthread_t thread;
	Npumem__V1__Request *requests[SCRIPT_REQUESTS_MAX];
	unsigned n;
	bool is_over;
};

static inline bool script_read(const struct peer *peer, uint8_t *to, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t k = recv(peer->fd, to + at, n - at, 0);
		if (k <= 0)
			return false;
		at += (size_t)k;
	}
	return true;
}

static inline void *script_run(void *arg)
{
	struct script *script = arg;
	uint8_t header[FRAME_HEADER_BYTES_MAX], message[1024];
	for (;;) {
		size_t n = 0, header_bytes = 0, bytes = 0;
		while (frame_parse(header, n, FRAME_BYTES_MAX, &header_bytes, &bytes) == FRAME_MORE &&
		       !header_bytes)
			if (!script_read(&script->peer, header + n++, 1))
				return NULL;
		ck_assert_uint_le(bytes, sizeof(message));
		if (!script_read(&script->peer, message, bytes))
			return NULL;
		ck_assert_uint_lt(script->n, SCRIPT_REQUESTS_MAX);
		script->requests[script->n] = npumem__v1__request__unpack(NULL, bytes, message);
		ck_assert_ptr_nonnull(script->requests[script->n]);
		script->n++;
		script->answer(&script->peer, script->n, script->ctx);
	}
}

/* peer.npumem is NULL where `memory` has none for it. */
static inline void script_open(struct script *script, const struct memory *memory,
			       void (*answer)(const struct peer *peer, uint64_t n, const void *ctx),
			       const void *ctx)
{
	*script = (struct script){.peer = peer_open_with(memory), .answer = answer, .ctx = ctx};
	script->peer.may_break = true;
	ck_assert_int_eq(pthread_create(&script->thread, NULL, script_run, script), 0);
}

/* Closes the connection, unless somebody else has and set it to NULL, and waits until no request is left. */
static inline void script_end(struct script *script)
{
	npumem_close(script->peer.npumem);
	script->peer.npumem = NULL;
	if (!script->is_over)
		ck_assert_int_eq(pthread_join(script->thread, NULL), 0);
	script->is_over = true;
}

static inline void script_close(struct script *script)
{
	script_end(script);
	for (unsigned i = 0; i < script->n; i++)
		npumem__v1__request__free_unpacked(script->requests[i], NULL);
	close(script->peer.fd);
}

#endif
