/* The .npy files that a network names, looked at before anything runs. */
#include "client/ctl/core/network/network.h"

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
