/* alloc: a tensor that stays when this command ends, so it has a name. */
#include "client/ctl/command.h"

#include <inttypes.h>

#include "client/ctl/core/present.h"
#include "client/ctl/core/spec.h"

static const struct option alloc_options[] = {
	SPEC_OPTIONS,
	{"--reuse", "P", "other tensors' empty blocks: never, if-safe, unchecked", false},
	{"--dma-only", NULL, "no kernel may write it", false},
	{"--pinned", NULL, "compact leaves it where it is", false},
	{NULL, NULL, NULL, false},
};

static int alloc_run(struct ctl *ctl, const struct args *args)
{
	struct npumem_allocation allocation = {.name = args->words[0]};
	struct npumem_tensor tensor;
	const char *reuse = args_value(args, "--reuse");
	if (spec_parse(args, &allocation.spec, &ctl->error))
		return CTL_USAGE;
	if (reuse && !(allocation.reuse = npumem_reuse_parse(reuse)))
		return ctl_usage(ctl, "there is no reuse policy \"%.40s\"", reuse);
	if (!allocation.name[0])
		return ctl_usage(ctl, "the name is empty");
	allocation.dma_only = args_has(args, "--dma-only");
	allocation.pinned = args_has(args, "--pinned");
	int code = ctl_connect(ctl);
	if (code)
		return code;
	if (npumem_alloc(ctl->npumem, &allocation, 1, &tensor, &ctl->error))
		return CTL_FAILED;
	if (ctl->json) {
		json_t *object = present_place(&tensor.place);
		if (object && present_tensor(object, &tensor)) {
			json_decref(object);
			object = NULL;
		}
		return ctl_print(ctl, object);
	}
	printf("%s at address %" PRId64 " (NPU %" PRId64 ", offset %" PRId64 "), %" PRId64 " bytes per NPU\n",
	       tensor.name, tensor.place.address, tensor.place.npu, tensor.place.offset,
	       tensor.place.bytes_per_npu);
	return CTL_OK;
}

const struct command alloc_command = {
	.options = alloc_options,
	.least = 1,
	.most = 1,
	.run = alloc_run,
};
