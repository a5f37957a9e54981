/* events: a line for each thing that happens, until SIGINT or SIGTERM, which is no failure. */
#define _GNU_SOURCE /* ppoll */
#include <npumem/async.h>

#include "client/ctl/command.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>

static const char *const events_kinds[] = {"allocated", "freed",   "sealed",	"renamed",     "moved",
					   "damaged",	"refused", "low-space", "client-gone", "progress"};

enum { EVENTS_TIME_BYTES = 32 };
enum { EVENTS_KINDS = sizeof(events_kinds) / sizeof(events_kinds[0]) };

static const struct option events_options[] = {
	{"--kind", "KIND", "only these; may be given several times", false},
	{NULL, NULL, NULL, false},
};

static volatile sig_atomic_t events_interrupted;

static void events_on_signal(int number)
{
	(void)number;
	events_interrupted = 1;
}

static json_t *events_json(const struct npumem_event *event)
{
	const char *status = npumem_status_name(event->status);
	return json_pack("{s:s, s:s, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s}", "kind",
			 event->kind, "name", event->name, "uid", (int)event->uid, "pid", (int)event->pid,
			 "handle", (json_int_t)event->handle, "session", (json_int_t)event->session, "bytes",
			 (json_int_t)event->bytes, "time_ns", (json_int_t)event->time_ns, "lost",
			 (json_int_t)event->lost, "request", (json_int_t)event->request, "done",
			 (json_int_t)event->done, "total", (json_int_t)event->total, "status",
			 status ? status : "", "message", event->message);
}

/* An event has a time of the monotonic clock, which a daemon on this machine shares with this process. */
static void events_time(uint64_t time_ns, char text[EVENTS_TIME_BYTES])
{
	struct timespec wall, monotonic;
	struct tm local;
	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	int64_t ns = (int64_t)(wall.tv_sec - monotonic.tv_sec) * 1000000000 + wall.tv_nsec - monotonic.tv_nsec +
		     (int64_t)time_ns;
	time_t seconds = (time_t)(ns / 1000000000);
	localtime_r(&seconds, &local);
	size_t n = strftime(text, EVENTS_TIME_BYTES, "%H:%M:%S", &local);
	snprintf(text + n, EVENTS_TIME_BYTES - n, ".%06d", (int)(ns / 1000 % 1000000));
}

static void events_text(const struct ctl *ctl, const struct npumem_event *event)
{
	if (event->lost)
		printf("(%" PRIu64 " event%s lost)\n", event->lost, present_s(event->lost));
	char time[EVENTS_TIME_BYTES], user[USERS_TEXT_BYTES];
	events_time(event->time_ns, time);
	printf("%s %-11s uid %s", time, event->kind, users_text(ctl, event->uid, user));
	if (event->pid)
		printf(" pid %" PRIu32, event->pid);
	if (event->name[0])
		printf(" %s", event->name);
	if (event->bytes)
		printf(" %" PRIu64 " byte%s", event->bytes, present_s(event->bytes));
	if (event->total)
		printf(" request %" PRIu64 " %3.0f%%", event->request,
		       100 * (double)event->done / (double)event->total);
	const char *before = strcmp(event->kind, "renamed") ? ": %s\n" : ", before %s\n";
	printf(event->message[0] ? before : "%s\n", event->message);
}

static void events_told(void *context, const struct npumem_event *event)
{
	struct ctl *ctl = context;
	if (ctl->json) {
		ctl_print_line(ctl, events_json(event), stdout);
	} else {
		events_text(ctl, event);
		fflush(stdout);
	}
}

/* Sleeps until the daemon says something; signals come only while it sleeps. */
static int events_follow(struct ctl *ctl, const sigset_t *awake)
{
	while (!events_interrupted) {
		struct pollfd pollfd = {.fd = npumem_fd(ctl->npumem), .events = POLLIN};
		if (npumem_wants_write(ctl->npumem))
			pollfd.events |= POLLOUT;
		int ms = npumem_timeout(ctl->npumem);
		struct timespec timeout = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
		if (ppoll(&pollfd, 1, ms < 0 ? NULL : &timeout, awake) < 0 && errno != EINTR)
			return ctl_fail(ctl, "cannot wait for events: %s", strerror(errno));
		if (npumem_process(ctl->npumem, &ctl->error))
			return CTL_FAILED;
		if (ferror(stdout))
			return ctl_fail(ctl, "cannot write events");
	}
	return CTL_OK;
}

static int events_kind_check(struct ctl *ctl, const char *kind)
{
	char nearest[SUGGEST_TEXT_BYTES];
	struct suggest suggest;
	suggest_init(&suggest, kind);
	for (unsigned i = 0; i < EVENTS_KINDS; i++) {
		if (!strcmp(kind, events_kinds[i]))
			return CTL_OK;
		suggest_offer(&suggest, events_kinds[i]);
	}
	return ctl_usage(ctl, "there is no kind of events \"%.40s\"%s", kind, suggest_text(&suggest, nearest));
}

static int events_run(struct ctl *ctl, const struct args *args)
{
	const char *kinds[ARGS_OPTIONS_MAX];
	unsigned n = 0;
	struct sigaction action = {.sa_handler = events_on_signal};
	sigset_t blocked, awake;
	int code = CTL_OK;
	for (unsigned i = 0; i < args->n_given && !code; i++)
		if (!strcmp(args->given[i].option->name, "--kind")) {
			kinds[n++] = args->given[i].value;
			code = events_kind_check(ctl, args->given[i].value);
		}
	if (!code)
		code = ctl_connect(ctl);
	if (code)
		return code;
	events_interrupted = 0;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &awake);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (npumem_subscribe(ctl->npumem, n ? kinds : events_kinds, n ? n : EVENTS_KINDS, events_told, ctl,
			     &ctl->error))
		return CTL_FAILED;
	return events_follow(ctl, &awake);
}

const struct command events_command = {
	.options = events_options,
	.run = events_run,
	.notes = "Kinds: allocated, freed, sealed, renamed, moved, damaged, refused, low-space, client-gone, "
		 "progress\n"
		 "With --json one object a line. Bytes are per NPU.",
};
