/* run: a kernel on named tensors. */
#include "client/ctl/command.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/core/present.h"
#include "client/ctl/core/roles.h"

struct prepared {
	char roles[NPUMEM_OPERANDS_MAX][NPUMEM_FIELD_KEY_BYTES];
	const char *names[NPUMEM_OPERANDS_MAX];
	struct npumem_operand operands[NPUMEM_OPERANDS_MAX];
	struct npumem_param params[NPUMEM_PARAMS_MAX];
	unsigned n_operands, n_params;
};

static int run_prepare(struct ctl *ctl, const struct npumem_kernel_row *row, const struct args *args,
		       struct prepared *run)
{
	for (unsigned i = 1; i < args->n_words; i++) {
		struct roles_word word;
		if (roles_word(row, args->words[i], &word, &ctl->error))
			return CTL_USAGE;
		if (word.is_role && run->n_operands < NPUMEM_OPERANDS_MAX) {
			memcpy(run->roles[run->n_operands], word.key, sizeof(word.key));
			run->names[run->n_operands++] = word.value;
		} else if (!word.is_role && run->n_params < NPUMEM_PARAMS_MAX) {
			if (npumem_param_parse(word.key, word.value, &run->params[run->n_params++], &ctl->error))
				return CTL_USAGE;
		} else {
			return ctl_usage(ctl, "more than %d tensors or parameters", NPUMEM_OPERANDS_MAX);
		}
	}
	return CTL_OK;
}

static void run_text(const struct npumem_done *done)
{
	printf("saturated %" PRId64 ", wrapped %" PRId64 ", macs %" PRId64, done->saturated, done->wrapped,
	       done->macs);
	if (done->divided_by_zero)
		printf(", divided by zero %" PRId64, done->divided_by_zero);
	printf("%s\n", done->n_destroyed ? "" : ", nothing destroyed");
	for (unsigned i = 0; i < done->n_destroyed; i++)
		printf("destroyed %" PRId64 " bytes of %s, first at NPU %" PRId64 ", offsets %" PRId64
		       " to %" PRId64 "\n",
		       done->destroyed[i].total_bytes, done->destroyed[i].name, done->destroyed[i].npu,
		       done->destroyed[i].offset, done->destroyed[i].offset + done->destroyed[i].bytes - 1);
}

/* Told every tenth of a second, where the run takes longer than that. */
static void run_progress(void *context, const struct npumem_event *event)
{
	enum { WIDTH = 40 };
	bool *shown = context;
	if (!event->total)
		return;
	int full = (int)((double)event->done / (double)event->total * WIDTH);
	fprintf(stderr, "\r[%.*s%*s] %3d%%", full, "########################################", WIDTH - full, "",
		full * 100 / WIDTH);
	fflush(stderr);
	*shown = true;
}

static void run_follow(struct ctl *ctl, bool *shown)
{
	static const char *const kinds[] = {"progress"};
	/* A daemon that knows no progress runs the kernel as well. */
	if (isatty(STDERR_FILENO))
		npumem_subscribe(ctl->npumem, kinds, 1, run_progress, shown, NULL);
}

static int run_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_kernel_row *row = npumem_kernel_by_name(args->words[0]);
	struct prepared run = {.n_operands = 0};
	struct npumem_tensor tensor;
	struct npumem_done done;
	bool shown = false;
	if (!row)
		return ctl_usage(ctl, "there is no kernel \"%.60s\"", args->words[0]);
	int code = run_prepare(ctl, row, args, &run);
	for (unsigned i = 0; i < run.n_operands && !code; i++) {
		code = ctl_open(ctl, run.names[i], &tensor);
		run.operands[i] = (struct npumem_operand){run.roles[i], tensor.handle};
	}
	if (!code)
		code = ctl_connect(ctl);
	if (code)
		return code;
	run_follow(ctl, &shown);
	int status = npumem_run(ctl->npumem, row->name, run.operands, run.n_operands, run.params, run.n_params, &done,
				&ctl->error);
	if (shown)
		fprintf(stderr, "\r%60s\r", "");
	if (status)
		return CTL_FAILED;
	ctl_warn(ctl, done.warning);
	if (ctl->json)
		return ctl_print(ctl, present_done(&done));
	run_text(&done);
	return CTL_OK;
}

const struct command run_command = {
	.least = 1,
	.most = COMMAND_WORDS_ANY,
	.run = run_run,
	.notes = "  npumemctl run conv2d in=x weights=w bias=b out=y stride=1,2 padding=1,1,0,0 relu=6 "
		 "rounding=up\n"
		 "padding is top,bottom,left,right; relu is none, gen, 1 or 6; rounding is convergent, up or "
		 "nearest.",
};
