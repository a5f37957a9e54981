#include "daemon/device/asker.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/device/tensor.h"

const char *asker_name(const struct asker *asker, const struct tensor *tensor, char *buffer)
{
	if (asker->name)
		asker->name(asker->ctx, tensor, buffer, ASKER_NAME_BYTES);
	else
		snprintf(buffer, ASKER_NAME_BYTES, "tensor #%" PRIu64, tensor->handle);
	return buffer;
}
