/* free: tensors by name, all of them or none. */
#include "client/ctl/command.h"

#include <stdlib.h>

static int free_named(struct ctl *ctl, const struct args *args, uint64_t *handles)
{
	const struct npumem_tensor *tensor;
	for (unsigned i = 0; i < args->n_words; i++) {
		int code = ctl_open(ctl, args->words[i], &tensor);
		if (code)
			return code;
		handles[i] = tensor->handle;
	}
	if (npumem_free(ctl->npumem, handles, args->n_words, &ctl->error))
		return CTL_FAILED;
	if (!ctl->json)
		return CTL_OK;
	return ctl_print(ctl, json_pack("{s:I}", "freed", (json_int_t)args->n_words));
}

static int free_run(struct ctl *ctl, const struct args *args)
{
	uint64_t *handles = calloc(args->n_words, sizeof(*handles));
	if (!handles)
		return ctl_fail(ctl, "no memory");
	int code = free_named(ctl, args, handles);
	free(handles);
	return code;
}

const struct command free_command = {.least = 1, .most = COMMAND_WORDS_ANY, .run = free_run};
