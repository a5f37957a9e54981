/* show: everything about one tensor-> */
#include "client/ctl/command.h"

#include <inttypes.h>

#include "client/ctl/core/output/output.h"
#include "client/ctl/ctl.h"

static json_t *show_object(const struct npumem_tensor *tensor)
{
	json_t *object = present_whole(tensor);
	const char *reuse = npumem_reuse_name(tensor->reuse);
	json_t *more = json_pack("{s:I, s:b, s:b, s:o, s:I, s:I, s:o}", "handle", (json_int_t)tensor->handle,
				 "lends", tensor->lends, "borrows", tensor->borrows, "reuse", jsons_text(reuse),
				 "unwritten_bytes", (json_int_t)tensor->unwritten_bytes, "damaged_bytes",
				 (json_int_t)tensor->damaged_bytes, "view_of", jsons_text(tensor->base_name));
	json_t *grants = json_array();
	for (unsigned i = 0; i < tensor->n_grants; i++)
		jsons_append(&grants,
			     json_pack("{s:I, s:s}", "uid", (json_int_t)tensor->grants[i].uid, "access",
				       tensor->grants[i].access == NPUMEM_ACCESS_WRITE ? "write" : "read"));
	jsons_put(&more, "grants", grants);
	jsons_merge(&object, more);
	return object;
}

static void show_state(const struct ctl *ctl, const struct npumem_tensor *tensor)
{
	char user[USERS_TEXT_BYTES], flags[96];
	const char *reuse = npumem_reuse_name(tensor->reuse);
	bool any = tensor->sealed || tensor->dma_only || tensor->pinned || tensor->lends || tensor->borrows;
	present_line(stdout, "state", "%s", tensor->state);
	if (tensor->unwritten_bytes)
		present_line(stdout, "  never written", "%" PRId64 " bytes", tensor->unwritten_bytes);
	if (tensor->damaged_bytes)
		present_line(stdout, "  damaged", "%" PRId64 " bytes", tensor->damaged_bytes);
	snprintf(flags, sizeof(flags), "%s%s%s%s%s%s", any ? "" : " none", tensor->sealed ? " sealed" : "",
		 tensor->dma_only ? " dma-only" : "", tensor->pinned ? " pinned" : "",
		 tensor->lends ? " lends-empty-blocks" : "", tensor->borrows ? " borrows-empty-blocks" : "");
	present_line(stdout, "flags", "%s", flags + 1);
	present_line(stdout, "reuse", "%s", reuse ? reuse : "-");
	for (unsigned i = 0; i < tensor->n_grants; i++)
		present_line(stdout, "granted", "to uid %s for %s", users_text(ctl, tensor->grants[i].uid, user),
			     tensor->grants[i].access == NPUMEM_ACCESS_WRITE ? "writing" : "reading");
}

static int show_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_tensor *tensor;
	const struct npumem_info *info;
	char dtype[PRESENT_TEXT_BYTES], shape[PRESENT_TEXT_BYTES], name[PRESENT_TEXT_BYTES],
		user[USERS_TEXT_BYTES];
	int code = ctl_open(ctl, args->words[0], &tensor);
	if (code)
		return code;
	if (npumem_info(ctl->npumem, &info, &ctl->error))
		return CTL_FAILED;
	if (ctl->json)
		return ctl_print(ctl, show_object(tensor));
	const char *layout = npumem_layout_name(tensor->place.layout),
		   *mode = npumem_mode_name(tensor->place.mode);
	printf("%s: %s %s, %s, %s\n", present_name(tensor, info->uid, name), present_dtype(&tensor->place, dtype),
	       present_shape(&tensor->place, shape), layout ? layout : "-", mode ? mode : "-");
	if (tensor->base)
		present_line(stdout, "view of", "%s",
			     tensor->base_name[0] ? tensor->base_name : "a tensor without a name");
	present_line(stdout, "owner", "uid %s, handle %" PRIu64, users_text(ctl, tensor->uid, user),
		     tensor->handle);
	present_lines(stdout, &tensor->place, &info->geometry);
	show_state(ctl, tensor);
	return CTL_OK;
}

const struct command show_command = {.least = 1, .most = 1, .run = show_run};
