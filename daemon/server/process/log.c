/* A write to stderr may wait forever: for the reader of a pipe, a stopped terminal, a busy journal. stderr cannot
 * be made non-blocking, as that would change it for all processes that share it. So a thread writes. Lines without
 * room are counted, and their number is logged as soon as there is room. A client can cause any number of lines, so
 * the lines of a uid get at most half of the room that the others have left.
 * Invariant: `filling` is the callers', under the mutex, and `writing` the thread's; both hold whole lines. */
#include "daemon/server/process/log.h"

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

#include "daemon/server/connections/flood.h"
#include "daemon/service/session.h"

enum { LINES_BYTES = 128 << 10, LINE_BYTES = 1024 };
#define CLOSE_NS UINT64_C(1000000000)

/* What the lines about one uid take. */
struct share {
	uint32_t uid;
	size_t used;
	uint64_t lost; /* lines lost after its last one */
};

enum { OWN_SHARE, OTHERS_SHARE, FIRST_SHARE, SHARES_MAX = 64 };

struct lines {
	char bytes[LINES_BYTES];
	size_t used;
	/* The daemon's own, those of uids that found no share any more, and of one uid each. */
	struct share shares[SHARES_MAX];
	unsigned n_uids;
};

static struct lines buffers[2];
static struct lines *filling = &buffers[0], *writing = &buffers[1];
static uv_mutex_t mutex;
static uv_cond_t changed;
static uv_thread_t thread;
static enum log_level least = LOG_LEVEL_INFO;
static bool is_journal, is_running, is_closing, is_done;

/* ---- the thread's ---- */

/* Writes as much as possible: if stderr is closed, or its disk full, the failure cannot be reported. Returns
 * whether all was written. */
static bool write_all(const char *bytes, size_t n)
{
	while (n) {
		ssize_t written = write(STDERR_FILENO, bytes, n);

		if (written < 0 && errno == EAGAIN) {
			/* Another process that shares it has made it non-blocking. */
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

/* Levels are syslog's. */
static const char *priority(enum log_level level)
{
	static const char prefixes[][4] = {[LOG_LEVEL_ERROR] = "<3>",
					   [LOG_LEVEL_WARNING] = "<4>",
					   [LOG_LEVEL_INFO] = "<6>",
					   [LOG_LEVEL_DEBUG] = "<7>"};

	return is_journal ? prefixes[level] : "";
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

/* Returns the number of lost lines that are still to be reported. */
static uint64_t say_lost(uint64_t lost, const char *of)
{
	char line[96];
	int n;

	if (!lost)
		return 0;
	n = snprintf(line, sizeof(line), "%snpumemd: %" PRIu64 " line%s%s %s lost\n", priority(LOG_LEVEL_WARNING),
		     lost, lost == 1 ? "" : "s", of, lost == 1 ? "was" : "were");
	return write_all(line, (size_t)n) ? 0 : lost;
}

/* `lost`: lines that could not be written, besides those without room. */
static uint64_t say_losses(const struct lines *lines, uint64_t lost)
{
	char of[32];

	lost = say_lost(lost + lines->shares[OWN_SHARE].lost, "");
	lost += say_lost(lines->shares[OTHERS_SHARE].lost, " of other uids");
	for (unsigned i = 0; i < lines->n_uids; i++) {
		const struct share *share = &lines->shares[FIRST_SHARE + i];

		snprintf(of, sizeof(of), " of uid %" PRIu32, share->uid);
		lost += say_lost(share->lost, of);
	}
	return lost;
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
		lost = say_losses(writing, lost);
		writing->used = 0;
		writing->n_uids = 0;
		memset(writing->shares, 0, sizeof(writing->shares));
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

/* With the first line, as most daemons that log only warnings never log any. If no thread can be made, the next
 * line tries again, and this one waits for it. */
static void start_thread(void)
{
	if (!is_running && filling->used)
		is_running = !uv_thread_create(&thread, run, NULL);
}

int log_open(enum log_level level)
{
	int status;

	least = level;
	is_journal = find_journal();
	status = uv_mutex_init(&mutex);
	return status ? status : uv_cond_init(&changed);
}

void log_close(void)
{
	uint64_t end = uv_hrtime() + CLOSE_NS, now;
	bool done;

	uv_mutex_lock(&mutex);
	is_closing = true;
	start_thread();
	uv_cond_broadcast(&changed);
	while (is_running && !is_done && (now = uv_hrtime()) < end)
		uv_cond_timedwait(&changed, &mutex, end - now);
	done = is_done;
	uv_mutex_unlock(&mutex);
	/* Otherwise the thread still waits for the reader of stderr, and ends with the process. */
	if (done)
		uv_thread_join(&thread);
}

int log_level_parse(const char *name)
{
	static const char *const names[] = {[LOG_LEVEL_ERROR] = "error",
					    [LOG_LEVEL_WARNING] = "warning",
					    [LOG_LEVEL_INFO] = "info",
					    [LOG_LEVEL_DEBUG] = "debug"};

	for (int level = LOG_LEVEL_DEBUG; level; level--)
		if (names[level] && strcmp(names[level], name) == 0)
			return level;
	return 0;
}

bool log_is_on(enum log_level level)
{
	return level <= least;
}

/* Copies while there is room for the longest form of a character; returns the number of written bytes. */
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

static struct share *share_of(struct lines *lines, const uint32_t *uid)
{
	struct share *share = &lines->shares[FIRST_SHARE], *end = share + lines->n_uids;

	if (!uid)
		return &lines->shares[OWN_SHARE];
	while (share < end && share->uid != *uid)
		share++;
	if (share == lines->shares + SHARES_MAX)
		return &lines->shares[OTHERS_SHARE];
	if (share == end) {
		share->uid = *uid;
		lines->n_uids++;
	}
	return share;
}

static bool has_room(const struct lines *lines, const struct share *share, size_t n)
{
	size_t room = LINES_BYTES - lines->used;

	if (share == &lines->shares[OWN_SHARE])
		return n <= room;
	return share->used + n <= (room + share->used) / 2;
}

/* After one line is lost, all lines about its uid are, until the thread has reported the loss: so the place of the
 * loss is known. */
static void add_line(struct lines *lines, const uint32_t *uid, const char *line, size_t n)
{
	struct share *share = share_of(lines, uid);

	if (share->lost || !has_room(lines, share, n)) {
		share->lost++;
		return;
	}
	memcpy(lines->bytes + lines->used, line, n);
	lines->used += n;
	share->used += n;
}

/* `uid`: the user that the line is about; NULL: the daemon itself. */
__attribute__((format(printf, 4, 0))) static void say(enum log_level level, const uint32_t *uid, const char *who,
						      const char *format, va_list arguments)
{
	char text[LINE_BYTES], line[LINE_BYTES];
	size_t used;

	vsnprintf(text, sizeof(text), format, arguments);
	used = (size_t)snprintf(line, sizeof(line), "%snpumemd: %s", priority(level), who);
	used += escape(text, line + used, sizeof(line) - 1 - used);
	line[used++] = '\n';
	uv_mutex_lock(&mutex);
	add_line(filling, uid, line, used);
	start_thread();
	uv_cond_signal(&changed);
	uv_mutex_unlock(&mutex);
}

void log_line(enum log_level level, const char *format, ...)
{
	va_list arguments;

	if (!log_is_on(level))
		return;
	va_start(arguments, format);
	say(level, NULL, "", format, arguments);
	va_end(arguments);
}

/* Whether a line about a client is one too many. Debug lines are always logged. */
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
	char who[80], id[32] = "no session";
	va_list arguments;

	if (!log_is_on(level) || is_flood(level, session->uid))
		return;
	if (session->id)
		snprintf(id, sizeof(id), "session %" PRIu64, session->id);
	snprintf(who, sizeof(who), "%s (uid %" PRIu32 ", pid %lld): ", id, session->uid, (long long)session->pid);
	va_start(arguments, format);
	say(level, &session->uid, who, format, arguments);
	va_end(arguments);
}
