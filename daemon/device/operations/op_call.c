#include "daemon/device/operations/op_call.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "daemon/device/operations/roles.h"

static void add_operand(struct op_work *work, const struct op_operand *operand, unsigned role)
{
	const struct tensor *tensor = operand->tensor;
	int64_t frac_bits = tensor_frac_bits(tensor);
	work->operands[work->n] = (struct kernel_operand){
		.dtype = tensor_dtype(tensor),
		.frac_bits = frac_bits == NPUMEM_ANY ? 0 : frac_bits,
		.shape = tensor_shape(tensor),
	};
	work->tensors[work->n] = operand->tensor;
	memcpy(work->names[work->n], operand->role, sizeof(operand->role));
	work->output[work->n] = work->rows->all[role].output;
	work->n++;
	work->roles[role].n++;
}

enum { ROLES_TEXT_BYTES = 256 };

/* "in, weights, bias (optional), out" */
static const char *roles_text(const struct roles *rows, char *text)
{
	int n = 0;
	for (unsigned i = 0; i < rows->n && n < ROLES_TEXT_BYTES; i++)
		n += snprintf(text + n, ROLES_TEXT_BYTES - (size_t)n, "%s%s%s%s", i ? ", " : "", rows->all[i].name,
			      rows->all[i].numbered ? "N" : "", rows->all[i].optional ? " (optional)" : "");
	return text;
}

/* What an operand's name says: a role, and which of its family. */
struct position {
	int role;
	unsigned number;
};

/* Takes the operands of one role, in the order of their numbers. */
static int take_role(const struct op *op, struct op_work *work, const struct position *positions, unsigned role,
		     const struct error_context *context)
{
	const struct role *row = &work->rows->all[role];
	char text[ROLES_TEXT_BYTES];
	work->roles[role] = (struct kernel_role){row->name, 0, &work->operands[work->n]};
	for (unsigned wanted = 0; wanted < NPUMEM_OPERANDS_MAX; wanted++) {
		unsigned found = 0;
		for (unsigned i = 0; i < op->n_operands; i++) {
			if (positions[i].role != (int)role || positions[i].number != wanted)
				continue;
			if (found++)
				return npumem_error_set(context->error, NPUMEM_INVALID,
							"kernel %s: role %s is given twice", work->call.row->name,
							op->operands[i].role);
			if (work->roles[role].n != wanted)
				return npumem_error_set(context->error, NPUMEM_INVALID,
							"kernel %s: role %s%u is missing before %s",
							work->call.row->name, row->name, work->roles[role].n,
							op->operands[i].role);
			add_operand(work, &op->operands[i], role);
		}
		if (!row->numbered)
			break;
	}
	if (work->roles[role].n == 0 && !row->optional)
		return npumem_error_set(context->error, NPUMEM_INVALID,
					"kernel %s: role %s%s is missing (its roles: %s)", work->call.row->name,
					row->name, row->numbered ? "0" : "", roles_text(work->rows, text));
	return 0;
}

static int take_roles(const struct op *op, struct op_work *work, const struct error_context *context)
{
	struct position positions[NPUMEM_OPERANDS_MAX];
	char text[ROLES_TEXT_BYTES];
	if (op->n_operands > NPUMEM_OPERANDS_MAX)
		return npumem_error_set(context->error, NPUMEM_INVALID,
					"%u operands are more than the %d of one call", op->n_operands,
					NPUMEM_OPERANDS_MAX);
	work->call.n_roles = work->rows->n;
	work->call.roles = work->roles;
	for (unsigned i = 0; i < op->n_operands; i++) {
		positions[i].role = roles_find(work->rows, op->operands[i].role, &positions[i].number);
		if (positions[i].role < 0)
			return npumem_error_set(context->error, NPUMEM_INVALID,
						"kernel %s has no role %s (its roles: %s)", work->call.row->name,
						op->operands[i].role, roles_text(work->rows, text));
	}
	for (unsigned role = 0; role < work->call.n_roles; role++) {
		int status = take_role(op, work, positions, role, context);
		if (status)
			return status;
	}
	return 0;
}

static unsigned count_choices(const char *choices)
{
	unsigned n = *choices != '\0';
	for (; *choices; choices++)
		n += *choices == ' ';
	return n;
}

static int take_param(struct op_work *work, const struct npumem_param *param, const struct error_context *context)
{
	const struct npumem_kernel_row *kernel = work->call.row;
	const struct npumem_param_row *row = npumem_param_by_number(param->number);
	if (!row)
		return npumem_error_set(context->error, NPUMEM_INVALID, "parameter number %d is not known",
					param->number);
	if (!(work->rows->params >> param->number & 1))
		return npumem_error_set(context->error, NPUMEM_INVALID,
					"kernel %s takes no parameter %s (it takes: %s%srounding)", kernel->name,
					row->name, kernel->parameters, *kernel->parameters ? " " : "");
	if (work->call.params.given[param->number].n_values)
		return npumem_error_set(context->error, NPUMEM_INVALID, "kernel %s: parameter %s is given twice",
					kernel->name, row->name);
	if (param->n_values < row->least || param->n_values > row->most)
		return npumem_error_set(context->error, NPUMEM_INVALID,
					"kernel %s: parameter %s has %u values, not %u to %u", kernel->name,
					row->name, param->n_values, row->least, row->most);
	for (unsigned i = 0; i < param->n_values && *row->choices; i++)
		if (param->values[i] < 1 || param->values[i] > (int64_t)count_choices(row->choices))
			return npumem_error_set(context->error, NPUMEM_INVALID,
						"kernel %s: parameter %s is %" PRId64 ", not one of 1 to %u (%s)",
						kernel->name, row->name, param->values[i],
						count_choices(row->choices), row->choices);
	work->call.params.given[param->number] = *param;
	return 0;
}

/* A parameter without a neutral value must be given. */
static int check_given(const struct op_work *work, const struct error_context *context)
{
	const struct npumem_kernel_row *kernel = work->call.row;
	for (uint64_t left = work->rows->needed_params; left; left &= left - 1) {
		const struct npumem_param_row *row = npumem_param_by_number(__builtin_ctzll(left));
		if (work->call.params.given[row->number].n_values)
			continue;
		npumem_error_text(context->error, "parameter", row->name);
		return *row->choices
			       ? npumem_error_set(context->error, NPUMEM_INVALID,
						  "kernel %s: parameter %s is missing, one of: %s", kernel->name,
						  row->name, row->choices)
			       : npumem_error_set(context->error, NPUMEM_INVALID,
						  "kernel %s: parameter %s is missing", kernel->name, row->name);
	}
	return 0;
}

static int take_params(const struct device *device, const struct op *op, struct op_work *work,
		       const struct error_context *context)
{
	for (unsigned i = 0; i < op->n_params; i++) {
		int status = take_param(work, &op->params[i], context);
		if (status)
			return status;
	}
	work->call.rounding = (enum npumem_rounding)kernel_param(&work->call, NPUMEM_PARAM_ROUNDING, 0,
								 device->options.rounding);
	return check_given(work, context);
}

int op_call_take(const struct device *device, const struct op *op, struct op_work *work,
		 const struct error_context *context)
{
	const struct roles *rows = roles_of(op->kernel);
	/* The lists behind are written as far as they are long. */
	memset(work, 0, offsetof(struct op_work, roles));
	if (!rows->row || !kernel_by_number(op->kernel))
		return npumem_error_set(context->error, NPUMEM_INVALID, "kernel number %d is not known",
					op->kernel);
	work->rows = rows;
	work->kernel = kernel_by_number(op->kernel);
	work->call.row = rows->row;
	work->call.isa = device->options.isa;
	work->call.plan = work->plan;
	work->call.crew = device->crew.share ? &device->crew : NULL;
	int status = take_roles(op, work, context);
	return status ? status : take_params(device, op, work, context);
}
