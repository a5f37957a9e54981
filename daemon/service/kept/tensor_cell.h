/* The bytes of a tensor's cell in the store. Knows the bytes only: recover_tensors.c judges the values.
 *
 * A number has 7 bits in a byte, the lowest first; bit 7 says that another byte follows. A group of numbers that
 * are all 0 is left out, and the name comes last without its zeros, so that an ordinary tensor has 60 to 90 bytes.
 */
#ifndef SERVICE_TENSOR_CELL_H
#define SERVICE_TENSOR_CELL_H

#include "daemon/service/kept/persist.h"

/* Writes a tensor; up to STORE_TENSOR_BYTES_MAX. Returns how many bytes. */
size_t tensor_cell_pack(const struct persist_tensor *tensor, uint8_t to[STORE_TENSOR_BYTES_MAX]);

/* Reads what tensor_cell_pack wrote for this slot, or what npumemd wrote into a state of version 1. False: the
 * bytes are neither. */
bool tensor_cell_unpack(const uint8_t *from, size_t bytes, uint32_t slot, struct persist_tensor *tensor);

#endif
