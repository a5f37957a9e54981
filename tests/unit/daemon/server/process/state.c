/* The memory of a daemon that has systemd keep it: what is given away at the start is what the next one goes on
 * with, unless it was made for something else: then it is refused, or kept in a folder. systemd is a socket here,
 * and what it passes on is found by names.
 */
#define _GNU_SOURCE
#include "daemon/server/process/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/server/connections/activate.h"
#include "tests/support/test.h"

enum { KEPT_MAX = 8, FIRST_FD = 3 };

struct systemd {
	int socket;
	struct notify notify; /* the daemon's end */
	unsigned n_kept, n_dropped;
	int kept[KEPT_MAX];
	char names[KEPT_MAX][64];
};

static struct options options_of(int64_t npu_bytes)
{
	struct options options = {.state_dir = STATE_SYSTEMD};
	options.device.geometry =
		(struct npumem_geometry){.n_npus = 4, .npu_bytes = npu_bytes, .n_banks = 4, .eu_bytes = 16};
	return options;
}

static void systemd_begin(struct systemd *systemd)
{
	struct sockaddr_un *name = &systemd->notify.to;
	memset(systemd, 0, sizeof(*systemd));
	systemd->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	systemd->notify.fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	name->sun_family = AF_UNIX;
	snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "npumem-state-%d", (int)getpid());
	systemd->notify.to_bytes = (socklen_t)(sizeof(sa_family_t) + 1 + strlen(name->sun_path + 1));
	ck_assert_int_eq(bind(systemd->socket, (struct sockaddr *)name, systemd->notify.to_bytes), 0);
}

static void systemd_end(struct systemd *systemd)
{
	for (unsigned i = 0; i < systemd->n_kept; i++)
		close(systemd->kept[i]);
	close(systemd->socket);
	if (systemd->notify.fd >= 0)
		close(systemd->notify.fd);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
}

static void drop(struct systemd *systemd, const char *name)
{
	for (unsigned i = 0; i < systemd->n_kept; i++) {
		if (strcmp(systemd->names[i], name) != 0)
			continue;
		close(systemd->kept[i]);
		systemd->n_kept--;
		systemd->kept[i] = systemd->kept[systemd->n_kept];
		memcpy(systemd->names[i], systemd->names[systemd->n_kept], sizeof(systemd->names[i]));
		systemd->n_dropped++;
		return;
	}
}

static bool told(struct systemd *systemd)
{
	char text[256], control[CMSG_SPACE(sizeof(int))];
	struct iovec io = {text, sizeof(text) - 1};
	struct msghdr message = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(systemd->socket, &message, 0);
	if (n < 0)
		return false;
	text[n] = 0;
	const char *name = strstr(text, "\nFDNAME=");
	ck_assert_ptr_nonnull(name);
	name += strlen("\nFDNAME=");
	if (strncmp(text, "FDSTOREREMOVE=1\n", 16) == 0) {
		drop(systemd, name);
		return true;
	}
	ck_assert_int_eq(strncmp(text, "FDSTORE=1\n", 10), 0);
	ck_assert_ptr_nonnull(CMSG_FIRSTHDR(&message));
	ck_assert_uint_lt(systemd->n_kept, KEPT_MAX);
	memcpy(&systemd->kept[systemd->n_kept], CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	snprintf(systemd->names[systemd->n_kept++], sizeof(systemd->names[0]), "%.60s", name);
	return true;
}

/* As systemd does for the next process: a descriptor's place among the names says its number. */
static void pass_on(const struct systemd *systemd)
{
	char names[4096] = "", number[16];
	int most = FIRST_FD;
	for (unsigned i = 0; i < systemd->n_kept; i++) {
		int fd = fcntl(systemd->kept[i], F_DUPFD, most);
		ck_assert_int_ge(fd, most);
		for (; most < fd; most++)
			strcat(names, "other:");
		strcat(strcat(names, systemd->names[i]), ":");
		most++;
	}
	snprintf(number, sizeof(number), "%d", most - FIRST_FD);
	setenv("LISTEN_FDS", number, 1);
	setenv("LISTEN_FDNAMES", names, 1);
	snprintf(number, sizeof(number), "%d", (int)getpid());
	setenv("LISTEN_PID", number, 1);
}

static int try_it(struct systemd *systemd, const struct options *options, struct state *state, char *error)
{
	*state = (struct state){0};
	error[0] = 0;
	int status = state_open(state, options, &systemd->notify, &heap_libc, error, STORE_ERROR_BYTES);
	while (told(systemd))
		;
	return status;
}

static void open_it(struct systemd *systemd, int64_t npu_bytes, struct state *state)
{
	struct options options = options_of(npu_bytes);
	char error[STORE_ERROR_BYTES];
	int status = try_it(systemd, &options, state, error);
	ck_assert_msg(status == 0, "%d: %s", status, error);
}

TEST(test_the_next_process_goes_on_with_what_was_kept)
{
	struct systemd systemd;
	struct state state;
	systemd_begin(&systemd);
	open_it(&systemd, 4096, &state);
	ck_assert(state.found->is_new);
	unsigned n = systemd.n_kept;
	ck_assert_uint_gt(n, 1);
	for (unsigned i = 0; i < n; i++)
		ck_assert_int_eq(strncmp(systemd.names[i], ACTIVATE_KEPT, strlen(ACTIVATE_KEPT)), 0);
	memcpy(state.memory, "kept", 4);
	state_close(&state, true);

	pass_on(&systemd);
	open_it(&systemd, 4096, &state);
	ck_assert(!state.found->is_new);
	ck_assert(state.found->was_clean);
	ck_assert_int_eq(memcmp(state.memory, "kept", 4), 0);
	ck_assert_uint_eq(systemd.n_kept, n);
	ck_assert_uint_eq(systemd.n_dropped, 0);
	state_close(&state, false);
	systemd_end(&systemd);
}

static unsigned folders_of(const char *directory, char *last)
{
	DIR *entries = opendir(directory);
	const struct dirent *entry;
	unsigned n = 0;

	while ((entry = readdir(entries))) {
		if (strncmp(entry->d_name, "aside-", 6) != 0)
			continue;
		snprintf(last, 200, "%s/%.100s", directory, entry->d_name);
		n++;
	}
	closedir(entries);
	return n;
}

static void remove_tree(const char *directory)
{
	char command[256];
	snprintf(command, sizeof(command), "rm -r '%s'", directory);
	ck_assert_int_eq(system(command), 0);
}

TEST(test_a_state_of_other_options_is_refused)
{
	struct options options = options_of(8192);
	char error[STORE_ERROR_BYTES];
	struct systemd systemd;
	struct state state;
	systemd_begin(&systemd);
	open_it(&systemd, 4096, &state);
	unsigned n = systemd.n_kept;
	memcpy(state.memory, "kept", 4);
	state_close(&state, true);

	/* Nobody has said that a new one is to be begun; then, nothing is there to keep the old one in. */
	for (options.set_aside = 0; options.set_aside < 2; options.set_aside++) {
		pass_on(&systemd);
		ck_assert_int_lt(try_it(&systemd, &options, &state, error), 0);
		ck_assert_ptr_nonnull(strstr(error, "4 NPUs x 4096 bytes"));
		ck_assert_ptr_nonnull(strstr(error, options.set_aside ? "cannot be set aside" : "--set-aside"));
		state_close(&state, false);
	}
	ck_assert_uint_eq(systemd.n_kept, n);
	pass_on(&systemd);
	open_it(&systemd, 4096, &state);
	ck_assert_int_eq(memcmp(state.memory, "kept", 4), 0);
	state_close(&state, true);
	systemd_end(&systemd);
}

TEST(test_a_state_of_other_options_is_set_aside)
{
	struct options options = options_of(8192);
	char directory[] = "/tmp/npumem-aside-XXXXXX", folder[200], error[STORE_ERROR_BYTES];
	struct systemd systemd;
	struct state state;
	ck_assert_ptr_nonnull(mkdtemp(directory));
	setenv("STATE_DIRECTORY", directory, 1);
	options.set_aside = 1;
	systemd_begin(&systemd);
	open_it(&systemd, 4096, &state);
	unsigned n = systemd.n_kept;
	memcpy(state.memory, "kept", 4);
	state_close(&state, true);

	pass_on(&systemd);
	ck_assert_int_eq(try_it(&systemd, &options, &state, error), 0);
	ck_assert(state.found->is_new);
	ck_assert_int_eq(memcmp(state.memory, "\0\0\0\0", 4), 0);
	ck_assert_uint_eq(systemd.n_kept, n);
	ck_assert_uint_eq(folders_of(directory, folder), 1);
	memcpy(state.memory, "next", 4);
	state_close(&state, true);

	/* The new one is what is gone on with. */
	pass_on(&systemd);
	ck_assert_int_eq(try_it(&systemd, &options, &state, error), 0);
	ck_assert(!state.found->is_new);
	ck_assert_int_eq(memcmp(state.memory, "next", 4), 0);
	state_close(&state, true);

	/* No more than one is set aside, and nothing is lost by that. */
	options.device.geometry.npu_bytes = 16384;
	pass_on(&systemd);
	ck_assert_int_lt(try_it(&systemd, &options, &state, error), 0);
	ck_assert_ptr_nonnull(strstr(error, "1 states are set aside"));
	state_close(&state, false);
	ck_assert_uint_eq(folders_of(directory, folder), 1);
	open_it(&systemd, 8192, &state);
	ck_assert_int_eq(memcmp(state.memory, "next", 4), 0);
	state_close(&state, true);

	/* What was set aside is a state. */
	options = options_of(4096);
	options.state_dir = folder;
	ck_assert_int_eq(try_it(&systemd, &options, &state, error), 0);
	ck_assert_int_eq(memcmp(state.memory, "kept", 4), 0);
	state_close(&state, true);
	systemd_end(&systemd);
	unsetenv("STATE_DIRECTORY");
	remove_tree(directory);
}

TEST(test_what_cannot_be_given_away_is_an_error)
{
	struct options options = options_of(4096);
	char error[STORE_ERROR_BYTES] = "";
	struct systemd systemd;
	struct state state = {0};
	systemd_begin(&systemd);
	close(systemd.socket);
	ck_assert_int_eq(state_open(&state, &options, &systemd.notify, &heap_libc, error, sizeof(error)),
			 -ECONNREFUSED);
	ck_assert_ptr_nonnull(strstr(error, strerror(ECONNREFUSED)));
	ck_assert_ptr_null(state.store);
	state_close(&state, false);
	systemd.socket = -1;
	systemd_end(&systemd);
}

TEST(test_by_hand_there_is_memory_and_nothing_is_kept)
{
	struct systemd systemd;
	struct state state;
	systemd_begin(&systemd);
	close(systemd.notify.fd);
	systemd.notify.fd = -1;
	open_it(&systemd, 4096, &state);
	ck_assert_ptr_null(state.store);
	ck_assert_ptr_nonnull(state.memory);
	ck_assert_uint_ge(state.bytes, 4 * 4096);
	ck_assert_uint_eq(systemd.n_kept, 0);
	memset(state.memory, 1, state.bytes);
	state_close(&state, true);
	ck_assert_ptr_null(state.memory);
	systemd_end(&systemd);
}
