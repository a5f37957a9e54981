/* Who asks, as far as the device cares: where a refusal goes, and how to speak of a tensor to this asker.
 * What may be named to whom is the service's business; the device only asks. */
#ifndef DEVICE_ASKER_H
#define DEVICE_ASKER_H

#include <npumem/types.h>

struct tensor;

struct asker {
	struct npumem_error *error;
	/* Writes a name for `tensor` that this asker may see. NULL: "tensor #<handle>". */
	void (*name)(void *ctx, const struct tensor *tensor, char *buffer, size_t bytes);
	void *ctx;
};

enum { ASKER_NAME_BYTES = NPUMEM_FIELD_TEXT_BYTES };

/* The name of `tensor` for this asker, written to `buffer` (ASKER_NAME_BYTES), which is returned. */
const char *asker_name(const struct asker *asker, const struct tensor *tensor, char *buffer);

#endif
