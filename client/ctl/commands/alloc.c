/* alloc: a tensor that stays when this command ends, so it has a name. */
#include "client/ctl/command.h"

#include <inttypes.h>
#include <math.h>

#include "client/ctl/core/output/output.h"
#include "client/ctl/core/words/words.h"
#include "client/ctl/ctl.h"

enum { ALLOC_WAIT_SECONDS_MAX = 1000000 };

static const struct option alloc_options[] = {
	SPEC_OPTIONS,
	{"--reuse", "P", "other tensors' empty blocks: never (the default), if-safe, unchecked", false},
	{"--dma-only", NULL, "no kernel may write it", false},
	{"--pinned", NULL, "compact leaves it where it is", false},
	{"--wait", "SECONDS", "waits for this time if there is no room", false},
	{NULL, NULL, NULL, false},
};

/* Why there is no room is in the message; what would fit is in the fields. */
static int alloc_refused(struct ctl *ctl, const struct npumem_error *why)
{
	int64_t n = npumem_error_find(why, "largest_n", -1), w = npumem_error_find(why, "better_w", -1);
	int64_t start = npumem_error_find(why, "better_start_npu", -1);
	char fits[128];
	int at = 0;
	fits[0] = 0;
	if (n > 0)
		at += snprintf(fits, sizeof(fits), "; N %" PRId64 " would fit", n);
	if (w > 0)
		at += snprintf(fits + at, sizeof(fits) - (size_t)at, "; --w %" PRId64 " would fit", w);
	if (start >= 0)
		snprintf(fits + at, sizeof(fits) - (size_t)at, "; --start-npu %" PRId64 " would fit", start);
	return ctl_refuse(ctl, why, "%.380s%s", why->message, fits);
}

static int alloc_run(struct ctl *ctl, const struct args *args)
{
	struct npumem_allocation allocation = NPUMEM_ALLOCATION_INIT;
	const struct npumem_tensor *tensor;
	struct npumem_error why;
	struct sigaction before;
	const char *reuse = args_value(args, "--reuse"), *wait = args_value(args, "--wait");
	double seconds = 0;
	allocation.name = args->words[0];
	if (spec_parse(args, &allocation.spec, &ctl->error))
		return CTL_USAGE;
	if (reuse && !(allocation.reuse = npumem_reuse_parse(reuse)))
		return ctl_usage(ctl, "there is no reuse policy \"%.40s\"; it is one of never, if-safe, unchecked",
				 reuse);
	if (!allocation.name[0])
		return ctl_usage(ctl, "the name is empty");
	if (wait && (!numbers_real(wait, &seconds) || !(seconds >= 0 && seconds <= ALLOC_WAIT_SECONDS_MAX)))
		return ctl_usage(ctl, "--wait \"%.40s\" is not a number of seconds from 0 to %d", wait,
				 ALLOC_WAIT_SECONDS_MAX);
	allocation.dma_only = args_has(args, "--dma-only");
	allocation.pinned = args_has(args, "--pinned");
	int code = ctl_connect(ctl);
	if (code)
		return code;
	bar_interrupt("\nnpumemctl: interrupted while it waited for room\n", &before);
	int status = npumem_alloc_wait(ctl->npumem, &allocation, 1, (uint32_t)ceil(seconds * 1000), &tensor, &why);
	sigaction(SIGINT, &before, NULL);
	if (status)
		return alloc_refused(ctl, &why);
	if (ctl->json)
		return ctl_print(ctl, present_whole(tensor));
	printf("%s at address %" PRId64 " (NPU %" PRId64 ", offset %" PRId64 "), %" PRId64 " bytes per NPU%s\n",
	       tensor->name, tensor->place.address, tensor->place.npu, tensor->place.offset,
	       tensor->place.bytes_per_npu,
	       allocation.reuse <= NPUMEM_NEVER ? ""
	       : tensor->borrows		? ", in empty blocks of others"
						: ", in no empty block of others");
	return CTL_OK;
}

const struct command alloc_command = {.options = alloc_options, .least = 1, .most = 1, .run = alloc_run};
