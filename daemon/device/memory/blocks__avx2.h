/* What blocks.h does, for processors that have isa.def's row avx2. */
#ifndef DEVICE_BLOCKS_AVX2_H
#define DEVICE_BLOCKS_AVX2_H

#include "daemon/device/memory/blocks.h"

void blocks_copy__avx2(uint8_t *to, const uint8_t *from, const struct blocks *blocks);

#endif
