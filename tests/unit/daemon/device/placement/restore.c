/* Tensors that come back: what must be refused, what must not be given twice, and what nobody may find any more.
 */
#include <errno.h>

#include "daemon/device/tensors/meetings.h"
#include "daemon/device/tensors/table.h"
#include "tests/unit/daemon/device/places.h"
#include "tests/unit/daemon/device/restart.h"

enum { NPU_BYTES = 4096 };

/* One of each kind, some over others, with bytes in them. */
static void open_stage(struct rig *rig)
{
	struct tensor *view, *again;
	rig_open(rig, 4, NPU_BYTES);
	struct device_request request = rig_request(NPUMEM_FX8, 2, 3, 2, 8);
	request.dma_only = true;
	struct tensor *host = rig_place(rig, &request);
	ck_assert_int_eq(rig_fill(rig, host, 1), 0);
	request = rig_request(NPUMEM_INT16, 1, 1, 1, 4);
	request.spec.address = 3 * NPU_BYTES + tensor_place(host).offset;
	request.reuse = NPUMEM_IF_SAFE;
	request.dma_only = true;
	struct tensor *guest = rig_place(rig, &request);
	ck_assert(tensor_is_guest(guest));
	ck_assert_int_eq(rig_fill(rig, guest, 2), 0);
	request = rig_matrix(NPUMEM_FX16, 3, 50, 9);
	struct tensor *matrix = rig_place(rig, &request);
	ck_assert_int_eq(rig_fill(rig, matrix, 3), 0);
	request = rig_request(NPUMEM_FP32, 1, 5, 2, 3);
	request.spec.layout = NPUMEM_STRIDED;
	request.spec.stride = (struct npumem_dims){40, 13, 6, 2};
	ck_assert_int_eq(rig_fill(rig, rig_place(rig, &request), 4), 0);
	request = rig_request(NPUMEM_INT8, 6, 7, 4, 6);
	request.spec.mode = NPUMEM_MODE_4N;
	ck_assert_int_eq(rig_fill(rig, rig_place(rig, &request), 5), 0);
	const struct device_slice slice = {{1, 1, 0, 0}, {2, 3, 2, 8}};
	ck_assert_int_eq(device_view_slice(rig->device, host, &slice, &view, &rig->context), 0);
	const struct npumem_dims shape = {1, 2, 4, 4};
	ck_assert_int_eq(device_view_reshape(rig->device, view, &shape, &again, &rig->context), 0);
	ck_assert_int_eq(device_view_format(rig->device, matrix, 7, &again, &rig->context), 0);
	ck_assert_int_eq(rig_seal(rig, matrix), 0);
}

static struct device *new_device(struct rig *rig, void *memory)
{
	struct device *device;
	ck_assert_int_eq(device_new(&rig->options, &rig->scarce.heap, memory, &device), 0);
	return device;
}

/* ---- wrong values ---- */

/* The other tensors of the stage are as they were, whatever is done to one that should not be there. */
static void use(struct rig *rig, struct device *device, struct tensor *tensor)
{
	struct rig other = *rig;
	uint8_t bytes[4096];
	other.device = device;
	if (rig_bytes(tensor) <= (int64_t)sizeof(bytes) && !rig_fill(&other, tensor, 0))
		ck_assert_int_eq(rig_read(&other, tensor, bytes), 0);
	const char *wrong = device_check(device);
	ck_assert_msg(!wrong, "in use: %s", wrong);
	rig->scarce = other.scarce;
}

/* Restores all, one of them wrongly. Returns whether that one was taken: then others may have lost their place to
 * it; else only its views. */
static bool try_saved(struct rig *rig, const struct cells *cells, uint32_t which, const struct device_saved *wrong)
{
	void *memory = restart_copy(rig, rig->memory);
	struct device *device = new_device(rig, memory);
	struct tensor *tensor, *taken = NULL;
	ck_assert_int_eq(device_restore_begin(device, cells->n, false), 0);
	for (unsigned pass = 0; pass < 3; pass++)
		for (uint32_t i = 0; i < cells->n; i++) {
			const struct device_saved *right = &cells->all[i].saved;
			if (device_saved_pass(right) != pass)
				continue;
			npumem_error_clear(&rig->error);
			int status = device_restore(device, i == which ? wrong : right, &tensor, &rig->context);
			ck_assert_int_ge(status, 0);
			ck_assert_int_eq(rig->error.status, status);
			ck_assert(!status || i == which || taken || right->base == cells->all[which].saved.handle);
			if (!status && i == which)
				taken = tensor;
		}
	ck_assert(!taken || taken == device_find(device, wrong->handle));
	device_restore_end(device, true);
	const char *bad = device_check(device);
	ck_assert_msg(!bad, "%u: %s", which, bad);
	if (taken) {
		ck_assert(wrong->reuse >= NPUMEM_NEVER && wrong->reuse <= NPUMEM_UNCHECKED);
		ck_assert(!taken->base || (!taken->base->base && taken->base->reuse == wrong->reuse));
		use(rig, device, taken);
	}
	device_free(device);
	free(memory);
	return taken;
}

static const int64_t extremes[] = {INT64_MIN,
				   INT64_MIN + 1,
				   -(INT64_C(1) << 32),
				   INT32_MIN,
				   -129,
				   -1,
				   0,
				   1,
				   2,
				   4,
				   127,
				   128,
				   2047,
				   2048,
				   4095,
				   4096,
				   4097,
				   16384,
				   UINT16_MAX,
				   INT32_MAX,
				   UINT32_MAX,
				   INT64_C(1) << 40,
				   INT64_MAX};

TEST(wrong_values)
{
	struct rig rig;
	unsigned n_taken = 0, n_tried = 0;
	open_stage(&rig);
	struct cells cells = cells_of(rig.device);
	ck_assert_uint_eq(cells.n, 8);
	for (uint32_t which = 0; which < cells.n; which++) {
		const struct device_saved right = cells.all[which].saved;
		ck_assert(try_saved(&rig, &cells, which, &right));
		for (size_t at = 0; at < sizeof(right); at += at < 184 ? 8 : 1)
			for (unsigned k = 0; k < sizeof(extremes) / sizeof(extremes[0]); k++) {
				struct device_saved wrong = right;
				memcpy((uint8_t *)&wrong + at, &extremes[k], at < 184 ? 8 : 1);
				if (!memcmp(&wrong, &right, sizeof(wrong)))
					continue;
				n_taken += try_saved(&rig, &cells, which, &wrong);
				n_tried++;
			}
		uint64_t random = which + 1;
		for (unsigned k = 0; k < 400; k++) {
			struct device_saved wrong = right;
			((uint8_t *)&wrong)[oracle_random(&random) % sizeof(wrong)] ^=
				(uint8_t)(1 << oracle_random(&random) % 8);
			n_taken += try_saved(&rig, &cells, which, &wrong);
			n_tried++;
		}
	}
	/* Some are of other tensors that might be: sealed, of another type, or elsewhere. */
	ck_assert_uint_gt(n_taken, 100);
	ck_assert_uint_lt(n_taken, n_tried / 4);
	cells_free(&cells);
	rig_close(&rig);
}

/* ---- who may lie where ---- */

struct pair {
	struct rig rig;
	struct cells cells;
	void *memory;
	struct device *device;
};

static void open_pair(struct pair *pair)
{
	open_stage(&pair->rig);
	pair->cells = cells_of(pair->rig.device);
	pair->memory = restart_copy(&pair->rig, pair->rig.memory);
	pair->device = new_device(&pair->rig, pair->memory);
	ck_assert_int_eq(device_restore_begin(pair->device, pair->cells.n, false), 0);
	npumem_error_clear(&pair->rig.error);
}

static void close_pair(struct pair *pair)
{
	device_restore_end(pair->device, true);
	ck_assert_ptr_null(device_check(pair->device));
	device_free(pair->device);
	free(pair->memory);
	cells_free(&pair->cells);
	rig_close(&pair->rig);
}

static int restore_as(struct pair *pair, uint32_t which, void (*change)(struct device_saved *saved))
{
	struct tensor *tensor;
	struct device_saved saved = pair->cells.all[which].saved;
	if (change)
		change(&saved);
	npumem_error_clear(&pair->rig.error);
	return device_restore(pair->device, &saved, &tensor, &pair->rig.context);
}

static void as_host(struct device_saved *saved)
{
	saved->is_guest = false;
}

static void as_guest(struct device_saved *saved)
{
	saved->is_guest = true;
}

/* Onto the host's first byte of data. */
static void over_data(struct device_saved *saved)
{
	saved->address -= 3 * NPU_BYTES;
}

static void at_first(struct device_saved *saved)
{
	saved->address = 0;
}

static void on_next_npu(struct device_saved *saved)
{
	saved->start_npu++;
}

enum { HOST, GUEST, MATRIX, STRIDED, PACKED, SLICE, RESHAPED, FORMAT };

TEST(two_that_meet)
{
	struct pair pair;
	open_pair(&pair);
	ck_assert_int_eq(restore_as(&pair, SLICE, NULL), NPUMEM_INVALID);
	rig_said(&pair.rig, NPUMEM_INVALID, "it is a view of nothing");
	ck_assert_int_eq(restore_as(&pair, HOST, NULL), 0);
	ck_assert_int_eq(restore_as(&pair, HOST, NULL), NPUMEM_INVALID);
	rig_said(&pair.rig, NPUMEM_INVALID, "its handle cannot be given to it");
	ck_assert_int_eq(restore_as(&pair, GUEST, as_host), NPUMEM_INVALID);
	rig_said(&pair.rig, NPUMEM_INVALID, "another tensor has bytes of it");
	ck_assert_int_eq(restore_as(&pair, GUEST, over_data), NPUMEM_FAILED_PRECONDITION);
	rig_said(&pair.rig, NPUMEM_FAILED_PRECONDITION, "data over data is always refused");
	ck_assert_ptr_null(device_find(pair.device, pair.cells.all[GUEST].saved.handle));
	ck_assert_int_eq(restore_as(&pair, GUEST, NULL), 0);
	ck_assert_int_eq(restore_as(&pair, SLICE, NULL), 0);
	/* Before what it was made from, though in its base. */
	ck_assert_int_eq(restore_as(&pair, RESHAPED, at_first), NPUMEM_INVALID);
	rig_said(&pair.rig, NPUMEM_INVALID, "it leaves what it was made from");
	/* Where its base has no channel. */
	ck_assert_int_eq(restore_as(&pair, RESHAPED, on_next_npu), NPUMEM_INVALID);
	rig_said(&pair.rig, NPUMEM_INVALID, "it leaves what it was made from");
	/* A view of a view is none. */
	uint64_t handle = pair.cells.all[RESHAPED].saved.handle;
	pair.cells.all[RESHAPED].saved = pair.cells.all[SLICE].saved;
	pair.cells.all[RESHAPED].saved.handle = handle;
	pair.cells.all[RESHAPED].saved.base = pair.cells.all[SLICE].saved.handle;
	pair.cells.all[RESHAPED].saved.range = (struct tensor_range){{0, 0, 0, 0}, {1, 1, 1, 1}};
	ck_assert_int_eq(restore_as(&pair, RESHAPED, NULL), NPUMEM_INVALID);
	rig_said(&pair.rig, NPUMEM_INVALID, "it is a view of nothing");
	close_pair(&pair);
}

/* A guest that has become a host is still described as a guest by whoever did not look again. */
TEST(guests_that_meet_nobody)
{
	struct pair pair;
	struct device_counts before, after;
	open_pair(&pair);
	for (uint32_t i = HOST; i <= PACKED; i++)
		ck_assert_int_eq(restore_as(&pair, i, as_guest), 0);
	ck_assert_int_eq(restore_as(&pair, SLICE, NULL), 0);
	ck_assert_int_eq(restore_as(&pair, RESHAPED, NULL), 0);
	ck_assert_int_eq(restore_as(&pair, FORMAT, NULL), 0);
	device_restore_end(pair.device, false);
	device_stat(pair.rig.device, &before);
	device_stat(pair.device, &after);
	ck_assert_int_eq(memcmp(&before, &after, sizeof(before)), 0);
	ck_assert_int_eq(device_compact(pair.device, false, NULL, NULL), 0);
	close_pair(&pair);
}

TEST(not_too_many_meetings)
{
	enum { BYTES = 4 * (MEETINGS_MAX + 1) };
	struct rig rig;
	rig_open(&rig, 2, 2048);
	struct device_request request = rig_request(NPUMEM_INT8, 1, 1, 1, BYTES);
	struct tensor *tensor, *host = rig_place(&rig, &request);
	request = rig_request(NPUMEM_INT8, 1, 1, 1, 4);
	request.spec.layout = NPUMEM_COMPACT;
	request.reuse = NPUMEM_UNCHECKED;
	for (unsigned i = 0; i < MEETINGS_MAX; i++) {
		request.spec.address = 2048 + tensor_place(host).offset + 4 * i;
		rig_place(&rig, &request);
	}
	struct device_saved one_more;
	const int64_t behind = 2048 + tensor_place(host).offset + 4 * MEETINGS_MAX;
	device_describe(rig.device, device_next(rig.device, host), &one_more);
	restart(&rig, false);
	rig_sound(&rig);
	/* There is no room in the table: its slot is taken from one that was never used. */
	struct cells cells = cells_of(rig.device);
	struct device *device = new_device(&rig, rig.memory);
	cells.n++;
	cells.all = realloc(cells.all, (cells.n + 1) * sizeof(*cells.all));
	ck_assert_ptr_nonnull(cells.all);
	cells.all[cells.n - 1].live = false;
	cells.all[cells.n - 1].stamp = UINT64_C(1) << 32;
	ck_assert_int_eq(cells_restore(&cells, device, NULL, &rig.context), 0);
	one_more.handle = cells.n;
	one_more.address = behind;
	npumem_error_clear(&rig.error);
	ck_assert_int_eq(device_restore(device, &one_more, &tensor, &rig.context), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_ptr_null(device_check(device));
	device_free(device);
	cells_free(&cells);
	rig_close(&rig);
}

/* Combs of bytes between one another's teeth, whose rows have lengths without a common period. */
static struct device_request comb(int64_t i)
{
	struct device_request request = rig_request(NPUMEM_INT8, 1, 1, 40, 30);
	const int64_t row = 512 * (31 + i);

	request.spec.layout = NPUMEM_STRIDED;
	request.spec.stride = (struct npumem_dims){40 * row, 40 * row, row, 512};
	request.spec.start_npu = 0;
	request.spec.address = i;
	request.reuse = NPUMEM_UNCHECKED;
	request.dma_only = true;
	return request;
}

/* Each pair takes long to compare, and no client is served before the last one. Then what was kept is believed, if
 * it is of one time; else a tensor is lost. */
TEST(guests_that_take_long, .to = 3)
{
	enum { N = 3 };
	struct rig rig;
	struct device *device;
	struct tensor *tensor;
	int status = 0;

	rig_open(&rig, 2, 40 * 512 * (31 + N));
	for (int64_t i = 0; i < N; i++) {
		struct device_request request = comb(i);
		rig_place(&rig, &request);
	}
	struct cells cells = cells_of(rig.device);
	device = new_device(&rig, rig.memory);
	ck_assert_int_eq(device_restore_begin(device, cells.n, _i == 2), 0);
	device->restore.steps = _i ? 10 : DEVICE_RESTORE_STEPS;
	for (unsigned pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < cells.n && !status; i++)
			if (device_saved_pass(&cells.all[i].saved) == pass)
				status = device_restore(device, &cells.all[i].saved, &tensor, &rig.context);
	ck_assert_int_eq(device->restore.steps > 0, !_i);
	ck_assert_int_eq(status, _i == 2 ? NPUMEM_INVALID : 0);
	if (_i == 2)
		rig_said(&rig, NPUMEM_INVALID, "it takes too long to see that it lies on no data of others");
	ck_assert_int_eq(device->n_tensors, _i == 2 ? 1 : N);
	if (_i < 2) {
		struct device_state known;
		device_state_lending(tensor, &known);
		ck_assert(known.lends == _i && known.borrows == _i);
	}
	device_restore_end(device, false);
	ck_assert_ptr_null(device_check(device));
	device_free(device);
	cells_free(&cells);
	rig_close(&rig);
}

/* ---- handles ---- */

TEST(handles_are_given_once)
{
	enum { N = 2000 };
	static uint64_t given[N];
	struct rig rig;
	uint64_t random = 4;
	unsigned n = 0;
	rig_open(&rig, 2, 65536);
	while (n < N) {
		struct device_request request = rig_request(NPUMEM_INT8, 1, 1, 1, 4);
		request.spec.layout = NPUMEM_COMPACT;
		struct tensor *tensor = rig_place(&rig, &request);
		for (unsigned i = 0; i < n; i++)
			if (given[i] == tensor->handle)
				ck_abort_msg("handle %" PRIu64 " was given twice", tensor->handle);
		given[n++] = tensor->handle;
		for (unsigned k = 0; k < 3 && oracle_random(&random) % 2; k++) {
			tensor = device_find(rig.device, given[oracle_random(&random) % n]);
			if (tensor)
				rig_release(&rig, tensor);
		}
		if (oracle_random(&random) % 16 == 0)
			restart(&rig, false);
	}
	/* Slots were used again, and the lowest first. */
	ck_assert_uint_lt(rig.device->n_slots, N * 2 / 3);
	rig_close(&rig);
}

TEST(slots)
{
	struct rig rig;
	rig_open(&rig, 2, 1024);
	void *memory = restart_copy(&rig, rig.memory);
	struct device *device = new_device(&rig, memory);
	ck_assert_int_eq(device_restore_begin(device, 6, false), 0);
	device_restore_free(device, 5, 0);
	device_restore_free(device, 3, UINT64_C(1) << 32);
	device_restore_free(device, 2, UINT32_MAX);
	device_restore_free(device, 1, 7);
	/* The handle of a slot that is to be used again, of one that is not there, and of none. */
	struct device_request request = rig_request(NPUMEM_INT8, 1, 2, 1, 8);
	struct device_saved saved;
	struct tensor *tensor;
	device_describe(rig.device, rig_place(&rig, &request), &saved);
	static const uint64_t wrong[] = {UINT64_C(7) << 32 | 2, UINT64_C(6) << 32 | 2, 6, 7, UINT32_MAX, 0};
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		saved.handle = wrong[i];
		npumem_error_clear(&rig.error);
		rig_fails(&rig, device_restore(device, &saved, &tensor, &rig.context), NPUMEM_INVALID,
			  "its handle cannot be given to it");
	}
	device_restore_end(device, false);
	static const uint64_t expected[] = {UINT64_C(7) << 32 | 2, UINT64_C(0xffffffff) << 32 | 3, 6, 7};
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(table_add(device)->handle, expected[i]);
	ck_assert_uint_eq(device_handle_slot(expected[0]), 1);
	ck_assert_uint_eq(device_handle_stamp(expected[0]), 8);
	ck_assert_uint_eq(device_handle_stamp(expected[1]), UINT64_C(1) << 32);
	device_free(device);
	device = new_device(&rig, memory);
	ck_assert_int_eq(device_restore_begin(device, 0, false), 0);
	device_restore_end(device, false);
	ck_assert_uint_eq(table_add(device)->handle, 1);
	device_free(device);
	free(memory);
	rig_close(&rig);
}

/* ---- what is gone ---- */

/* Tensors whose cells are lost: their bytes are nobody's, also those in another's empty block and padding. */
TEST(nothing_is_left)
{
	struct pair pair;
	uint8_t bytes[2048], zero[2048] = {0};
	open_pair(&pair);
	struct tensor *matrix = device_find(pair.rig.device, pair.cells.all[MATRIX].saved.handle);
	/* Half of a write that nothing tells of: bytes without marks, and marks without bytes. */
	struct local *local = &pair.device->local;
	memset(local_at(local, 1, 3500), 0x77, 300);
	local_mark(local, 2, 3600, 100);
	local_lose_series(local, 3, 3600, 10, 1, 0);
	for (uint32_t i = HOST; i <= RESHAPED; i++)
		if (i != GUEST && i != MATRIX)
			ck_assert_int_eq(restore_as(&pair, i, NULL), 0);
	device_restore_end(pair.device, true);
	ck_assert_ptr_null(device_check(pair.device));
	ck_assert_uint_eq(local->n_damaged, 0);
	for (int64_t npu = 0; npu < 4; npu++) {
		device_peek(pair.device, npu, tensor_place(matrix).offset, tensor_place(matrix).bytes_per_npu,
			    bytes);
		ck_assert_int_eq(memcmp(bytes, zero, (size_t)tensor_place(matrix).bytes_per_npu), 0);
		device_peek(pair.device, npu, 3500, 300, bytes);
		ck_assert_int_eq(memcmp(bytes, zero, 300), 0);
	}
	/* The guest lay on NPU 3, where its host has no channel. */
	device_peek(pair.device, 3, 0, 16, bytes);
	ck_assert_int_eq(memcmp(bytes, zero, 16), 0);
	struct tensor *host = device_find(pair.device, pair.cells.all[HOST].saved.handle);
	struct rig other = pair.rig;
	other.device = pair.device;
	ck_assert_int_eq(rig_read(&other, host, bytes), 0);
	for (int64_t i = 0; i < rig_bytes(host); i++)
		ck_assert_uint_eq(bytes[i], 1);
	pair.rig.scarce = other.scarce;
	close_pair(&pair);
}

/* ---- lost bytes ---- */

TEST(lost_bytes)
{
	struct rig rig;
	rig_open_with(&rig, 4, 2048,
		      (struct device_options){.uninitialized = NPUMEM_ALLOW, .allow_unchecked = true});
	struct device_request request = rig_request(NPUMEM_FX8, 1, 2, 1, 10);
	struct tensor *in = rig_place(&rig, &request), *out = rig_place(&rig, &request), *view;
	struct device_state state;
	uint8_t bytes[20];
	in->owner = "in";
	ck_assert_int_eq(rig_fill(&rig, in, 5), 0);
	device_lose(rig.device, in, 8, 5);
	ck_assert(rig.device->local.kept->may_be_damaged);
	device_state(rig.device, in, &state);
	ck_assert(state.lost_bytes == 5 && state.damaged_bytes == 0 && state.unwritten_bytes == 0);
	/* Whatever the policy; the others can be read. */
	rig_fails(&rig, rig_read(&rig, in, bytes), NPUMEM_DATA_LOST, "in has 5 bytes that are lost");
	ck_assert_str_eq(rig_text(&rig, "tensor"), "in");
	ck_assert_int_eq(rig_field(&rig, "lost_bytes"), 5);
	ck_assert_int_eq(rig_read_some(&rig, in, 7, 2, bytes), NPUMEM_DATA_LOST);
	ck_assert_int_eq(rig_field(&rig, "lost_bytes"), 1);
	ck_assert_int_eq(rig_read_some(&rig, in, 0, 8, bytes), 0);
	ck_assert_int_eq(rig_read_some(&rig, in, 13, 7, bytes), 0);
	ck_assert_int_eq(rig_copy(&rig, out, in), NPUMEM_DATA_LOST);
	ck_assert_int_eq(rig_relu(&rig, in, out), NPUMEM_DATA_LOST);
	ck_assert_int_eq(rig_field(&rig, "lost_bytes"), 5);
	ck_assert_int_eq(rig_seal(&rig, in), NPUMEM_DATA_LOST);
	ck_assert(!in->sealed);
	restart(&rig, false);
	in = device_find(rig.device, 1);
	ck_assert_int_eq(rig_read(&rig, in, bytes), NPUMEM_DATA_LOST);
	ck_assert_uint_eq(rig.device->local.n_damaged, 5);
	/* Through a view as well. */
	const struct device_slice slice = {{0, 1, 0, 0}, {1, 2, 1, 10}};
	ck_assert_int_eq(device_view_slice(rig.device, in, &slice, &view, &rig.context), 0);
	ck_assert_int_eq(rig_read(&rig, view, bytes), NPUMEM_DATA_LOST);
	ck_assert_int_eq(rig_field(&rig, "lost_bytes"), 3);
	ck_assert_int_eq(rig_fill(&rig, view, 6), 0);
	ck_assert_int_eq(rig_read(&rig, view, bytes), 0);
	ck_assert_int_eq(rig_read(&rig, in, bytes), NPUMEM_DATA_LOST);
	ck_assert_int_eq(rig_field(&rig, "lost_bytes"), 2);
	ck_assert_int_eq(rig_write_some(&rig, in, 8, 2, "ab"), 0);
	ck_assert_int_eq(rig_read(&rig, in, bytes), 0);
	ck_assert_int_eq(memcmp(bytes, "\5\5\5\5\5\5\5\5ab\6\6\6\6\6\6\6\6\6\6", 20), 0);
	ck_assert_uint_eq(rig.device->local.n_damaged, 0);
	/* The next restart finds nothing to count. */
	restart(&rig, false);
	ck_assert(!rig.device->local.kept->may_be_damaged);
	/* Of a tensor that was known to be written. */
	in = device_find(rig.device, 1);
	ck_assert_int_eq(rig_fill(&rig, in, 7), 0);
	ck_assert(in->all_written);
	uint64_t version = in->version;
	device_lose(rig.device, in, 0, -1);
	ck_assert(!in->all_written && in->version > version);
	device_state(rig.device, in, &state);
	ck_assert(state.lost_bytes == 20 && state.unwritten_bytes == 0);
	rig_close(&rig);
}

/* ---- host memory ---- */

TEST(no_memory)
{
	struct pair pair;
	struct scarce *scarce = &pair.rig.scarce;
	bool fired = true;
	open_pair(&pair);
	device_free(pair.device);
	for (int64_t fail_at = 0; fired; fail_at++) {
		pair.device = new_device(&pair.rig, pair.memory);
		int64_t n_live = scarce->n_live;
		scarce_arm(scarce, fail_at);
		int status = cells_restore(&pair.cells, pair.device, NULL, &pair.rig.context);
		fired = scarce_fired(scarce);
		scarce_arm(scarce, -1);
		ck_assert_int_eq(status, fired ? -ENOMEM : 0);
		ck_assert_int_ge(scarce->n_live, n_live);
		if (!fired)
			break;
		/* Not even the marks fit to tensors that are not there. */
		device_restore_end(pair.device, true);
		ck_assert_ptr_null(device_check(pair.device));
		device_free(pair.device);
		free(pair.memory);
		pair.memory = restart_copy(&pair.rig, pair.rig.memory);
	}
	close_pair(&pair);
}
