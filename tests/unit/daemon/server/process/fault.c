/* Memory that faults in spite of everything. */
#include "daemon/server/process/fault.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/service/operations.h"
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

START_TEST(a_known_mapping_becomes_zeros)
{
	char *one = map_nothing(size()), *two = map_nothing(size()), sum = 0;

	fault_open();
	/* To its last page, whatever of that the client has. */
	ck_assert(fault_add(one, size() - 10));
	ck_assert(fault_add(two, size()));
	ck_assert(!fault_is_broken(one));
	for (size_t i = 0; i < size(); i++)
		sum |= one[size() - 1 - i];
	ck_assert_int_eq(sum, 0);
	memset(one, 1, size());
	ck_assert(fault_is_broken(one));
	ck_assert(!fault_is_broken(two));
	fault_remove(one);
	ck_assert(!fault_is_broken(one));
	munmap(one, size());
	two[0] = 1;
	ck_assert(fault_is_broken(two));
	fault_remove(two);
	/* The place is free for what has not faulted. */
	ck_assert(fault_add(two, size()));
	ck_assert(!fault_is_broken(two));
	fault_remove(two);
	munmap(two, size());
}
END_TEST

START_TEST(another_fault_ends_the_process)
{
	char *memory = map_nothing(size());

	fault_open();
	ck_assert(fault_add(memory, size()));
	fault_remove(memory);
	*(volatile char *)memory = 1;
}
END_TEST

static bool is_broken(void *ctx, const uint8_t *base)
{
	(void)ctx;
	return fault_is_broken(base);
}

static int run(struct session *session, struct op *op, struct npumem_error *error)
{
	int status = operations_check(session, op, error);

	if (!status)
		status = operations_run(session, op, error);
	operations_end(session, op);
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

START_TEST(there_is_an_end_to_them)
{
	char *memory = (char *)0x10000000;

	for (size_t i = 0; i < FAULT_RANGES_MAX; i++)
		ck_assert(fault_add(memory + i * size(), size()));
	ck_assert(!fault_add(memory - size(), size()));
	fault_remove(memory + 7 * size());
	ck_assert(fault_add(memory - size(), size()));
}
END_TEST

/* A write from memory that faults, and a read into it, are told; what was written counts as never written. */
START_TEST(the_operation_that_meets_it_is_told)
{
	struct world world;
	struct session session;
	struct tensor *tensor;
	const struct segments_source source = {.is_broken = is_broken};

	world_init(&world);
	ck_assert_int_eq(session_init(&session, &world.service, 1001, 0, &world.error), 0);
	session.segments_source = &source;
	tensor = world_tensor(&world, &session, "x"); /* int8 [1, 8, 1, 100] */
	fault_open();
	for (int kind = OP_WRITE; kind <= OP_READ; kind++) {
		char *memory = map_nothing(size());
		struct op op = {.kind = (enum op_kind)kind, .tensor = tensor, .first = 10, .count = 300};

		ck_assert_int_eq(fill(&session, tensor, 7), 0);
		op.system = (struct op_system){.base = (uint8_t *)memory, .bytes = size(), .shared = true};
		ck_assert(fault_add(memory, size()));
		ck_assert_int_eq(run(&session, &op, &world.error), NPUMEM_DATA_LOST);
		ck_assert_str_eq(world.error.message, "the shared memory faulted while the operation ran");
		fault_remove(memory);
		munmap(memory, size());
		ck_assert_int_eq(read_back(&session, tensor, 0, 10), 0);
		ck_assert_int_eq(read_back(&session, tensor, 10, 300),
				 kind == OP_WRITE ? NPUMEM_FAILED_PRECONDITION : 0);
		ck_assert_int_eq(read_back(&session, tensor, 310, 490), 0);
	}
	session_deinit(&session);
	world_deinit(&world);
}
END_TEST

Suite *suite_fault(void)
{
	Suite *suite = suite_create("fault");
	TCase *tests = tcase_create("fault");

	tcase_add_test(tests, a_known_mapping_becomes_zeros);
	tcase_add_test_raise_signal(tests, another_fault_ends_the_process, SIGBUS);
	tcase_add_test(tests, the_operation_that_meets_it_is_told);
	tcase_add_test(tests, there_is_an_end_to_them);
	suite_add_tcase(suite, tests);
	return suite;
}
