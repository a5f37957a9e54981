/* Names the place of an operation in messages, and derives roots, arrays and roundings from the operations. */
#include "client/ctl/core/network/network.h"

#include <string.h>

#include "client/ctl/core/kernels/kernels.h"
#include "client/ctl/core/memory.h"

/* ---- saying where ---- */

const char *network_number(const struct network_operation *operation, char text[24])
{
	if (operation->part)
		snprintf(text, 24, "%u.%u", operation->place, operation->part);
	else
		snprintf(text, 24, "%u", operation->place);
	return text;
}

const char *network_what(const struct network *network, const struct network_operation *operation, char *text)
{
	const char *subject =
		operation->kernel ? operation->kernel->name : network->tensors[operation->tensor].name;
	snprintf(text, NETWORK_TEXT_BYTES, "%s %.100s", network_kind_name(operation->kind), subject);
	return text;
}

const char *network_where(const struct network *network, const struct network_operation *operation, char *text)
{
	char number[24], line[24] = "", what[NETWORK_TEXT_BYTES] = "";
	const char *name = operation->name && !operation->is_implied ? operation->name : "";
	if (operation->is_implied && network->tensors[operation->tensor].is_declared) {
		snprintf(text, NETWORK_TEXT_BYTES, "tensor \"%.63s\"", network->tensors[operation->tensor].name);
		return text;
	}
	if (operation->line)
		snprintf(line, sizeof(line), " (line %d)", operation->line);
	if (operation->kind)
		network_what(network, operation, what);
	snprintf(text, NETWORK_TEXT_BYTES, "operation %s%s%.63s%s%s%.100s", network_number(operation, number),
		 *name ? " " : "", name, line, *what ? ", " : "", what);
	return text;
}

int network_rounding(const struct network *network, const struct network_operation *operation, int of_device)
{
	if (operation->rounding)
		return operation->rounding;
	return network->rounding.number ? (int)network->rounding.values[0] : of_device;
}

int network_about(const struct network *network, const struct network_operation *operation,
		  const struct npumem_error *why, struct npumem_error *error)
{
	char where[NETWORK_TEXT_BYTES];
	const char *message = why->message, *kernel = strrchr(network_where(network, operation, where), ' ');
	size_t n = kernel ? strlen(++kernel) : 0;
	/* "run conv2d: conv2d: …" names it twice. */
	if (n && !strncmp(message, kernel, n) && !strncmp(message + n, ": ", 2))
		message += n + 2;
	npumem_error_set(error, why->status, "%s: %.340s", where, message);
	for (const struct npumem_field *field = why->fields; field < why->fields + why->n_fields; field++)
		if (field->is_text)
			npumem_error_text(error, field->key, field->text);
		else
			npumem_error_number(error, field->key, field->number);
	return why->status;
}

/* ---- facts ---- */

bool network_writes(const struct network_operation *operation, const struct network_operand *operand)
{
	switch (operation->kind) {
	case NETWORK_RUN:
		return roles_is_output(operation->kernel, operand->role);
	case NETWORK_WRITE:
	case NETWORK_FILL:
	case NETWORK_COPY:
		return true;
	default:
		return false;
	}
}

int network_root(const struct network *network, int tensor)
{
	while (network->tensors[tensor].base != NETWORK_NONE)
		tensor = network->tensors[tensor].base;
	return tensor;
}

char *network_path(const struct network *network, const char *file)
{
	return memory_text("%s%s", *file == '/' ? "" : network->folder, file);
}

bool network_array(const struct network *network, int tensor, struct npumem_place *place)
{
	const struct network_tensor *one = &network->tensors[tensor];
	const struct npumem_spec *spec = &one->spec;
	if (one->base == NETWORK_NONE) {
		*place = (struct npumem_place){.dtype = spec->dtype,
					       .frac_bits = spec->frac_bits,
					       .layout = spec->layout ? spec->layout : NPUMEM_ALIGNED,
					       .shape = spec->shape,
					       .rows = spec->rows,
					       .cols = spec->cols};
		return !one->is_opened;
	}
	if (!network_array(network, one->base, place))
		return false;
	if (one->is_format) {
		place->frac_bits = one->frac_bits;
		return true;
	}
	place->layout = NPUMEM_ALIGNED;
	place->shape = one->shape;
	if (one->is_slice)
		place->shape = (struct npumem_dims){one->to.n - one->from.n, one->to.c - one->from.c,
						    one->to.h - one->from.h, one->to.w - one->from.w};
	return true;
}

/* ---- The .npy files that a network names, looked at before anything runs. ---- */

int files_open(const struct network *network, const struct network_operation *operation,
	       const struct npumem_place *place, int rounding, struct stream *stream, struct npumem_error *error)
{
	return stream_open_perm(stream, network_path(network, operation->file), place, &operation->perm,
				operation->converts, network_rounding(network, operation, rounding), error);
}

int files_open_expected(const struct network *network, const struct network_operation *operation,
			const struct npumem_place *place, int rounding, size_t sample, size_t *n,
			struct stream *stream, struct npumem_error *error)
{
	*n = 1;
	if (!operation->converts || operation->perm.n)
		return files_open(network, operation, place, rounding, stream, error);
	return stream_open_of_samples(stream, network_path(network, operation->file), place, sample,
				      network_rounding(network, operation, rounding), n, error);
}

static int check(const struct network *network, const struct network_operation *operation,
		 struct npumem_error *error)
{
	struct npumem_error why = {.status = 0};
	struct npumem_place place;
	struct stream stream;
	bool is_expected = operation->kind == NETWORK_EXPECT;
	size_t n;
	if ((operation->kind != NETWORK_WRITE && !is_expected) ||
	    !network_array(network, operation->tensor, &place))
		return 0;
	int status = is_expected ? files_open_expected(network, operation, &place, NPUMEM_CONVERGENT, 0, &n,
						       &stream, &why)
				 : files_open(network, operation, &place, NPUMEM_CONVERGENT, &stream, &why);
	if (status)
		return network_about(network, operation, &why, error);
	return stream_close(&stream, 0, error);
}

int files_check(const struct network *network, struct npumem_error *error)
{
	int status = 0;
	for (size_t i = 0; i < network->n_operations && !status; i++)
		status = check(network, &network->operations[i], error);
	return status;
}
