/* replay: a record's requests again, on a daemon of its own or a given one, compared with what was answered.
 * That daemon's socket has no name any more when it starts, so that no other user's process connects. It ends with
 * this process, however that ends, and leaves nothing behind. */
#define _GNU_SOURCE /* O_PATH */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <npumem/record.h>

#include "client/ctl/command.h"
#include "client/ctl/conform/conform.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/core/sweep/sweep.h"
#include "client/ctl/records/records.h"

enum { LISTEN_FD = 3 }; /* where a daemon looks for the socket that it is handed */

static const struct option replay_options[] = {
	{"--npus", "X", "NPUs of the device, instead of the recording's", false},
	{"--npu-bytes", "S", "bytes of each", false},
	{"--chip", "NAME", "a chip's", false},
	{"--snapshot", "DIR", "that the recording begins with", false},
	SWEEPING_OPTIONS,
	{NULL, NULL, NULL, false},
};

struct replaying {
	const char *address; /* NULL: a daemon of our own */
	int socket;	     /* the socket file that it listens on, by O_PATH; -1: none */
	pid_t daemon;	     /* 0: none of our own */
	bool taken;	     /* is a uid, where only one can be played */
	uint32_t uid;
	struct partial copy; /* of the record's snapshot; without a path: there is none */
};

static int connect_own(const struct replaying *replaying, struct npumem **out, struct npumem_error *error)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(name.sun_path, sizeof(name.sun_path), "/proc/self/fd/%d", replaying->socket);
	if (fd >= 0 && !connect(fd, (const struct sockaddr *)&name, sizeof(name)))
		return npumem_open_fd(fd, NULL, out, error);
	int err = errno;
	if (fd >= 0)
		close(fd);
	return npumem_error_set(error, NPUMEM_UNAVAILABLE, "cannot reach the daemon to replay on: %s",
				strerror(err));
}

static int open_one(const struct replaying *replaying, struct npumem **out, struct npumem_error *error)
{
	return replaying->address ? npumem_open(replaying->address, NULL, out, error)
				  : connect_own(replaying, out, error);
}

/* Root replays each request as the uid that sent it. Another user can replay the
 * requests of one uid only, and sends them as itself. */
static int open_as(void *ctx, uint32_t uid, struct npumem **out, struct npumem_error *error)
{
	struct replaying *replaying = ctx;
	bool root = geteuid() == 0;
	if (!root && replaying->taken && replaying->uid != uid)
		return npumem_error_set(error, NPUMEM_PERMISSION_DENIED,
					"the recording has requests of uids %" PRIu32 " and %" PRIu32
					", and only root can play both",
					replaying->uid, uid);
	replaying->taken = true;
	replaying->uid = uid;
	if (root && uid && seteuid(uid))
		return npumem_error_set(error, NPUMEM_PERMISSION_DENIED, "cannot be uid %" PRIu32 ": %s", uid,
					strerror(errno));
	int status = open_one(replaying, out, error);
	if (root && uid && seteuid(0))
		abort();
	return status;
}

static int open_admin(void *ctx, uint32_t uid, struct npumem **out, struct npumem_error *error)
{
	/* Nobody's uid: the first connection, which is the caller's own. */
	return uid == UINT32_MAX ? open_one(ctx, out, error) : open_as(ctx, uid, out, error);
}

/* Room for the options of a device, as the record's daemon had them. */
struct own_options {
	char npus[32], npu_bytes[32], banks[32];
	const char *argv[32];
	unsigned n;
};

static void add_option(struct own_options *own, const char *name, const char *value)
{
	own->argv[own->n++] = name;
	if (value)
		own->argv[own->n++] = value;
}

static void run_daemon(const struct replaying *replaying, const struct npumem_info *info, const struct args *args)
{
	struct npumem_program program;
	const char *chip = args_value(args, "--chip"), *npus = args_value(args, "--npus"),
		   *bytes = args_value(args, "--npu-bytes");
	struct own_options own = {.n = 0};
	add_option(&own, npumem_program(&program), NULL);
	add_option(&own, "--log", "error");
	add_option(&own, "--rounding", npumem_rounding_name(info->rounding));
	add_option(&own, "--uninitialized", npumem_uninitialized_name(info->uninitialized));
	snprintf(own.npus, sizeof(own.npus), "%" PRId64, info->geometry.n_npus);
	snprintf(own.npu_bytes, sizeof(own.npu_bytes), "%" PRId64, info->geometry.npu_bytes);
	snprintf(own.banks, sizeof(own.banks), "%" PRId64, info->geometry.n_banks);
	if (info->unchecked_reuse)
		add_option(&own, "--allow-unchecked-reuse", NULL);
	if (replaying->copy.path[0]) {
		add_option(&own, "--state-dir", replaying->copy.path);
		add_option(&own, "--replay", NULL);
		add_option(&own, "--resume-seconds", "86400");
		add_option(&own, "--banks", own.banks);
	}
	if (chip) {
		add_option(&own, "--chip", chip);
	} else {
		add_option(&own, "--npus", npus ? npus : own.npus);
		add_option(&own, "--npu-bytes", bytes ? bytes : own.npu_bytes);
	}
	execvp(program.path, (char *const *)(uintptr_t)own.argv);
	fprintf(stderr, "npumemctl: cannot run %s: %s\n", program.path, strerror(errno));
	_exit(127);
}

/* In the child. A parent that is gone by now will not tell. */
static void become_daemon(const struct replaying *replaying, int fd, pid_t parent, const struct npumem_info *info,
			  const struct args *args)
{
	char pid[24];
	snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	/* dup2 onto itself would leave it to be closed. */
	if (fd == LISTEN_FD && fcntl(fd, F_SETFD, 0))
		_exit(127);
	if ((fd != LISTEN_FD && dup2(fd, LISTEN_FD) < 0) || setenv("LISTEN_PID", pid, 1) ||
	    setenv("LISTEN_FDS", "1", 1) || unsetenv("NOTIFY_SOCKET") || prctl(PR_SET_PDEATHSIG, SIGKILL) ||
	    getppid() != parent)
		_exit(127);
	run_daemon(replaying, info, args);
}

/* Root connects as each uid of the record, so all uids may write to the socket; only this process has its file. */
static bool listen_at(struct replaying *replaying, int fd, const struct sockaddr_un *name)
{
	if (bind(fd, (const struct sockaddr *)name, sizeof(*name)))
		return false;
	bool good = !chmod(name->sun_path, 0666) && !listen(fd, SOMAXCONN) &&
		    (replaying->socket = open(name->sun_path, O_PATH | O_NOFOLLOW | O_CLOEXEC)) >= 0;
	int err = errno;
	unlink(name->sun_path);
	errno = err;
	return good;
}

/* The socket has no name when this returns: any user could connect to one in the abstract namespace. A kill in
 * between leaves the directory. */
static int listen_somewhere(struct replaying *replaying)
{
	char directory[CTL_DIRECTORY_BYTES];
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool is_made = fd >= 0 && ctl_make_directory(directory);
	snprintf(name.sun_path, sizeof(name.sun_path), "%s/socket", directory);
	bool listens = is_made && listen_at(replaying, fd, &name);
	int err = errno;
	if (is_made)
		rmdir(directory);
	if (listens)
		return fd;
	if (fd >= 0)
		close(fd);
	errno = err;
	return -1;
}

static int start_daemon(struct ctl *ctl, struct replaying *replaying, const struct npumem_info *info,
			const struct args *args)
{
	struct npumem *npumem = NULL;
	pid_t parent = getpid();
	int fd = listen_somewhere(replaying);
	if (fd < 0)
		return ctl_fail(ctl, "cannot make a socket: %s", strerror(errno));
	replaying->daemon = fork();
	if (!replaying->daemon)
		become_daemon(replaying, fd, parent, info, args);
	int err = errno;
	close(fd);
	if (replaying->daemon < 0) {
		replaying->daemon = 0;
		return ctl_fail(ctl, "cannot start a daemon: %s", strerror(err));
	}
	/* The socket is there already; one that nobody serves any more hangs up. */
	int status = connect_own(replaying, &npumem, NULL);
	if (!status)
		status = npumem_info(npumem, NULL, NULL);
	npumem_close(npumem);
	return status ? ctl_fail(ctl, "the daemon to replay on did not start") : CTL_OK;
}

static void stop_daemon(const struct replaying *replaying)
{
	if (replaying->daemon <= 0)
		return;
	kill(replaying->daemon, SIGTERM);
	waitpid(replaying->daemon, NULL, 0);
}

/* ---- records ---- */

struct records {
	struct ctl *ctl;
	const struct args *args;
	struct sweep sweep; /* an item is a record: its requests need what those before them left */
	json_t *cases;	    /* of those that were played */
	uint64_t requests, skipped, differences;
	char first[NPUMEM_MESSAGE_BYTES]; /* what differs first; empty: nothing */
};

static void note(struct records *records, size_t item, const struct npumem_replay_result *result, uint64_t cut_at)
{
	json_t *one =
		json_pack("{s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:s}", "item", (json_int_t)item,
			  "record", records->sweep.items[item].name, "requests", (json_int_t)result->requests,
			  "skipped", (json_int_t)result->skipped, "differences", (json_int_t)result->differences,
			  "first", (json_int_t)result->first, "session", (json_int_t)result->session, "uid",
			  (json_int_t)result->uid, "pid", (json_int_t)result->pid, "same_geometry",
			  result->same_geometry, "npu", (json_int_t)result->npu, "what", result->what);
	if (cut_at)
		json_object_set_new(one, "cut_at_byte", json_integer((json_int_t)cut_at));
	records->requests += result->requests;
	records->skipped += result->skipped;
	records->differences += result->differences;
	json_array_append_new(records->cases, one);
	if (!result->differences || *records->first)
		return;
	size_t n = 0;
	if (records->sweep.n > 1)
		n = (size_t)snprintf(records->first, sizeof(records->first),
				     "%.200s: ", records->sweep.items[item].name);
	if (result->first)
		snprintf(records->first + n, sizeof(records->first) - n,
			 "request %" PRIu64 " (session %" PRIu64 ", uid %" PRIu32 ", pid %" PRIu32 "): %s",
			 result->first, result->session, result->uid, result->pid, result->what);
	else
		snprintf(records->first + n, sizeof(records->first) - n, "%s", result->what);
}

static int print_json(struct records *records)
{
	struct sweep_part part;
	json_t *report = json_pack("{s:I, s:I, s:I, s:O}", "requests", (json_int_t)records->requests, "skipped",
				   (json_int_t)records->skipped, "differences", (json_int_t)records->differences,
				   "cases", records->cases);
	sweep_part(&records->sweep, &part);
	merge_first(report);
	return sweeping_print(records->ctl, &records->sweep, &part, report);
}

static int report(struct records *records)
{
	int code = CTL_OK;
	if (records->ctl->json) {
		code = print_json(records);
	} else {
		sweeping_tell(&records->sweep, "recordings");
		printf("%" PRIu64 " request%s, %" PRIu64 " skipped, %" PRIu64 " difference%s\n", records->requests,
		       present_s(records->requests), records->skipped, records->differences,
		       present_s(records->differences));
	}
	return code || !records->differences ? code : ctl_fail(records->ctl, "%s", records->first);
}

/* A snapshot is of one record and one geometry, and whoever has started from it has it no more. */
static int check_snapshot(const struct records *records, const struct npumem_replay *replay, const char *directory)
{
	static const char *const others[] = {"--npus", "--npu-bytes", "--chip"};
	struct ctl *ctl = records->ctl;
	if (!directory && !npumem_replay_has_snapshot(replay))
		return CTL_OK;
	if (!directory)
		return ctl_invalid(ctl,
				   "the recording begins with tensors: --snapshot DIR must name their snapshot");
	if (!npumem_replay_has_snapshot(replay))
		return ctl_invalid(ctl, "the recording does not begin with a snapshot");
	if (ctl->address)
		return ctl_usage(
			ctl, "a recording that begins with a snapshot is replayed on a daemon of its own, without "
			     "--socket");
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (args_value(records->args, others[i]))
			return ctl_usage(ctl, "%s: a snapshot is of the geometry that it was taken of", others[i]);
	return npumem_replay_check_snapshot(replay, directory, &ctl->error) ? CTL_FAILED : CTL_OK;
}

/* It has all of its files open when it answers. */
static int begin_daemon(const struct records *records, struct replaying *replaying,
			const struct npumem_replay *replay)
{
	const char *directory = args_value(records->args, "--snapshot");
	int code = check_snapshot(records, replay, directory);
	if (!code && directory)
		code = snapshotting_copy(records->ctl, directory, &replaying->copy);
	if (!code && !replaying->address)
		code = start_daemon(records->ctl, replaying, npumem_replay_info(replay), records->args);
	partial_end(&replaying->copy);
	return code;
}

static int replay_record(struct records *records, size_t item)
{
	struct ctl *ctl = records->ctl;
	struct replaying replaying = {
		.address = ctl->address, .socket = -1, .copy = {.directory = -1, .file = -1}};
	const struct npumem_replay_result *result;
	struct npumem_replay *replay;
	uint64_t cut_at, entries;
	if (npumem_replay_open(records->args->words[item], &replay, &ctl->error))
		return CTL_FAILED;
	cut_at = npumem_replay_cut(replay, &entries);
	recording_warn_cut(ctl, records->args->words[item], cut_at, entries);
	int code = begin_daemon(records, &replaying, replay);
	if (!code && npumem_replay_run(replay, UINT32_MAX, open_admin, &replaying, &result, &ctl->error))
		code = CTL_FAILED;
	if (!code)
		note(records, item, result, cut_at);
	npumem_replay_close(replay);
	stop_daemon(&replaying);
	if (replaying.socket >= 0)
		close(replaying.socket);
	return code;
}

/* The records by their names and sizes, which other hosts see, too; and what device they are played on. */
static int find_items(struct records *records)
{
	static const char *const device[] = {"--npus", "--npu-bytes", "--chip", "--snapshot"};
	const struct args *args = records->args;
	struct ctl *ctl = records->ctl;
	struct stat status;
	for (unsigned i = 0; i < sizeof(device) / sizeof(device[0]); i++) {
		const char *value = args_value(args, device[i]) ? args_value(args, device[i]) : "";
		sweep_mix(&records->sweep, value, strlen(value) + 1);
	}
	for (unsigned i = 0; i < args->n_words; i++) {
		const char *slash = strrchr(args->words[i], '/');
		if (stat(args->words[i], &status))
			return ctl_fail(ctl, "%.200s: %s", args->words[i], strerror(errno));
		sweep_mix(&records->sweep, &status.st_size, sizeof(status.st_size));
		sweep_add(&records->sweep, slash ? slash + 1 : args->words[i]);
	}
	return sweeping_share(ctl, args, &records->sweep);
}

static int replay_run(struct ctl *ctl, const struct args *args)
{
	struct records records = {.ctl = ctl, .args = args, .cases = json_array()};
	int code = sweeping_begin(ctl, args, "replay", &records.sweep);
	if (!code)
		code = find_items(&records);
	for (size_t i = 0; i < records.sweep.n && !code; i++) {
		double since = ctl_now();
		if (!sweep_is_ours(&records.sweep, i))
			continue;
		code = replay_record(&records, i);
		sweeping_ran(&records.sweep, i, since);
	}
	return code ? code : report(&records);
}

const struct command replay_command = {
	.options = replay_options,
	.least = 1,
	.most = COMMAND_WORDS_ANY,
	.sweeps = true,
	.run = replay_run,
	.notes = "Without --socket, a private daemon with the options of the recording is started. Root replays "
		 "every uid of\n"
		 "the recording. --snapshot DIR is the directory that record --snapshot DIR wrote; it is not "
		 "changed. A case\n"
		 "of --shard is a recording.\n" SWEEPING_NOTES,
};
