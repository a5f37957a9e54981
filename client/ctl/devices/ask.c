/* A process for each device: what a daemon or a connection that hangs can block is that process alone, which is
 * killed. Owns the processes and the pipes from them. */
#define _GNU_SOURCE /* pipe2, gethostname */
#include "client/ctl/devices/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/ctl/core/devices/list.h"
#include "client/ctl/core/memory.h"

/* ---- the list of devices ---- */

/* Field by field, so that nothing that a user has named can pass for something else. */
static const char squeue[] = "exec timeout 30 squeue -h -a -r -t R -o '" SLURM_FORMAT "' 2>&1 </dev/null";

/* As Slurm calls this host: $SLURMD_NODENAME within a job, else its name without a domain. */
static void find_node(char *node, size_t bytes)
{
	const char *told = getenv("SLURMD_NODENAME");
	if (told && strlen(told) < bytes)
		strcpy(node, told);
	else if (gethostname(node, bytes))
		node[0] = 0;
	node[bytes - 1] = 0;
	node[strcspn(node, ".")] = 0;
}

/* Adds the devices of Slurm's jobs, of which there may be none: asks squeue what runs now. CTL_OK or CTL_FAILED.
 */
static int ask_slurm(struct ctl *ctl, struct devices *devices)
{
	char node[256], *line = NULL, last[256] = "it is not there";
	struct slurm_here here = {.uid = geteuid(), .node = node};
	size_t room = 0;
	int status = 0;
	find_node(node, sizeof(node));
	FILE *out = popen(squeue, "re");
	if (!out)
		return ctl_fail(ctl, "cannot run squeue");
	while (getline(&line, &room, out) >= 0) {
		line[strcspn(line, "\n")] = 0;
		snprintf(last, sizeof(last), "%s", line);
		if (!status)
			status = slurm_add(devices, line, &here, &ctl->error);
	}
	free(line);
	int ended = pclose(out);
	if (!ended)
		return status ? CTL_FAILED : CTL_OK;
	npumem_error_clear(&ctl->error);
	return ctl_fail(ctl, "squeue, which knows the devices of slurm:, failed: %.200s", last);
}

int ask_devices(struct ctl *ctl, struct devices *devices)
{
	const char *path = ctl->devices ? ctl->devices : getenv("NPUMEM_DEVICES");
	*devices = (struct devices){.n = 0};
	if (!path || !*path)
		return ctl_usage(ctl, "--all-devices needs --devices FILE, or $NPUMEM_DEVICES");
	if (!strcmp(path, "slurm:"))
		return ask_slurm(ctl, devices);
	return devices_read(devices, path, &ctl->error) ? CTL_FAILED : CTL_OK;
}

/* ---- a process for each ---- */

enum { ASK_BYTES_MAX = 256 << 20 };

/* One device's process. */
struct asked {
	pid_t pid; /* 0: there is none */
	char *text;
	size_t n, room;
	bool is_over; /* all is read */
};

/* ---- asking ---- */

/* In the child: prints the result, or why there is none. */
static void answer(const char *address, const struct command *command, const struct args *args, bool json, int fd,
		   pid_t parent)
{
	struct ctl ctl = {.json = json, .hushed = true, .all_devices = true, .address = address};
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	/* Apart from the terminal's signals, and to be killed with all that it starts. */
	setpgid(0, 0);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent || nowhere < 0 || dup2(nowhere, 0) < 0 ||
	    dup2(fd, 1) < 0 || dup2(nowhere, 2) < 0)
		_exit(CTL_FAILED);
	int code = command->run(&ctl, args);
	if (code)
		fputs(ctl.error.message, stdout);
	if (fflush(stdout))
		code = CTL_FAILED;
	_exit(code ? CTL_FAILED : CTL_OK);
}

/* Starts a process; what it prints comes from *pipe, which is -1 where it cannot be started. */
static void start(const struct device *device, const struct command *command, const struct args *args, bool json,
		  struct asked *asked, int *pipe, struct answer *one)
{
	int fds[2];
	pid_t parent = getpid();
	*pipe = -1;
	if (pipe2(fds, O_CLOEXEC)) {
		snprintf(one->error, sizeof(one->error), "cannot be asked: %s", strerror(errno));
		return;
	}
	asked->pid = fork();
	if (!asked->pid)
		answer(device->address, command, args, json, fds[1], parent);
	int err = errno;
	close(fds[1]);
	if (asked->pid < 0) {
		snprintf(one->error, sizeof(one->error), "cannot be asked: %s", strerror(err));
		asked->pid = 0;
		close(fds[0]);
		return;
	}
	/* Parent and child both set the group: either may run first. */
	setpgid(asked->pid, asked->pid);
	*pipe = fds[0];
}

/* ---- answers ---- */

/* More of what it prints. False where that is all. */
static bool take(struct asked *asked, int fd)
{
	if (asked->room - asked->n < 65536) {
		size_t room = 2 * asked->room + 131072;
		char *more = room <= ASK_BYTES_MAX ? realloc(asked->text, room) : NULL;
		if (!more)
			return false;
		asked->text = more;
		asked->room = room;
	}
	ssize_t n = read(fd, asked->text + asked->n, asked->room - asked->n - 1);
	if (n > 0)
		asked->n += (size_t)n;
	asked->is_over = !n;
	return n > 0 || (n < 0 && errno == EINTR);
}

static void collect(struct asked *asked, struct pollfd *polls, unsigned n, double seconds, struct answer *answers)
{
	double until = ctl_now() + seconds;
	for (unsigned n_open = n; n_open;) {
		double left = until - ctl_now();
		if (left <= 0 || (poll(polls, n, (int)(left * 1e3) + 1) < 0 && errno != EINTR))
			return;
		n_open = 0;
		for (unsigned i = 0; i < n; i++) {
			if (polls[i].fd >= 0 && polls[i].revents && !take(&asked[i], polls[i].fd)) {
				close(polls[i].fd);
				polls[i].fd = -1;
				answers[i].at = ctl_now();
			}
			polls[i].revents = 0;
			n_open += polls[i].fd >= 0;
		}
	}
}

/* Ends a process, and says what came of it. */
static void finish(struct asked *asked, int fd, bool json, double seconds, struct answer *one)
{
	int status = 0;
	if (!asked->pid)
		return;
	if (!asked->is_over)
		kill(-asked->pid, SIGKILL);
	while (waitpid(asked->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (asked->text)
		asked->text[asked->n] = 0;
	if (fd >= 0) {
		snprintf(one->error, sizeof(one->error), "did not answer within %g s", seconds);
		close(fd);
	} else if (!asked->is_over) {
		snprintf(one->error, sizeof(one->error), "its answer is too large");
	} else if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		snprintf(one->error, sizeof(one->error), "%.500s", asked->n ? asked->text : "could not be asked");
	} else if (json && !(one->json = json_loadb(asked->text, asked->n, 0, NULL))) {
		snprintf(one->error, sizeof(one->error), "its answer is not whole");
	} else {
		one->text = asked->text;
		asked->text = NULL;
	}
	free(asked->text);
}

/* Where there is an ssh to begin for some of them, more. */
static double seconds_for(const struct devices *devices)
{
	for (unsigned i = 0; i < devices->n; i++)
		if (!strncmp(devices->list[i].address, "ssh:", 4))
			return ASK_REMOTE_MS / 1e3;
	return ASK_MS / 1e3;
}

/* A pipe for each is open at once. */
static void allow_pipes(unsigned n)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= n + 64)
		return;
	limit.rlim_cur = limit.rlim_max < n + 64 ? limit.rlim_max : n + 64;
	setrlimit(RLIMIT_NOFILE, &limit);
}

struct answer *ask_all(const struct devices *devices, const struct command *command, const struct args *args,
		       bool json)
{
	unsigned n = devices->n;
	struct answer *answers = memory_new(n, sizeof(*answers));
	struct asked *asked = memory_new(n, sizeof(*asked));
	struct pollfd *polls = memory_new(n, sizeof(*polls));
	double seconds = seconds_for(devices);
	fflush(stdout);
	allow_pipes(n);
	for (unsigned i = 0; i < n; i++) {
		start(&devices->list[i], command, args, json, &asked[i], &polls[i].fd, &answers[i]);
		polls[i].events = POLLIN;
	}
	collect(asked, polls, n, seconds, answers);
	for (unsigned i = 0; i < n; i++)
		finish(&asked[i], polls[i].fd, json, seconds, &answers[i]);
	memory_free(asked);
	memory_free(polls);
	return answers;
}

void ask_free(struct answer *answers, unsigned n)
{
	for (unsigned i = 0; answers && i < n; i++) {
		json_decref(answers[i].json);
		free(answers[i].text);
	}
	memory_free(answers);
}

/* ---- what is said ---- */

void ask_complain(const struct devices *devices, const struct answer *answers, FILE *out)
{
	for (unsigned i = 0; i < devices->n; i++)
		if (!answers[i].text)
			fprintf(out, "%s: %s\n", devices->list[i].name, answers[i].error);
}

int ask_outcome(struct ctl *ctl, const struct devices *devices, const struct answer *answers)
{
	for (unsigned i = 0; i < devices->n; i++)
		if (answers[i].text)
			return CTL_OK;
	return devices->n ? ctl_fail(ctl, "none of %u devices has answered", devices->n) : CTL_OK;
}

json_t *ask_json(const struct devices *devices, const struct answer *answers, const char *key, bool member)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < devices->n; i++) {
		const struct answer *one = &answers[i];
		json_t *device = json_pack("{s:s, s:s}", "name", devices->list[i].name, "address",
					   devices->list[i].address);
		if (one->text)
			json_object_set(device, key, member ? json_object_get(one->json, key) : one->json);
		else
			json_object_set_new(device, "error", json_string(one->error));
		json_array_append_new(list, device);
	}
	return json_pack("{s:o}", "devices", list);
}
