/* What is done in one submit: small kernels, which cost what is around them, and a network of ten layers:
 * bench_small [options] [part of a case's name ...]. */
#include "tests/bench/small/lists.h"

int main(int argc, char **argv)
{
	struct bench bench = {.name = "small", .rounds = 11, .seconds = 0.03};
	struct inside inside;
	struct remote remote;
	bench_options(&bench, argc, argv);
	inside_open(&inside, bench.isa);
	remote_open(&remote, &(struct remote_options){.name = "daemon", .isa = bench.isa, .pin = PEER_SPLIT});
	lists_small(&bench, &inside, &remote);
	lists_network(&bench, &inside, &remote);
	remote_close(&remote);
	inside_close(&inside);
	bench_end(&bench);
	return 0;
}
