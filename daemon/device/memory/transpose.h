/* Blocks of a power of two that touch along one loop on one side, and along the other one on the other. */
#ifndef DEVICE_TRANSPOSE_H
#define DEVICE_TRANSPOSE_H

#include "daemon/device/memory/blocks.h"

/* See blocks_paths. */
void transpose_blocks(uint8_t *to, const uint8_t *from, const struct blocks *blocks);

#endif
