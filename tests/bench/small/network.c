/* A network of ten fx8 layers in one submit, beside the same kernels one by one in this process, and beside
 * oneDNN, which is given and gives back N,C,H,W at each layer. */
#include "tests/bench/small/lists.h"
#include "tests/bench/support/onednn.h"

enum { LAYERS = 10 };

static const char *const layers[LAYERS] = {
	"conv2d in=fx8/7[1,3,112,112] weights=fx8/7[3,32,3,3] bias=fx8/7[1,32,1,1] out=fx8/3[1,32,56,56] "
	"stride=2,2 padding=1,0,1,0",
	"depthwise_conv2d in=fx8/3[1,32,56,56] weights=fx8/7[1,32,3,3] bias=fx8/7[1,32,1,1] out=fx8/3[1,32,56,56] "
	"padding=1,1,1,1",
	"conv2d in=fx8/3[1,32,56,56] weights=fx8/7[32,64,1,1] bias=fx8/7[1,64,1,1] out=fx8/2[1,64,56,56]",
	"depthwise_conv2d in=fx8/2[1,64,56,56] weights=fx8/7[1,64,3,3] bias=fx8/7[1,64,1,1] out=fx8/2[1,64,28,28] "
	"stride=2,2 padding=1,0,1,0",
	"conv2d in=fx8/2[1,64,28,28] weights=fx8/7[64,128,1,1] bias=fx8/7[1,128,1,1] out=fx8/1[1,128,28,28]",
	"conv2d in=fx8/1[1,128,28,28] weights=fx8/7[128,128,3,3] bias=fx8/7[1,128,1,1] out=fx8/0[1,128,28,28] "
	"padding=1,1,1,1",
	"conv2d in=fx8/0[1,128,28,28] weights=fx8/7[128,256,3,3] bias=fx8/7[1,256,1,1] out=fx8/0[1,256,14,14] "
	"stride=2,2 padding=1,0,1,0",
	"conv2d in=fx8/0[1,256,14,14] weights=fx8/7[256,256,1,1] bias=fx8/7[1,256,1,1] out=fx8/0[1,256,14,14]",
	"conv2d in=fx8/0[1,256,14,14] weights=fx8/7[256,256,3,3]:compact bias=fx8/7[1,256,1,1] "
	"out=fx8/0[1,256,14,14] padding=1,1,1,1",
	"conv2d in=fx8/0[1,256,14,14] weights=fx8/7[256,256,3,3]:compact bias=fx8/7[1,256,1,1] "
	"out=fx8/0[1,256,7,7] stride=2,2 padding=1,0,1,0",
};

struct peer_network {
	struct onednn *layers[LAYERS];
};

static void run_peer(void *context)
{
	struct peer_network *network = context;
	for (unsigned i = 0; i < LAYERS; i++)
		onednn_full(network->layers[i]);
}

/* False where any layer is missing. */
static bool peer_init(const struct bench *bench, const struct list *list, struct peer_network *network)
{
	bool whole = onednn_open(bench->isa);
	*network = (struct peer_network){{NULL}};
	for (unsigned i = 0; whole && i < LAYERS; i++) {
		network->layers[i] = onednn_new(&list->calls[i]);
		whole = network->layers[i] != NULL;
	}
	if (!whole)
		bench_missing("oneDNN", "libdnnl-dev, tests/bench/packages.sh");
	return whole;
}

void lists_network(const struct bench *bench, struct inside *inside, struct remote *remote)
{
	static const char name[] = "a network of 10 fx8 layers in one submit";
	static struct list list;
	struct peer_network peer;
	struct bench_measured m;
	double macs = 0;
	if (!bench_wanted(bench, name))
		return;
	list_init(&list, inside, remote, layers, LAYERS, LAYERS, true);
	bool has_peer = peer_init(bench, &list, &peer);
	for (unsigned i = 0; i < LAYERS; i++)
		macs += call_macs(&list.calls[i]);
	const struct bench_contender contenders[] = {
		{"submit", list_submit, &list, macs, BENCH_CLOCK},
		{"its kernels in this process", list_inside, &list, macs, BENCH_OWN},
		{"oneDNN, reorders between layers", run_peer, &peer, macs, BENCH_OWN},
	};
	bench_measure(bench, contenders, has_peer ? 3 : 2, &m);
	bench_compare(bench, name, &m, 0, 1, "GMAC/s", 1e-9, 0.95);
	if (has_peer)
		bench_compare(bench, name, &m, 0, 2, "GMAC/s", 1e-9, 1.2);
	for (unsigned i = 0; i < LAYERS; i++)
		onednn_free(peer.layers[i]);
	list_deinit(&list);
}
