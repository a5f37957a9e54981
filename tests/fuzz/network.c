/* Networks as JSON: what submit, check and plan read. One that is accepted names only tensors that are there, and
 * its tensors find places that do not meet. */
#include <stdio.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/network/planning/planning.h"
#include "tests/fuzz/file.h"
#include "tests/fuzz/fuzz.h"

static void check_operation(const struct network *network, const struct network_operation *operation)
{
	char text[NETWORK_TEXT_BYTES], number[24];

	if (operation->kind == NETWORK_RUN
		    ? !operation->kernel
		    : operation->tensor < 0 || (size_t)operation->tensor >= network->n_tensors)
		fuzz_fail("an operation of nothing");
	if (operation->operand + operation->n_operands > network->n_operands ||
	    operation->param + operation->n_params > network->n_params)
		fuzz_fail("operands or parameters that are not there");
	for (unsigned i = 0; i < operation->n_operands; i++) {
		int tensor = network->operands[operation->operand + i].tensor;

		if (tensor < 0 || (size_t)tensor >= network->n_tensors ||
		    network->tensors[tensor].born == NETWORK_NONE)
			fuzz_fail("an operand that is not there yet");
	}
	network_where(network, operation, text);
	network_what(network, operation, text);
	network_number(operation, number);
}

static bool meet(int64_t a, int64_t a_bytes, int64_t b, int64_t b_bytes)
{
	return a < b + b_bytes && b < a + a_bytes;
}

static void check_lives(const struct lives *lives, const struct npumem_geometry *geometry)
{
	for (size_t i = 0; i < lives->n; i++) {
		const struct lives_tensor *a = &lives->list[i];

		if (a->offset == NPUMEM_ANY)
			continue;
		if (a->offset < 0 || a->offset + a->place.bytes_per_npu > geometry->npu_bytes)
			fuzz_fail("a tensor that is placed beyond the device");
		for (size_t k = 0; k < i; k++) {
			const struct lives_tensor *b = &lives->list[k];

			if (b->offset != NPUMEM_ANY && a->from < b->to && b->from < a->to &&
			    meet(a->offset, a->place.bytes_per_npu, b->offset, b->place.bytes_per_npu))
				fuzz_fail("two tensors of one time at one place");
		}
	}
}

static void check_network(const struct network *network)
{
	struct npumem_error error = {.status = 0};
	struct npumem_geometry geometry;
	struct lives lives;
	static FILE *nowhere;

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	npumem_geometry_default(&geometry);
	for (size_t i = 0; i < network->n_operations; i++)
		check_operation(network, &network->operations[i]);
	if (!lives_compute(network, &geometry, &lives, &error)) {
		check_lives(&lives, &geometry);
		timeline_draw(nowhere, network, &lives, &geometry);
	} else if (!error.message[0]) {
		fuzz_fail("lives are refused without a reason");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct npumem_error error = {.status = 0};
	struct network network;

	if (!network_load(file_of(bytes, n), &network, &error))
		check_network(&network);
	else if (!error.message[0])
		fuzz_fail("a network is refused without a reason");
	memory_end();
	return 0;
}
