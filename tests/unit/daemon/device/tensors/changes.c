/* What a log is told of: all that an operation changed, and little else. */
#include "daemon/device/tensors/changes.h"

#include "tests/unit/daemon/device/rig.h"

enum { NPUS = 2, NPU_BYTES = 1 << 20 };

/* A copy of the device's memory, made of what is told. */
struct copy {
	const uint8_t *memory;
	uint8_t *bytes;
	uint64_t told, n_since, most; /* bytes in all, and in a row that nobody else could come between */
};

static void after(void *ctx, uint64_t off, uint64_t bytes)
{
	struct copy *copy = ctx;
	memcpy(copy->bytes + off, copy->memory + off, bytes);
	copy->told += bytes;
	copy->n_since += bytes;
	copy->most = copy->n_since > copy->most ? copy->n_since : copy->most;
}

static void give_way(void *ctx)
{
	((struct copy *)ctx)->n_since = 0;
}

static void open_copied(struct rig *rig, struct copy *copy)
{
	rig_open(rig, NPUS, NPU_BYTES);
	size_t bytes = (size_t)device_memory_bytes(&rig->options.geometry);
	*copy = (struct copy){.memory = rig->memory, .bytes = malloc(bytes)};
	ck_assert_ptr_nonnull(copy->bytes);
	memcpy(copy->bytes, copy->memory, bytes);
	device_tell_after(rig->device, after, copy);
	device_give_way_by(rig->device, give_way, copy);
}

static void close_copied(struct rig *rig, struct copy *copy)
{
	ck_assert(!memcmp(copy->bytes, copy->memory, (size_t)device_memory_bytes(&rig->options.geometry)));
	free(copy->bytes);
	rig_close(rig);
}

static struct tensor *place_apart(struct rig *rig, int64_t h, int64_t w, int64_t pitch_h, int64_t pitch_w)
{
	struct device_request request = rig_request(NPUMEM_FX8, 1, 2, h, w);
	request.spec.layout = NPUMEM_STRIDED;
	request.spec.stride = (struct npumem_dims){h * pitch_h, h * pitch_h, pitch_h, pitch_w};
	return rig_place(rig, &request);
}

/* Elements, or rows, whose distance is more than what they have: [2, rows] of two features. */
static const int64_t apart[][4] = {
	{1, 2, 1 << 19, 1 << 18}, {2, 1, 1 << 18, 1}, {2, 100, 1 << 18, 1}, {3, 50, 4096, 3}, {4, 40, 8192, 200},
};

TEST(gaps_are_not_told, .to = sizeof(apart) / sizeof(apart[0]))
{
	struct rig rig;
	struct copy copy;
	open_copied(&rig, &copy);
	const int64_t *row = apart[_i];
	struct tensor *x = place_apart(&rig, row[0], row[1], row[2], row[3]);
	ck_assert_int_eq(rig_fill(&rig, x, 5), 0);
	uint64_t n = (uint64_t)(2 * row[0] * row[1]);
	ck_assert_uint_ge(copy.told, n);
	ck_assert_uint_le(copy.told, n * 24 + 4096);
	/* Some of them, and those of a view. */
	uint8_t some[400] = {7};
	ck_assert_int_eq(rig_write_some(&rig, x, 1, (int64_t)n - 2, some), 0);
	struct device_slice slice = {{0, 0, 0, 0}, {1, 2, row[0], 1}};
	struct tensor *view;
	ck_assert_int_eq(device_view_slice(rig.device, x, &slice, &view, &rig.context), 0);
	ck_assert_int_eq(rig_fill(&rig, view, 9), 0);
	ck_assert_uint_le(copy.told, 3 * (n * 24 + 4096));
	/* A kernel's output. */
	struct tensor *y = place_apart(&rig, row[0], row[1], row[2], row[3]);
	ck_assert_int_eq(rig_relu(&rig, x, y), 0);
	ck_assert_uint_le(copy.told, 4 * (n * 24 + 4096));
	/* What it takes is what the loop goes by. */
	ck_assert_int_ge(changes_cost(rig.device, x, (int64_t)n), 2 * 400);
	ck_assert_int_ge(device_forget_cost(rig.device, x), changes_cost(rig.device, x, (int64_t)n));
	copy.told = 0;
	device_release(rig.device, x, NULL, NULL);
	ck_assert_uint_le(copy.told, n * 24 + 4096);
	close_copied(&rig, &copy);
}

/* The log has the short gaps between elements, too: the estimate counts them. */
TEST(gaps_that_are_told)
{
	struct rig rig;
	struct copy copy;
	open_copied(&rig, &copy);
	struct tensor *x = place_apart(&rig, 1, 1000, 63 * 1000, 63);
	ck_assert_int_eq(rig_fill(&rig, x, 5), 0);
	ck_assert_uint_ge(copy.told, 2 * 999 * 63);
	ck_assert_int_ge(2 * changes_cost(rig.device, x, 2 * 1000), 2 * 999 * 63);
	ck_assert_int_ge(2 * device_forget_cost(rig.device, x), 2 * 999 * 63);
	close_copied(&rig, &copy);
}

/* The log has the data of others that a kernel destroys, and its output, and nothing else. */
TEST(what_a_kernel_destroys)
{
	struct rig rig;
	struct copy copy;
	open_copied(&rig, &copy);
	struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, 2);
	struct tensor *in = rig_place(&rig, &request);
	request.spec.layout = NPUMEM_STRIDED;
	request.spec.stride = (struct npumem_dims){1 << 19, 1 << 19, 1 << 19, 1 << 18};
	request.spec.address = NPU_BYTES + 4096;
	struct tensor *out = rig_place(&rig, &request);
	request = rig_request(NPUMEM_INT8, 1, 1, 1, 128);
	request.spec.address = NPU_BYTES + 8192;
	request.reuse = NPUMEM_UNCHECKED;
	struct tensor *victim = rig_place(&rig, &request);
	ck_assert_int_eq(rig_fill(&rig, in, 5), 0);
	ck_assert_int_eq(rig_fill(&rig, victim, 6), 0);
	copy.told = 0;
	ck_assert_int_eq(rig_relu(&rig, in, out), 0);
	ck_assert_uint_eq(rig.op.n_destroyed, 1);
	ck_assert_uint_le(copy.told, 4096);
	close_copied(&rig, &copy);
}

/* Each piece may wait for a disk. */
TEST(others_come_between_pieces)
{
	struct rig rig;
	struct copy copy;
	open_copied(&rig, &copy);
	struct device_request request = rig_request(NPUMEM_INT8, 1, 2, 1, NPU_BYTES / 2);
	struct tensor *x = rig_place(&rig, &request);
	ck_assert_int_eq(rig_fill(&rig, x, 5), 0);
	ck_assert_uint_ge(copy.told, NPU_BYTES);
	/* Of a piece of bytes, and of bits. */
	ck_assert_uint_le(copy.most, 2 << 16);
	close_copied(&rig, &copy);
}
