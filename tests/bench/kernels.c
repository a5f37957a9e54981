/* Kernels: the device in this process ("engine") and the daemon, beside oneDNN, the machine's peaks, memcpy and
 * plain loops: bench_kernels [options] [part of a case's name ...]; tests/bench/support/bench.h has the options.
 *
 * Tensors are planar and resident, one thread works (but for the rows of two), and weights were seen before. With
 * --isa avx2 oneDNN is held to that, too. */
#include "tests/bench/kernels/cases.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum cases_isa isa_of(const struct bench *bench)
{
	enum isa asked = bench->isa ? isa_parse(bench->isa) : ISA_ANY, isa = isa_best();
	errno = 0;
	if (bench->isa && asked == ISA_ANY)
		peer_die("--isa: no such instructions");
	if (asked != ISA_ANY && asked < isa)
		isa = asked;
	return isa == ISA_AMX_INT8 ? CASES_AMX : isa == ISA_AVX512VNNI ? CASES_VNNI : CASES_AVX2;
}

void cases_same(struct cases *cases, const struct call *call, const struct inside_op *inside,
		const struct remote_op *remote)
{
	const struct call_tensor *out = &call->tensors[call->n_tensors - 1];
	struct inside_op read;
	uint8_t *a = malloc(out->bytes), *b = malloc(out->bytes);
	if (!a || !b)
		peer_die("no memory");
	inside_transfer(&cases->inside, inside_out(inside, call), OP_READ, a, out->bytes, &read);
	inside_run(&read);
	remote_expect(&cases->remote, npumem_read(cases->remote.npumem, remote_out(remote), b, out->bytes, NULL,
						  &cases->remote.error));
	errno = 0;
	if (memcmp(a, b, out->bytes) != 0)
		peer_die("the daemon's output is not the engine's");
	free(a);
	free(b);
}

static void open_all(struct cases *cases, const struct bench *bench)
{
	*cases = (struct cases){.bench = bench, .isa = isa_of(bench)};
	cases->has_onednn = onednn_open(bench->isa);
	if (!cases->has_onednn)
		bench_missing("oneDNN", "libdnnl-dev, tests/bench/packages.sh");
	cases->has_xnnpack = xnnpack_open();
	if (!cases->has_xnnpack)
		bench_missing("XNNPACK", "libxnnpack-dev, tests/bench/packages.sh");
	inside_open(&cases->inside, bench->isa);
	inside_open(&cases->scalar, isa_name(ISA_SCALAR));
	remote_open(&cases->remote,
		    &(struct remote_options){.name = "daemon", .isa = bench->isa, .pin = PEER_SPLIT});
}

static void close_all(struct cases *cases)
{
	remote_close(&cases->remote);
	inside_close(&cases->inside);
	inside_close(&cases->scalar);
	peer_pin(NULL, PEER_FREE);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {
		[CASES_AVX2] = "AVX2", [CASES_VNNI] = "AVX-512 VNNI", [CASES_AMX] = "AMX-INT8"};
	struct bench bench = {.name = "kernels", .rounds = 9, .seconds = 0.03};
	struct cases cases;
	bench_options(&bench, argc, argv);
	open_all(&cases, &bench);
	printf("goals are those of %s\n", names[cases.isa]);
	cases_weights(&cases);
	if (cases.isa != CASES_AVX2 || !bench.isa)
		cases_others(&cases);
	close_all(&cases);
	if (cases.isa != CASES_AVX2 || !bench.isa)
		cases_threads(&bench);
	bench_end(&bench);
	return 0;
}
