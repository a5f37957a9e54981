/* Runs of every kernel against the clock: what op_cost calls short, so that the loop runs it, takes less than
 * NS_MAX of a processor. Where a run took longer it runs a few times more, and the best counts. Shapes are random,
 * or those of one of the kernel's longest runs so far with a few choices changed.
 *
 * NPUMEM_COSTS_RUNS: how many runs, NPUMEM_COSTS_SEED: from where on, NPUMEM_COSTS_KERNEL: of one kernel only,
 * NPUMEM_COSTS_TABLE: no limit, but the worst of each kernel. */
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "tests/fuzz/valid.h"
#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/rig.h"

enum {
	KERNELS_MAX = 128,
	RUNS = 24000,
	BYTES = 256,
	ROUNDS = 6,
	N_RIGS = 3,
	KEPT = 4, /* of a kernel's longest runs */
	NS_MAX = 600000,
	INLINE_COST = 200000,
	SHORT_NS = 20000
};

/* The choices of a run that was short by its cost. */
struct drawn {
	uint8_t bytes[BYTES];
	int64_t ns;
};

struct bench {
	struct rig rigs[N_RIGS];
	struct drawn longest[KERNELS_MAX][N_RIGS][KEPT];
	uint64_t random, seed;
	const char *only;
	double worst[KERNELS_MAX]; /* nanoseconds of one unit of the cost */
	int64_t longest_ns[KERNELS_MAX], n_short[KERNELS_MAX], n_runs[KERNELS_MAX];
	int64_t most_ns_cost[KERNELS_MAX];
};

void fuzz_fail(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	abort();
}

static int64_t cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void describe(const struct valid_run *run, char *text, size_t bytes)
{
	int used = snprintf(text, bytes, "%s", run->row->name);
	for (unsigned i = 0; i < run->n_tensors && (size_t)used < bytes; i++) {
		const struct valid_tensor *t = &run->tensors[i];
		used += snprintf(text + used, bytes - (size_t)used, " %s=%s.%d[%d,%d,%d,%d]", t->role,
				 npumem_dtype_name(t->dtype), (int)t->frac_bits, (int)t->shape.n, (int)t->shape.c,
				 (int)t->shape.h, (int)t->shape.w);
	}
	for (unsigned i = 0; i < run->n_params && (size_t)used < bytes; i++) {
		const struct npumem_param *p = &run->params[i];
		used += snprintf(text + used, bytes - (size_t)used,
				 " %s=", npumem_param_by_number(p->number)->name);
		for (unsigned k = 0; k < p->n_values && (size_t)used < bytes; k++)
			used += snprintf(text + used, bytes - (size_t)used, "%s%d", k ? "," : "",
					 (int)p->values[k]);
	}
}

/* Elements that rise are the worst for an order, random ones for a branch. */
static void write_elements(struct bench *bench, struct rig *rig, struct tensor *tensor)
{
	int64_t n = tensor_elements(tensor);
	enum npumem_dtype dtype = tensor_place(tensor).dtype;
	unsigned bytes = npumem_dtype_bytes(dtype);
	uint8_t *data = malloc((size_t)n * bytes);
	ck_assert_ptr_nonnull(data);
	bool rises = oracle_random(&bench->random) % 2;
	for (int64_t i = 0; i < n; i++) {
		int64_t value = rises ? (i << (8 * bytes - 1)) / n : oracle_random(&bench->random);
		float real = (float)value;
		memcpy(data + i * bytes, dtype == NPUMEM_FP32 ? (void *)&real : &value, bytes);
	}
	ck_assert_int_eq(rig_write(rig, tensor, data), 0);
	free(data);
}

/* False where the device has no room. */
static bool place(struct bench *bench, struct rig *rig, struct valid_run *run, struct tensor **tensors)
{
	for (unsigned i = 0; i < run->n_tensors; i++) {
		const struct valid_tensor *t = &run->tensors[i];
		struct device_request request =
			rig_request(t->dtype, t->shape.n, t->shape.c, t->shape.h, t->shape.w);
		request.spec.frac_bits = t->frac_bits;
		request.spec.layout = i % 2 ? NPUMEM_COMPACT : NPUMEM_ALIGNED;
		if (rig_try(rig, &request, &tensors[i]))
			return false;
		if (!t->is_output)
			write_elements(bench, rig, tensors[i]);
	}
	return true;
}

static int64_t run_once(struct rig *rig, struct op *op, struct valid_run *run)
{
	char text[1024];
	int64_t start_ns = cpu_ns();
	int status = op_check(rig->device, op, &rig->context);
	if (!status)
		status = op_run(rig->device, op, &rig->context);
	op_deinit(rig->device, op);
	int64_t ns = cpu_ns() - start_ns;
	describe(run, text, sizeof(text));
	ck_assert_msg(status == 0, "%s: %s", text, rig->error.message);
	return ns;
}

static void judge(struct bench *bench, struct valid_run *run, int64_t cost, int64_t ns)
{
	char text[1024];
	int number = run->row->number;
	double worst = (double)ns / (double)cost;
	bench->n_runs[number]++;
	bench->n_short[number] += cost <= INLINE_COST;
	if (ns > SHORT_NS && worst > bench->worst[number])
		bench->worst[number] = worst;
	if (ns > bench->longest_ns[number]) {
		bench->longest_ns[number] = ns;
		bench->most_ns_cost[number] = cost;
	}
	describe(run, text, sizeof(text));
	if (getenv("NPUMEM_COSTS_TABLE") && ns > NS_MAX / 3)
		printf("%llu %% %u: %s: cost %lld, %lld ns\n", (unsigned long long)bench->seed,
		       (unsigned)(bench->seed % N_RIGS), text, (long long)cost, (long long)ns);
	ck_assert_msg(ns < NS_MAX || getenv("NPUMEM_COSTS_TABLE"),
		      "seed %llu: %s is short (%lld), but took %lld ns", (unsigned long long)bench->seed, text,
		      (long long)cost, (long long)ns);
}

/* Takes the place of the shortest one that is kept. */
static void keep(struct drawn *kept, const uint8_t *bytes, int64_t ns)
{
	struct drawn *least = kept;
	for (unsigned i = 1; i < KEPT; i++)
		if (kept[i].ns < least->ns)
			least = &kept[i];
	if (ns <= least->ns)
		return;
	memcpy(least->bytes, bytes, BYTES);
	least->ns = ns;
}

/* Nanoseconds, or 0 where the run is not short. */
static int64_t measure(struct bench *bench, struct rig *rig, struct valid_run *run, struct tensor **tensors)
{
	struct op_operand operands[VALID_TENSORS_MAX];
	struct op op = {.kind = OP_RUN,
			.kernel = run->row->number,
			.operands = operands,
			.n_operands = run->n_tensors,
			.params = run->params,
			.n_params = run->n_params};
	for (unsigned i = 0; i < run->n_tensors; i++) {
		operands[i].tensor = tensors[i];
		memcpy(operands[i].role, run->tensors[i].role, sizeof(operands[i].role));
	}
	int64_t cost = op_cost(rig->device, &op), best = INT64_MAX;
	if (cost > INLINE_COST) {
		bench->n_runs[run->row->number]++;
		return 0;
	}
	for (int i = 0; i < ROUNDS && (i == 0 || best > NS_MAX / 2); i++) {
		int64_t ns = run_once(rig, &op, run);
		best = ns < best ? ns : best;
	}
	judge(bench, run, cost, best);
	return best;
}

/* valid_read's choices; the first one is the kernel. */
static void choose(struct bench *bench, uint8_t kernel, const struct drawn *kept, uint8_t *bytes)
{
	enum { CHANGES = 4, ALL = 48 }; /* a run reads few more bytes */
	const struct drawn *old = &kept[oracle_random(&bench->random) % KEPT];
	for (unsigned i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)oracle_random(&bench->random);
	if (old->ns && oracle_random(&bench->random) % 4) {
		uint8_t fresh[BYTES];
		memcpy(fresh, bytes, BYTES);
		memcpy(bytes, old->bytes, BYTES);
		for (uint64_t n = 1 + oracle_random(&bench->random) % CHANGES; n; n--)
			bytes[1 + oracle_random(&bench->random) % ALL] = fresh[n];
	}
	bytes[0] = kernel;
}

static void draw(struct bench *bench)
{
	uint8_t bytes[BYTES], kernel = (uint8_t)(bench->seed / N_RIGS % npumem_n_kernel_rows);
	struct valid_run run;
	struct tensor *tensors[VALID_TENSORS_MAX] = {NULL};
	struct rig *rig = &bench->rigs[bench->seed % N_RIGS];
	struct drawn *kept = bench->longest[kernel][bench->seed % N_RIGS];
	if (bench->only && strcmp(bench->only, npumem_kernel_rows[kernel].name) != 0)
		return;
	bench->random = bench->seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	choose(bench, kernel, kept, bytes);
	valid_read(bytes, BYTES, &run);
	if (place(bench, rig, &run, tensors))
		keep(kept, bytes, measure(bench, rig, &run, tensors));
	for (unsigned i = 0; i < run.n_tensors && tensors[i]; i++)
		rig_release(rig, tensors[i]);
}

static void print_table(const struct bench *bench)
{
	for (unsigned i = 0; i < npumem_n_kernel_rows; i++) {
		int n = npumem_kernel_rows[i].number;
		printf("%-26s %4lld short of %4lld, at most %8lld ns (cost %lld), %.2f ns a unit\n",
		       npumem_kernel_rows[i].name, (long long)bench->n_short[n], (long long)bench->n_runs[n],
		       (long long)bench->longest_ns[n], (long long)bench->most_ns_cost[n], bench->worst[n]);
	}
}

static int64_t number_of(const char *name, int64_t fallback)
{
	const char *text = getenv(name);
	return text ? atoll(text) : fallback;
}

START_TEST(short_runs_are_short)
{
	static struct bench bench;
	bench.only = getenv("NPUMEM_COSTS_KERNEL");
	struct device_options options = {.allow_unchecked = true, .pack_bytes = 1 << 20};
	const int64_t n_npus[N_RIGS] = {64, 1, 64}, npu_bytes[N_RIGS] = {1 << 20, 8 << 20, 1 << 20};
	for (unsigned i = 0; i < N_RIGS; i++) {
		options.isa = i == 2 ? ISA_SCALAR : isa_best();
		rig_open_with(&bench.rigs[i], n_npus[i], npu_bytes[i], options);
	}
	uint64_t seed = (uint64_t)number_of("NPUMEM_COSTS_SEED", 1);
	uint64_t end = seed + (uint64_t)number_of("NPUMEM_COSTS_RUNS", RUNS);
	for (bench.seed = seed; bench.seed < end; bench.seed++)
		draw(&bench);
	if (getenv("NPUMEM_COSTS_TABLE"))
		print_table(&bench);
	for (unsigned i = 0; i < N_RIGS; i++)
		rig_close(&bench.rigs[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kernel_costs");
	TCase *tcase = tcase_create("kernel_costs");
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, short_runs_are_short);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
