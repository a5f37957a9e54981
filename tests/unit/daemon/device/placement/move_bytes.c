/* Compactions that are stopped at every step, and at any store between two steps, and gone on with by a device
 * over a copy of what was left: the same bytes and bits as without. */
#include "daemon/device/placement/move_bytes.h"

#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/device/geometry/intersect.h"
#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/places.h"
#include "tests/unit/daemon/device/restart.h"

struct world {
	struct rig rig;
	uint64_t random;
	struct cells before, after; /* of the tables, around a step */
	struct device_move moves[DEVICE_MOVES_MAX];
	unsigned n_moves;
	size_t bytes;	 /* of memory */
	void *decided;	 /* memory when the step was decided, */
	void *reference; /* and when its bytes had moved */
	uint64_t *last;	 /* at the last note */
	unsigned n_notes, n_staged;
};

static void random_fill(struct world *world, struct tensor *tensor)
{
	int64_t bytes = rig_bytes(tensor), elements = tensor_elements(tensor);
	uint8_t *data = malloc((size_t)bytes);
	ck_assert_ptr_nonnull(data);
	for (int64_t i = 0; i < bytes; i++)
		data[i] = (uint8_t)(1 + oracle_random(&world->random) % 255);
	int64_t first = oracle_between(&world->random, 0, elements - 1);
	if (oracle_between(&world->random, 0, 3))
		first = 0;
	ck_assert_int_eq(rig_write_some(&world->rig, tensor, first, elements - first, data), 0);
	free(data);
	if (oracle_between(&world->random, 0, 3) == 0)
		device_lose(world->rig.device, tensor, oracle_between(&world->random, 0, elements - 1), 1);
	if (oracle_between(&world->random, 0, 3) == 0)
		local_poison(&world->rig.device->local, tensor_place(tensor).npu, tensor_place(tensor).offset, 1);
}

static struct device_request large_request(struct world *world)
{
	struct device_request request = rig_request(NPUMEM_INT8, 1, oracle_between(&world->random, 1, 3), 1, 0);
	/* Small ones leave gaps over which a long one can move only in part. */
	request.spec.shape.w =
		oracle_between(&world->random, 1, oracle_between(&world->random, 0, 1) ? 3000 : 100000);
	request.spec.layout = (int)oracle_between(&world->random, 1, 2);
	return request;
}

/* Tensors with gaps between them; some were never written, some have views. */
static void open_world(struct world *world, int64_t n_npus, int64_t npu_bytes, uint64_t seed)
{
	struct tensor *tensors[40];
	unsigned n = 0;
	memset(world, 0, sizeof(*world));
	world->random = seed;
	rig_open(&world->rig, n_npus, npu_bytes);
	world->bytes = (size_t)device_memory_bytes(&world->rig.options.geometry);
	for (unsigned i = 0; i < 40; i++) {
		struct device_request request =
			npu_bytes > 65536 ? large_request(world) : places_request(&world->random, n_npus);
		request.pinned = oracle_between(&world->random, 0, 15) == 0;
		if (!rig_try(&world->rig, &request, &tensors[n]))
			n++;
	}
	for (unsigned i = 0; i < n; i++) {
		struct tensor *view;
		const struct device_slice first = {{0, 0, 0, 0}, {1, 1, 1, 1}};
		if (oracle_between(&world->random, 0, 7))
			random_fill(world, tensors[i]);
		if (tensor_place(tensors[i]).lanes == 1)
			ck_assert_int_eq(device_view_slice(world->rig.device, tensors[i], &first, &view, NULL), 0);
	}
	for (unsigned i = 0; i < n; i++)
		if (oracle_between(&world->random, 0, 2) == 0)
			rig_release(&world->rig, tensors[i]);
}

static void *copy(const struct world *world, const void *memory)
{
	return restart_copy(&world->rig, memory);
}

static void close_world(struct world *world)
{
	cells_free(&world->before);
	cells_free(&world->after);
	free(world->decided);
	free(world->reference);
	free(world->last);
	rig_close(&world->rig);
}

/* The next step of a compaction; false where it moves nothing. */
static bool decide(struct world *world, struct device_compaction *at)
{
	unsigned most = (unsigned)oracle_between(&world->random, 1, 30);
	world->before = cells_of(world->rig.device);
	ck_assert_int_eq(device_compact_step(world->rig.device, at, false, world->moves, most, &world->n_moves),
			 0);
	ck_assert(device_compact_views(world->rig.device, at, world->moves, world->n_moves, UINT_MAX));
	world->after = cells_of(world->rig.device);
	world->decided = copy(world, world->rig.memory);
	return world->n_moves;
}

static void end_step(struct world *world)
{
	cells_free(&world->before);
	cells_free(&world->after);
	free(world->decided);
	free(world->reference);
	free(world->last);
	world->decided = world->reference = world->last = NULL;
}

/* All but what is kept in front. */
static int compare(const struct world *world, const void *a, const void *b)
{
	size_t front = (size_t)(world->rig.device->local.lanes - (uint8_t *)world->rig.memory);
	return memcmp((const uint8_t *)a + front, (const uint8_t *)b + front, world->bytes - front);
}

static struct device *restored(struct world *world, const struct cells *cells, void *memory)
{
	struct device *device;
	ck_assert_int_eq(device_new(&world->rig.options, &world->rig.scarce.heap, memory, &device), 0);
	ck_assert_int_eq(cells_restore(cells, device, NULL, &world->rig.context), 0);
	return device;
}

/* What is left in `memory`, which goes, leads to what it should. */
static void leads_to(struct world *world, const struct cells *cells, void *memory, const void *expected,
		     const char *when)
{
	struct device *device = restored(world, cells, memory);
	device_restore_end(device, false);
	const char *wrong = device_check(device);
	ck_assert_msg(!wrong, "%s, after %u notes: %s", when, world->n_notes, wrong);
	ck_assert_msg(!compare(world, memory, expected), "%s, after %u notes: other bytes", when, world->n_notes);
	ck_assert_uint_eq(device->local.kept->n_moves, 0);
	device_free(device);
	free(memory);
}

/* Between two notes any store may have been the last, so that any word is the old or the new one; what is noted is
 * still the old. */
static void *between(struct world *world, const uint64_t *now)
{
	uint64_t *memory = copy(world, now);
	for (size_t i = 0; i < world->bytes / sizeof(*memory); i++)
		if (memory[i] != world->last[i] &&
		    (i < offsetof(struct kept, stage) / sizeof(*memory) || oracle_random(&world->random) % 2))
			memory[i] = world->last[i];
	return memory;
}

static void stop_here(void *ctx)
{
	struct world *world = ctx;
	const struct device *device = world->rig.device;
	const void *now = device->local.kept;
	world->n_staged += device->local.kept->progress & 1;
	leads_to(world, &world->after, copy(world, now), world->reference, "at a note");
	leads_to(world, &world->after, between(world, now), world->reference, "between notes");
	memcpy(world->last, now, world->bytes);
	world->n_notes++;
}

/* Every step of a compaction, stopped everywhere. */
static void stop_everywhere(struct world *world)
{
	struct device_compaction at = {.next = 0};
	while (!at.done) {
		if (decide(world, &at)) {
			/* The undisturbed run, on a copy; then this one. */
			world->reference = copy(world, world->decided);
			struct device *device = restored(world, &world->after, world->reference);
			device_restore_end(device, false);
			device_free(device);
			leads_to(world, &world->before, copy(world, world->decided), world->decided,
				 "not committed");
			world->last = copy(world, world->decided);
			device_give_way_by(world->rig.device, stop_here, world);
		}
		device_compact_bytes(world->rig.device);
		device_give_way_by(world->rig.device, NULL, NULL);
		if (world->n_moves)
			ck_assert_int_eq(compare(world, world->rig.memory, world->reference), 0);
		rig_sound(&world->rig);
		end_step(world);
	}
}

TEST(stopped_everywhere, .to = 8)
{
	static struct world world;
	static const int64_t n_npus[] = {1, 2, 4, 5};
	open_world(&world, n_npus[_i % 4], 16384, 30 + (uint64_t)_i);
	stop_everywhere(&world);
	ck_assert_uint_ge(world.n_notes, 10);
	close_world(&world);
}

/* Tensors of several pieces. */
TEST(stopped_in_long_moves, .to = 2, .is_slow = true)
{
	static struct world world;
	open_world(&world, 2, 1024 * 1024, 50 + (uint64_t)_i);
	stop_everywhere(&world);
	ck_assert_uint_ge(world.n_notes, 20);
	ck_assert_uint_ge(world.n_staged, 1);
	close_world(&world);
}

/* Ways that are about as long as a piece, or as the last one. */
TEST(stopped_on_every_way, .to = 8)
{
	enum { LAST = 4464, BYTES = 2 * KEPT_STAGE_BYTES + LAST };
	static struct world world;
	static const int64_t ways[] = {
		4, 60, LAST - 4, LAST, LAST + 4, KEPT_STAGE_BYTES - 4, KEPT_STAGE_BYTES, KEPT_STAGE_BYTES + 4};
	memset(&world, 0, sizeof(world));
	world.random = 3;
	rig_open(&world.rig, 2, 256 * 1024);
	world.bytes = (size_t)device_memory_bytes(&world.rig.options.geometry);
	struct device_request request = rig_request(NPUMEM_INT8, 1, 2, 1, ways[_i]);
	request.spec.layout = NPUMEM_COMPACT;
	struct tensor *gap = rig_place(&world.rig, &request);
	request.spec.shape.w = BYTES;
	random_fill(&world, rig_place(&world.rig, &request));
	rig_release(&world.rig, gap);
	stop_everywhere(&world);
	/* On each NPU three pieces and the end. */
	ck_assert_uint_eq(world.n_notes, 2 * 4 + world.n_staged);
	ck_assert_uint_eq(world.n_staged, 2 * ((ways[_i] < LAST) + 2 * (ways[_i] < KEPT_STAGE_BYTES)));
	close_world(&world);
}

/* A process that moves bytes, killed at random moments. */
static void move_and_be_killed(struct world *world, void *memory)
{
	struct device *device = restored(world, &world->after, memory);
	pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (!child) {
		device_restore_end(device, false);
		pause();
	}
	usleep((useconds_t)oracle_between(&world->random, 0, 1500));
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	world->n_notes += device->local.kept->n_moves > 0;
	device_free(device);
}

TEST(killed, .is_slow = true)
{
	static struct world world;
	struct device_compaction at = {.next = 0};
	open_world(&world, 4, 1024 * 1024, 70);
	ck_assert(decide(&world, &at));
	device_compact_bytes(world.rig.device);
	void *memory = mmap(NULL, world.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	for (int i = 0; i < 60; i++) {
		memcpy(memory, world.decided, world.bytes);
		move_and_be_killed(&world, memory);
		/* It may happen again on the way back. */
		move_and_be_killed(&world, memory);
		leads_to(&world, &world.after, copy(&world, memory), world.rig.memory, "killed");
	}
	munmap(memory, world.bytes);
	close_world(&world);
}

/* What is kept of a compaction may be anything: nothing breaks, and tensors that do not lie where it would take
 * them are as they were. */
TEST(kept_is_anything)
{
	static struct world world;
	uint64_t random = 9;
	open_world(&world, 4, 4096, 80);
	struct cells cells = cells_of(world.rig.device);
	for (int i = 0; i < 400; i++) {
		uint64_t *memory = copy(&world, world.rig.memory);
		struct kept *kept = (struct kept *)memory;
		for (unsigned k = 0; k < 8; k++) {
			uint32_t slot = oracle_random(&random) % cells.n;
			const struct tensor *tensor = slot_at(world.rig.device, slot);
			struct kept_move *move = &kept->moves[k];
			*move = (struct kept_move){tensor->handle, oracle_between(&random, -128, 4096),
						   tensor_place(tensor).offset, tensor_place(tensor).bytes_per_npu,
						   false};
			/* One of its values is wrong. */
			int64_t value = (int64_t)oracle_random(&random) * (oracle_random(&random) % 2 ? 1 : -1);
			switch (oracle_between(&random, 0, 3)) {
			case 0:
				move->handle += (uint64_t)value | UINT64_C(1) << 32;
				break;
			case 1:
				move->from_offset = move->to_offset - oracle_between(&random, 0, 9);
				break;
			case 2:
				move->to_offset += value | 1;
				break;
			default:
				move->bytes_per_npu += value | 1;
			}
		}
		kept->n_moves = oracle_between(&random, 0, 9) ? move_bytes_moves_word(kept->moves, 8)
							      : oracle_random(&random);
		kept->progress = move_bytes_position_word((uint64_t)oracle_random(&random)
							  << oracle_between(&random, 0, 40));
		leads_to(&world, &cells, (void *)memory, world.rig.memory, "anything");
	}
	cells_free(&cells);
	close_world(&world);
}

/* Each bit of what is kept of a compaction, at each of its positions: a flip is noticed, and no byte is moved. */
TEST(kept_with_a_flip)
{
	static struct world world;
	struct device_compaction at = {.next = 0};
	open_world(&world, 4, 4096, 85);
	ck_assert(decide(&world, &at));
	struct kept *kept = world.rig.device->local.kept;
	for (uint64_t position = 0; position < 1 << 12; position = 3 * position + 1) {
		kept->progress = move_bytes_position_word(position << (position % 38));
		size_t end = offsetof(struct kept, moves) + world.n_moves * sizeof(struct kept_move);
		ck_assert(device_compaction_is_sound(world.rig.device));
		for (size_t bit = 8 * offsetof(struct kept, n_moves); bit < 8 * end; bit++) {
			((uint8_t *)kept)[bit / 8] ^= (uint8_t)(1 << bit % 8);
			ck_assert_msg(!device_compaction_is_sound(world.rig.device), "bit %zu", bit);
			((uint8_t *)kept)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
	uint64_t *memory = copy(&world, world.rig.memory);
	((struct kept *)memory)->moves[0].from_offset ^= 64;
	struct device *device = restored(&world, &world.after, memory);
	device_restore_end(device, false);
	ck_assert_uint_eq(device->local.kept->n_moves, 0);
	for (struct tensor *tensor = NULL; (tensor = device_next(device, tensor));)
		for (int64_t npu = 0; npu < 4 && !tensor->base; npu++)
			ck_assert_mem_eq(local_at(&device->local, npu, tensor_place(tensor).offset),
					 local_at(&world.rig.device->local, npu, tensor_place(tensor).offset),
					 (size_t)tensor_place(tensor).bytes_per_npu);
	device_free(device);
	free(memory);
	device_compact_bytes(world.rig.device);
	end_step(&world);
	close_world(&world);
}

/* One of the moved tensors is lost with its cell: the others are whole, and of it nothing is left. */
TEST(without_one_of_them, .from = 170, .to = 260)
{
	static struct world world;
	struct device_compaction at = {.next = 0};
	/* Some have nothing to move; which, follows from the order in which a compiler has arguments made. */
	for (uint64_t seed = 90 + 100 * (uint64_t)_i;; seed++) {
		open_world(&world, 4, 4096, seed);
		if (decide(&world, &at))
			break;
		ck_assert_uint_lt(seed, 90 + 100 * (uint64_t)_i + 99);
		close_world(&world);
		at = (struct device_compaction){.next = 0};
	}
	uint32_t slot = device_handle_slot(world.moves[(unsigned)_i % world.n_moves].tensor->handle);
	for (uint32_t i = 0; i < world.after.n; i++)
		if (world.after.all[i].live && world.after.all[i].saved.base == world.after.all[slot].saved.handle)
			world.after.all[i].live = false;
	world.after.all[slot].live = false;
	/* Some of it has moved. */
	void *memory = copy(&world, world.decided);
	struct device *device = restored(&world, &world.after, memory);
	device_restore_end(device, true);
	ck_assert_ptr_null(device_check(device));
	device_compact_bytes(world.rig.device);
	for (int64_t npu = 0; npu < 4; npu++)
		for (int64_t i = 0; i < 4096; i++) {
			struct device_owner owner[8];
			bool is_data = false;
			for (unsigned n = device_at(device, npu, i, owner, 8); n > 0; n--)
				is_data |= owner[n - 1].kind & KINDS_DATA;
			uint8_t byte = *local_at(&device->local, npu, i);
			ck_assert_uint_eq(byte, is_data ? *local_at(&world.rig.device->local, npu, i) : 0);
		}
	device_free(device);
	free(memory);
	close_world(&world);
}
