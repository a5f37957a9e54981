/* Requests of a trace as bytes, and answers as text that can be compared. */
#ifndef TESTS_RANDOM_MESSAGE_H
#define TESTS_RANDOM_MESSAGE_H

#include "proto/npumem.pb-c.h"
#include "tests/random/trace.h"

/* Which handle stands for each ref of a request; 0: its name does. */
struct message_handles {
	uint64_t of[TRACE_OPS][TRACE_REFS];
};

struct message_sent {
	uint64_t id;
	bool again; /* it was sent before, to a daemon that is gone */
	uint64_t answered_below;
};

/* Packs a request; the caller frees it. */
uint8_t *message_pack(const struct trace *trace, unsigned peer, const struct trace_request *request,
		      const struct message_handles *handles, const struct message_sent *sent, size_t *bytes);
/* Byte i of what a write has. */
uint8_t message_write_byte(const struct trace *trace, unsigned peer, const struct trace_op *op, int64_t i);
/* To whom a grant is. */
uint32_t message_granted_uid(const struct trace *trace, unsigned peer, const struct trace_op *op);
/* Any request. */
uint8_t *message_pack_any(Npumem__V1__Request *request, size_t *bytes);

/* What of an answer is told beside the rest of it. Times are not. */
enum message_detail {
	MESSAGE_PLACES = 1, /* where tensors lie, their handles, what the device has, and the words of a refusal */
	MESSAGE_BYTES = 2,  /* what of a tensor was written, or is damaged */
};

/* The answer in one line; the caller frees it. Without MESSAGE_PLACES, of a list only tensors with names that
 * begin with `prefix`, or without a name, sorted. */
char *message_text(const Npumem__V1__Response *response, unsigned detail, const char *prefix);

#endif
