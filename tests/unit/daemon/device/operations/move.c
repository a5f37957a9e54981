/* Moves tell how far they are and can be stopped at each look. What a stopped one has written by then counts as
 * never written; all else is as it was. In the layouts that are moved differently. */
#include "tests/unit/daemon/device/rig.h"

FIXTURE_OBJECT(struct rig, rig, rig_open(&rig, 4, 8192), rig_close(&rig))

enum { N = 3, C = 5, H = 4, W = 6, ELEMENTS = N * C * H * W, PIECE = 7, OLD = 1, NEW = 2 };

struct watch {
	struct kernel_progress progress; /* first, so that the one is the other */
	int64_t seen, n_looks, cancel_at;
};

static void looked(struct kernel_progress *progress)
{
	struct watch *watch = (struct watch *)progress;
	ck_assert_int_ge(progress->done, watch->seen);
	ck_assert_int_le(progress->done, progress->total);
	watch->seen = progress->done;
	if (++watch->n_looks == watch->cancel_at)
		progress->cancelled = true;
}

/* Of layouts whose features touch or do not, whose elements stand apart, whose words are packed with dummies. */
static struct tensor *place(int layout)
{
	struct device_request request = rig_request(NPUMEM_UINT8, N, C, H, W);
	if (layout == 0)
		request.spec.layout = NPUMEM_COMPACT;
	if (layout == 2) {
		request.spec.layout = NPUMEM_STRIDED;
		request.spec.stride = (struct npumem_dims){200, 100, 20, 3};
	}
	if (layout == 3)
		request.spec.mode = NPUMEM_MODE_4N;
	return rig_place(&rig, &request);
}

enum { LAYOUTS = 4 };

/* One move, watched. */
static int move(enum op_kind kind, struct tensor *tensor, struct tensor *other, uint8_t *bytes, int64_t cancel_at,
		struct watch *watch)
{
	*watch = (struct watch){.progress = {.piece = PIECE, .looked = looked}, .cancel_at = cancel_at};
	rig.op = (struct op){.kind = kind,
			     .tensor = tensor,
			     .source = other,
			     .count = -1,
			     .value = NEW,
			     .progress = &watch->progress};
	rig.op.system = (struct op_system){.base = bytes, .bytes = ELEMENTS};
	return rig_op(&rig);
}

/* Element by element: what was written is not there, or not readable. */
static void stopped_cleanly(struct tensor *tensor)
{
	int64_t lost = 0;
	for (int64_t i = 0; i < ELEMENTS; i++) {
		uint8_t byte = 0, all[ELEMENTS];
		if (rig_read_some(&rig, tensor, i, 1, all)) {
			rig_said(&rig, NPUMEM_FAILED_PRECONDITION, "never written");
			lost++;
			continue;
		}
		byte = all[0];
		ck_assert_int_eq(byte, OLD);
	}
	ck_assert_int_gt(lost, 0);
}

TEST(tells_all)
{
	for (int layout = 0; layout < LAYOUTS; layout++)
		for (int kind = OP_WRITE; kind <= OP_COPY; kind++) {
			struct watch watch;
			uint8_t bytes[ELEMENTS] = {0};
			rig_reopen(&rig, 4, 8192);
			struct tensor *to = place(layout), *from = place(0);
			ck_assert_int_eq(rig_fill(&rig, to, OLD), 0);
			ck_assert_int_eq(rig_fill(&rig, from, NEW), 0);
			ck_assert_int_eq(move((enum op_kind)kind, to, from, bytes, 0, &watch), 0);
			ck_assert_int_eq(watch.progress.total, ELEMENTS * KERNEL_PARTS);
			ck_assert_int_eq(watch.progress.done, watch.progress.total);
			ck_assert_int_ge(watch.n_looks, 4);
		}
}

TEST(stopped_anywhere)
{
	static const enum op_kind kinds[] = {OP_WRITE, OP_FILL, OP_COPY};
	uint8_t known[ELEMENTS];
	for (int layout = 0; layout < LAYOUTS; layout++)
		for (int k = 0; k < 3; k++)
			for (int64_t at = 2; at < 12; at += 3) {
				struct watch watch;
				uint8_t bytes[ELEMENTS];
				memset(bytes, NEW, sizeof(bytes));
				rig_reopen(&rig, 4, 8192);
				struct tensor *to = place(layout), *from = place(0);
				ck_assert_int_eq(rig_fill(&rig, to, OLD), 0);
				ck_assert_int_eq(rig_fill(&rig, from, NEW), 0);
				/* Whoever has read all of it knows that it is written. */
				ck_assert_int_eq(rig_read(&rig, to, known), 0);
				rig_fails(&rig, move(kinds[k], to, from, bytes, at, &watch), NPUMEM_CANCELLED,
					  "counts as never written");
				ck_assert_int_eq(watch.n_looks, at);
				stopped_cleanly(to);
				/* Whole again. */
				ck_assert_int_eq(rig_fill(&rig, to, OLD), 0);
				ck_assert_int_eq(rig_read(&rig, to, bytes), 0);
			}
}

TEST(a_read_or_one_that_has_not_begun_changes_nothing)
{
	struct watch watch;
	uint8_t bytes[ELEMENTS], after[ELEMENTS];
	struct tensor *to = place(0);
	memset(bytes, OLD, sizeof(bytes));
	ck_assert_int_eq(rig_write(&rig, to, bytes), 0);
	rig_fails(&rig, move(OP_READ, to, NULL, after, 3, &watch), NPUMEM_CANCELLED, "the read was cancelled");
	rig_fails(&rig, move(OP_FILL, to, NULL, bytes, 1, &watch), NPUMEM_CANCELLED,
		  "the fill was cancelled before it began; nothing was written");
	ck_assert_int_eq(rig_read(&rig, to, after), 0);
	ck_assert_mem_eq(after, bytes, sizeof(after));
}

enum { APART = 4 * 100 * 100 };

/* Many elements that stand apart, so that it takes several looks to see whether they were written. */
static struct tensor *place_apart(void)
{
	struct device_request request = rig_request(NPUMEM_UINT8, 1, 4, 100, 100);
	request.spec.layout = NPUMEM_STRIDED;
	request.spec.stride = (struct npumem_dims){30000, 30000, 300, 3};
	return rig_place(&rig, &request);
}

TEST(stopped_while_it_looks_what_was_written)
{
	enum { LOOKS = 5 };
	static uint8_t bytes[APART];
	/* All of it, all but the last element, whose absence is found, and then all that is absent is counted. */
	for (int64_t count = APART - 1; count <= APART; count++)
		for (int64_t at = 2; at < LOOKS - (count == APART); at++) {
			struct watch watch = {.progress = {.looked = looked}, .cancel_at = at};
			rig_reopen(&rig, 4, 65536);
			struct tensor *from = place_apart();
			/* In two, so that nobody knows that all was written. */
			ck_assert_int_eq(rig_write_some(&rig, from, 0, 1, bytes), 0);
			ck_assert_int_eq(rig_write_some(&rig, from, 1, count - 1, bytes), 0);
			memset(bytes, NEW, sizeof(bytes));
			rig.op = (struct op){
				.kind = OP_READ, .tensor = from, .count = -1, .progress = &watch.progress};
			rig.op.system = (struct op_system){.base = bytes, .bytes = sizeof(bytes)};
			rig_fails(&rig, rig_op(&rig), NPUMEM_CANCELLED, "the read was cancelled before it began");
			ck_assert_int_eq(watch.n_looks, at);
			for (unsigned i = 0; i < sizeof(bytes); i++)
				ck_assert_int_eq(bytes[i], NEW);
		}
}

/* Two halves of a tensor lie between each other, and their strides do not nest. */
TEST(stopped_while_it_looks_whether_its_tensors_share_bytes)
{
	enum { N_ROWS = 10, ROWS = 60000, COLUMNS = 3 };
	struct device_request request = rig_request(NPUMEM_FX8, N_ROWS, 1, ROWS, COLUMNS);
	struct tensor *base, *half[2];
	rig_reopen(&rig, 1, 1 << 21);
	request.spec.layout = NPUMEM_STRIDED;
	request.spec.stride = (struct npumem_dims){35, 1, 32, 33};
	base = rig_place(&rig, &request);
	ck_assert_int_eq(rig_fill(&rig, base, OLD), 0);
	for (int i = 0; i < 2; i++) {
		struct device_slice slice = {{i * N_ROWS / 2, 0, 0, 0}, {(i + 1) * N_ROWS / 2, 1, ROWS, COLUMNS}};
		ck_assert_int_eq(device_view_slice(rig.device, base, &slice, &half[i], &rig.context), 0);
	}
	for (int kind = OP_COPY; kind <= OP_RUN; kind++) {
		struct watch watch = {.progress = {.looked = looked}, .cancel_at = 2};
		struct op_operand operands[] = {{"in", half[0]}, {"out", half[1]}};
		rig.op = (struct op){.kind = kind, .tensor = half[1], .source = half[0], .count = -1};
		if (kind == OP_RUN)
			rig.op = (struct op){
				.kind = kind, .kernel = NPUMEM_KERNEL_RELU, .operands = operands, .n_operands = 2};
		rig.op.progress = &watch.progress;
		rig_fails(&rig, rig_op(&rig), NPUMEM_CANCELLED, "was cancelled before it began");
		ck_assert_int_eq(watch.n_looks, 2);
	}
}

static void count_ways(void *ctx)
{
	++*(int64_t *)ctx;
}

/* At each look, and where none is taken any more: what is marked, taken back, scattered and forgotten. */
TEST(gives_way)
{
	for (int layout = 0; layout < LAYOUTS; layout++)
		for (int kind = OP_WRITE; kind <= OP_COPY; kind++) {
			struct watch watch;
			uint8_t bytes[ELEMENTS] = {0};
			int64_t n_ways = 0;
			rig_reopen(&rig, 4, 8192);
			struct tensor *to = place(layout), *from = place(0);
			/* What is known to be written is not marked again. */
			if (kind != OP_WRITE)
				ck_assert_int_eq(rig_fill(&rig, to, OLD), 0);
			ck_assert_int_eq(rig_fill(&rig, from, NEW), 0);
			device_give_way_by(rig.device, count_ways, &n_ways);
			ck_assert_int_eq(move((enum op_kind)kind, to, from, bytes, 0, &watch), 0);
			ck_assert_int_ge(n_ways, watch.n_looks);
			if (kind == OP_WRITE && layout == 2)
				ck_assert_int_ge(n_ways, watch.n_looks + ELEMENTS / PIECE / 2);
			n_ways = 0;
			device_release(rig.device, to, NULL, NULL);
			ck_assert_int_gt(n_ways, 0);
		}
}

TEST(a_run_gives_way_while_it_scatters)
{
	struct watch watch = {.progress = {.piece = PIECE, .looked = looked}};
	struct device_request request = rig_request(NPUMEM_FX8, N, C, H, W);
	int64_t n_ways = 0;
	struct tensor *in = rig_place(&rig, &request), *out = rig_place(&rig, &request);
	ck_assert_int_eq(rig_fill(&rig, in, OLD), 0);
	device_give_way_by(rig.device, count_ways, &n_ways);
	rig_relu_op(&rig, in, out);
	rig.op.progress = &watch.progress;
	ck_assert_int_eq(rig_op(&rig), 0);
	ck_assert_int_ge(n_ways, watch.n_looks + ELEMENTS / PIECE / 2);
}

TEST(what_nobody_watches_gives_way)
{
	static const uint8_t bytes[APART];
	int64_t n_ways = 0;
	rig_reopen(&rig, 4, 65536);
	struct device_request request = rig_request(NPUMEM_UINT8, 1, 4, 1, 512);
	struct tensor *first = rig_place(&rig, &request), *tensor = place_apart();
	ck_assert_int_eq(rig_write_some(&rig, tensor, 0, 1, bytes), 0);
	ck_assert_int_eq(rig_write_some(&rig, tensor, 1, APART - 1, bytes), 0);
	device_give_way_by(rig.device, count_ways, &n_ways);
	ck_assert_int_eq(device_seal_check(rig.device, tensor, &rig.context), 0);
	ck_assert_int_ge(n_ways, 2);
	device_release(rig.device, first, NULL, NULL);
	n_ways = 0;
	ck_assert_int_eq(device_compact(rig.device, false, NULL, NULL), 0);
	ck_assert_int_ge(n_ways, 4);
}
