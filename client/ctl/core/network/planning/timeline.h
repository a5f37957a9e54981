/* The lives of a network's tensors as SVG: operations go right, offsets on an NPU go down, heights are to scale.
 */
#ifndef CTL_CORE_NETWORK_TIMELINE_H
#define CTL_CORE_NETWORK_TIMELINE_H

#include "client/ctl/core/network/planning/lives.h"

/* Light or dark as the reader has it; a tensor's colour follows from its name. Those without room are left out. */
void timeline_draw(FILE *out, const struct network *network, const struct lives *lives,
		   const struct npumem_geometry *geometry);

#endif
