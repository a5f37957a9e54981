#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <npumem/async.h>

#include "tests/support/test.h"

static char directory[32], program[64];

/* A shell script that stands for the daemon. */
static void script(const char *text)
{
	if (!*program) {
		strcpy(directory, "/tmp/npumem-spawn-XXXXXX");
		ck_assert_ptr_nonnull(mkdtemp(directory));
		snprintf(program, sizeof(program), "%s/npumemd", directory);
	}
	FILE *file = fopen(program, "w");
	ck_assert_ptr_nonnull(file);
	fprintf(file, "#!/bin/sh\n%s\n", text);
	fclose(file);
	ck_assert_int_eq(chmod(program, 0700), 0);
	setenv("NPUMEMD", program, 1);
}

static void cleanup(void)
{
	unlink(program);
	rmdir(directory);
	*program = 0;
}

TEST(a_refusal_to_start_is_quoted)
{
	struct npumem *npumem;
	struct npumem_error error;
	script("echo 'npumemd: starting' >&2\necho \"npumemd: no option $3 here\" >&2\nexit 2");
	ck_assert_int_eq(npumem_open("spawn:--wrong  --thing", NULL, &npumem, &error), NPUMEM_UNAVAILABLE);
	ck_assert_str_eq(error.message, "the private daemon did not start: npumemd: no option --wrong here");
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
	cleanup();
}

TEST(a_silent_end)
{
	struct npumem *npumem;
	struct npumem_error error;
	script("exit 0");
	ck_assert_int_eq(npumem_open("spawn:", NULL, &npumem, &error), NPUMEM_UNAVAILABLE);
	ck_assert_str_eq(error.message, "the private daemon did not start: the daemon closed the connection");
	cleanup();
}

/* The child has its socket as fd 3, nothing on stdin, and takes no part in our stdout. */
TEST(what_the_child_is_given)
{
	struct npumem *npumem;
	struct npumem_error error;
	script("[ \"$1 $2\" = '--fd 3' ] && [ -S /proc/self/fd/3 ] && ! read line && echo gone && echo right >&2");
	ck_assert_int_eq(npumem_open("spawn:", NULL, &npumem, &error), NPUMEM_UNAVAILABLE);
	ck_assert_str_eq(error.message, "the private daemon did not start: right");
	cleanup();
}

TEST(more_on_stderr_than_is_kept)
{
	struct npumem *npumem;
	struct npumem_error error;
	script("i=0; while [ $i -lt 3000 ]; do echo 'a line of some forty bytes, to fill it up' >&2; i=$((i + "
	       "1)); done; echo the end >&2");
	ck_assert_int_eq(npumem_open("spawn:", NULL, &npumem, &error), NPUMEM_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(error.message, "did not start: a line"));
	cleanup();
}

TEST(no_such_program)
{
	struct npumem *npumem;
	struct npumem_error error;
	setenv("NPUMEMD", "/nowhere/npumemd", 1);
	ck_assert_int_eq(npumem_open("spawn:", NULL, &npumem, &error), NPUMEM_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(error.message, "/nowhere/npumemd: No such file or directory"));
}

/* A program that neither answers nor ends is ended. Alone, for others skip time (skip.c), which no program waits
 * for. */
TEST(one_that_never_answers, .is_alone = true)
{
	struct npumem_options options = NPUMEM_OPTIONS_INIT;
	struct npumem *npumem;
	struct npumem_error error;
	script("echo waiting >&2; exec sleep 1000");
	/* Until it is long enough for the program to begin. */
	for (options.connect_ms = 100; options.connect_ms < 60000; options.connect_ms *= 4) {
		ck_assert_int_eq(npumem_open("spawn:", &options, &npumem, &error), NPUMEM_DEADLINE_EXCEEDED);
		ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
		if (strstr(error.message, "waiting"))
			break;
	}
	ck_assert_str_eq(error.message, "the private daemon did not start: waiting");
	cleanup();
}

/* A daemon at a path: what is there stays, and nothing stays of one that did not start. */
TEST(at_a_path)
{
	struct npumem_error error;
	char path[96];
	int pid;
	script("[ -S /proc/self/fd/3 ] && echo \"npumemd: no option $3\" >&2");
	ck_assert_int_eq(npumem_spawn(program, NULL, NULL, &pid, &error), NPUMEM_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(error.message, "Address already in use"));
	ck_assert_int_eq(access(program, X_OK), 0);
	snprintf(path, sizeof(path), "%s/sock", directory);
	ck_assert_int_eq(npumem_spawn(path, "--wrong", NULL, &pid, &error), NPUMEM_UNAVAILABLE);
	ck_assert_str_eq(error.message, "the private daemon did not start: npumemd: no option --wrong");
	ck_assert_int_eq(pid, -1);
	ck_assert_int_eq(access(path, F_OK), -1);
	ck_assert_int_eq(npumem_spawn("spawn:", NULL, NULL, &pid, &error), NPUMEM_INVALID);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	cleanup();
}
