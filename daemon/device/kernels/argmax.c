/* Where the topk largest elements are: of the whole tensor, out [1,K,1,1], or of each index along axis, out
 * [1,axis size,1,K]. Indices are flat N,C,H,W ones of in; best first, the lower index first where values tie. */
#include "daemon/device/fixed/rows/folds.h"
#include "daemon/device/fixed/container.h"
#include "daemon/device/kernel_support/elementwise/elements.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/order_best.h"
#include "daemon/device/kernel_support/order_dims.h"
#include "daemon/device/kernel_support/steps.h"

enum { IN, OUT };
enum {
	BLOCK = 128,
	STRETCH = 8192,	 /* elements that one look may do away with, where one wins */
	SOME = 1024,	 /* likewise, where several do */
	ABREAST = 4096,	 /* indices that are looked at together */
	LINES = 64,	 /* of those, that one look takes */
	RUN = SOME,	 /* elements of an index that lie together, where indices are looked at by turns */
	SORT_STEPS = 32, /* of element steps, to put one more of many best in its place */
};

/* Of the range that an index competes in. */
static int64_t competitors(const struct order_span *span)
{
	return span->outer * span->inner;
}

static int check_types(const struct kernel_call *call, struct npumem_error *error)
{
	int in = operands_get(call, IN)->dtype, out = operands_get(call, OUT)->dtype;
	unsigned role = in == NPUMEM_FP32 ? IN : OUT;
	if (in != NPUMEM_FP32 && out == NPUMEM_INT32)
		return 0;
	npumem_error_set(error, NPUMEM_INVALID, "%s: %s is %s, but must be %s", call->row->name,
			 call->roles[role].name, npumem_dtype_name(role == IN ? in : out),
			 role == IN ? "fixed point or an integer" : "int32");
	npumem_error_text(error, "role", call->roles[role].name);
	return NPUMEM_INVALID;
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	const struct kernel_operand *in = operands_get(call, IN);
	int status = check_types(call, error);
	if (status)
		return status;
	if (operands_elements(in) - 1 > INT32_MAX)
		return npumem_error_set(
			error, NPUMEM_INVALID, "%s: in has %lld elements, more than the %lld that int32 counts",
			call->row->name, (long long)operands_elements(in), (long long)INT32_MAX + 1);
	int axis = order_dims_axis(call);
	struct order_span span = order_dims_span(&in->shape, axis);
	int64_t topk = kernel_param(call, NPUMEM_PARAM_TOPK, 0, 1);
	status = operands_check_param(call, NPUMEM_PARAM_TOPK, "", topk, 1, competitors(&span), error);
	if (status)
		return status;
	struct npumem_dims want = {1, topk, 1, 1};
	if (axis != ORDER_DIMS_NONE)
		want = (struct npumem_dims){1, span.extent, 1, topk};
	return operands_check_shape(call, OUT, &want, "in, axis and topk give", error);
}

/* Of elements whose flat indices follow each other and that lie together. */
static int64_t length_of(const struct kernel_operand *in)
{
	return in->data ? operands_elements(in) : in->shape.h * in->shape.w;
}

/* Whether the competitors of an index lie in pieces so short that many indices are looked at together. Also before
 * it is known whether `in` is dense. */
static bool is_abreast(const struct kernel_call *call, const struct order_span *span)
{
	const struct kernel_operand *in = operands_get(call, IN);
	int64_t low = 0, high, run = in->shape.h * in->shape.w;
	npumem_dtype_range(in->dtype, &low, &high);
	return low < 0 && npumem_dtype_bytes(in->dtype) <= 2 && span->inner <= (run < RUN ? run : RUN) &&
	       span->extent > 1 && span->extent <= ABREAST;
}

/* Of each index that is looked at: its best, how many it has, and the largest of some lines. */
static size_t scratch_bytes(const struct kernel_call *call)
{
	struct order_span span = order_dims_span(&operands_get(call, IN)->shape, order_dims_axis(call));
	int64_t topk = kernel_param(call, NPUMEM_PARAM_TOPK, 0, 1);
	size_t entries = (size_t)topk * sizeof(struct order_best_entry);
	if (!is_abreast(call, &span))
		return entries;
	return (size_t)span.extent * (entries + sizeof(struct order_best) + sizeof(int32_t));
}

/* Elements between two looks, each of which may be one of many best. */
static int64_t piece_of(const struct kernel_call *call, int64_t topk)
{
	int64_t piece = kernel_piece(call);
	return topk > SOME ? piece / SORT_STEPS + 1 : piece;
}

/* The competitors of one index, and how many of them were offered since the last look. */
struct contest {
	struct kernel_call *call;
	struct order_best best;
	int64_t n, topk; /* in all; that win */
	int64_t offered, looked;
};

/* False where no more is wanted. */
static bool contest_part(struct contest *contest, int64_t sorted)
{
	contest->looked = contest->offered;
	return kernel_part(contest->call, contest->topk, contest->offered + sorted, contest->n + contest->topk);
}

/* Types whose elements are looked at many at a time. */
static bool is_narrow(const struct contest *contest)
{
	int64_t low = 0, high;
	int dtype = operands_get(contest->call, IN)->dtype;
	npumem_dtype_range(dtype, &low, &high);
	return low < 0 && npumem_dtype_bytes(dtype) <= 2;
}

/* Of a narrow type. */
static int32_t largest(const struct contest *contest, const uint8_t *from, int64_t n)
{
	unsigned bytes = npumem_dtype_bytes(operands_get(contest->call, IN)->dtype);
	const struct fold_rows row = {.data = from, .bytes = bytes, .n_rows = 1};
	return fold_across(FOLD_LARGER, contest->call->isa, &row, n);
}

/* Whether any of n elements could be among the best: a look at the largest of all is cheap. */
static bool is_worth(const struct contest *contest, const uint8_t *from, int64_t n)
{
	if (contest->best.n < contest->best.k || !is_narrow(contest))
		return true;
	/* Later ones of the same value come after. */
	return largest(contest, from, n) > contest->best.entries[0].value;
}

/* Where the first of n elements with the largest value of them is. */
static int64_t first_of(const struct contest *contest, const uint8_t *from, int64_t n, int32_t value)
{
	int dtype = operands_get(contest->call, IN)->dtype;
	unsigned bytes = npumem_dtype_bytes(dtype);
	int64_t first = 0, values[BLOCK];
	while (n > BLOCK) {
		int64_t half = n / 2;
		if (largest(contest, from + first * bytes, half) == value) {
			n = half;
		} else {
			first += half;
			n -= half;
		}
	}
	elements_load64(dtype, from, first, n, values);
	for (n = 0; values[n] != value; n++)
		;
	return first + n;
}

/* Where only one wins: n elements in one go. */
static void offer_largest(struct contest *contest, const uint8_t *from, int64_t n, int64_t first)
{
	int32_t value = largest(contest, from, n);
	if (contest->best.n == 0 || value > contest->best.entries[0].value)
		order_best_offer(&contest->best, value, first + first_of(contest, from, n, value));
}

static void offer_block(struct contest *contest, const uint8_t *from, int64_t n, int64_t first)
{
	const struct order_best *best = &contest->best;
	int64_t values[BLOCK];
	if (!is_worth(contest, from, n))
		return;
	elements_load64(operands_get(contest->call, IN)->dtype, from, 0, n, values);
	for (int64_t k = 0; k < n; k++)
		if (best->n < best->k || values[k] > best->entries[0].value)
			order_best_offer(&contest->best, values[k], first + k);
}

/* n elements that lie together, the first of which has index `first`. */
static void offer_stretch(struct contest *contest, const uint8_t *from, int64_t n, int64_t first)
{
	unsigned bytes = npumem_dtype_bytes(operands_get(contest->call, IN)->dtype);
	if (contest->best.k == 1 && is_narrow(contest)) {
		offer_largest(contest, from, n, first);
		return;
	}
	if (n > BLOCK && !is_worth(contest, from, n))
		return;
	for (int64_t i = 0, count; i < n; i += count) {
		count = n - i < BLOCK ? n - i : BLOCK;
		offer_block(contest, from + i * bytes, count, first + i);
	}
}

/* Likewise, of any number; false where the rest is no longer wanted. */
static bool offer_piece(struct contest *contest, const uint8_t *from, int64_t n, int64_t first)
{
	unsigned bytes = npumem_dtype_bytes(operands_get(contest->call, IN)->dtype);
	int64_t piece = piece_of(contest->call, contest->best.k), stretch = contest->best.k == 1 ? STRETCH : SOME;
	for (int64_t i = 0, count; i < n; i += count) {
		count = n - i < stretch ? n - i : stretch;
		offer_stretch(contest, from + i * bytes, count, first + i);
		contest->offered += count;
		if (contest->offered - contest->looked >= piece && !contest_part(contest, 0))
			return false;
	}
	return true;
}

/* Elements whose flat indices follow each other, in as many pieces as there are features that have them. */
static bool offer_run(struct contest *contest, int64_t first, int64_t n)
{
	const struct kernel_operand *in = operands_get(contest->call, IN);
	int64_t length = length_of(in);
	for (int64_t count; n > 0; first += count, n -= count) {
		int64_t feature = first / length, at = first % length;
		count = length - at < n ? length - at : n;
		const uint8_t *from = kernel_feature(in, feature / in->shape.c, feature % in->shape.c);
		if (!offer_piece(contest, from + at * npumem_dtype_bytes(in->dtype), count, first))
			return false;
	}
	return true;
}

static bool sort(struct contest *contest)
{
	while (!order_best_finish(&contest->best, kernel_piece(contest->call) / SORT_STEPS + 1))
		if (!contest_part(contest, contest->best.sorted))
			return false;
	return true;
}

/* Offers to each index its elements of some lines, the first of which has flat index `first`, where the largest of
 * them could be among the best. */
static void offer_lines(const struct kernel_call *call, const uint8_t *from, int64_t lines, int64_t first,
			struct order_best *best, int64_t extent)
{
	int dtype = operands_get(call, IN)->dtype;
	unsigned bytes = npumem_dtype_bytes(dtype);
	const struct fold_rows rows = {.data = from, .bytes = bytes, .row = extent, .n_rows = lines};
	int32_t *most = (int32_t *)(best + extent);
	fold_columns(FOLD_LARGER, call->isa, &rows, extent, most);
	for (int64_t a = 0; a < extent; a++) {
		bool full = best[a].n == best[a].k;
		for (int64_t l = 0; l < lines && (!full || most[a] > best[a].entries[0].value); l++) {
			int64_t at = l * extent + a, value = container_get(from, bytes, at);
			if (full && value <= best[a].entries[0].value)
				continue;
			order_best_offer(&best[a], value, first + at);
			full = best[a].n == best[a].k;
		}
	}
}

/* Of all features, or of the whole array. False where the rest is no longer wanted. */
static bool offer_abreast(const struct kernel_call *call, const struct order_span *span, struct order_best *best)
{
	const struct kernel_operand *in = operands_get(call, IN);
	int64_t length = length_of(in), looked = 0;
	int64_t all = operands_elements(in), piece = piece_of(call, best->k),
		lines_most = piece / span->extent + 1;
	lines_most = lines_most < LINES ? lines_most : LINES;
	for (int64_t first = 0, lines; first < all; first += lines * span->extent) {
		int64_t feature = first / length, at = first % length;
		const uint8_t *from = kernel_feature(in, feature / in->shape.c, feature % in->shape.c);
		lines = (length - at) / span->extent;
		lines = lines < lines_most ? lines : lines_most;
		offer_lines(call, from + at * npumem_dtype_bytes(in->dtype), lines, first, best, span->extent);
		looked += lines * span->extent;
		if (looked < piece)
			continue;
		looked = 0;
		if (!kernel_part(call, 1, first, all))
			return false;
	}
	return true;
}

/* Offers to each of n indices its run, where the largest of it could be among the best. The first run has flat
 * index `first`. */
static void offer_runs(struct kernel_call *call, const void *const *runs, const int32_t *most, int64_t n,
		       int64_t inner, int64_t first, struct order_best *best)
{
	for (int64_t i = 0; i < n; i++) {
		if (best[i].n == best[i].k && most[i] <= best[i].entries[0].value)
			continue;
		struct contest contest = {.call = call, .best = best[i]};
		offer_stretch(&contest, runs[i], inner, first + i * inner);
		best[i] = contest.best;
	}
}

/* Where an index has some elements together: by turns, as they lie. Likewise. */
static bool offer_by_turns(struct kernel_call *call, const struct order_span *span, struct order_best *best)
{
	const struct kernel_operand *in = operands_get(call, IN);
	int64_t length = length_of(in), all = span->outer * span->extent, inner = span->inner, looked = 0;
	int64_t piece = piece_of(call, best->k), runs_most = piece / inner + 1;
	runs_most = runs_most < LINES ? runs_most : LINES;
	for (int64_t run = 0, n; run < all; run += n) {
		const void *runs[LINES];
		int32_t most[LINES];
		int64_t a = run % span->extent;
		n = span->extent - a < runs_most ? span->extent - a : runs_most;
		for (int64_t i = 0; i < n; i++) {
			int64_t first = (run + i) * inner, feature = first / length;
			const uint8_t *from = kernel_feature(in, feature / in->shape.c, feature % in->shape.c);
			runs[i] = from + first % length * npumem_dtype_bytes(in->dtype);
		}
		const struct fold_pieces pieces = {runs, npumem_dtype_bytes(in->dtype), n};
		fold_each(FOLD_LARGER, call->isa, &pieces, inner, most);
		offer_runs(call, runs, most, n, inner, run * inner, best + a);
		looked += n * inner;
		if (looked < piece)
			continue;
		looked = 0;
		if (!kernel_part(call, 1, run, all))
			return false;
	}
	return true;
}

static void run_abreast(struct kernel_call *call, const struct order_span *span, int64_t topk)
{
	int32_t *out = operands_get(call, OUT)->data;
	struct order_best_entry *entries = call->scratch;
	struct order_best *best = (struct order_best *)(entries + span->extent * topk);
	for (int64_t a = 0; a < span->extent; a++)
		order_best_init(&best[a], entries + a * topk, topk);
	if (!(span->inner == 1 ? offer_abreast(call, span, best) : offer_by_turns(call, span, best)))
		return;
	for (int64_t a = 0; a < span->extent; a++) {
		struct contest contest = {.call = call, .best = best[a], .n = competitors(span), .topk = topk};
		if (!sort(&contest))
			return;
		for (int64_t k = 0; k < topk; k++)
			*out++ = (int32_t)contest.best.entries[k].index;
		if (!kernel_step(call, topk))
			return;
	}
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN);
	int32_t *out = operands_get(call, OUT)->data;
	struct order_span span = order_dims_span(&in->shape, order_dims_axis(call));
	int64_t topk = kernel_param(call, NPUMEM_PARAM_TOPK, 0, 1);
	call->counts = (struct kernel_counts){.saturated = 0};
	if (is_abreast(call, &span)) {
		run_abreast(call, &span, topk);
		return;
	}
	for (int64_t a = 0; a < span.extent; a++) {
		struct contest contest = {.call = call, .n = competitors(&span), .topk = topk};
		order_best_init(&contest.best, call->scratch, topk);
		for (int64_t o = 0; o < span.outer; o++)
			if (!offer_run(&contest, (o * span.extent + a) * span.inner, span.inner))
				return;
		if (!sort(&contest))
			return;
		for (int64_t k = 0; k < topk; k++)
			*out++ = (int32_t)contest.best.entries[k].index;
		if (!kernel_step(call, topk))
			return;
	}
}

static int64_t steps(const struct kernel_call *call)
{
	/* One that goes down the heap, on each of its levels; one that is loaded by itself. */
	enum { LEVEL = 10, LOADED = 4 };
	const struct kernel_operand *in = operands_get(call, IN);
	struct order_span span = order_dims_span(&in->shape, order_dims_axis(call));
	int64_t topk = kernel_param(call, NPUMEM_PARAM_TOPK, 0, 1);
	double elements = steps_elements(in), rows = (double)(span.outer * span.extent);
	double levels = topk > 1 ? 64 - __builtin_clzll((unsigned long long)topk) : 0;
	double won = (double)span.extent * (double)topk;
	if (steps_has_features(in))
		rows += (double)(in->shape.n * in->shape.c);
	return steps_whole((elements + won) * (LOADED + LEVEL * levels) + rows * 2 * STEPS_ROW);
}

const struct kernel kernel_argmax = {
	.number = NPUMEM_KERNEL_ARGMAX,
	.by_feature = 1 << IN,
	.check = check,
	.scratch_bytes = scratch_bytes,
	.steps = steps,
	.run = run,
};
