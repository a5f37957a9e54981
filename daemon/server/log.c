/* The daemon's only voice. A pipe that nobody empties, a stopped terminal, a busy journal: writing may take
 * forever, and stderr cannot be made non-blocking, as that would be so for all who share it. So a thread of its
 * own writes, and what finds no room meanwhile is counted, and told as soon as there is some. Invariant: `filling`
 * is the callers', under the mutex, and `writing` the thread's; both hold whole lines. */
#include "daemon/server/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/server/flood.h"
#include "daemon/service/session.h"

enum { LINES_BYTES = 128 << 10, LINE_BYTES = 1024 };
#define CLOSE_NS UINT64_C(1000000000)

struct lines {
	char bytes[LINES_BYTES];
	size_t used;
	uint64_t lost; /* that came after the last one */
};

static struct lines buffers[2];
static struct lines *filling = &buffers[0], *writing = &buffers[1];
static uv_mutex_t mutex;
static uv_cond_t changed;
static uv_thread_t thread;
static enum log_level least = LOG_LEVEL_INFO;
static bool is_journal, is_closing, is_done;

/* ---- the thread's ---- */

/* As far as it goes: where stderr is closed, or its disk full, there is nobody to tell. Returns whether all went.
 */
static bool write_all(const char *bytes, size_t n)
{
	while (n) {
		ssize_t written = write(STDERR_FILENO, bytes, n);

		if (written < 0 && errno == EAGAIN) {
			/* Somebody who shares it has made it non-blocking. */
			struct pollfd poll_fd = {.fd = STDERR_FILENO, .events = POLLOUT};

			poll(&poll_fd, 1, -1);
			continue;
		}
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return false;
		bytes += written;
		n -= (size_t)written;
	}
	return true;
}

static const char *priority(enum log_level level)
{
	switch (is_journal ? level : 0) {
	case LOG_LEVEL_ERROR:
		return "<3>";
	case LOG_LEVEL_WARNING:
		return "<4>";
	case LOG_LEVEL_INFO:
		return "<6>";
	case LOG_LEVEL_DEBUG:
		return "<7>";
	default:
		return "";
	}
}

/* Line by line, so that those of several processes do not mix. */
static uint64_t write_lines(const struct lines *lines)
{
	const char *at = lines->bytes, *end = at + lines->used;
	uint64_t lost = 0;

	while (at < end) {
		const char *next = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;

		lost += !write_all(at, (size_t)(next - at));
		at = next;
	}
	return lost;
}

static uint64_t say_lost(uint64_t lost)
{
	char line[80];
	int n;

	if (!lost)
		return 0;
	n = snprintf(line, sizeof(line), "%snpumemd: %" PRIu64 " %s lost\n", priority(LOG_LEVEL_WARNING), lost,
		     lost == 1 ? "line was" : "lines were");
	return write_all(line, (size_t)n) ? 0 : lost;
}

static void run(void *arg)
{
	uint64_t lost = 0;

	(void)arg;
	uv_mutex_lock(&mutex);
	while (filling->used || !is_closing) {
		struct lines *filled = filling;

		if (!filling->used) {
			uv_cond_wait(&changed, &mutex);
			continue;
		}
		filling = writing;
		writing = filled;
		uv_mutex_unlock(&mutex);
		lost += write_lines(writing);
		lost = say_lost(lost + writing->lost);
		writing->used = 0;
		writing->lost = 0;
		uv_mutex_lock(&mutex);
	}
	is_done = true;
	uv_cond_broadcast(&changed);
	uv_mutex_unlock(&mutex);
}

/* ---- the callers' ---- */

/* systemd says by JOURNAL_STREAM which socket is the journal's; a child inherits the variable, but not always the
 * fd. */
static bool find_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat status;
	uintmax_t device, inode;

	return stream && sscanf(stream, "%ju:%ju", &device, &inode) == 2 && fstat(STDERR_FILENO, &status) == 0 &&
	       status.st_dev == device && status.st_ino == inode;
}

int log_open(enum log_level level)
{
	int status;

	least = level;
	is_journal = find_journal();
	status = uv_mutex_init(&mutex);
	if (!status)
		status = uv_cond_init(&changed);
	return status ? status : uv_thread_create(&thread, run, NULL);
}

void log_close(void)
{
	uint64_t end = uv_hrtime() + CLOSE_NS, now;
	bool done;

	uv_mutex_lock(&mutex);
	is_closing = true;
	uv_cond_broadcast(&changed);
	while (!is_done && (now = uv_hrtime()) < end)
		uv_cond_timedwait(&changed, &mutex, end - now);
	done = is_done;
	uv_mutex_unlock(&mutex);
	/* Else it is still at a line that nobody takes, and goes with the process. */
	if (done)
		uv_thread_join(&thread);
}

int log_level_parse(const char *name)
{
	static const struct {
		const char *name;
		enum log_level level;
	} levels[] = {{"error", LOG_LEVEL_ERROR},
		      {"warning", LOG_LEVEL_WARNING},
		      {"info", LOG_LEVEL_INFO},
		      {"debug", LOG_LEVEL_DEBUG}};

	for (unsigned i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (strcmp(levels[i].name, name) == 0)
			return levels[i].level;
	return 0;
}

bool log_is_on(enum log_level level)
{
	return level <= least;
}

/* Copies as far as there is room for the longest form of a character; returns what it took. */
static size_t escape(const char *text, char *to, size_t room)
{
	static const char digits[] = "0123456789abcdef";
	size_t used = 0;

	for (; *text && used + 4 <= room; text++) {
		unsigned char c = (unsigned char)*text;

		if (c >= ' ' && c <= '~') {
			to[used++] = *text;
			continue;
		}
		to[used++] = '\\';
		to[used++] = 'x';
		to[used++] = digits[c >> 4];
		to[used++] = digits[c & 15];
	}
	return used;
}

__attribute__((format(printf, 3, 0))) static void say(enum log_level level, const char *who, const char *format,
						      va_list arguments)
{
	char text[LINE_BYTES], line[LINE_BYTES];
	size_t used;

	vsnprintf(text, sizeof(text), format, arguments);
	used = (size_t)snprintf(line, sizeof(line), "%snpumemd: %s", priority(level), who);
	used += escape(text, line + used, sizeof(line) - 1 - used);
	line[used++] = '\n';
	uv_mutex_lock(&mutex);
	/* Once one is lost all are until the thread has told so: where they are missing is then known. */
	if (filling->lost || used > LINES_BYTES - filling->used) {
		filling->lost++;
	} else {
		memcpy(filling->bytes + filling->used, line, used);
		filling->used += used;
	}
	uv_cond_signal(&changed);
	uv_mutex_unlock(&mutex);
}

void log_line(enum log_level level, const char *format, ...)
{
	va_list arguments;

	if (!log_is_on(level))
		return;
	va_start(arguments, format);
	say(level, "", format, arguments);
	va_end(arguments);
}

/* Whether a line about a client is one too many. What was asked for (debug) is said in any case. */
static bool is_flood(enum log_level level, uint32_t uid)
{
	static struct flood flood;
	struct flood_loss loss;
	bool is_admitted;

	if (level == LOG_LEVEL_DEBUG)
		return false;
	is_admitted = flood_admit(&flood, uid, uv_hrtime(), &loss);
	if (loss.n)
		log_line(LOG_LEVEL_WARNING,
			 "%" PRIu64 " more lines about clients were left out, most of them of uid %" PRIu32,
			 loss.n, loss.uid);
	return !is_admitted;
}

void log_session(enum log_level level, const struct session *session, const char *format, ...)
{
	char who[80];
	va_list arguments;

	if (!log_is_on(level) || is_flood(level, session->uid))
		return;
	snprintf(who, sizeof(who), "session %" PRIu64 " (uid %" PRIu32 ", pid %lld): ", session->id, session->uid,
		 (long long)session->pid);
	va_start(arguments, format);
	say(level, who, format, arguments);
	va_end(arguments);
}

void log_peer(enum log_level level, uint32_t uid, pid_t pid, const char *format, ...)
{
	char who[80];
	va_list arguments;

	if (!log_is_on(level) || is_flood(level, uid))
		return;
	snprintf(who, sizeof(who), "no session (uid %" PRIu32 ", pid %lld): ", uid, (long long)pid);
	va_start(arguments, format);
	say(level, who, format, arguments);
	va_end(arguments);
}
