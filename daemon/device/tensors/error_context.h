/* The caller, as far as the device needs it: where a refusal is written, and how a tensor is named to this caller.
 * The service decides which names a caller may see. */
#ifndef DEVICE_ERROR_CONTEXT_H
#define DEVICE_ERROR_CONTEXT_H

#include <npumem/types.h>

struct tensor;

struct error_context {
	struct npumem_error *error;
	/* Writes a name for `tensor` that this context may see. NULL: "tensor #<handle>". */
	void (*name)(void *ctx, const struct tensor *tensor, char *buffer, size_t bytes);
	void *ctx;
	bool is_brief; /* no advice that takes long to find: the same may be asked often */
};

enum { ERROR_CONTEXT_NAME_BYTES = NPUMEM_FIELD_TEXT_BYTES };

/* The name of `tensor` for this context, written to `buffer` (ERROR_CONTEXT_NAME_BYTES), which is returned. */
const char *error_context_name(const struct error_context *context, const struct tensor *tensor, char *buffer);

#endif
