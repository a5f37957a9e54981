/* What is done in one submit: small kernels, which cost what is around them, and a network of ten layers:
 * bench_small [options] [part of a case's name ...]. */
#include "tests/bench/small/lists.h"

static void run(const struct bench *bench, struct inside *inside, enum peer_pin pin,
		void (*rows)(const struct bench *, struct inside *, struct remote *))
{
	struct remote remote;
	remote_open(&remote, &(struct remote_options){.name = "daemon", .isa = bench->isa, .pin = pin});
	rows(bench, inside, &remote);
	remote_close(&remote);
}

int main(int argc, char **argv)
{
	struct bench bench = {.name = "small", .rounds = 11, .seconds = 0.03};
	struct inside inside;
	bench_options(&bench, argc, argv);
	inside_open(&inside, bench.isa);
	run(&bench, &inside, PEER_FREE, lists_small);
	run(&bench, &inside, PEER_SPLIT, lists_network); /* one thread, as its peers */
	inside_close(&inside);
	bench_end(&bench);
	return 0;
}
