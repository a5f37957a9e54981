/* Words to a kernel call. Checks their form only: which tensors and parameters go together the daemon says. */
#include "client/ctl/ctl.h"

#include <string.h>

#include "client/ctl/core/kernels/kernels.h"

static int call_parse(struct ctl *ctl, const struct args *args, struct call *call,
		      const char *names[NPUMEM_OPERANDS_MAX])
{
	for (unsigned i = 1; i < args->n_words; i++) {
		struct roles_word word;
		if (roles_word(call->row, args->words[i], &word, &ctl->error))
			return CTL_USAGE;
		if (word.is_role && call->n_tensors < NPUMEM_OPERANDS_MAX) {
			memcpy(call->roles[call->n_tensors], word.key, sizeof(word.key));
			names[call->n_tensors++] = word.value;
		} else if (!word.is_role && call->n_params < NPUMEM_PARAMS_MAX) {
			if (npumem_param_parse(word.key, word.value, &call->params[call->n_params++], &ctl->error))
				return CTL_USAGE;
		} else {
			return ctl_usage(ctl, "more than %d tensors or parameters", NPUMEM_OPERANDS_MAX);
		}
	}
	return CTL_OK;
}

int call_open(struct ctl *ctl, const struct args *args, struct call *call)
{
	const char *names[NPUMEM_OPERANDS_MAX];
	*call = (struct call){.row = NULL};
	if (roles_kernel(args->words[0], &call->row, &ctl->error))
		return CTL_USAGE;
	int code = call_parse(ctl, args, call, names);
	for (unsigned i = 0; i < call->n_tensors && !code; i++)
		code = ctl_open(ctl, names[i], &call->tensors[i]);
	return code ? code : ctl_connect(ctl);
}

int call_run(struct ctl *ctl, const struct call *call, const struct npumem_done **done)
{
	struct npumem_operand operands[NPUMEM_OPERANDS_MAX];
	for (unsigned i = 0; i < call->n_tensors; i++)
		operands[i] = (struct npumem_operand){call->roles[i], call->tensors[i]->handle};
	return npumem_run(ctl->npumem, call->row->name, operands, call->n_tensors, call->params, call->n_params,
			  done, &ctl->error)
		       ? CTL_FAILED
		       : CTL_OK;
}
