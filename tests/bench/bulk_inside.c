/* Writing, reading, copying and filling tensors inside the device, without a daemon, beside memcpy of as many
 * bytes in the same run: GB/s of payload, and the ratio to memcpy's, by processor time, the least of interleaved
 * rounds.
 *
 * `moves` is the scatter or gather alone, `write` and the others are whole operations, marks and looks included.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "daemon/device/internal.h"
#include "daemon/device/operations/move.h"
#include "daemon/device/operations/op.h"

enum { ROUNDS = 15, NPUS = 64, NPU_BYTES = 512 * 1024, HOST_BYTES = 16 << 20 };

struct shape {
	const char *name;
	int dtype, mode;
	int64_t n, c, h, w;
};

static const struct shape shapes[] = {
	{"fp32 4x256x28x28", NPUMEM_FP32, 0, 4, 256, 28, 28},
	{"int8 1x64x56x56", NPUMEM_INT8, 0, 1, 64, 56, 56},
	{"int16 1x128x28x28", NPUMEM_INT16, 0, 1, 128, 28, 28},
	{"int8 1x3x224x224", NPUMEM_INT8, 0, 1, 3, 224, 224},
	{"int8 1x512x7x7", NPUMEM_INT8, 0, 1, 512, 7, 7},
	{"int8 64x512x7x7", NPUMEM_INT8, 0, 64, 512, 7, 7},
	{"int8 1x1000x1x1", NPUMEM_INT8, 0, 1, 1000, 1, 1},
	{"fp32 1x1024x1x1", NPUMEM_FP32, 0, 1, 1024, 1, 1},
	{"int8 64x1024x1x1", NPUMEM_INT8, 0, 64, 1024, 1, 1},
	{"int8 4x64x28x28 4n", NPUMEM_INT8, NPUMEM_MODE_4N, 4, 64, 28, 28},
	{"int8 4x1024x1x1 4n", NPUMEM_INT8, NPUMEM_MODE_4N, 4, 1024, 1, 1},
	{"int16 2x64x28x28 2n", NPUMEM_INT16, NPUMEM_MODE_2N, 2, 64, 28, 28},
	{"fp32 2x64x28x28 2ic", NPUMEM_FP32, NPUMEM_MODE_2IC, 2, 64, 28, 28},
	{"int8 1x64x4x4", NPUMEM_INT8, 0, 1, 64, 4, 4},
	{"int8 1x1x1x16", NPUMEM_INT8, 0, 1, 1, 1, 16},
};

enum { LAYOUTS = 4 };
static const char *const layout_names[] = {"aligned", "compact", "strided", "matrix"};

static struct device *device;
static uint8_t *host, *other;

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *map(size_t bytes)
{
	enum { HUGE_BYTES = 2 << 20 };
	uint8_t *memory = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		perror("no memory");
		exit(1);
	}
	memory += (HUGE_BYTES - (uintptr_t)memory % HUGE_BYTES) % HUGE_BYTES;
	if (getenv("HUGE_PAGES"))
		madvise(memory, bytes, MADV_HUGEPAGE);
	return memory;
}

static struct tensor *place(const struct shape *shape, int layout)
{
	struct device_request request = {.reuse = 0};
	struct npumem_error error = {.status = 0};
	struct error_context context = {.error = &error};
	struct tensor *tensor;
	npumem_spec_init(&request.spec);
	request.spec.dtype = shape->dtype;
	request.spec.mode = shape->mode;
	request.spec.shape = (struct npumem_dims){shape->n, shape->c, shape->h, shape->w};
	request.spec.layout = layout == 1 ? NPUMEM_COMPACT : layout == 2 ? NPUMEM_STRIDED : NPUMEM_ALIGNED;
	if (layout == 2) {
		struct npumem_dims stride = {.w = 2, .h = 2 * shape->w + 1};
		stride.c = stride.h * shape->h + 3;
		stride.n = stride.c * ((shape->c + NPUS - 1) / NPUS);
		request.spec.stride = stride;
	}
	if (layout == 3) {
		request.spec.layout = NPUMEM_MATRIX;
		request.spec.rows = shape->n;
		request.spec.cols = shape->c * shape->h * shape->w;
		request.spec.w = 0;
		request.spec.shape = (struct npumem_dims){0, 0, 0, 0};
	}
	if (device_alloc(device, &request, 1, &tensor, &context))
		return NULL;
	return tensor;
}

/* ---- what is measured ---- */

struct work {
	struct tensor *tensor, *source;
	int64_t bytes;
};

static void by_memcpy(const struct work *work)
{
	memcpy(other, host, (size_t)work->bytes);
	__asm__ volatile("" : : "r"(other) : "memory");
}

static void run(struct op *op)
{
	struct npumem_error error = {.status = 0};
	struct error_context context = {.error = &error};
	if (op_check(device, op, &context) || op_run(device, op, &context)) {
		fprintf(stderr, "%s\n", error.message);
		exit(1);
	}
	op_deinit(device, op);
}

static void by_scatter(const struct work *work)
{
	struct move_host from = move_dense(TENSOR_PLACE(work->tensor), host, 0);
	move_in(&device->local, TENSOR_PLACE(work->tensor), 0, tensor_elements(work->tensor), &from, true, NULL);
}

static void by_gather(const struct work *work)
{
	struct move_host to = move_dense(TENSOR_PLACE(work->tensor), other, 0);
	move_out(&device->local, TENSOR_PLACE(work->tensor), 0, tensor_elements(work->tensor), &to, NULL);
}

static void by_write(const struct work *work)
{
	struct op op = {.kind = OP_WRITE, .tensor = work->tensor, .count = -1};
	op.system = (struct op_system){.base = host, .bytes = HOST_BYTES};
	run(&op);
}

/* As the first one of a new tensor. */
static void by_first_write(const struct work *work)
{
	work->tensor->all_written = false;
	by_write(work);
}

static void by_read(const struct work *work)
{
	struct op op = {.kind = OP_READ, .tensor = work->tensor, .count = -1};
	op.system = (struct op_system){.base = other, .bytes = HOST_BYTES};
	run(&op);
}

static void by_fill(const struct work *work)
{
	struct op op = {.kind = OP_FILL, .tensor = work->tensor, .value = 3};
	run(&op);
}

static void by_copy(const struct work *work)
{
	struct op op = {.kind = OP_COPY, .tensor = work->tensor, .source = work->source};
	run(&op);
}

static const struct {
	const char *name;
	void (*work)(const struct work *work);
} ways[] = {{"memcpy", by_memcpy},     {"scatter", by_scatter}, {"gather", by_gather}, {"write", by_write},
	    {"first", by_first_write}, {"read", by_read},	{"fill", by_fill},     {"copy", by_copy}};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double time_of(const struct work *work, unsigned way)
{
	enum { ROUND_NS = 1000000, CALLS = 32 };
	double from = now_ns(), to;
	int64_t n = 0;
	do {
		/* Asking for the time takes long. */
		for (int i = 0; i < CALLS; i++)
			ways[way].work(work);
		n += CALLS;
		to = now_ns();
	} while (to - from < ROUND_NS);
	return (to - from) / (double)n;
}

static void measure(const struct shape *shape, int layout)
{
	struct work work = {place(shape, layout), place(shape, layout == 3 ? 3 : 0), 0};
	double times[WAYS][ROUNDS];
	if (!work.tensor || !work.source)
		goto out;
	work.bytes = tensor_elements(work.tensor) * npumem_dtype_bytes(shape->dtype);
	struct work first = {work.source, NULL, 0};
	by_write(&first);
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned way = 0; way < WAYS; way++)
			times[way][round] = time_of(&work, way);
	printf("%-20s %-8s %9lld B", shape->name, layout_names[layout], (long long)work.bytes);
	for (unsigned way = 0; way < WAYS; way++) {
		qsort(times[way], ROUNDS, sizeof(double), compare);
		double ns = times[way][0], memcpy_ns = times[0][0];
		if (way == 0)
			printf("  memcpy %9.0f ns %5.1f GB/s", ns, (double)work.bytes / ns);
		else
			printf("  %s %.3f", ways[way].name, memcpy_ns / ns);
		if (way && work.bytes < 100000)
			printf(" (%.0f ns)", ns);
	}
	printf("\n");
	fflush(stdout);
out:
	if (work.tensor)
		device_release(device, work.tensor, NULL, NULL);
	if (work.source)
		device_release(device, work.source, NULL, NULL);
}

int main(int argc, char **argv)
{
	struct device_options options = {.geometry = {NPUS, NPU_BYTES, 16, 128}};
	void *memory = map((size_t)device_memory_bytes(&options.geometry));
	host = map(HOST_BYTES);
	other = map(HOST_BYTES);
	memset(host, 1, HOST_BYTES);
	memset(other, 2, HOST_BYTES);
	if (device_new(&options, &heap_libc, memory, &device))
		return 1;
	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (int layout = 0; layout < LAYOUTS; layout++)
			if ((argc < 2 || strstr(shapes[i].name, argv[1])) &&
			    (argc < 3 || !strcmp(layout_names[layout], argv[2])))
				measure(&shapes[i], layout);
	device_free(device);
	return 0;
}
