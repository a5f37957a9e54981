/* run: a kernel on named tensors. */
#include "client/ctl/command.h"

#include <inttypes.h>
#include <unistd.h>

#include "client/ctl/core/kernels/kernels.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/ctl.h"

static const struct option run_options[] = {
	{"--time", NULL, "prints the time that the daemon's host took", false},
	{NULL, NULL, NULL, false},
};

static void run_text(const struct npumem_done *done, bool timed)
{
	printf("saturated %" PRId64 ", wrapped %" PRId64 ", macs %" PRId64, done->saturated, done->wrapped,
	       done->macs);
	if (done->divided_by_zero)
		printf(", divided by zero %" PRId64, done->divided_by_zero);
	printf("%s", done->n_destroyed ? "" : ", nothing destroyed");
	if (timed)
		printf(", %.3f ms", (double)(done->end_ns - done->start_ns) / 1e6);
	putchar('\n');
	for (unsigned i = 0; i < done->n_destroyed; i++)
		printf("destroyed %" PRId64 " byte%s of %s, first at NPU %" PRId64 ", offsets %" PRId64
		       " to %" PRId64 "\n",
		       done->destroyed[i]->total_bytes, present_s((uint64_t)done->destroyed[i]->total_bytes),
		       done->destroyed[i]->name, done->destroyed[i]->npu, done->destroyed[i]->offset,
		       done->destroyed[i]->offset + done->destroyed[i]->bytes - 1);
}

static int run_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_done *done;
	struct call call;
	struct bar bar;
	int code = call_open(ctl, args, &call);
	if (code)
		return code;
	bar_follow(ctl, &bar);
	code = call_run(ctl, &call, &done);
	bar_end(&bar);
	if (code)
		return code;
	ctl_warn(ctl, done->warning);
	if (ctl->json)
		return ctl_print(ctl, present_done(done));
	run_text(done, args_has(args, "--time"));
	return CTL_OK;
}

static int run_help(struct ctl *ctl, const struct args *args)
{
	const struct npumem_kernel_row *row;
	if (roles_kernel(args->words[0], &row, &ctl->error))
		return CTL_USAGE;
	describe_print(stdout, row, terminal_columns(STDOUT_FILENO));
	return CTL_OK;
}

const struct command run_command = {
	.options = run_options,
	.least = 1,
	.most = COMMAND_WORDS_ANY,
	.help = run_help,
	.run = run_run,
	.notes = "  npumemctl run conv2d in=x weights=w bias=b out=y stride=1,2 padding=1,1,0,0 relu=6 "
		 "rounding=up\n"
		 "padding is top,bottom,left,right; relu is none, gen, 1 or 6; rounding is convergent, up or "
		 "nearest.\n"
		 "  npumemctl run conv2d --help     (or: npumemctl kernels conv2d)\n"
		 "describes a kernel; npumemctl kernels lists all.",
};
