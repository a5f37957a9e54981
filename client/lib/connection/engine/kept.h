/* A request as it was sent, kept until it is answered, so that it can be sent again to a daemon that took the
 * session over. */
#ifndef CLIENT_LIB_KEPT_H
#define CLIENT_LIB_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "client/lib/connection/memory.h"
#include "proto/npumem.pb-c.h"

/* What `again` may add to a message. */
enum { KEPT_AGAIN_BYTES = 3 };

struct kept {
	size_t bytes;	     /* of the message without its id and its data */
	const uint8_t *data; /* its end: borrowed of the caller, or `copy`; NULL: none */
	size_t data_bytes;
	uint8_t *copy;
	Npumem__V1__Request__CallCase call;
	uint64_t gives_back; /* the segment or list; 0: none */
	int fd;		     /* that goes with it, or -1 */
	bool was_sent;	     /* to a daemon, at least in part */
	uint8_t message[];
};

/* Packs a request, whose id is set, and which is so long packed: with `lends`, a write, whose data are borrowed
 * until kept_disown. `fd` is duplicated; -1: none. NULL: no memory, or no fd. */
struct kept *kept_new(const struct memory *memory, const Npumem__V1__Request *request, size_t packed, bool lends,
		      const void *data, size_t data_bytes, int fd);
/* NULL is allowed. */
void kept_free(struct kept *kept, const struct memory *memory);

/* Its data are copied, so that the caller's may go. 0 or -ENOMEM. */
int kept_disown(struct kept *kept, const struct memory *memory);

/* The size of its message, data included, and that of what kept_put writes: all but the data. */
size_t kept_size(const struct kept *kept, uint64_t id, bool again);
size_t kept_put(const struct kept *kept, uint64_t id, bool again, uint8_t *to);

#endif
