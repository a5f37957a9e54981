/* Memory that faults in spite of everything. */
#include "daemon/server/process/fault.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/service/operations.h"
#include "daemon/service/segments.h"
#include "tests/unit/daemon/service/world.h"

enum { PAGES = 4 };

/* Whole pages of a file that has none of them: each access is a SIGBUS. */
static char *map_nothing(size_t bytes)
{
	FILE *file = tmpfile();
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	fclose(file);
	return memory;
}

static size_t size(void)
{
	return PAGES * (size_t)sysconf(_SC_PAGESIZE);
}

struct access {
	char *memory;
	size_t bytes;
	size_t n; /* done */
	bool writes;
};

static void touch(void *arg)
{
	struct access *access = arg;
	for (; access->n < access->bytes; access->n++)
		if (access->writes)
			((volatile char *)access->memory)[access->n] = 1;
		else
			(void)((volatile char *)access->memory)[access->n];
}

static bool guarded(char *memory, size_t bytes, struct access *access)
{
	access->n = 0;
	return fault_guard(memory, bytes, touch, access);
}

TEST(an_access_is_left_where_it_faults)
{
	char *memory = map_nothing(size());
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *own = mmap(NULL, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct access access = {.memory = own, .bytes = size()};
	ck_assert_ptr_ne(own, MAP_FAILED);
	fault_open();
	ck_assert(guarded(own, size(), &access));
	ck_assert_uint_eq(access.n, size());
	ck_assert_ptr_ne(mmap(own + page, size() - page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			      fileno(tmpfile()), 0),
			 MAP_FAILED);
	for (int i = 0; i < 2; i++) {
		access.writes = i;
		ck_assert(!guarded(own, size(), &access));
		ck_assert_uint_eq(access.n, page);
	}
	/* It is no memory of the daemon's then. */
	access = (struct access){.memory = memory, .bytes = size(), .writes = true};
	ck_assert(!guarded(memory, size(), &access));
	ck_assert(!guarded(memory, size(), &access));
	ck_assert_uint_eq(access.n, 0);
	munmap(own, size());
	munmap(memory, size());
}

TEST(another_fault_ends_the_process, .signal = SIGBUS)
{
	char *memory = map_nothing(size());
	fault_open();
	ck_assert(!guarded(memory, size(), &(struct access){.memory = memory, .bytes = 1}));
	*(volatile char *)memory = 1;
}

TEST(a_fault_elsewhere_ends_the_process, .signal = SIGBUS)
{
	char *memory = map_nothing(size());
	fault_open();
	guarded(memory, size() / 2, &(struct access){.memory = memory + size() / 2, .bytes = 1});
}

static bool reach(const struct segments_memory *memory, void (*access)(void *arg), void *arg)
{
	return fault_guard(memory->base, memory->bytes, access, arg);
}

static int run(struct session *session, struct op *op, struct npumem_error *error)
{
	int status = operations_check(session, op, error);
	if (!status)
		status = operations_run(session, op, error);
	op_deinit(session->service->device, op);
	return status;
}

static int fill(struct session *session, struct tensor *tensor, int value)
{
	return run(session, &(struct op){.kind = OP_FILL, .tensor = tensor, .value = value}, NULL);
}

static int read_back(struct session *session, struct tensor *tensor, int64_t first, int64_t count)
{
	uint8_t room[800];
	struct op op = {.kind = OP_READ, .tensor = tensor, .first = first, .count = count};
	op.system = (struct op_system){.base = room, .bytes = sizeof(room)};
	return run(session, &op, NULL);
}

/* A write from memory that faults, and a read into it, are told; what was written counts as never written. */
TEST(the_operation_that_meets_it_is_told)
{
	struct world world;
	struct session session;
	const struct segments_source source = {.reach = reach};
	world_init(&world);
	ck_assert_int_eq(session_init(&session, &world.service, 1001, 0, &world.error), 0);
	session.segments_source = &source;
	struct tensor *tensor = world_tensor(&world, &session, "x"); /* int8 [1, 8, 1, 100] */
	fault_open();
	for (int kind = OP_WRITE; kind <= OP_READ; kind++) {
		char *memory = map_nothing(size());
		struct op op = {.kind = (enum op_kind)kind, .tensor = tensor, .first = 10, .count = 300};
		struct segment segment = {.memory = {.base = (uint8_t *)memory, .bytes = size()}};
		ck_assert_int_eq(fill(&session, tensor, 7), 0);
		op.system = (struct op_system){.base = (uint8_t *)memory, .bytes = size(), .segment = &segment};
		ck_assert_int_eq(run(&session, &op, &world.error), NPUMEM_DATA_LOST);
		ck_assert_str_eq(world.error.message, "the shared memory faulted while the operation ran");
		ck_assert(segment.is_broken);
		munmap(memory, size());
		ck_assert_int_eq(read_back(&session, tensor, 0, 10), 0);
		ck_assert_int_eq(read_back(&session, tensor, 10, 300),
				 kind == OP_WRITE ? NPUMEM_FAILED_PRECONDITION : 0);
		ck_assert_int_eq(read_back(&session, tensor, 310, 490), 0);
	}
	session_deinit(&session);
	world_deinit(&world);
}
