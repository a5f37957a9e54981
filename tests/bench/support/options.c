/* The options of a bench, and which cases are wanted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/support/bench.h"

static _Noreturn void usage(const struct bench *bench)
{
	fprintf(stderr,
		"usage: bench_%s [--json] [--quick] [--rounds N] [--seconds S (of a slice)] [--isa NAME] "
		"[part of a case's name ...]\n",
		bench->name);
	exit(2);
}

/* The peers' thread pools look at the environment while the program is loaded. */
static void one_thread(char **argv)
{
	if (getenv("OMP_NUM_THREADS"))
		return;
	setenv("OMP_NUM_THREADS", "1", 1);
	execv("/proc/self/exe", argv);
}

void bench_options(struct bench *bench, int argc, char **argv)
{
	int at = 1;
	one_thread(argv);
	for (; at < argc && !strncmp(argv[at], "--", 2); at++) {
		const char *value = at + 1 < argc ? argv[at + 1] : NULL;
		if (!strcmp(argv[at], "--json"))
			bench->json = true;
		else if (!strcmp(argv[at], "--quick"))
			bench->quick = true;
		else if (value && !strcmp(argv[at], "--rounds"))
			bench->rounds = (unsigned)atoi(argv[++at]);
		else if (value && !strcmp(argv[at], "--seconds"))
			bench->seconds = atof(argv[++at]);
		else if (value && !strcmp(argv[at], "--isa"))
			bench->isa = argv[++at];
		else
			usage(bench);
	}
	if (bench->quick) {
		bench->rounds = 1;
		bench->seconds = 0;
	}
	if (bench->rounds < 1 || bench->rounds > BENCH_ROUNDS_MAX || bench->seconds < 0)
		usage(bench);
	bench->words = argv + at;
	bench->n_words = argc - at;
}

bool bench_wanted(const struct bench *bench, const char *name)
{
	for (int i = 0; i < bench->n_words; i++)
		if (strstr(name, bench->words[i]))
			return true;
	return bench->n_words == 0;
}
