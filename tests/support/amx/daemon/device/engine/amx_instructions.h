/* In the place of the header of the same name, where it is found first: the instructions in plain C. */
#ifndef TESTS_AMX_INSTRUCTIONS_H
#define TESTS_AMX_INSTRUCTIONS_H

#include <stdbool.h>

/* Each ends the process where the processor would refuse the instruction, and where tiles are configured anew
 * before they were released. */
void amx_ldtilecfg(const struct amx_config *config);
void amx_tilerelease(void);
void amx_tilezero(unsigned tile);
void amx_tileloadd(unsigned tile, const void *from, int64_t stride);
void amx_tilestored(unsigned tile, void *to, int64_t stride);
void amx_product(unsigned c, unsigned a, unsigned b, bool signed_a, bool signed_b);

#define AMX_TILEZERO(tile) amx_tilezero(tile)
#define AMX_TILELOADD(tile, from, stride) amx_tileloadd(tile, from, (int64_t)(stride))
#define AMX_TILESTORED(tile, to, stride) amx_tilestored(tile, to, (int64_t)(stride))
#define AMX_TDPBSSD(c, a, b) amx_product(c, a, b, true, true)
#define AMX_TDPBSUD(c, a, b) amx_product(c, a, b, true, false)
#define AMX_TDPBUSD(c, a, b) amx_product(c, a, b, false, true)
#define AMX_TDPBUUD(c, a, b) amx_product(c, a, b, false, false)

#endif
