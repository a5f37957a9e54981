/* stat: how the device's bytes are used. */
#include "client/ctl/command.h"

#include <inttypes.h>

#include "client/ctl/core/present.h"

static json_t *stat_object(const struct npumem_stat *s)
{
	return json_pack("{s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}, s:I, s:I, s:I}", "device", "total",
			 (json_int_t)s->total, "data", (json_int_t)s->data, "dummy", (json_int_t)s->dummy,
			 "padding", (json_int_t)s->padding, "empty", (json_int_t)s->empty, "free",
			 (json_int_t)s->free, "lent", (json_int_t)s->lent, "largest_free",
			 (json_int_t)s->largest_free, "tensors", (json_int_t)s->tensors, "views",
			 (json_int_t)s->views, "sessions", (json_int_t)s->sessions);
}

static void stat_share(const char *label, int64_t bytes, int64_t total)
{
	present_line(stdout, label, "%-12" PRId64 " %5.1f %%", bytes,
		     total > 0 ? 100.0 * (double)bytes / (double)total : 0.0);
}

static int stat_run(struct ctl *ctl, const struct args *args)
{
	struct npumem_stat stat;
	(void)args;
	int code = ctl_connect(ctl);
	if (code)
		return code;
	if (npumem_stat(ctl->npumem, &stat, &ctl->error))
		return CTL_FAILED;
	if (ctl->json)
		return ctl_print(ctl, stat_object(&stat));
	printf("%" PRId64 " bytes on all NPUs\n", stat.total);
	stat_share("data", stat.data, stat.total);
	stat_share("dummy", stat.dummy, stat.total);
	stat_share("padding", stat.padding, stat.total);
	stat_share("empty", stat.empty, stat.total);
	stat_share("free", stat.free, stat.total);
	present_line(stdout, "lent", "%" PRId64 " (empty blocks that hold other tensors' data)", stat.lent);
	present_line(stdout, "largest free", "%" PRId64 " bytes per NPU", stat.largest_free);
	present_line(stdout, "tensors", "%" PRId64, stat.tensors);
	present_line(stdout, "views", "%" PRId64, stat.views);
	present_line(stdout, "sessions", "%" PRId64, stat.sessions);
	return CTL_OK;
}

const struct command stat_command = {.run = stat_run};
