/* What an allocation costs, in the arena alone and with all that the device does for one, beside an own TLSF
 * (alloc_tlsf.h) that replays the same trace in the same rounds: bench_alloc [options]; ALLOC_SEED in the
 * environment makes other traces.
 *
 * The trace: sizes log-uniform from 128 bytes to 256 KiB in multiples of 128, an arena of 16 MiB about 70 % full,
 * 500,000 pairs of alloc and free. Processor time of each operation, the median of rounds in which all take turns.
 * Behind gaps: the same trace where as many free blocks of 128 to 512 bytes lie below. Left: what is free at
 * the first refusal, after a trace and then nothing but allocations, mean of several seeds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "daemon/device/arena/arena.h"
#include "daemon/device/device.h"
#include "tests/bench/alloc_tlsf.h"
#include "tests/bench/support/bench.h"
#include "tests/bench/support/peer.h"

enum {
	UNIT = 128,
	SLOTS_MAX = 1 << 17,
	GAPS_FEW = 100,
	GAPS_MANY = 100000,
	N_NPUS = 4,
};

static const uint64_t trace_bytes = 16 << 20, below_bytes = 48 << 20;

struct sizes {
	unsigned n_ops, n_seeds;
	uint64_t seed;
};

/* Where `bytes` is 0, the slot is freed. */
struct op {
	uint32_t slot, bytes;
};

struct trace {
	struct op *ops;
	unsigned n, n_slots;
};

static void *take(size_t n, size_t bytes)
{
	void *memory = calloc(n, bytes);
	if (!memory)
		peer_die("no memory");
	return memory;
}

static double cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- traces ---- */

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t random_state(uint64_t seed)
{
	uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	for (int i = 0; i < 16; i++)
		next_random(&state);
	return state;
}

static uint32_t random_size(uint64_t *state, uint32_t grain)
{
	double u = (double)(next_random(state) >> 11) / 9007199254740992.0;
	return ((uint32_t)(UNIT * pow(2048, u)) + grain - 1) / grain * grain;
}

/* Fills up to 70 %, and from 63 % on allocates and frees at random. Sizes are multiples of `grain`. */
static struct trace make_trace(unsigned n, uint64_t seed, uint32_t grain)
{
	struct trace trace = {.ops = take(n, sizeof(*trace.ops)), .n = n};
	uint32_t *live = take(SLOTS_MAX, sizeof(*live)), *unused = take(SLOTS_MAX, sizeof(*unused));
	uint32_t *bytes = take(SLOTS_MAX, sizeof(*bytes)), n_live = 0, n_unused = 0;
	uint64_t state = random_state(seed), used = 0, most = trace_bytes * 7 / 10;
	for (unsigned i = 0; i < n; i++) {
		uint32_t size = random_size(&state, grain);
		bool more = used < most / 10 * 9 || next_random(&state) >> 20 & 1;
		if (!n_live || (used + size <= most && more)) {
			uint32_t slot = n_unused ? unused[--n_unused] : trace.n_slots++;
			if (slot == SLOTS_MAX)
				peer_die("a trace of too many slots");
			trace.ops[i] = (struct op){slot, bytes[slot] = size};
			live[n_live++] = slot;
			used += size;
		} else {
			uint32_t k = (uint32_t)(next_random(&state) >> 16) % n_live, slot = live[k];
			live[k] = live[--n_live];
			unused[n_unused++] = slot;
			used -= bytes[slot];
			trace.ops[i] = (struct op){slot, 0};
		}
	}
	free(live);
	free(unused);
	free(bytes);
	return trace;
}

/* ---- allocators ---- */

struct held {
	uint64_t at; /* an offset, or a tensor */
	uint32_t bytes;
};

/* One allocator; `state` is what open() returned. alloc() is false where there is no room. */
struct allocator {
	const char *name;
	void *(*open)(uint64_t bytes);
	void (*close)(void *state);
	bool (*alloc)(void *state, uint32_t bytes, struct held *held);
	void (*release)(void *state, const struct held *held);
};

static void *peer_open(uint64_t bytes)
{
	struct tlsf *tlsf = take(1, sizeof(*tlsf));
	if (!tlsf_open(tlsf, bytes))
		peer_die("no memory");
	return tlsf;
}

static void peer_close(void *state)
{
	tlsf_close(state);
	free(state);
}

static inline bool peer_alloc(void *state, uint32_t bytes, struct held *held)
{
	held->bytes = bytes;
	return tlsf_alloc(state, bytes, &held->at);
}

static inline void peer_release(void *state, const struct held *held)
{
	tlsf_release(state, held->at);
}

static void *bench_arena_open(uint64_t bytes)
{
	struct arena *arena;
	if (arena_new(&heap_libc, bytes, &arena))
		peer_die("no memory");
	return arena;
}

static void bench_arena_close(void *state)
{
	const char *wrong = arena_check(state);
	if (wrong)
		peer_die(wrong);
	arena_free(state);
}

static inline bool bench_arena_alloc(void *state, uint32_t bytes, struct held *held)
{
	held->bytes = bytes;
	return arena_alloc(state, bytes, bytes % UNIT ? ARENA_QUANTUM : UNIT, held, &held->at) == 0;
}

static inline void bench_arena_release(void *state, const struct held *held)
{
	arena_release(state, held->at, held->bytes);
}

struct bench_device {
	struct device *device;
	void *memory;
	uint64_t bytes;
};

static void *bench_device_open(uint64_t bytes)
{
	struct bench_device *bench = take(1, sizeof(*bench));
	struct device_options options = {.geometry = {N_NPUS, (int64_t)bytes, 16, UNIT}};
	bench->bytes = device_memory_bytes(&options.geometry);
	bench->memory = mmap(NULL, bench->bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bench->memory == MAP_FAILED || device_new(&options, &heap_libc, bench->memory, &bench->device))
		peer_die("no memory for a device");
	return bench;
}

static void bench_device_close(void *state)
{
	struct bench_device *bench = state;
	device_free(bench->device);
	munmap(bench->memory, bench->bytes);
	free(bench);
}

/* One channel on each NPU. */
static inline bool bench_device_alloc(void *state, uint32_t bytes, struct held *held)
{
	struct bench_device *bench = state;
	struct error_context context = {.error = NULL};
	struct device_request request = {.reuse = NPUMEM_NEVER};
	struct tensor *tensor;
	npumem_spec_init(&request.spec);
	request.spec.dtype = NPUMEM_INT8;
	request.spec.layout = bytes % UNIT ? NPUMEM_COMPACT : NPUMEM_ALIGNED;
	request.spec.shape = (struct npumem_dims){1, N_NPUS, 1, bytes};
	held->bytes = bytes;
	if (device_alloc(bench->device, &request, 1, &tensor, &context))
		return false;
	held->at = (uintptr_t)tensor;
	return true;
}

static inline void bench_device_release(void *state, const struct held *held)
{
	struct bench_device *bench = state;
	device_release(bench->device, (struct tensor *)(uintptr_t)held->at, NULL, NULL);
}

enum { PEER, ARENA, DEVICE, N_ALLOCATORS };

static const struct allocator peer = {"TLSF", peer_open, peer_close, peer_alloc, peer_release};
static const struct allocator arena = {"arena", bench_arena_open, bench_arena_close, bench_arena_alloc,
				       bench_arena_release};
static const struct allocator whole = {"device", bench_device_open, bench_device_close, bench_device_alloc,
				       bench_device_release};

/* ---- measuring ---- */

/* Inlined for each allocator, so that a call costs none of them more than it must. */
static inline __attribute__((always_inline)) unsigned replay(const struct allocator *allocator, void *state,
							     const struct trace *trace, struct held *held)
{
	unsigned n_refused = 0;
	for (unsigned i = 0; i < trace->n; i++) {
		struct held *slot = &held[trace->ops[i].slot];
		if (!trace->ops[i].bytes) {
			if (slot->bytes)
				allocator->release(state, slot);
			slot->bytes = 0;
		} else if (!allocator->alloc(state, trace->ops[i].bytes, slot)) {
			slot->bytes = 0;
			n_refused++;
		}
	}
	return n_refused;
}

static unsigned replay_with(unsigned which, void *state, const struct trace *trace, struct held *held)
{
	switch (which) {
	case PEER:
		return replay(&peer, state, trace, held);
	case ARENA:
		return replay(&arena, state, trace, held);
	default:
		return replay(&whole, state, trace, held);
	}
}

static const struct allocator *const allocators[N_ALLOCATORS] = {&peer, &arena, &whole};

static struct held take_or_die(const struct allocator *allocator, void *state, uint32_t bytes)
{
	struct held held;
	if (!allocator->alloc(state, bytes, &held))
		peer_die("no room to begin with");
	return held;
}

/* `n` free blocks below, each before one that is taken, freed in no order; the rest of what is below is taken. */
static void make_gaps(const struct allocator *allocator, void *state, unsigned n, uint64_t seed)
{
	struct held *gaps = take(n, sizeof(*gaps));
	uint64_t random = random_state(seed), used = 0;
	for (unsigned i = 0; i < n; i++) {
		gaps[i] = take_or_die(allocator, state, UNIT * (1 + (uint32_t)(next_random(&random) >> 16) % 4));
		take_or_die(allocator, state, UNIT);
		used += gaps[i].bytes + UNIT;
	}
	if (used > below_bytes)
		peer_die("too many gaps");
	for (; used < below_bytes; used += UNIT * 1024)
		take_or_die(allocator, state, UNIT * 1024);
	for (unsigned i = n; i-- > 0;) {
		unsigned k = (unsigned)(next_random(&random) >> 16) % (i + 1);
		struct held held = gaps[k];
		gaps[k] = gaps[i];
		allocator->release(state, &held);
	}
	free(gaps);
}

/* Nanoseconds of an operation, once. */
static double time_once(unsigned which, const struct trace *trace, unsigned n_gaps, const struct sizes *sizes)
{
	const struct allocator *allocator = allocators[which];
	void *state = allocator->open(trace_bytes + (n_gaps ? below_bytes : 0));
	struct held *held = take(trace->n_slots, sizeof(*held));
	if (n_gaps)
		make_gaps(allocator, state, n_gaps, sizes->seed);
	double from = cpu_ns();
	unsigned n_refused = replay_with(which, state, trace, held);
	double ns = (cpu_ns() - from) / trace->n;
	if (n_refused)
		fprintf(stderr, "bench_alloc: %s refused %u of %u\n", allocator->name, n_refused, trace->n);
	allocator->close(state);
	free(held);
	return ns;
}

/* How full it is when, after a trace, allocations come until one is refused. */
static double fill(unsigned which, uint64_t seed, uint32_t grain)
{
	struct trace trace = make_trace(100000, seed, grain);
	struct held *held = take(trace.n_slots, sizeof(*held)), last;
	void *state = allocators[which]->open(trace_bytes);
	uint64_t random = random_state(seed + 77), used = 0;
	replay_with(which, state, &trace, held);
	for (unsigned i = 0; i < trace.n_slots; i++)
		used += held[i].bytes;
	while (allocators[which]->alloc(state, random_size(&random, grain), &last))
		used += last.bytes;
	allocators[which]->close(state);
	free(held);
	free(trace.ops);
	return (double)used / (double)trace_bytes;
}

/* ---- cases ---- */

enum { TRACE, MIXED, FEW, MANY, N_KINDS };

static const struct {
	uint32_t grain;
	unsigned n_gaps;
} kinds[N_KINDS] = {{UNIT, 0}, {ARENA_QUANTUM, 0}, {UNIT, GAPS_FEW}, {UNIT, GAPS_MANY}};

static double ns[N_KINDS][N_ALLOCATORS][BENCH_ROUNDS_MAX];

static void measure_times(const struct bench *bench, const struct sizes *sizes)
{
	struct trace traces[N_KINDS];
	for (unsigned k = 0; k < N_KINDS; k++)
		traces[k] = make_trace(sizes->n_ops, sizes->seed, kinds[k].grain);
	for (unsigned round = 0; round < bench->rounds; round++)
		for (unsigned k = 0; k < N_KINDS; k++)
			for (unsigned which = 0; which < N_ALLOCATORS; which++)
				ns[k][which][round] = time_once(which, &traces[k], kinds[k].n_gaps, sizes);
	for (unsigned k = 0; k < N_KINDS; k++)
		free(traces[k].ops);
}

/* Allocator i in case k beside j in case l; `goal`: the most of the ratio, or 0. */
static void tell_time(const struct bench *bench, const char *name, unsigned k, unsigned i, const char *peer_name,
		      unsigned l, unsigned j, double goal)
{
	double ratios[BENCH_ROUNDS_MAX];
	for (unsigned round = 0; round < bench->rounds; round++)
		ratios[round] = ns[k][i][round] / ns[l][j][round];
	const struct bench_row row = {.name = name,
				      .value = bench_median(ns[k][i], bench->rounds),
				      .unit = "ns/op",
				      .peer = peer_name,
				      .peer_value = bench_median(ns[l][j], bench->rounds),
				      .ratio = bench_median(ratios, bench->rounds),
				      .kind = goal > 0 ? BENCH_RATIO_AT_MOST : BENCH_NO_GOAL,
				      .goal = goal};
	bench_tell(bench, &row);
}

static double left(unsigned which, const struct sizes *sizes)
{
	double sum = 0;
	for (unsigned seed = 1; seed <= sizes->n_seeds; seed++)
		sum += 1 - fill(which, sizes->seed + seed, UNIT);
	return 100 * sum / sizes->n_seeds;
}

static void tell_left(const struct bench *bench, const struct sizes *sizes, const char *name, unsigned which)
{
	const struct bench_row row = {.name = name,
				      .value = left(which, sizes),
				      .unit = "%",
				      .peer = "TLSF",
				      .peer_value = left(PEER, sizes),
				      .kind = BENCH_VALUE_AT_MOST,
				      .goal = 2.5};
	bench_tell(bench, &row);
}

int main(int argc, char **argv)
{
	struct bench bench = {.name = "alloc", .rounds = 9};
	bench_options(&bench, argc, argv);
	struct sizes sizes = {.n_ops = 1000000, .n_seeds = 20, .seed = 1};
	if (getenv("ALLOC_SEED"))
		sizes.seed = strtoull(getenv("ALLOC_SEED"), NULL, 0);
	if (bench.quick) {
		bench.rounds = 3;
		sizes.n_ops = 100000;
		sizes.n_seeds = 3;
	}
	measure_times(&bench, &sizes);
	tell_time(&bench, "arena: alloc or free", TRACE, ARENA, "TLSF", TRACE, PEER, 1);
	tell_time(&bench, "arena, sizes in multiples of 4", MIXED, ARENA, "TLSF", MIXED, PEER, 0);
	tell_time(&bench, "arena beside 100 free blocks", FEW, ARENA, "TLSF", FEW, PEER, 1);
	tell_time(&bench, "arena beside 100,000 free blocks", MANY, ARENA, "TLSF", MANY, PEER, 1);
	tell_time(&bench, "arena beside 100,000 free blocks and 100", MANY, ARENA, "arena, 100", FEW, ARENA, 1.5);
	tell_time(&bench, "TLSF beside 100,000 free blocks and 100", MANY, PEER, "TLSF, 100", FEW, PEER, 0);
	tell_time(&bench, "device: alloc or free of a tensor", TRACE, DEVICE, "TLSF", TRACE, PEER, 0);
	tell_time(&bench, "device, sizes in multiples of 4", MIXED, DEVICE, "TLSF", MIXED, PEER, 0);
	tell_time(&bench, "device beside 100,000 free blocks and 100", MANY, DEVICE, "device, 100", FEW, DEVICE,
		  1.5);
	tell_left(&bench, &sizes, "arena: free at the first refusal, after churn", ARENA);
	tell_left(&bench, &sizes, "device: free at the first refusal, after churn", DEVICE);
	bench_end(&bench);
	return 0;
}
