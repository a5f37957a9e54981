/* replay: a record's requests again, on a daemon of its own or a given one, compared with what was answered. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/ctl/command.h"

static const struct option replay_options[] = {
	{"--npus", "X", "NPUs of the device, instead of the record's", false},
	{"--npu-bytes", "S", "bytes of each", false},
	{"--chip", "NAME", "a chip's", false},
	{NULL, NULL, NULL, false},
};

struct replaying {
	const char *address;
	char directory[64], socket[80];
	pid_t daemon; /* 0: a given one */
	bool taken;   /* is a uid, where only one can be played */
	uint32_t uid;
};

/* Root plays everybody; anybody else plays one uid, whoever that was. */
static int open_as(void *ctx, uint32_t uid, struct npumem **out, struct npumem_error *error)
{
	struct replaying *replaying = ctx;
	bool root = geteuid() == 0;
	if (!root && replaying->taken && replaying->uid != uid)
		return npumem_error_set(error, NPUMEM_PERMISSION_DENIED,
					"the record has requests of uids %" PRIu32 " and %" PRIu32
					", and only root can play both",
					replaying->uid, uid);
	replaying->taken = true;
	replaying->uid = uid;
	if (root && uid && seteuid(uid))
		return npumem_error_set(error, NPUMEM_PERMISSION_DENIED, "cannot be uid %" PRIu32 ": %s", uid,
					strerror(errno));
	int status = npumem_open(replaying->address, out, error);
	if (root && uid && seteuid(0))
		abort();
	return status;
}

static int open_admin(void *ctx, uint32_t uid, struct npumem **out, struct npumem_error *error)
{
	struct replaying *replaying = ctx;
	/* Nobody's uid: the first connection, which is the caller's own. */
	return uid == UINT32_MAX ? npumem_open(replaying->address, out, error) : open_as(ctx, uid, out, error);
}

static void run_daemon(const struct replaying *replaying, const struct npumem_info *info, const struct args *args)
{
	const char *program = getenv("NPUMEMD"), *chip = args_value(args, "--chip"),
		   *npus = args_value(args, "--npus"), *bytes = args_value(args, "--npu-bytes");
	char n[32], b[32];
	const char *argv[20] = {program ? program : "npumemd",
				"--socket",
				replaying->socket,
				"--log",
				"error",
				"--rounding",
				npumem_rounding_name(info->rounding),
				"--uninitialized",
				npumem_uninitialized_name(info->uninitialized)};
	unsigned i = 9;
	snprintf(n, sizeof(n), "%" PRId64, info->geometry.n_npus);
	snprintf(b, sizeof(b), "%" PRId64, info->geometry.npu_bytes);
	if (info->unchecked_reuse)
		argv[i++] = "--allow-unchecked-reuse";
	if (chip) {
		argv[i++] = "--chip";
		argv[i++] = chip;
	} else {
		argv[i++] = "--npus";
		argv[i++] = npus ? npus : n;
		argv[i++] = "--npu-bytes";
		argv[i++] = bytes ? bytes : b;
	}
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	fprintf(stderr, "npumemctl: cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static int start_daemon(struct ctl *ctl, struct replaying *replaying, const struct npumem_info *info,
			const struct args *args)
{
	const struct timespec pause = {0, 5000000};
	struct npumem *npumem = NULL;
	int status = NPUMEM_UNAVAILABLE;
	snprintf(replaying->directory, sizeof(replaying->directory), "/tmp/npumem-replay-XXXXXX");
	if (!mkdtemp(replaying->directory) || chmod(replaying->directory, 0711))
		return ctl_fail(ctl, "cannot make %s: %s", replaying->directory, strerror(errno));
	snprintf(replaying->socket, sizeof(replaying->socket), "%s/socket", replaying->directory);
	replaying->address = replaying->socket;
	replaying->daemon = fork();
	if (replaying->daemon < 0)
		return ctl_fail(ctl, "cannot start a daemon: %s", strerror(errno));
	if (!replaying->daemon)
		run_daemon(replaying, info, args);
	for (unsigned i = 0; i < 1000 && status; i++) {
		if (waitpid(replaying->daemon, NULL, WNOHANG) == replaying->daemon) {
			replaying->daemon = 0;
			return ctl_fail(ctl, "the daemon to replay on did not start");
		}
		status = npumem_open(replaying->socket, &npumem, NULL);
		if (status)
			nanosleep(&pause, NULL);
	}
	npumem_close(npumem);
	return status ? ctl_fail(ctl, "the daemon to replay on did not answer") : CTL_OK;
}

static void stop_daemon(const struct replaying *replaying)
{
	if (replaying->daemon > 0) {
		kill(replaying->daemon, SIGTERM);
		waitpid(replaying->daemon, NULL, 0);
	}
	if (replaying->directory[0])
		rmdir(replaying->directory);
}

static int report(struct ctl *ctl, const struct npumem_replay_result *result)
{
	int code = CTL_OK;
	if (ctl->json)
		code = ctl_print(ctl,
				 json_pack("{s:I, s:I, s:I, s:I, s:s}", "requests", (json_int_t)result->requests,
					   "skipped", (json_int_t)result->skipped, "differences",
					   (json_int_t)result->differences, "first", (json_int_t)result->first,
					   "what", result->what));
	else
		printf("%" PRIu64 " requests, %" PRIu64 " skipped, %" PRIu64 " differences\n", result->requests,
		       result->skipped, result->differences);
	if (code || !result->differences)
		return code;
	return result->first ? ctl_fail(ctl, "request %" PRIu64 ": %s", result->first, result->what)
			     : ctl_fail(ctl, "%s", result->what);
}

static int replay_run(struct ctl *ctl, const struct args *args)
{
	struct replaying replaying = {.address = ctl->address};
	struct npumem_replay_result result;
	struct npumem_replay *replay;
	struct npumem_info info;
	int code = CTL_OK;
	if (npumem_replay_open(args->words[0], &replay, &info, &ctl->error))
		return CTL_FAILED;
	if (!ctl->address)
		code = start_daemon(ctl, &replaying, &info, args);
	if (!code && npumem_replay_run(replay, UINT32_MAX, open_admin, &replaying, &result, &ctl->error))
		code = CTL_FAILED;
	npumem_replay_close(replay);
	stop_daemon(&replaying);
	return code ? code : report(ctl, &result);
}

const struct command replay_command = {
	.options = replay_options,
	.least = 1,
	.most = 1,
	.run = replay_run,
	.notes = "without --socket, on a daemon of its own with the record's options; root plays every uid of the "
		 "record",
};
