#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <npumem/client.h>

#include "tests/support/test.h"

static char directory[] = "/tmp/npumem-program-XXXXXX", file[64];

static void setup(void)
{
	strcpy(directory, "/tmp/npumem-program-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(file, sizeof(file), "%s/npumemd", directory);
	FILE *made = fopen(file, "w");
	ck_assert_ptr_nonnull(made);
	fclose(made);
	ck_assert_int_eq(chmod(file, 0700), 0);
	unsetenv("NPUMEMD");
	setenv("PATH", "/nonexistent", 1);
}

static void teardown(void)
{
	unlink(file);
	rmdir(directory);
}

static void ck_assert_program(const char *path)
{
	struct npumem_program program;
	const char *name = npumem_program(&program);
	ck_assert_str_eq(program.path, path);
	ck_assert_str_eq(name, path);
}

TEST(the_environment_chooses)
{
	setenv("NPUMEMD", "/some/where", 1);
	ck_assert_program("/some/where");
	setenv("NPUMEMD", "just_a_name", 1);
	ck_assert_program("just_a_name");
}

TEST(the_path_is_searched)
{
	char path[256];
	snprintf(path, sizeof(path), "::/nonexistent:%s:/usr/bin", directory);
	setenv("PATH", path, 1);
	ck_assert_program("npumemd");
	setenv("NPUMEMD", "", 1);
	ck_assert_program("npumemd");
	ck_assert_int_eq(chmod(file, 0600), 0);
	struct npumem_program program;
	ck_assert_str_ne(npumem_program(&program), "npumemd");
}

TEST(else_where_it_is_installed)
{
	struct npumem_program program;
	const char *name = npumem_program(&program);
	ck_assert_int_eq(name[0], '/');
	ck_assert_str_eq(strrchr(name, '/'), "/npumemd");
	unsetenv("PATH");
	ck_assert_program(name);
}

TEST(a_path_that_is_too_long)
{
	static char path[3 * sizeof(struct npumem_program)];
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	setenv("NPUMEMD", path, 1);
	struct npumem_program program;
	ck_assert_uint_lt(strlen(npumem_program(&program)), sizeof(program.path));
	ck_assert_str_eq(strrchr(program.path, '/'), "/npumemd");
	setenv("PATH", path, 1);
	ck_assert_str_eq(strrchr(npumem_program(&program), '/'), "/npumemd");
}

FIXTURE(setup, teardown)
