/* Small kernels: what an operation costs in a submit of 256, answer and all, and what it costs alone in a device
 * of this process. */
#include <stdio.h>

#include "tests/bench/small/lists.h"

enum { WORDS_MAX = 6, OPERATIONS = 256 };

#define STATE "[1,64,1,1]"

static const struct {
	const char *name;
	const char *calls[WORDS_MAX];
} rows[] = {
	{"fx16 relu of 64", {"relu in=fx16/8" STATE " out=fx16/8" STATE " relu=gen"}},
	{"fx16 eltwise_add of 64", {"eltwise_add in1=fx16/8" STATE " in2=fx16/8" STATE " out=fx16/8" STATE}},
	{"fx16 eltwise_mul of 64, compact",
	 {"eltwise_mul in1=fx16/8" STATE ":compact in2=fx16/8" STATE ":compact out=fx16/8" STATE ":compact"}},
	{"fx16 sigmoid of 64", {"sigmoid in=fx16/12" STATE " out=fx16/15" STATE}},
	{"fx16 tanh of 64", {"tanh in=fx16/12" STATE " out=fx16/15" STATE}},
	{"fx8 eltwise_add of 8x8x8", {"eltwise_add in1=fx8/4[1,8,8,8] in2=fx8/4[1,8,8,8] out=fx8/4[1,8,8,8]"}},
	{"fx16 fully_connected 64->64",
	 {"fully_connected in=fx16/12" STATE " weights=fx16/12[64,64,1,1]:compact bias=fx16/12" STATE
	  " out=fx16/12" STATE}},
	{"fx8 conv2d 1x1, 64->64 on 16 points",
	 {"conv2d in=fx8/4[1,64,4,4] weights=fx8/7[64,64,1,1] bias=fx8/7[1,64,1,1] out=fx8/4[1,64,4,4]"}},
	{"an LSTM's mixture: rnn_dense, sigmoid, tanh, eltwise",
	 {"rnn_dense in0=fx16/12" STATE " weights0=fx16/12[64,64,1,1]:compact in1=fx16/12" STATE
	  " weights1=fx16/12[64,64,1,1]:compact bias=fx16/12" STATE " out=fx16/12" STATE,
	  "sigmoid in=fx16/12" STATE " out=fx16/15" STATE, "tanh in=fx16/12" STATE " out=fx16/15" STATE,
	  "eltwise_mul in1=fx16/12" STATE " in2=fx16/15" STATE " out=fx16/12" STATE,
	  "eltwise_add in1=fx16/12" STATE " in2=fx16/12" STATE " out=fx16/12" STATE}},
};

static void tell(const struct bench *bench, const char *name, const struct bench_measured *m)
{
	enum { SUBMIT, INSIDE };
	const double goal_us = 3;
	const struct bench_row row = {
		.name = name,
		.value = 1e6 / bench_speed(m, SUBMIT),
		.unit = "us",
		.peer = m->contenders[INSIDE].name,
		.peer_value = 1e6 / bench_speed(m, INSIDE),
		.ratio = 1 / bench_ratio(m, SUBMIT, INSIDE),
		.kind = BENCH_VALUE_AT_MOST,
		.goal = goal_us,
	};
	bench_tell(bench, &row);
}

void lists_small(const struct bench *bench, struct inside *inside, struct remote *remote)
{
	static struct list list;
	struct bench_measured m;
	char name[BENCH_NAME_BYTES];
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned n = 0;
		while (n < WORDS_MAX && rows[i].calls[n])
			n++;
		snprintf(name, sizeof(name), "an operation in a submit: %s", rows[i].name);
		if (!bench_wanted(bench, name))
			continue;
		list_init(&list, inside, remote, rows[i].calls, n, OPERATIONS, false);
		const struct bench_contender contenders[] = {
			{"submit", list_submit, &list, OPERATIONS, BENCH_CLOCK},
			{"check and run in this process", list_inside, &list, OPERATIONS, BENCH_OWN},
		};
		bench_measure(bench, contenders, 2, &m);
		tell(bench, name, &m);
		list_deinit(&list);
	}
}
