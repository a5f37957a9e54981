/* free: tensors by name or pattern, all of them or none. */
#include "client/ctl/command.h"

#include "client/ctl/core/memory.h"
#include "client/ctl/ctl.h"

enum { FREE_AT_ONCE = 256 };

static const struct option free_options[] = {
	{"--all", NULL, "all tensors of your uid that have a name", false},
	{NULL, NULL, NULL, false},
};

static bool has_base(const struct selection *selection, uint64_t base)
{
	for (unsigned i = 0; base && i < selection->n; i++)
		if (selection->list[i]->handle == base)
			return true;
	return false;
}

static int free_handles(struct ctl *ctl, const uint64_t *handles, unsigned n)
{
	if (n > FREE_AT_ONCE)
		return ctl_invalid(ctl, "these are %u tensors; up to %d are freed at once", n, FREE_AT_ONCE);
	if (n && npumem_free(ctl->npumem, handles, n, &ctl->error))
		return CTL_FAILED;
	if (ctl->json)
		return ctl_print(ctl, json_pack("{s:I}", "freed", (json_int_t)n));
	return CTL_OK;
}

/* Views go with a base that is among them. */
static int free_selected(struct ctl *ctl, const struct args *args, bool all)
{
	struct selection selection = {.n = 0};
	const struct npumem_info *info;
	unsigned n = 0;
	if (npumem_info(ctl->npumem, &info, &ctl->error))
		return CTL_FAILED;
	int code = selection_all(ctl, info->uid, args->words, args->n_words, &selection);
	if (code)
		return code;
	uint64_t *handles = memory_new(selection.n, sizeof(*handles));
	for (unsigned i = 0; i < selection.n; i++) {
		const struct npumem_tensor *tensor = selection.list[i];
		if ((!all || (tensor->uid == info->uid && tensor->name[0])) && !has_base(&selection, tensor->base))
			handles[n++] = tensor->handle;
	}
	code = free_handles(ctl, handles, n);
	if (!code && !ctl->json)
		printf("%u freed\n", n);
	return code;
}

/* Opens each name instead of searching the list, which leaves out some tensors of other uids. */
static int free_named(struct ctl *ctl, const struct args *args)
{
	uint64_t *handles = memory_new(args->n_words, sizeof(*handles));
	const struct npumem_tensor *tensor;
	for (unsigned i = 0; i < args->n_words; i++) {
		int code = ctl_open(ctl, args->words[i], &tensor);
		if (code)
			return code;
		handles[i] = tensor->handle;
	}
	return free_handles(ctl, handles, args->n_words);
}

static int free_run(struct ctl *ctl, const struct args *args)
{
	bool all = args_has(args, "--all"), pattern = false;
	if (all == (args->n_words > 0))
		return ctl_usage(ctl, "free takes names, patterns, or --all");
	for (unsigned i = 0; i < args->n_words; i++)
		pattern |= selection_is_pattern(args->words[i]);
	int code = ctl_connect(ctl);
	if (code)
		return code;
	return all || pattern ? free_selected(ctl, args, all) : free_named(ctl, args);
}

const struct command free_command = {
	.options = free_options,
	.most = COMMAND_WORDS_ANY,
	.run = free_run,
	.notes = "  npumemctl free x 'conv*'\n"
		 "* is anything, ? one letter, [ab] one of these.",
};
