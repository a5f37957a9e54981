/* Addresses as SVG: on which NPU and where on it each one lies. */
#ifndef CTL_CORE_SVG_ADDRESS_H
#define CTL_CORE_SVG_ADDRESS_H

#include "client/ctl/core/pictures/svg.h"

enum { SVG_ADDRESSES_MAX = 64 };

/* Each address lies on the device. */
void svg_address_draw(FILE *out, const struct npumem_geometry *geometry, const int64_t *addresses, unsigned n);

#endif
