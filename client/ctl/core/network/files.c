/* The .npy files that a network names, looked at before anything runs. */
#include "client/ctl/core/network/files.h"

#include <stdlib.h>

int files_open(const struct network *network, const struct network_operation *operation,
	       const struct npumem_place *place, int rounding, struct stream *stream, struct npumem_error *error)
{
	char *path = network_path(network, operation->file);
	if (!path)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory for a path");
	int status = stream_open_perm(stream, path, place, &operation->perm, operation->converts,
				      operation->rounding ? operation->rounding : rounding, error);
	free(path);
	return status;
}

static int check(const struct network *network, const struct network_operation *operation,
		 struct npumem_error *error)
{
	struct npumem_error why = {.status = 0};
	struct npumem_place place;
	struct stream stream;
	bool has_file = operation->kind == NETWORK_WRITE || operation->kind == NETWORK_EXPECT;
	if (!has_file || !network_array(network, operation->tensor, &place))
		return 0;
	int status = files_open(network, operation, &place, NPUMEM_CONVERGENT, &stream, &why);
	if (status)
		return network_about(network, operation, &why, error);
	return stream_close(&stream, error);
}

int files_check(const struct network *network, struct npumem_error *error)
{
	int status = 0;
	for (size_t i = 0; i < network->n_operations && !status; i++)
		status = check(network, &network->operations[i], error);
	return status;
}
