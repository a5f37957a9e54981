/* Windows, rows, taps and phases are as long as a client says: between two looks there is a piece of work however
 * long they are. How many looks there are at least follows from the elements of each step of the work. */
#include "tests/unit/daemon/device/kernels/convolutions.h"

enum {
	PIECE = 64,
	LONG = 40000, /* elements of a row */
	CLEARED = 16, /* bytes that are zeroed as fast as an element is made */
	SIDE = 30,    /* of a window, in phases of one tap each */
};

struct watch {
	struct kernel_progress progress; /* first, so that the one is the other */
	int64_t n_looks, cancel_at;	 /* a look; 0: none */
	int64_t seen, most_told;	 /* parts that were told between two looks */
};

static void looked(struct kernel_progress *progress)
{
	struct watch *watch = (struct watch *)progress;
	int64_t told = progress->done - watch->seen;
	watch->most_told = told > watch->most_told ? told : watch->most_told;
	watch->seen = progress->done;
	if (++watch->n_looks == watch->cancel_at)
		progress->cancelled = true;
}

static struct watch watch_run(struct calls *c, int64_t cancel_at)
{
	struct watch watch = {.progress = {.piece = PIECE, .looked = looked}, .cancel_at = cancel_at};
	const struct kernel_operand *out = calls_operand(c, "out");
	kernel_begin(&watch.progress, (int64_t)(calls_bytes(out) / npumem_dtype_bytes(out->dtype)));
	c->call.progress = &watch.progress;
	calls_run(c);
	c->call.progress = NULL;
	return watch;
}

/* `steps`: those of the work that are known. With every instruction set the outputs are those of a call that
 * nobody watches, and a cancelled run ends at that look. */
static void check_looks(struct calls *c, const char *name, int64_t steps)
{
	size_t bytes = calls_bytes(calls_operand(c, "out"));
	uint64_t state = 1;
	for (unsigned role = 0; role < c->call.n_roles; role++)
		if (c->roles[role].n && !c->is_output[role])
			calls_fill(c, role, &state);
	calls_run(c);
	uint8_t *want = malloc(bytes);
	memcpy(want, calls_operand(c, "out")->data, bytes);
	for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa)) {
		c->call.isa = (enum isa)isa;
		struct watch whole = watch_run(c, 0);
		ck_assert_msg(whole.n_looks >= steps / PIECE,
			      "%s looked %lld times in %lld pieces of work under %s", name,
			      (long long)whole.n_looks, (long long)steps / PIECE, isa_name(isa));
		ck_assert_int_eq(whole.progress.done, whole.progress.total);
		ck_assert_msg(!memcmp(calls_operand(c, "out")->data, want, bytes), "%s differs under %s", name,
			      isa_name(isa));
		for (int64_t at = 1; at < whole.n_looks; at += 1 + whole.n_looks / 4) {
			struct watch part = watch_run(c, at);
			ck_assert_msg(part.n_looks == at, "%s went on after it was cancelled under %s", name,
				      isa_name(isa));
		}
	}
	c->call.isa = ISA_ANY;
	free(want);
	calls_free(c);
}

static const struct calls_types fx8 = {NPUMEM_FX8, NPUMEM_FX8}, fx16 = {NPUMEM_FX16, NPUMEM_FX16};

static void convolve(struct calls *c, int number, const struct calls_types *types, const struct shape *shape)
{
	const int64_t frac_bits[4] = {8, 8, 8, 8};
	struct shape s = *shape;
	s.n = s.i = s.o = s.h = 1;
	set_up(c, number, &s, types, frac_bits, false);
}

TEST(phases)
{
	const int64_t frac_bits[4] = {4, 4, 4, 4};
	const struct shape shape = {.n = 1,
				    .i = 1,
				    .h = 2,
				    .w = 2,
				    .o = 1,
				    .kh = SIDE,
				    .kw = SIDE,
				    .stride_h = SIDE,
				    .stride_w = SIDE};
	struct calls c;
	set_up(&c, NPUMEM_KERNEL_TRANSPOSE_CONV2D, &shape, &fx8, frac_bits, false);
	/* One look for each phase's pack, one for its data and one for its outputs. */
	check_looks(&c, "a transposed convolution", 3 * SIDE * SIDE * PIECE);
}

TEST(long_weights)
{
	const struct shape shape = {.w = LONG, .kh = 1, .kw = LONG - 10, .stride_h = 1, .stride_w = 1};
	struct calls c;
	convolve(&c, NPUMEM_KERNEL_CONV2D, &fx16, &shape);
	/* Weights are zeroed, put and summed; each is a line of one pixel or more, whose offset is found. */
	check_looks(&c, "a convolution of long weights",
		    LONG * 2 / CLEARED + 2 * (int64_t)shape.kw + shape.kw / 2);
}

TEST(long_rows)
{
	const struct shape shape = {
		.w = LONG, .kh = 1, .kw = 3, .stride_h = 1, .stride_w = 1, .left = 1, .right = 1};
	struct calls c;
	convolve(&c, NPUMEM_KERNEL_CONV2D, &fx16, &shape);
	/* Strips are found, and a line of zeros and one of the feature are zeroed. */
	check_looks(&c, "a convolution of a long row", LONG + 2 * LONG * 2 / CLEARED);
	convolve(&c, NPUMEM_KERNEL_DEPTHWISE_CONV2D, &fx16, &shape);
	/* The plane is zeroed and filled, outputs are made. */
	check_looks(&c, "a depthwise convolution", 2 * LONG + LONG * 2 / CLEARED);
}

/* All of a window but some taps lies beside the input. */
TEST(long_windows)
{
	enum { TAPS = LONG - 10, BESIDE = LONG - 12, OUTPUTS = 4 };
	const struct shape shape = {.w = LONG,
				    .kh = 1,
				    .kw = TAPS,
				    .stride_h = 1,
				    .stride_w = LONG / 2,
				    .left = BESIDE,
				    .right = BESIDE};
	struct calls c;
	convolve(&c, NPUMEM_KERNEL_CONV2D, &fx16, &shape);
	/* A set of eight rows of weights is zeroed and one put; windows are zeroed, gathered tap by tap and
	 * multiplied. */
	int64_t cleared = (8 + OUTPUTS) * TAPS * 2 / CLEARED;
	check_looks(&c, "a convolution of long windows", cleared + 2 * TAPS + OUTPUTS * TAPS / 4);
}

TEST(pools)
{
	static const int numbers[] = {NPUMEM_KERNEL_MAXPOOL, NPUMEM_KERNEL_AVEPOOL};
	for (unsigned i = 0; i < 2; i++) {
		struct calls c;
		calls_init(&c, numbers[i]);
		calls_add(&c, "in", NPUMEM_FX16, 8, 1, 1, 2, LONG);
		calls_add(&c, "out", NPUMEM_FX16, 8, 1, 1, 2, LONG);
		calls_param(&c, NPUMEM_PARAM_KERNEL, 2, 1, 3, 0, 0);
		calls_param(&c, NPUMEM_PARAM_PADDING, 4, 0, 0, 1, 1);
		/* Each column is begun and takes in a row; each value takes in three columns. */
		check_looks(&c, c.call.row->name, 2 * 6 * (int64_t)LONG);
	}
}
