/* Kernels with weights. Told is GMAC/s with padded taps, so that shapes compare; "engine" is the device in this
 * process, operands in local memory, weights packed by an earlier run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/kernels/cases.h"

/* 0: none. */
struct goals {
	double of[CASES_ISAS]; /* AVX2, VNNI, AMX */
};

/* ---- beside oneDNN ---- */

struct peer_row {
	const char *name, *call;
	struct goals full, core; /* beside oneDNN with its reorders, and without */
	double daemon;		 /* through the daemon, of the engine's figure */
};

static const struct peer_row peer_rows[] = {
	{"fx8 conv a 3x3 56x56 64->64",
	 "conv2d in=fx8/7[1,64,56,56] weights=fx8/7[64,64,3,3] bias=fx8/7[1,64,1,1] out=fx8/3[1,64,56,56] "
	 "padding=1,1,1,1",
	 {{0.5, 1.5, 1.5}},
	 {{0}},
	 0.85},
	{"fx8 conv b 1x1 28x28 256->256",
	 "conv2d in=fx8/7[1,256,28,28] weights=fx8/7[256,256,1,1] bias=fx8/7[1,256,1,1] out=fx8/3[1,256,28,28]",
	 {{0.5, 1.5, 2.2}},
	 {{0}},
	 0.85},
	{"fx8 conv e 3x3 7x7 512->512",
	 "conv2d in=fx8/7[1,512,7,7] weights=fx8/7[512,512,3,3]:compact bias=fx8/7[1,512,1,1] "
	 "out=fx8/3[1,512,7,7] "
	 "padding=1,1,1,1",
	 {{0.5, 1.1, 1.05}},
	 {{0}},
	 0.85},
	{"fx8 depthwise c 3x3 112x112x32",
	 "depthwise_conv2d in=fx8/7[1,32,112,112] weights=fx8/7[1,32,3,3] bias=fx8/7[1,32,1,1] "
	 "out=fx8/3[1,32,112,112] padding=1,1,1,1",
	 {{0.5, 5, 5}},
	 {{0, 1.8, 1.8}},
	 0},
	{"fx8 fully connected 1024->1000 batch 1, compact",
	 "fully_connected in=fx8/7[1,1024,1,1]:compact weights=fx8/7[1024,1000,1,1]:compact "
	 "bias=fx8/7[1,1000,1,1]:compact out=fx8/3[1,1000,1,1]:compact",
	 {{0.5, 1.0, 1.0}},
	 {{0}},
	 0},
	{"fx8 fully connected 1024->1000 batch 16, compact",
	 "fully_connected in=fx8/7[16,1024,1,1]:compact weights=fx8/7[1024,1000,1,1]:compact "
	 "bias=fx8/7[1,1000,1,1]:compact out=fx8/3[16,1000,1,1]:compact",
	 {{0.5, 1.1, 0.85}},
	 {{0}},
	 0},
};

/* XNNPACK takes what instructions there are, so it is left out where those are held down. */
struct peer_pair {
	struct onednn *onednn;
	struct xnnpack *xnnpack;
	char core[BENCH_NAME_BYTES]; /* with the implementation that oneDNN chose */
};

enum { ENGINE, DAEMON, FULL, CORE, XNNPACK, PEAK, CONTENDERS };

static void tell_peers(struct cases *cases, const struct peer_row *row, const struct bench_measured *m,
		       const struct peer_pair *peers)
{
	const struct bench *bench = cases->bench;
	char name[BENCH_NAME_BYTES];
	snprintf(name, sizeof(name), "%s, engine", row->name);
	if (peers->onednn) {
		bench_compare(bench, name, m, ENGINE, FULL, "GMAC/s", 1e-9, row->full.of[cases->isa]);
		bench_compare(bench, name, m, ENGINE, CORE, "GMAC/s", 1e-9, row->core.of[cases->isa]);
	}
	if (peers->xnnpack)
		bench_compare(bench, name, m, ENGINE, XNNPACK, "GMAC/s", 1e-9, 0);
	if (m->contenders[PEAK].run)
		bench_compare(bench, name, m, ENGINE, PEAK, "GMAC/s", 1e-9, 0);
	snprintf(name, sizeof(name), "%s, through the daemon", row->name);
	bench_compare(bench, name, m, DAEMON, ENGINE, "GMAC/s", 1e-9, cases->isa == CASES_AVX2 ? 0 : row->daemon);
	if (peers->onednn)
		bench_compare(bench, name, m, DAEMON, FULL, "GMAC/s", 1e-9, 0);
}

static void run_peers(struct cases *cases, const struct peer_row *row)
{
	struct call call;
	struct inside_op inside;
	struct remote_op remote;
	struct bench_measured m;
	call_parse(&call, row->call);
	double macs = call_macs(&call);
	inside_place(&cases->inside, &call, NULL, &inside);
	remote_place(&cases->remote, &call, NULL, &remote);
	struct peer_pair peers = {.onednn = cases->has_onednn ? onednn_new(&call) : NULL,
				  .xnnpack = cases->has_xnnpack && !cases->bench->isa ? xnnpack_new(&call) : NULL};
	snprintf(peers.core, sizeof(peers.core), "oneDNN core, %s",
		 peers.onednn ? onednn_choice(peers.onednn) : "");
	const struct bench_contender contenders[CONTENDERS] = {
		[ENGINE] = {"engine", inside_run, &inside, macs, BENCH_OWN},
		[DAEMON] = {"daemon", remote_run, &remote, macs, BENCH_CLOCK},
		[FULL] = {"oneDNN incl. reorders", peers.onednn ? onednn_full : NULL, peers.onednn, macs,
			  BENCH_OWN},
		[CORE] = {peers.core, peers.onednn ? onednn_core : NULL, peers.onednn, macs, BENCH_OWN},
		[XNNPACK] = {"XNNPACK, channels last", peers.xnnpack ? xnnpack_run : NULL, peers.xnnpack, macs,
			     BENCH_OWN},
		[PEAK] = {"peak of vpdpbusd", cases->isa == CASES_VNNI ? probe_peak_8_run : NULL, NULL,
			  PROBE_MACS_8, BENCH_OWN},
	};
	bench_measure(cases->bench, contenders, CONTENDERS, &m);
	tell_peers(cases, row, &m, &peers);
	cases_same(cases, &call, &inside, &remote);
	onednn_free(peers.onednn);
	xnnpack_free(peers.xnnpack);
	inside_drop(&inside);
	remote_drop(&remote);
}

/* ---- fully connected, one byte a cache line ---- */

/* The lines of the data alone are loaded in less time than the products take at the machine's peak: the goal
 * counts those of the packed weights, too. */
static void run_lines(struct cases *cases, int64_t n)
{
	enum { K = 1024, M = 1000, WEIGHT_LINES = K * M / 64 };
	const struct bench *bench = cases->bench;
	char name[BENCH_NAME_BYTES], text[256];
	struct call call;
	struct inside_op inside;
	struct probe_lines lines, with_weights;
	struct bench_measured m;
	snprintf(name, sizeof(name), "fx8 fully connected 1024->1000 batch %d, aligned, engine", (int)n);
	if (!bench_wanted(bench, name))
		return;
	snprintf(text, sizeof(text),
		 "fully_connected in=fx8/7[%d,%d,1,1] weights=fx8/7[%d,%d,1,1]:compact bias=fx8/7[1,%d,1,1] "
		 "out=fx8/3[%d,%d,1,1]",
		 (int)n, K, K, M, M, (int)n, M);
	call_parse(&call, text);
	inside_place(&cases->inside, &call, NULL, &inside);
	probe_lines_init(&lines, (size_t)(n * (K + M)), 0);
	probe_lines_init(&with_weights, (size_t)(n * (K + M)), WEIGHT_LINES);
	double macs = call_macs(&call);
	const struct bench_contender contenders[] = {
		{"engine", inside_run, &inside, macs, BENCH_OWN},
		{"a loop that loads its data's lines", probe_lines_run, &lines, macs, BENCH_OWN},
		{"a loop that loads all its lines", probe_lines_run, &with_weights, macs, BENCH_OWN},
	};
	bench_measure(bench, contenders, 3, &m);
	bench_compare(bench, name, &m, 0, 1, "GMAC/s", 1e-9, 0);
	bench_compare(bench, name, &m, 0, 2, "GMAC/s", 1e-9, cases->isa == CASES_AVX2 ? 0 : 0.8);
	probe_lines_deinit(&lines);
	probe_lines_deinit(&with_weights);
	inside_drop(&inside);
}

/* ---- fx16, beside the peak of vpdpwssd ---- */

struct peak_row {
	const char *name, *data, *weights;
	struct goals goals;
};

static const struct peak_row peak_rows[] = {
	{"fx16 conv a, weights within 4000, engine", "fx16/12", "fx16/12[64,64,3,3]~4000", {{0, 0.45, 1.1}}},
	{"fx16 conv a, full-range weights, engine", "fx16/12", "fx16/12[64,64,3,3]", {{0, 0.4, 1.1}}},
	{"fx16w8 conv a, engine", "fx16/12", "fx8/7[64,64,3,3]", {{0, 0.75, 1.1}}},
};

static void run_peak(struct cases *cases, const struct peak_row *row)
{
	char text[256];
	struct call call;
	struct inside_op inside;
	struct bench_measured m;
	snprintf(text, sizeof(text), "conv2d in=%s[1,64,56,56] weights=%s out=%s[1,64,56,56] padding=1,1,1,1",
		 row->data, row->weights, "fx16/4");
	call_parse(&call, text);
	inside_place(&cases->inside, &call, NULL, &inside);
	const struct bench_contender contenders[] = {
		{"engine", inside_run, &inside, call_macs(&call), BENCH_OWN},
		{"peak of vpdpwssd", probe_peak_16_run, NULL, PROBE_MACS_16, BENCH_OWN},
	};
	bench_measure(cases->bench, contenders, 2, &m);
	bench_compare(cases->bench, row->name, &m, 0, 1, "GMAC/s", 1e-9, row->goals.of[cases->isa]);
	inside_drop(&inside);
}

/* ---- shapes that are harder than a ---- */

static const struct {
	const char *name, *call;
} shape_rows[] = {
	{"fx8 conv 3x3 stride 2 56x56 64->128, engine",
	 "conv2d in=fx8/7[1,64,56,56] weights=fx8/7[64,128,3,3] bias=fx8/7[1,128,1,1] out=fx8/3[1,128,28,28] "
	 "stride=2,2 padding=1,0,1,0"},
	{"fx8 first layer 3x3 stride 2 224x224 3->32, engine",
	 "conv2d in=fx8/7[1,3,224,224] weights=fx8/7[3,32,3,3] bias=fx8/7[1,32,1,1] out=fx8/3[1,32,112,112] "
	 "stride=2,2 padding=1,0,1,0"},
	{"fx8 first layer 7x7 stride 2 224x224 3->64, engine",
	 "conv2d in=fx8/7[1,3,224,224] weights=fx8/7[3,64,7,7] bias=fx8/7[1,64,1,1] out=fx8/3[1,64,112,112] "
	 "stride=2,2 padding=3,2,3,2"},
	{"fx8 conv 5x5 28x28 64->64, engine",
	 "conv2d in=fx8/7[1,64,28,28] weights=fx8/7[64,64,5,5] bias=fx8/7[1,64,1,1] out=fx8/3[1,64,28,28] "
	 "padding=2,2,2,2"},
	{"fx8 conv 1x1 56x56 64->8 (few outputs), engine",
	 "conv2d in=fx8/7[1,64,56,56] weights=fx8/7[64,8,1,1] bias=fx8/7[1,8,1,1] out=fx8/3[1,8,56,56]"},
	{"fx8 group 32 3x3 56x56 128->128, engine",
	 "group_conv2d in=fx8/7[1,128,56,56] weights=fx8/7[4,128,3,3] bias=fx8/7[1,128,1,1] "
	 "out=fx8/3[1,128,56,56] groups=32 padding=1,1,1,1"},
	{"fx8 transposed 4x4 stride 2 28x28 64->32, engine",
	 "transpose_conv2d in=fx8/7[1,64,28,28] weights=fx8/7[64,32,4,4] bias=fx8/7[1,32,1,1] "
	 "out=fx8/3[1,32,56,56] stride=2,2 padding=1,1,1,1"},
	{"fx8 transposed 2x2 stride 2 28x28 128->64, engine",
	 "transpose_conv2d in=fx8/7[1,128,28,28] weights=fx8/7[128,64,2,2] bias=fx8/7[1,64,1,1] "
	 "out=fx8/3[1,64,56,56] stride=2,2"},
	{"fx8 fully connected 32768->256, batch 192 (long sums), engine",
	 "fully_connected in=fx8/7[192,32768,1,1]:compact weights=fx8/7[32768,256,1,1]:compact "
	 "out=fx8/3[192,256,1,1]:compact"},
};

static void run_shape(struct cases *cases, const char *name, const char *text)
{
	struct call call, a;
	struct inside_op inside, inside_a;
	struct bench_measured m;
	call_parse(&call, text);
	call_parse(&a, peer_rows[0].call);
	inside_place(&cases->inside, &call, NULL, &inside);
	inside_place(&cases->inside, &a, NULL, &inside_a);
	struct onednn *onednn = cases->has_onednn ? onednn_new(&call) : NULL;
	double macs = call_macs(&call);
	const struct bench_contender contenders[] = {
		{"engine", inside_run, &inside, macs, BENCH_OWN},
		{"conv a, engine", inside_run, &inside_a, call_macs(&a), BENCH_OWN},
		{"oneDNN incl. reorders", onednn_full, onednn, macs, BENCH_OWN},
	};
	bench_measure(cases->bench, contenders, onednn ? 3 : 2, &m);
	bench_compare(cases->bench, name, &m, 0, 1, "GMAC/s", 1e-9, cases->isa == CASES_AVX2 ? 0 : 0.5);
	if (onednn)
		bench_compare(cases->bench, name, &m, 0, 2, "GMAC/s", 1e-9, cases->isa == CASES_AVX2 ? 0.5 : 0);
	onednn_free(onednn);
	inside_drop(&inside);
	inside_drop(&inside_a);
}

void cases_weights(struct cases *cases)
{
	for (unsigned i = 0; i < sizeof(peer_rows) / sizeof(peer_rows[0]); i++)
		if (bench_wanted(cases->bench, peer_rows[i].name))
			run_peers(cases, &peer_rows[i]);
	run_lines(cases, 1);
	run_lines(cases, 16);
	for (unsigned i = 0; i < sizeof(peak_rows) / sizeof(peak_rows[0]); i++)
		if (cases->isa != CASES_AVX2 && bench_wanted(cases->bench, peak_rows[i].name))
			run_peak(cases, &peak_rows[i]);
	for (unsigned i = 0; i < sizeof(shape_rows) / sizeof(shape_rows[0]); i++)
		if (bench_wanted(cases->bench, shape_rows[i].name))
			run_shape(cases, shape_rows[i].name, shape_rows[i].call);
}
