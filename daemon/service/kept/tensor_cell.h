/* The bytes of a tensor's cell in the store. recover_tensors.c checks the values.
 *
 * A number has 7 bits in a byte, the lowest first; bit 7 says that another byte follows. A group of numbers that
 * are all 0 is left out, and the name comes last without its zeros, so that an ordinary tensor has 60 to 90
 * bytes. */
#ifndef SERVICE_TENSOR_CELL_H
#define SERVICE_TENSOR_CELL_H

#include <stddef.h>

#include "daemon/device/device.h"
#include "daemon/service/tensors/record.h"
#include "daemon/store/store.h"

/* In STORE_TENSORS, in the cell of its slot: packed, or in a state of version 1 as it is here. */
struct persist_tensor {
	struct device_saved saved;
	char name[NPUMEM_NAME_BYTES_MAX + 1];
	uint64_t session; /* that made it */
	uint64_t request; /* of that session, its id; 0: not known any more */
	uint32_t index;	  /* among the tensors of the request */
	uint32_t uid, n_grants, reserved;
	struct {
		uint32_t uid, access;
	} grants[RECORD_GRANTS_MAX]; /* n_grants are kept */
};
_Static_assert(sizeof(struct persist_tensor) <= STORE_BYTES_FOUND_MAX, "it had room");
#define PERSIST_TENSOR_BYTES_MIN offsetof(struct persist_tensor, grants)

/* Writes a tensor. Returns the number of bytes. */
size_t tensor_cell_pack(const struct persist_tensor *tensor, uint8_t to[STORE_TENSOR_BYTES_MAX]);

/* Reads the bytes of tensor_cell_pack for this slot, or those of a state of version 1. False: the bytes are
 * neither. */
bool tensor_cell_unpack(const uint8_t *from, size_t bytes, uint32_t slot, struct persist_tensor *tensor);

#endif
