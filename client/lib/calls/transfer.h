/* A dense array to or from a tensor, in chunks. */
#ifndef CLIENT_LIB_TRANSFER_H
#define CLIENT_LIB_TRANSFER_H

#include "client/lib/messages/request.h"

struct transfer {
	uint64_t handle;
	int64_t first;	      /* the element that the array begins with */
	size_t element_bytes; /* 0: in one piece */
	size_t bytes, at;     /* at: how far it is sent */
	bool is_write;
	const uint8_t *from; /* write */
	uint8_t *to;	     /* read */
};

/* All of it, whose element_bytes are set. As request_send; at the first that fails it stops. */
int transfer_send(struct npumem_request *request, struct transfer *transfer, struct npumem_error *error);
/* The `take` of a kind that is answered with a Done for each chunk. */
int transfer_take(struct npumem_request *request, const Npumem__V1__Response *response,
		  struct npumem_error *error);

#endif
