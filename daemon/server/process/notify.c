/* Datagrams to systemd's socket. By hand, where sd_notify() would open a socket for each message: a daemon whose
 * clients have used up its fds could then not say that it is alive, and would be killed for it. And libsystemd,
 * with the six libraries that it needs, would make the start of every private daemon half as long again.
 * The watchdog's timer runs on the loop that it vouches for, and only says so if that loop has also been out for
 * input since. Invariant: nothing here waits once the daemon is ready. */
#include "daemon/server/process/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/server/process/log.h"

static void send_state(const struct notify *notify, const char *state, int flags)
{
	if (notify->fd < 0)
		return;
	/* To a name and not over a connection, which would end when systemd executes itself anew. */
	if (sendto(notify->fd, state, strlen(state), flags | MSG_NOSIGNAL, (const struct sockaddr *)&notify->to,
		   notify->to_bytes) < 0)
		log_line(LOG_LEVEL_WARNING, "cannot tell systemd %.*s: %s", (int)strcspn(state, "\n"), state,
			 strerror(errno));
}

/* "@NAME" stands for a name in the abstract namespace, which begins with a zero and has no end but its length. */
static bool parse_socket(struct notify *notify, const char *name)
{
	size_t length = strlen(name);

	if ((name[0] != '/' && name[0] != '@') || length < 2 || length >= sizeof(notify->to.sun_path))
		return false;
	notify->to = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(notify->to.sun_path, name, length);
	if (name[0] == '@')
		notify->to.sun_path[0] = 0;
	notify->to_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (name[0] == '/'));
	return true;
}

static bool parse_number(const char *text, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return !errno && *text >= '0' && *text <= '9' && !*end;
}

/* The time after which systemd takes the daemon for dead, or 0: it does not look. */
static uint64_t watchdog_us(void)
{
	const char *time = getenv("WATCHDOG_USEC"), *whose = getenv("WATCHDOG_PID");
	uint64_t us, pid;

	if (!time)
		return 0;
	if (!parse_number(time, &us) || us == 0 || (whose && !parse_number(whose, &pid))) {
		log_line(LOG_LEVEL_WARNING, "WATCHDOG_USEC %.32s, WATCHDOG_PID %.32s: not a watchdog's", time,
			 whose ? whose : "");
		return 0;
	}
	return whose && pid != (uint64_t)getpid() ? 0 : us;
}

static void on_turn(uv_check_t *turn)
{
	struct notify *notify = turn->data;

	notify->n_turns++;
}

static void on_timer(uv_timer_t *timer)
{
	struct notify *notify = timer->data;

	if (notify->n_turns == notify->n_told)
		return;
	notify->n_told = notify->n_turns;
	send_state(notify, "WATCHDOG=1", MSG_DONTWAIT);
}

static void start_watchdog(struct notify *notify, uv_loop_t *loop, uint64_t us)
{
	uint64_t ms = us / 2000 ? us / 2000 : 1;

	/* None of these can fail: they neither allocate nor ask the kernel. */
	uv_check_init(loop, &notify->turn);
	uv_timer_init(loop, &notify->timer);
	notify->turn.data = notify->timer.data = notify;
	uv_check_start(&notify->turn, on_turn);
	uv_timer_start(&notify->timer, on_timer, ms, ms);
	uv_unref((uv_handle_t *)&notify->turn);
	uv_unref((uv_handle_t *)&notify->timer);
	notify->has_watchdog = true;
}

void notify_open(struct notify *notify, uv_loop_t *loop)
{
	const char *name = getenv("NOTIFY_SOCKET");
	uint64_t us;

	*notify = (struct notify){.fd = -1};
	if (!name)
		return;
	if (!parse_socket(notify, name)) {
		log_line(LOG_LEVEL_WARNING, "NOTIFY_SOCKET %.120s: not the name of a Unix socket", name);
		return;
	}
	notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (notify->fd < 0) {
		log_line(LOG_LEVEL_WARNING, "no socket to reach systemd: %s", strerror(errno));
		return;
	}
	us = watchdog_us();
	if (us)
		start_watchdog(notify, loop, us);
}

void notify_ready(struct notify *notify, const char *status)
{
	char state[256];

	snprintf(state, sizeof(state), "READY=1\nSTATUS=%.200s", status);
	send_state(notify, state, 0);
}

void notify_stopping(struct notify *notify)
{
	send_state(notify, "STOPPING=1\nSTATUS=finishing what runs", MSG_DONTWAIT);
}

int notify_keep(const struct notify *notify, int fd, const char *name)
{
	char state[128], control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec text = {state, 0};
	struct msghdr message = {.msg_name = (void *)&notify->to,
				 .msg_namelen = notify->to_bytes,
				 .msg_iov = &text,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

	if (notify->fd < 0)
		return -ENOTCONN;
	text.iov_len = (size_t)snprintf(state, sizeof(state), "FDSTORE=1\nFDNAME=%s", name);
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
	return sendmsg(notify->fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

void notify_drop(const struct notify *notify, const char *name)
{
	char state[128];

	snprintf(state, sizeof(state), "FDSTOREREMOVE=1\nFDNAME=%.80s", name);
	send_state(notify, state, 0);
}

void notify_close(struct notify *notify)
{
	if (notify->has_watchdog) {
		uv_close((uv_handle_t *)&notify->turn, NULL);
		uv_close((uv_handle_t *)&notify->timer, NULL);
		notify->has_watchdog = false;
	}
	if (notify->fd >= 0)
		close(notify->fd);
	notify->fd = -1;
}
