/* Memory that faults in spite of everything. */
#include "daemon/server/fault.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

Suite *suite_fault(void)
{
	Suite *suite = suite_create("fault");
	TCase *tests = tcase_create("fault");

	tcase_add_test(tests, a_known_mapping_becomes_zeros);
	tcase_add_test_raise_signal(tests, another_fault_ends_the_process, SIGBUS);
	tcase_add_test(tests, there_is_an_end_to_them);
	suite_add_tcase(suite, tests);
	return suite;
}
