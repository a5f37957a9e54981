/* What blocks.h does, for processors that have isa.def's row avx512vnni. */
#ifndef DEVICE_BLOCKS_AVX512VNNI_H
#define DEVICE_BLOCKS_AVX512VNNI_H

#include "daemon/device/memory/blocks.h"

void blocks_copy__avx512vnni(uint8_t *to, const uint8_t *from, const struct blocks *blocks);
void blocks_fill__avx512vnni(uint8_t *to, const struct blocks *blocks, const uint8_t *pattern);

#endif
