/* The .npy files that a network names, looked at before anything runs. */
#include "client/ctl/core/network/files.h"

#include <stdlib.h>

#include "client/ctl/core/arrays/stream.h"

static int check(const struct network *network, const struct network_operation *operation,
		 struct npumem_error *error)
{
	struct npumem_error why = {.status = 0};
	struct npumem_place place;
	struct stream stream;
	bool has_file = operation->kind == NETWORK_WRITE || operation->kind == NETWORK_EXPECT;
	if (!has_file || !network_array(network, operation->tensor, &place))
		return 0;
	char *path = network_path(network, operation->file);
	int status = path ? stream_open(&stream, path, &place, operation->converts, NPUMEM_CONVERGENT, &why)
			  : npumem_error_set(&why, NPUMEM_RESOURCE_EXHAUSTED, "no memory");
	free(path);
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
