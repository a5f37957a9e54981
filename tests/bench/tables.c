/* What the device's tables cost the thread that asks them, without a daemon: milliseconds of one call, the median
 * of several. Beside each stands its ratio to a plain baseline of the same run, clearing 512 KiB of host memory.
 *
 * Devices are full of small tensors, which is what is worst; `--large` adds one of 2^30 bytes per NPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "daemon/device/internal.h"
#include "daemon/device/reuse/reuse_search.h"
#include "daemon/device/tensors/meetings.h"

enum { ROUNDS = 9, MOST = 100000, KIB = 1024 };

static double baseline_ms;
static struct device *device;
static struct tensor *tensors[2 * MOST + 2];
static unsigned n_tensors;
static void *memory;
static size_t memory_bytes;

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *times, unsigned n)
{
	qsort(times, n, sizeof(*times), compare);
	return times[n / 2];
}

static void tell(const char *what, double ms)
{
	printf("%-66s %10.4f ms %10.2f\n", what, ms, ms / baseline_ms);
	fflush(stdout);
}

static void measure_baseline(void)
{
	static uint8_t bytes[512 * KIB];
	double times[ROUNDS];
	for (unsigned i = 0; i < ROUNDS; i++) {
		double from = now_ms();
		memset(bytes, (int)i, sizeof(bytes));
		__asm__ volatile("" : : "r"(bytes) : "memory");
		times[i] = now_ms() - from;
	}
	baseline_ms = median(times, ROUNDS);
	tell("baseline: 512 KiB cleared", baseline_ms);
}

/* ---- devices ---- */

static void open_device(int64_t n_npus, int64_t npu_bytes)
{
	struct device_options options = {.geometry = {n_npus, npu_bytes, 16, 128}, .allow_unchecked = true};
	memory_bytes = (size_t)device_memory_bytes(&options.geometry);
	memory = mmap(NULL, memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		      0);
	if (memory == MAP_FAILED || device_new(&options, &heap_libc, memory, &device)) {
		perror("no memory for a device");
		exit(1);
	}
	n_tensors = 0;
}

static void close_device(void)
{
	device_free(device);
	munmap(memory, memory_bytes);
}

/* `c` channels of `bytes` bytes from NPU `start` on, only for DMA. */
static struct device_request request(int64_t start, int64_t c, int64_t bytes, int reuse)
{
	struct device_request request = {.reuse = reuse, .dma_only = true};
	npumem_spec_init(&request.spec);
	request.spec.dtype = NPUMEM_INT8;
	request.spec.layout = NPUMEM_COMPACT;
	request.spec.shape = (struct npumem_dims){1, c, 1, bytes};
	request.spec.start_npu = start;
	return request;
}

static int try_place(const struct device_request *wanted, struct npumem_error *error)
{
	struct error_context context = {.error = error};
	int status = device_alloc(device, wanted, 1, &tensors[n_tensors], &context);
	n_tensors += !status;
	return status;
}

static void place(const struct device_request *wanted)
{
	struct npumem_error error;
	npumem_error_clear(&error);
	if (try_place(wanted, &error)) {
		fprintf(stderr, "bench_tables: %s\n", error.message);
		exit(1);
	}
}

static void release_last(void)
{
	device_release(device, tensors[--n_tensors], NULL, NULL);
}

/* The device full of tensors of this many channels and bytes, whose other channels' NPUs are empty. */
static void fill(int64_t c, int64_t bytes, unsigned n)
{
	struct device_request host = request(0, c, bytes, NPUMEM_NEVER);
	for (unsigned i = 0; i < n; i++)
		place(&host);
	/* What is left, too. */
	host.spec.shape.w = (int64_t)arena_largest_free(device->arena);
	if (host.spec.shape.w)
		place(&host);
}

/* A guest over each of the hosts that fill() made. */
static void visit_all(int64_t start, int64_t c, int64_t bytes, unsigned n)
{
	struct device_request guest = request(start, c, bytes, NPUMEM_IF_SAFE);
	for (unsigned i = 0; i < n; i++) {
		guest.spec.address = start * device_options(device)->geometry.npu_bytes + i * bytes;
		place(&guest);
	}
}

/* ---- figures ---- */

/* All tensors of the device in another one over the same memory. */
static void tell_restore(const char *of)
{
	static struct device_saved saved[2 * MOST + 2];
	struct device *old = device;
	struct error_context context = {.error = NULL};
	struct tensor *tensor = NULL;
	char what[128];
	unsigned n = 0;
	while ((tensor = device_next(old, tensor)))
		device_describe(old, tensor, &saved[n++]);
	double from = now_ms();
	int status = device_new(device_options(old), &heap_libc, memory, &device);
	if (!status)
		status = device_restore_begin(device, old->n_slots, false);
	for (unsigned pass = 0; pass < 3; pass++)
		for (unsigned i = 0; i < n && !status; i++)
			if (device_saved_pass(&saved[i]) == pass)
				status = device_restore(device, &saved[i], &tensor, &context);
	device_restore_end(device, false);
	double ms = now_ms() - from;
	if (status) {
		fprintf(stderr, "bench_tables: not restored, %d\n", status);
		exit(1);
	}
	device_free(device);
	device = old;
	snprintf(what, sizeof(what), "restore of %u %s", n, of);
	tell(what, ms);
}

/* As many hosts as views of them, every second of another shape. */
static void measure_restore(unsigned n)
{
	const struct npumem_dims shape = {1, 32, 4, 4};
	struct error_context context = {.error = NULL};
	struct device_slice slice = {{0, 1, 0, 0}, {1, 5, 1, 9}};
	struct tensor *view;
	open_device(64, INT64_C(16) * n);
	fill(32, 16, n);
	tell_restore("tensors");
	for (unsigned i = 0; i < n; i++)
		if (i % 2 ? device_view_slice(device, tensors[i], &slice, &view, &context)
			  : device_view_reshape(device, tensors[i], &shape, &view, &context))
			exit(1);
	tell_restore("tensors, of which half are views");
	close_device();
}

static void measure_guests(unsigned n)
{
	struct device_counts counts;
	struct device_state state;
	double times[4][ROUNDS];
	char what[128];
	int64_t bytes = 512 * KIB / n;
	open_device(64, 512 * KIB);
	fill(32, bytes, n);
	visit_all(32, 32, bytes, n);
	double from = now_ms();
	device_stat(device, &counts);
	snprintf(what, sizeof(what), "stat, %u guests over %u hosts, for the first time", n, n);
	tell(what, now_ms() - from);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct device_request guest = request(32, 32, bytes, NPUMEM_IF_SAFE);
		from = now_ms();
		release_last();
		times[0][i] = now_ms() - from;
		guest.spec.address = 32 * 512 * KIB + (n - 1) * bytes;
		from = now_ms();
		place(&guest);
		times[1][i] = now_ms() - from;
		from = now_ms();
		device_stat(device, &counts);
		times[2][i] = now_ms() - from;
		from = now_ms();
		device_state(device, tensors[n_tensors - 1], &state);
		times[3][i] = now_ms() - from;
	}
	static const char *const names[] = {"free of a guest", "alloc of a guest", "stat after one change",
					    "state of a guest"};
	for (unsigned k = 0; k < 4; k++) {
		snprintf(what, sizeof(what), "%s, %u guests over %u hosts", names[k], n, n);
		tell(what, median(times[k], ROUNDS));
	}
	tell_restore("tensors, of which half are guests");
	close_device();
}

/* One tensor takes all of the device, and as many lie in its empty blocks as may. */
static void measure_crowd(unsigned n)
{
	struct device_counts counts;
	struct device_state state;
	double from;
	char what[128];
	open_device(64, 512 * KIB);
	fill(32, 512 * KIB, 1);
	visit_all(32, 32, 512 * KIB / n, n);
	from = now_ms();
	device_state(device, tensors[0], &state);
	snprintf(what, sizeof(what), "state of one host under %u guests", n);
	tell(what, now_ms() - from);
	from = now_ms();
	device_stat(device, &counts);
	snprintf(what, sizeof(what), "stat, one host under %u guests", n);
	tell(what, now_ms() - from);
	from = now_ms();
	device_release(device, tensors[0], NULL, NULL);
	snprintf(what, sizeof(what), "free of one host under %u guests", n);
	tell(what, now_ms() - from);
	struct device_request host = request(0, 32, 512 * KIB, NPUMEM_IF_SAFE);
	host.spec.address = 0;
	from = now_ms();
	place(&host);
	snprintf(what, sizeof(what), "alloc of one over %u guests", n);
	tell(what, now_ms() - from);
	from = now_ms();
	device_compact(device, true, NULL, NULL);
	snprintf(what, sizeof(what), "compact --dry-run of these");
	tell(what, now_ms() - from);
	close_device();
}

/* Strided tensors of two elements each, one within the other: all lie over all, and share no byte. */
static void measure_nested(unsigned n)
{
	struct device_state state;
	double times[3][ROUNDS];
	char what[128];
	open_device(64, 512 * KIB);
	struct device_request nested = request(0, 1, 2, NPUMEM_UNCHECKED);
	nested.spec.layout = NPUMEM_STRIDED;
	for (unsigned i = 0; i < n; i++) {
		nested.spec.address = i;
		nested.spec.stride = (struct npumem_dims){1, 1, 1, 512 * KIB - 8 - 2 * i};
		place(&nested);
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		double from = now_ms();
		release_last();
		times[0][i] = now_ms() - from;
		from = now_ms();
		place(&nested);
		times[1][i] = now_ms() - from;
		from = now_ms();
		device_state(device, tensors[n / 2], &state);
		times[2][i] = now_ms() - from;
	}
	static const char *const names[] = {"free", "alloc", "state"};
	for (unsigned k = 0; k < 3; k++) {
		snprintf(what, sizeof(what), "%s of one of %u nested strided tensors", names[k], n);
		tell(what, median(times[k], ROUNDS));
	}
	tell_restore("nested strided tensors");
	close_device();
}

static double measure_search(const struct device_request *wanted, int *status)
{
	struct npumem_place place;
	struct reuse_wish wish = {.reuse = wanted->reuse, .dma_only = true};
	double times[ROUNDS];
	int64_t offset;
	if (npumem_place_resolve(&device_options(device)->geometry, &wanted->spec, &place, NULL))
		return 0;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct error_context quiet = {.error = NULL};
		struct reuse_search search;
		int64_t steps = INT64_MAX;
		double from = now_ms();
		*status = reuse_search_begin(&search, device, &place, &wish, &quiet);
		if (!*status && reuse_search_step(&search, &steps, &offset) == REUSE_SEARCH_NONE)
			*status = NPUMEM_RESOURCE_EXHAUSTED;
		reuse_search_end(&search);
		times[i] = now_ms() - from;
	}
	return median(times, ROUNDS);
}

static void tell_search(const char *what, const struct device_request *wanted)
{
	char line[160];
	int status = 0;
	double ms = measure_search(wanted, &status);
	snprintf(line, sizeof(line), "%s: %s", what, status < 0 ? "no memory" : status ? "none" : "found");
	tell(line, ms);
}

static void measure_searches(unsigned n)
{
	int64_t bytes = 512 * KIB / n;
	char what[128];
	struct device_request wanted;
	open_device(64, 512 * KIB);
	fill(32, bytes, n);
	snprintf(what, sizeof(what), "search if-safe over %u hosts", n);
	wanted = request(32, 32, bytes, NPUMEM_IF_SAFE);
	tell_search(what, &wanted);
	wanted = request(32, 32, 300 * KIB, NPUMEM_IF_SAFE);
	snprintf(what, sizeof(what), "search if-safe over %u hosts, 300 KiB", n);
	tell_search(what, &wanted);
	wanted = request(31, 3, bytes, NPUMEM_IF_SAFE);
	snprintf(what, sizeof(what), "search if-safe over %u hosts, of which none has room", n);
	tell_search(what, &wanted);
	wanted = request(31, 200, 3 * bytes + 1, NPUMEM_IF_SAFE);
	wanted.spec.shape.n = 5;
	snprintf(what, sizeof(what), "search if-safe over %u hosts, larger", n);
	tell_search(what, &wanted);
	wanted = request(31, 3, bytes, NPUMEM_UNCHECKED);
	snprintf(what, sizeof(what), "search unchecked over %u hosts, of which none has room", n);
	tell_search(what, &wanted);
	wanted.spec.layout = NPUMEM_STRIDED;
	wanted.spec.stride = (struct npumem_dims){1, 1, 1, 3};
	snprintf(what, sizeof(what), "search unchecked over %u hosts, strided", n);
	tell_search(what, &wanted);
	close_device();
}

/* A device whose every second tensor was freed, and a request for twice the room. */
static void measure_refusals(unsigned n, int64_t npu_bytes)
{
	double times[ROUNDS];
	char what[128];
	int64_t bytes = npu_bytes / n / 4 * 4;
	open_device(64, npu_bytes);
	fill(32, bytes, n);
	for (unsigned dma_only = 0; dma_only < 2; dma_only++) {
		for (unsigned k = 0; k < n_tensors; k++)
			tensors[k]->dma_only = dma_only;
		for (unsigned fixed = 0; fixed < 2; fixed++) {
			struct device_request wanted = request(0, 64, 2 * bytes, NPUMEM_NEVER);
			wanted.spec.address = fixed ? 0 : NPUMEM_ANY;
			for (unsigned i = 0; i < ROUNDS; i++) {
				struct npumem_error error;
				npumem_error_clear(&error);
				double from = now_ms();
				if (!try_place(&wanted, &error))
					release_last();
				times[i] = now_ms() - from;
			}
			snprintf(what, sizeof(what), "refused %s, %u tensors, full%s", fixed ? "at 0" : "anywhere",
				 n, dma_only ? ", all dma_only" : "");
			tell(what, median(times, ROUNDS));
		}
	}
	close_device();
	open_device(64, npu_bytes);
	fill(32, bytes / 2, 2 * n);
	for (unsigned i = 0; i < 2 * n; i += 2)
		device_release(device, tensors[i], NULL, NULL);
	struct device_request wanted = request(0, 64, 2 * bytes, NPUMEM_NEVER);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct npumem_error error;
		npumem_error_clear(&error);
		double from = now_ms();
		if (!try_place(&wanted, &error))
			release_last();
		times[i] = now_ms() - from;
	}
	snprintf(what, sizeof(what), "refused anywhere, %u tensors and as many gaps, all dma_only", n);
	tell(what, median(times, ROUNDS));
	close_device();
}

static void measure_large(void)
{
	struct device_request wanted;
	open_device(4, INT64_C(1) << 30);
	fill(2, INT64_C(1) << 20, 1024);
	wanted = request(2, 2, 1 << 20, NPUMEM_IF_SAFE);
	tell_search("search if-safe in 2^30 bytes, 1 MiB", &wanted);
	wanted = request(1, 3, 1 << 20, NPUMEM_IF_SAFE);
	tell_search("search if-safe in 2^30 bytes, 1 MiB", &wanted);
	close_device();
}

int main(int argc, char **argv)
{
	static const unsigned sizes[] = {4096, 8192};
	measure_baseline();
	for (unsigned i = 0; i < 2; i++) {
		measure_searches(sizes[i]);
		measure_refusals(sizes[i], 512 * KIB);
	}
	measure_refusals(MOST, 1 << 23);
	for (unsigned i = 0; i < 2; i++)
		measure_guests(sizes[i]);
	measure_restore(10000);
	measure_restore(MOST);
	measure_crowd(MEETINGS_MAX);
	measure_nested(MEETINGS_MAX);
	if (argc > 1 && !strcmp(argv[1], "--large"))
		measure_large();
	return 0;
}
