/* A private daemon is started by the bench, not by the library ("spawn:"), so that it can be pinned. */
#include "tests/bench/support/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/support/scratch.h"

const char *remote_program(void)
{
	return getenv("NPUMEMD") ? getenv("NPUMEMD") : NPUMEMD;
}

bool remote_knows(const char *option)
{
	char command[4200], line[256];
	snprintf(command, sizeof(command), "'%s' --help", remote_program());
	FILE *help = popen(command, "r");
	bool found = false;
	while (help && fgets(line, sizeof(line), help))
		found |= strstr(line, option) != NULL;
	if (help)
		pclose(help);
	return found;
}

void remote_expect(const struct remote *remote, int status)
{
	if (!status)
		return;
	errno = 0;
	peer_die(remote->error.message);
}

void remote_open(struct remote *remote, const struct remote_options *options)
{
	struct npumem_options client = NPUMEM_OPTIONS_INIT;
	char path[SCRATCH_PATH_BYTES];
	const char *arguments[12] = {remote_program(), "--socket", scratch_path(options->name, path), "--log",
				     "warning"};
	unsigned n = 5;
	*remote = (struct remote){.npumem = NULL};
	if (!options->sleeps && remote_knows("--spin-us")) {
		arguments[n++] = "--spin-us";
		arguments[n++] = "50";
	}
	if (options->isa && remote_knows("--isa")) {
		arguments[n++] = "--isa";
		arguments[n++] = options->isa;
	}
	peer_start(&remote->peer, arguments, path, NULL, NULL);
	if (!remote->peer.pid)
		peer_die(remote_program());
	if (options->sleeps)
		client.spin_us = NPUMEM_NO_SPIN;
	remote_expect(remote, npumem_open(path, &client, &remote->npumem, &remote->error));
	peer_pin(&remote->peer, options->pin);
}

void remote_close(struct remote *remote)
{
	npumem_close(remote->npumem);
	peer_end(&remote->peer);
}

static const struct npumem_tensor *place(struct remote *remote, const struct call *call, unsigned i)
{
	struct npumem_allocation allocation = NPUMEM_ALLOCATION_INIT;
	const struct npumem_tensor *tensor;
	void *data = call_data(call, i);
	allocation.spec = call->tensors[i].spec;
	remote_expect(remote, npumem_alloc(remote->npumem, &allocation, 1, &tensor, &remote->error));
	remote_expect(remote, npumem_write(remote->npumem, tensor, data, call->tensors[i].bytes, &remote->error));
	free(data);
	return tensor;
}

void remote_place(struct remote *remote, const struct call *call, const struct npumem_tensor *first,
		  struct remote_op *op)
{
	*op = (struct remote_op){.remote = remote,
				 .kernel = call->kernel,
				 .n_operands = call->n_tensors,
				 .n_params = call->n_params};
	for (unsigned i = 0; i < call->n_tensors; i++) {
		bool own = i > 0 || !first;
		const struct npumem_tensor *tensor = own ? place(remote, call, i) : first;
		op->operands[i] = (struct npumem_operand){call->tensors[i].role, tensor->handle};
		if (own)
			op->tensors[op->n_own++] = tensor;
	}
	memcpy(op->params, call->params, sizeof(op->params));
}

const struct npumem_tensor *remote_out(const struct remote_op *op)
{
	return op->tensors[op->n_own - 1];
}

void remote_run(void *remote_op)
{
	struct remote_op *op = remote_op;
	remote_expect(op->remote, npumem_run(op->remote->npumem, op->kernel, op->operands, op->n_operands,
					     op->params, op->n_params, NULL, &op->remote->error));
}

struct npumem_operation remote_operation(const struct remote_op *op)
{
	return (struct npumem_operation){.size = sizeof(struct npumem_operation),
					 .kind = NPUMEM_OP_RUN,
					 .kernel = op->kernel,
					 .operands = op->operands,
					 .n_operands = op->n_operands,
					 .params = op->params,
					 .n_params = op->n_params};
}

void remote_drop(struct remote_op *op)
{
	for (; op->n_own; op->n_own--) {
		const struct npumem_tensor *tensor = op->tensors[op->n_own - 1];
		remote_expect(op->remote, npumem_free(op->remote->npumem, &tensor->handle, 1, &op->remote->error));
		npumem_release(tensor);
	}
}
