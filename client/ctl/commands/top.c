/* top: the device and its clients, live, on a terminal. Rates are differences of two looks by the daemon's clock.
 * Invariant: the terminal is as it was when the command ends, also by a signal. */
#include <npumem/async.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "client/ctl/command.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/core/words/words.h"
#include "client/ctl/ctl.h"
#include "client/ctl/devices/devices.h"

static const struct option top_options[] = {
	{"--interval", "SECONDS", "between two updates (1)", false},
	{"--batch", NULL, "prints each update as lines, without a terminal; with --json as one object a line",
	 false},
	{"-n", "N", "ends after N updates; without it, when interrupted", false},
	{NULL, NULL, NULL, false},
};

static volatile sig_atomic_t ended;
static bool has_terminal;
static struct termios saved, raw;

static void terminal_leave(void)
{
	static const char text[] = "\x1b[?25h\x1b[?1049l";
	(void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
	tcsetattr(STDIN_FILENO, TCSANOW, &saved);
}

static void terminal_enter(void)
{
	static const char text[] = "\x1b[?1049h\x1b[?25l";
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	(void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
}

/* The second time, whatever it is that does not end. */
static void on_end(int number)
{
	if (ended) {
		if (has_terminal)
			terminal_leave();
		signal(number, SIG_DFL);
		raise(number);
	}
	ended = 1;
}

static void on_stop(int number)
{
	(void)number;
	terminal_leave();
	raise(SIGSTOP);
}

static void on_continue(int number)
{
	(void)number;
	terminal_enter();
}

/* Only interrupts the wait, so that the screen is drawn again in its new size. */
static void on_resize(int number)
{
	(void)number;
}

struct screen {
	unsigned rows, columns, row;
	bool is_plain; /* lines for a file or a pipe, as long as they are */
};

/* One line, cut to the width; nothing below the last row. */
__attribute__((format(printf, 2, 3))) static void line(struct screen *screen, const char *format, ...)
{
	char text[1024];
	va_list arguments;
	if (screen->row >= screen->rows)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (screen->is_plain)
		printf("%s\n", text);
	else
		printf("%s%.*s\x1b[K", screen->row ? "\r\n" : "", (int)screen->columns, text);
	screen->row++;
}

static void measure(struct screen *screen, bool is_plain)
{
	struct winsize size;
	*screen = (struct screen){is_plain ? UINT_MAX : 24, 80, 0, is_plain};
	if (!is_plain && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col)
		*screen = (struct screen){size.ws_row, size.ws_col, 0, false};
}

/* A digit for each NPU: tenths of its bytes that hold data; "." none, "#" all. */
static void draw_npus(struct screen *screen, const struct npumem_details *now)
{
	int64_t npu_bytes = now->n_npus ? now->stat->total / now->n_npus : 1;
	unsigned width = screen->columns > 13 ? screen->columns - 9 : 4, used;
	char text[1024];
	if (width > sizeof(text) - 1)
		width = sizeof(text) - 1;
	unsigned from = 0;
	for (; from < now->n_npus && screen->row + 7 < screen->rows; from += used) {
		for (used = 0; used < width && from + used < now->n_npus; used++) {
			int64_t data = now->npu_data[from + used], tenth = npu_bytes ? data * 10 / npu_bytes : 0;
			text[used] = !data ? '.' : tenth >= 10 ? '#' : (char)('0' + tenth);
		}
		line(screen, "NPU %4u %.*s", from, (int)used, text);
	}
	if (from < now->n_npus)
		line(screen, "NPU %4u to %u need more lines", from, now->n_npus - 1);
	line(screen, "a column is an NPU: . no data, 0 to 9 tenths of its bytes are data, # all data");
}

static double rate(uint64_t now, uint64_t before, double seconds)
{
	return seconds > 0 && now >= before ? (double)(now - before) / seconds : 0;
}

static const struct npumem_usage *find(const struct npumem_details *details, uint64_t session)
{
	for (unsigned i = 0; i < details->n_clients; i++)
		if (details->clients[i]->session == session)
			return details->clients[i];
	return NULL;
}

static void draw_clients(const struct ctl *ctl, struct screen *screen, const struct npumem_details *now,
			 const struct npumem_details *before, double seconds)
{
	static const struct npumem_usage none;
	char user[USERS_TEXT_BYTES], pid[16];
	line(screen, "%8s %8s %14s %10s %12s %12s %6s", "SESSION", "PID", "UID", "REQUESTS/s", "IN B/s", "OUT B/s",
	     "FLIGHT");
	for (unsigned i = 0; i < now->n_clients; i++) {
		const struct npumem_usage *u = now->clients[i], *old = find(before, u->session);
		if (!old)
			old = &none;
		snprintf(pid, sizeof(pid), "%" PRIu32, u->pid);
		line(screen, "%8" PRIu64 " %8s %14s %10.0f %12.0f %12.0f %6" PRIu64, u->session,
		     u->pid ? pid : "-", users_text(ctl, u->uid, user), rate(u->requests, old->requests, seconds),
		     rate(u->bytes_in, old->bytes_in, seconds), rate(u->bytes_out, old->bytes_out, seconds),
		     u->in_flight);
	}
}

/* What runs, the longest first as it came first. */
static void draw_running(const struct ctl *ctl, struct screen *screen, const struct npumem_details *now)
{
	if (!now->n_running)
		return;
	line(screen, "%8s %14s %6s %9s %s", "SESSION", "UID", "DONE", "SECONDS", "RUNNING");
	for (unsigned i = 0; i < now->n_running; i++) {
		const struct npumem_running *r = now->running[i];
		char done[16] = "-", user[USERS_TEXT_BYTES];
		if (r->waits)
			snprintf(done, sizeof(done), "room?");
		else if (r->total)
			snprintf(done, sizeof(done), "%.0f %%", 100 * (double)r->done / (double)r->total);
		line(screen, "%8" PRIu64 " %14s %6s %9.2f %s%s%s", r->session, users_text(ctl, r->uid, user), done,
		     now->now_ns > r->since_ns ? (double)(now->now_ns - r->since_ns) / 1e9 : 0, r->call,
		     *r->what ? " " : "", r->what);
	}
}

static void draw(const struct ctl *ctl, const struct npumem_details *now, const struct npumem_details *before,
		 bool is_plain)
{
	double seconds = (double)(now->now_ns - before->now_ns) / 1e9, total = (double)now->stat->total;
	struct screen screen;
	measure(&screen, is_plain);
	if (!is_plain)
		fputs("\x1b[H", stdout);
	line(&screen,
	     "%s%.1f %% used, %.1f %% data, fragmentation %.1f %%, %" PRId64 " tensor%s, %" PRId64 " session%s",
	     is_plain ? "npumem: " : "(q quits) ", total > 0 ? 100 - 100 * (double)now->stat->free / total : 0,
	     total > 0 ? 100 * (double)now->stat->data / total : 0, 100 * metrics_fragmentation(now),
	     now->stat->tensors, present_s((uint64_t)now->stat->tensors), now->stat->sessions,
	     present_s((uint64_t)now->stat->sessions));
	line(&screen, "%.0f requests/s, %.0f refused/s, %.0f DMA B/s, %.1f kernels/s, %.3g macs/s",
	     rate(now->all->requests, before->all->requests, seconds),
	     rate(now->all->errors, before->all->errors, seconds),
	     rate(now->activity->dma_bytes, before->activity->dma_bytes, seconds),
	     rate(now->activity->kernels, before->activity->kernels, seconds),
	     rate(now->activity->macs, before->activity->macs, seconds));
	draw_npus(&screen, now);
	draw_running(ctl, &screen, now);
	draw_clients(ctl, &screen, now, before, seconds);
	fputs(is_plain ? "\n" : "\x1b[J", stdout);
	fflush(stdout);
}

/* Waits for a key, for the connection, if there is one, and for at most this time. True when it is time to end. */
static bool wait_key(double seconds, const struct npumem *npumem)
{
	struct pollfd fds[] = {{.fd = has_terminal ? STDIN_FILENO : -1, .events = POLLIN},
			       {.fd = npumem ? npumem_fd(npumem) : -1, .events = POLLIN}};
	char key;
	if (npumem && npumem_wants_write(npumem))
		fds[1].events |= POLLOUT;
	if (poll(fds, 2, (int)(seconds * 1000)) > 0 && fds[0].revents &&
	    (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q'))
		ended = 1;
	return ended;
}

struct looking {
	struct ctl *ctl;
	bool batch;
	const struct npumem_details *before; /* of one device; NULL: none */
	struct devices_look all;	     /* of many */
};

struct details {
	const struct npumem_details *now;
	struct npumem_error error;
	bool are_there;
};

static void details_answered(void *context, const struct npumem_answer *answer)
{
	struct details *details = context;
	details->are_there = true;
	details->now = answer->details;
	if (answer->status)
		details->error = *answer->error;
	else
		npumem_keep(answer->details);
}

static void draw_silence(double seconds)
{
	struct screen screen;
	measure(&screen, false);
	fputs("\x1b[H", stdout);
	line(&screen, "(q quits) no answer of the daemon for %.0f s", seconds);
	fflush(stdout);
}

/* Without an answer the keys still end it. *now: NULL where they have. */
static int look(struct ctl *ctl, const struct npumem_details **now)
{
	struct details details = {.now = NULL};
	struct npumem_request *request;
	double asked = ctl_now();
	if (npumem_stat_details_async(ctl->npumem, false, details_answered, &details, &request, &ctl->error))
		return CTL_FAILED;
	while (!details.are_there && !wait_key(1, ctl->npumem)) {
		if (npumem_process(ctl->npumem, &ctl->error))
			return CTL_FAILED;
		double silence = ctl_now() - asked;
		if (has_terminal && silence >= 1 && !details.are_there)
			draw_silence(silence);
	}
	*now = details.now;
	if (!details.are_there)
		npumem_let_go(request);
	if (!details.error.status)
		return CTL_OK;
	ctl->error = details.error;
	return CTL_FAILED;
}

static int look_at_one(struct looking *looking)
{
	struct ctl *ctl = looking->ctl;
	const struct npumem_details *now;
	int code = look(ctl, &now);
	if (code || !now)
		return code;
	if (ctl->json)
		code = ctl_print_line(ctl, metrics_json(now), stdout);
	else
		draw(ctl, now, looking->before ? looking->before : now, looking->batch);
	npumem_release(looking->before);
	looking->before = now;
	return code;
}

static int look_at_all(struct looking *looking)
{
	struct screen screen;
	char *text = NULL, *rest;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	if (!out)
		memory_none();
	int code = devices_look(looking->ctl, &looking->all, out);
	if (fclose(out))
		memory_none();
	measure(&screen, looking->batch);
	if (!code && looking->ctl->json) {
		fputs(text, stdout);
	} else if (!code) {
		if (!looking->batch)
			fputs("\x1b[H", stdout);
		for (char *one = strtok_r(text, "\n", &rest); one; one = strtok_r(NULL, "\n", &rest))
			line(&screen, "%s", one);
		fputs(looking->batch ? "\n" : "\x1b[J", stdout);
	}
	free(text);
	if (fflush(stdout) && !code)
		code = ctl_fail(looking->ctl, "cannot write the result: %s", strerror(errno));
	return code;
}

static int top_loop(struct looking *looking, double interval, int64_t looks)
{
	bool over = false;
	int code = CTL_OK;
	while (!code && !over && !ended) {
		code = looking->ctl->all_devices ? look_at_all(looking) : look_at_one(looking);
		if (!code)
			over = ended || --looks == 0 || wait_key(interval, NULL);
	}
	npumem_release(looking->before);
	return code;
}

static int on_terminal(struct looking *looking, double interval, int64_t looks)
{
	static const struct {
		int number;
		void (*handler)(int);
	} signals[] = {{SIGWINCH, on_resize},
		       {SIGTSTP, on_stop},
		       {SIGCONT, on_continue},
		       {SIGHUP, on_end},
		       {SIGQUIT, on_end}};
	enum { N_SIGNALS = sizeof(signals) / sizeof(signals[0]) };
	struct sigaction before[N_SIGNALS];
	tcgetattr(STDIN_FILENO, &saved);
	raw = saved;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	has_terminal = true;
	for (unsigned i = 0; i < N_SIGNALS; i++) {
		struct sigaction action = {.sa_handler = signals[i].handler};
		sigaction(signals[i].number, &action, &before[i]);
	}
	terminal_enter();
	int code = top_loop(looking, interval, looks);
	has_terminal = false;
	for (unsigned i = 0; i < N_SIGNALS; i++)
		sigaction(signals[i].number, &before[i], NULL);
	fflush(stdout);
	terminal_leave();
	return code;
}

static int top_run(struct ctl *ctl, const struct args *args)
{
	struct sigaction end = {.sa_handler = on_end};
	const char *given = args_value(args, "--interval"), *n = args_value(args, "-n");
	bool batch = args_has(args, "--batch") || ctl->json;
	struct termios terminal;
	double interval = 1;
	int64_t looks = 0;
	if (given && (!numbers_real(given, &interval) || !(interval >= 0.1 && interval <= 3600)))
		return ctl_usage(ctl, "--interval \"%.40s\" is not a number of seconds from 0.1 to 3600", given);
	if (n && (!numbers_integer(n, &looks) || looks < 1))
		return ctl_usage(ctl, "-n \"%.40s\" is not a number of updates", n);
	if (!batch && (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &terminal)))
		return ctl_fail(ctl, "top needs a terminal; top --batch does not");
	struct looking looking = {.ctl = ctl, .batch = batch};
	int code = ctl->all_devices ? devices_look_init(ctl, &looking.all) : ctl_connect(ctl);
	ended = 0;
	if (!code) {
		sigaction(SIGINT, &end, NULL);
		sigaction(SIGTERM, &end, NULL);
		code = batch ? top_loop(&looking, interval, looks) : on_terminal(&looking, interval, looks);
	}
	ask_free(looking.all.before, looking.all.devices.n);
	return code;
}

const struct command top_command = {
	.options = top_options,
	.run = top_run,
	.all = top_run,
	.notes = "NPU rows: a column is an NPU; . no data, 0 to 9 tenths of its bytes are data, # all data.\n"
		 "RUNNING: the requests that have begun. DONE is how far a request is (room?: it waits for "
		 "room), SECONDS\n"
		 "how long ago it began.\n"
		 "PID -: the session waits for its client, which has no connection.",
};
