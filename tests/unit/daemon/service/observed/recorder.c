/* The record's queue: its bound, its parts, who owns what is in it; and the device in numbers. */
#include "daemon/service/observed/recorder.h"

#include <zlib.h>

#include "daemon/service/checksum.h"
#include "daemon/service/operations.h"
#include "daemon/service/segments.h"
#include "daemon/service/transfer.h"
#include "tests/unit/daemon/service/world.h"

struct scene {
	struct world world;
	struct session admin, user;
	struct recorder *recorder;
};

static void scene_init(struct scene *scene)
{
	world_init(&scene->world);
	ck_assert_int_eq(session_init(&scene->admin, &scene->world.service, 500, 0, &scene->world.error), 0);
	ck_assert_int_eq(session_init(&scene->user, &scene->world.service, 1001, 0, &scene->world.error), 0);
	scene->recorder = &scene->world.service.recorder;
}

static void scene_deinit(struct scene *scene)
{
	session_deinit(&scene->user);
	session_deinit(&scene->admin);
	world_deinit(&scene->world);
}

FIXTURE_OBJECT(struct scene, scene, scene_init(&scene), scene_deinit(&scene))

static int start(struct session *session)
{
	npumem_error_clear(&scene.world.error);
	return recorder_start(scene.recorder, session, &scene.world.error);
}

static void scene_add(size_t bytes)
{
	static uint8_t request[1 << 20];
	uint64_t handles[] = {5, 6};
	struct recorder_entry entry = {.session = scene.user.id,
				       .uid = 1001,
				       .status = 3,
				       .digest = 4,
				       .n_handles = 2,
				       .handles = handles,
				       .bytes = bytes,
				       .request = request};
	memset(request, 'r', bytes);
	recorder_add(scene.recorder, &entry);
}

/* Bytes of the first entry that are in its parts; takes it. */
static size_t drain_one(struct recorder *recorder, unsigned *n_parts)
{
	struct recorder_part part;
	size_t bytes = 0;
	for (*n_parts = 0; recorder_peek(recorder, &part); recorder_next(recorder)) {
		ck_assert_uint_le(part.n, RECORDER_PART_BYTES);
		ck_assert(part.transfer || part.first == bytes);
		bytes += part.n;
		++*n_parts;
		if (part.is_last) {
			recorder_next(recorder);
			break;
		}
	}
	return bytes;
}

TEST(who_may_start_and_when)
{
	ck_assert_int_eq(start(&scene.user), NPUMEM_PERMISSION_DENIED);
	struct tensor *tensor = world_tensor(&scene.world, &scene.user, "x");
	ck_assert_int_eq(start(&scene.admin), NPUMEM_FAILED_PRECONDITION);
	ck_assert(strstr(scene.world.error.message, "there are 1: free them, or begin with a snapshot"));
	service_release(&scene.world.service, tensor);
	ck_assert_int_eq(start(&scene.admin), 0);
	ck_assert_int_eq(start(&scene.admin), NPUMEM_FAILED_PRECONDITION);
	ck_assert(recorder_is_on(scene.recorder));
	recorder_stop(scene.recorder);
	ck_assert(!recorder_is_on(scene.recorder));
	ck_assert_int_eq(start(&scene.admin), 0);
}

/* What there was comes first, where it begins in the midst. */
TEST(what_was_there_before)
{
	struct recorder_part part;
	world_tensor(&scene.world, &scene.user, "x");
	scene.user.is_detached = true;
	scene.world.service.recovered.at_ns = 5;
	ck_assert_int_eq(recorder_check(scene.recorder, &scene.user, &scene.world.error),
			 NPUMEM_PERMISSION_DENIED);
	ck_assert_int_eq(recorder_check(scene.recorder, &scene.admin, &scene.world.error), 0);
	recorder_begin(scene.recorder, &scene.admin);
	ck_assert_int_eq(recorder_check(scene.recorder, &scene.admin, &scene.world.error),
			 NPUMEM_FAILED_PRECONDITION);
	ck_assert(recorder_peek(scene.recorder, &part));
	ck_assert_int_eq((int)part.entry->before, RECORDER_RECOVERY);
	ck_assert(part.is_last);
	recorder_next(scene.recorder);
	ck_assert(recorder_peek(scene.recorder, &part));
	ck_assert_int_eq((int)part.entry->before, RECORDER_SESSION);
	ck_assert_uint_eq(part.entry->session, scene.user.id);
	ck_assert_uint_eq(part.entry->uid, 1001);
	recorder_next(scene.recorder);
	ck_assert(!recorder_peek(scene.recorder, &part));
	scene.user.is_detached = false;
}

TEST(entries_in_order_and_in_parts)
{
	struct recorder_part part;
	unsigned n;
	/* Nothing before the start, and nothing after the end. */
	scene_add(10);
	ck_assert(!recorder_peek(scene.recorder, &part));
	ck_assert_int_eq(start(&scene.admin), 0);
	scene_add(10);
	scene_add(RECORDER_PART_BYTES);
	scene_add(2 * RECORDER_PART_BYTES + 1);
	scene_add(0);
	recorder_stop(scene.recorder);
	scene_add(10);
	ck_assert(recorder_peek(scene.recorder, &part));
	ck_assert(part.is_last && part.n == 10 && !memcmp(part.bytes, "rrrrrrrrrr", 10));
	ck_assert_uint_eq(part.entry->number, 1);
	ck_assert_uint_eq(part.entry->handles[1], 6);
	ck_assert_uint_eq(drain_one(scene.recorder, &n), 10);
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(drain_one(scene.recorder, &n), RECORDER_PART_BYTES);
	ck_assert_uint_eq(n, 1);
	ck_assert(recorder_peek(scene.recorder, &part));
	ck_assert(!part.is_last && part.entry->number == 3);
	ck_assert_uint_eq(drain_one(scene.recorder, &n), 2 * RECORDER_PART_BYTES + 1);
	ck_assert_uint_eq(n, 3);
	ck_assert_uint_eq(drain_one(scene.recorder, &n), 0);
	ck_assert_uint_eq(n, 1);
	ck_assert(!recorder_peek(scene.recorder, &part));
	ck_assert_uint_eq(scene.recorder->bytes, 0);
}

TEST(what_waits_goes_with_the_recorders_session)
{
	scene_add(100);
	ck_assert_ptr_null(scene.recorder->first);
	ck_assert_int_eq(start(&scene.admin), 0);
	scene_add(100);
}

TEST(more_than_it_keeps)
{
	size_t n = 0;
	unsigned parts;
	ck_assert_int_eq(start(&scene.admin), 0);
	/* Most of it is under way, which counts. */
	void *memory = recorder_alloc(scene.recorder, RECORDER_BYTES_MAX - (3 << 20));
	ck_assert_ptr_nonnull(memory);
	for (; !scene.recorder->lost; n++)
		scene_add(1 << 20);
	ck_assert_uint_eq(n, 3);
	ck_assert_str_eq(scene.recorder->reason, "the recorder was too slow for what was asked");
	ck_assert(!recorder_is_on(scene.recorder));
	recorder_lose(scene.recorder, "another reason");
	ck_assert_str_eq(scene.recorder->reason, "the recorder was too slow for what was asked");
	scene_add(1);
	ck_assert_uint_eq(drain_one(scene.recorder, &parts), 1 << 20);
	ck_assert_uint_eq(drain_one(scene.recorder, &parts), 1 << 20);
	ck_assert_uint_eq(drain_one(scene.recorder, &parts), 0);
	ck_assert_uint_eq(parts, 0);
	/* The next recording does not forget what is under way since before. */
	recorder_stop(scene.recorder);
	ck_assert_int_eq(start(&scene.admin), 0);
	ck_assert(recorder_is_on(scene.recorder));
	ck_assert_uint_eq(scene.recorder->bytes, RECORDER_BYTES_MAX - (3 << 20));
	recorder_release(scene.recorder, memory, RECORDER_BYTES_MAX - (3 << 20));
	ck_assert_uint_eq(scene.recorder->bytes, 0);
}

/* Runs what is queued until there is none: the number of turns. In each, no more than a step is freed. */
static unsigned run_turns(void)
{
	struct fair_queue *queue = &scene.world.service.queue;
	struct fair_work *work;
	unsigned n;
	for (n = 0; (work = fair_queue_take(queue)); n++) {
		size_t alive = scene.world.n_alive, bytes = scene.recorder->bytes;
		work->run(work);
		ck_assert_uint_le(alive - scene.world.n_alive, 2 * RECORDER_FREED_BLOCKS);
		ck_assert_uint_lt(bytes - scene.recorder->bytes, RECORDER_FREED_BYTES + (2 << 20));
	}
	return n;
}

/* Its session ends, or another recording begins. */
TEST(what_is_dropped_is_freed_in_steps)
{
	enum { ENTRIES = 5 * RECORDER_FREED_BLOCKS, LARGE = 8 };
	for (unsigned again = 0; again < 2; again++) {
		size_t alive;
		scene_deinit(&scene);
		scene_init(&scene);
		ck_assert_int_eq(start(&scene.admin), 0);
		for (unsigned i = 0; i < LARGE; i++)
			scene_add(1 << 20);
		for (unsigned i = 0; i < ENTRIES; i++)
			scene_add(10);
		ck_assert(!scene.recorder->lost);
		alive = scene.world.n_alive;
		recorder_stop(scene.recorder);
		if (again)
			ck_assert_int_eq(start(&scene.admin), 0);
		else
			recorder_drop(scene.recorder);
		ck_assert_uint_eq(scene.world.n_alive, alive);
		ck_assert_ptr_null(scene.recorder->first);
		ck_assert_uint_ge(run_turns(), LARGE + 5);
		ck_assert_uint_eq(scene.recorder->bytes, 0);
		ck_assert_uint_eq(alive - scene.world.n_alive, 2 * (ENTRIES + LARGE));
	}
}

/* One entry of very many transfers is freed in steps, too. */
TEST(the_transfers_of_one_request_are_freed_in_steps)
{
	enum { TRANSFERS = 3 * RECORDER_FREED_BLOCKS };
	struct recorder_entry entry = {.status = 0};
	ck_assert_int_eq(start(&scene.admin), 0);
	for (unsigned i = 0; i < TRANSFERS; i++) {
		struct recorder_transfer *one = recorder_alloc(scene.recorder, sizeof(*one));
		*one = (struct recorder_transfer){.next = entry.transfers};
		entry.transfers = one;
	}
	recorder_add(scene.recorder, &entry);
	recorder_drop(scene.recorder);
	ck_assert_uint_ge(run_turns(), 3);
	ck_assert_uint_eq(scene.recorder->bytes, 0);
}

/* A full recording is dropped: the next one has all the room at once, and the daemon never holds more. */
TEST(the_next_recording_has_the_room, .is_slow = true)
{
	enum { ENTRIES = (int)(RECORDER_BYTES_MAX >> 20) - 1 };
	unsigned n;
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(start(&scene.admin), 0);
		for (unsigned k = 0; k < ENTRIES; k++)
			scene_add(1 << 20);
		ck_assert(!scene.recorder->lost);
		ck_assert_uint_le(scene.recorder->bytes, RECORDER_BYTES_MAX);
		if (!i)
			recorder_drop(scene.recorder);
	}
	for (unsigned k = 0; k < ENTRIES; k++)
		ck_assert_uint_eq(drain_one(scene.recorder, &n), 1 << 20);
	run_turns();
	ck_assert_uint_eq(scene.recorder->bytes, 0);
}

/* ---- sessions and their memory ---- */

static uint8_t shared_bytes[4096];

static int take_memory(void *ctx, struct segments_memory *memory, struct npumem_error *error)
{
	(void)ctx, (void)error;
	*memory = (struct segments_memory){.base = shared_bytes, .bytes = sizeof(shared_bytes), .writable = true};
	return 0;
}

static void release_memory(void *ctx, const struct segments_memory *memory)
{
	(void)ctx, (void)memory;
}

static const struct segments_source source = {.take = take_memory, .release = release_memory};

TEST(sessions_begin_with_what_they_share_and_end)
{
	struct segment *segment;
	struct recorder_part part;
	scene.user.segments_source = &source;
	ck_assert_int_eq(segments_share(&scene.user, 0, &segment, &scene.world.error), 0);
	ck_assert_int_eq(start(&scene.admin), 0);
	ck_assert(recorder_peek(scene.recorder, &part));
	ck_assert(part.is_last && !part.n && part.entry->segment == segment->id);
	ck_assert_uint_eq(part.entry->segment_bytes, 4096);
	ck_assert(part.entry->segment_writable && part.entry->session == scene.user.id);
	recorder_next(scene.recorder);
	ck_assert(!recorder_peek(scene.recorder, &part));
	session_deinit(&scene.user);
	ck_assert(recorder_peek(scene.recorder, &part));
	ck_assert(part.is_last && !part.n && !part.entry->segment && part.entry->number == 2);
	recorder_next(scene.recorder);
	session_deinit(&scene.admin);
	ck_assert_ptr_null(scene.recorder->owner);
	world_deinit(&scene.world);
	scene_init(&scene);
}

/* One op from its check to its end, with what is recorded of it. */
static struct recorder_transfer *transfer(struct op *op)
{
	ck_assert_int_eq(operations_check(&scene.user, op, &scene.world.error), 0);
	struct recorder_transfer *transfer = transfer_new(&scene.user, op);
	ck_assert_int_eq(operations_run(&scene.user, op, &scene.world.error), 0);
	if (transfer)
		transfer_take(&scene.user, op, transfer);
	operations_finish(&scene.user, op);
	op_deinit(scene.user.service->device, op);
	return transfer;
}

TEST(what_operations_move_is_read_back)
{
	struct segment *segment;
	struct tensor *tensor;
	struct op op = {.kind = OP_WRITE, .first = 0, .count = -1};
	uint8_t dense[800];
	scene.user.segments_source = &source;
	ck_assert_int_eq(start(&scene.admin), 0);
	ck_assert_int_eq(segments_share(&scene.user, 0, &segment, &scene.world.error), 0);
	for (unsigned i = 0; i < sizeof(shared_bytes); i++)
		shared_bytes[i] = (uint8_t)(i * 13 >> 2);
	op.tensor = tensor = world_tensor(&scene.world, &scene.user, "x"); /* int8 [1, 8, 1, 100] */
	op.system = (struct op_system){
		.base = shared_bytes, .bytes = 4096, .off = 40, .strided = true, .segment = segment};
	op.system.stride = (struct npumem_dims){1, 300, 1, 2};
	for (unsigned i = 0; i < sizeof(dense); i++)
		dense[i] = shared_bytes[40 + i / 100 * 300 + i % 100 * 2];
	struct recorder_transfer *moved = transfer(&op);
	ck_assert_ptr_nonnull(moved);
	ck_assert(!moved->is_read && moved->bytes == 800 && moved->segment == segment->id && moved->offset == 40);
	ck_assert_mem_eq(moved->data, dense, 800);
	ck_assert(moved->extent.c == 8 && moved->extent.w == 100 && moved->stride.c == 300 &&
		  moved->stride.w == 2);
	ck_assert_uint_eq(moved->element_bytes, 1);
	recorder_free_transfers(scene.recorder, moved);
	/* A part of it, back. */
	op = (struct op){.kind = OP_READ, .tensor = tensor, .first = 5, .count = 700};
	op.system = (struct op_system){.base = shared_bytes, .bytes = 4096, .off = 1, .segment = segment};
	moved = transfer(&op);
	ck_assert(moved->is_read && !moved->bytes && moved->extent.w == 700 && moved->stride.w == 1);
	ck_assert_uint_eq(moved->crc32, crc32(0, dense + 5, 700));
	recorder_free_transfers(scene.recorder, moved);
	ck_assert_uint_eq(scene.recorder->bytes, 0);
	/* Not shared, or not recorded: nothing. */
	op.system.segment = NULL;
	ck_assert_ptr_null(transfer(&op));
	op.system.segment = segment;
	recorder_stop(scene.recorder);
	ck_assert_ptr_null(transfer(&op));
}

/* More than is read at once, and the request behind it. */
TEST(a_long_read_and_a_long_write)
{
	static uint8_t memory[8 * 4000], request[RECORDER_PART_BYTES + 5];
	struct segment segment = {.id = 1};
	struct device_request wanted = world_request(8, 4000);
	struct tensor *tensor;
	struct op op = {.kind = OP_WRITE, .count = -1};
	struct recorder_entry entry = {.bytes = sizeof(request), .request = request};
	struct recorder_part part;
	const char *name = "x";
	unsigned n;
	ck_assert_int_eq(start(&scene.admin), 0);
	ck_assert_int_eq(tensors_alloc(&scene.user, &wanted, &name, 1, &tensor, &scene.world.error), 0);
	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i % 251);
	op.tensor = tensor;
	scene.user.segments_source = &source;
	op.system = (struct op_system){.base = memory, .bytes = sizeof(memory), .segment = &segment};
	entry.transfers = transfer(&op);
	ck_assert_mem_eq(entry.transfers->data, memory, sizeof(memory));
	op.kind = OP_READ;
	entry.transfers->next = transfer(&op);
	ck_assert_uint_eq(entry.transfers->next->crc32, crc32(0, memory, sizeof(memory)));
	recorder_add(scene.recorder, &entry);
	ck_assert(recorder_peek(scene.recorder, &part));
	ck_assert(part.transfer && !part.transfer->is_read && part.n == sizeof(memory) && !part.is_last);
	recorder_next(scene.recorder);
	ck_assert(recorder_peek(scene.recorder, &part));
	ck_assert(part.transfer && part.transfer->is_read && !part.n && !part.is_last);
	recorder_next(scene.recorder);
	ck_assert_uint_eq(drain_one(scene.recorder, &n), sizeof(request));
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(scene.recorder->bytes, 0);
}

/* ---- the device in numbers ---- */

static struct checksum *sum(void)
{
	struct checksum *checksum = NULL;
	ck_assert_int_eq(checksum_new(&scene.admin, &checksum, &scene.world.error), 0);
	checksum_run(checksum);
	return checksum;
}

static void write_bytes(struct tensor *tensor, int64_t first, int64_t count, int seed)
{
	uint8_t bytes[800];
	struct op op = {.kind = OP_WRITE, .tensor = tensor, .first = first, .count = count};
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + (unsigned)seed);
	op.system = (struct op_system){.base = bytes, .bytes = (uint64_t)count};
	ck_assert_ptr_null(transfer(&op));
}

TEST(numbers_of_what_is_there)
{
	struct tensor *x, *y;
	uint8_t npu[8192];
	x = world_tensor(&scene.world, &scene.user, "x");
	y = world_tensor(&scene.world, &scene.user, "y");
	write_bytes(x, 0, 800, 1);
	struct checksum *before = sum();
	ck_assert_uint_eq(before->n_local, 8);
	device_peek(scene.world.device, 3, 0, sizeof(npu), npu);
	ck_assert_uint_eq(before->local[3], crc32(0, npu, sizeof(npu)));
	/* By place and by name: the data of y in x's stead is another device. */
	write_bytes(y, 0, 800, 1);
	struct checksum *after = sum();
	ck_assert_uint_ne(after->hash, before->hash);
	checksum_free(after);
	service_release(&scene.world.service, y);
	y = world_tensor(&scene.world, &scene.user, "z");
	after = sum();
	ck_assert_uint_ne(after->hash, before->hash);
	ck_assert_mem_eq(after->local, before->local, 8 * sizeof(*before->local));
	checksum_free(after);
	/* The same name, with nothing in it; then one byte, of the value that memory has that nobody wrote. */
	service_release(&scene.world.service, y);
	y = world_tensor(&scene.world, &scene.user, "y");
	after = sum();
	ck_assert_uint_eq(after->hash, before->hash);
	checksum_free(after);
	write_bytes(y, 0, 1, 0);
	after = sum();
	ck_assert_mem_eq(after->local, before->local, 8 * sizeof(*before->local));
	checksum_free(after);
	write_bytes(y, 0, 800, 0);
	after = sum();
	ck_assert_uint_ne(after->hash, before->hash);
	checksum_free(after);
	checksum_free(before);
	ck_assert_int_eq(checksum_new(&scene.user, &before, &scene.world.error), NPUMEM_PERMISSION_DENIED);
	ck_assert_int_ge(checksum_cost(&scene.world.service), 8 * 8192);
}

/* ---- without memory ---- */

TEST(every_allocation_may_fail)
{
	bool hit = true;
	for (size_t i = 1; hit; i++) {
		struct checksum *checksum = NULL;
		struct segment segment = {.id = 1};
		struct tensor *tensor;
		struct op op = {.kind = OP_WRITE, .count = -1};
		uint8_t request[50] = {0};
		int status;
		scene_deinit(&scene);
		scene_init(&scene);
		ck_assert_int_eq(start(&scene.admin), 0);
		op.tensor = tensor = world_tensor(&scene.world, &scene.user, "x");
		scene.user.segments_source = &source;
		op.system = (struct op_system){.base = shared_bytes, .bytes = 4096, .segment = &segment};
		scene.world.fail_at = scene.world.n_allocs + i;
		struct recorder_transfer *moved = transfer(&op);
		struct recorder_entry entry = {.bytes = 50, .request = request, .transfers = moved};
		recorder_add(scene.recorder, &entry);
		scene_add(10);
		status = checksum_new(&scene.admin, &checksum, &scene.world.error);
		hit = scene.world.n_allocs >= scene.world.fail_at;
		ck_assert(!status || status == NPUMEM_RESOURCE_EXHAUSTED);
		ck_assert_int_eq(hit, status || scene.recorder->lost);
		ck_assert(!scene.recorder->lost ||
			  !strcmp(scene.recorder->reason, "the daemon is out of host memory"));
		scene.world.fail_at = 0;
		if (checksum)
			checksum_free(checksum);
		service_release(&scene.world.service, tensor);
		ck_assert_uint_lt(i, 100);
	}
}
