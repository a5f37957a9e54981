/* Sessions from another host. The account, the way and the encryption are the business of ssh and its
 * configuration; this file has neither keys nor passwords. A shell runs at the other end: it gets one command,
 * whose one variable word is quoted. */
#define _GNU_SOURCE /* secure_getenv */
#include "client/lib/addresses/address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REMOTE_WORDS_MAX = 32, REMOTE_SSH_BYTES = 1024, REMOTE_LOOK_BYTES = 4 };

/* ---- ssh ---- */

void remote_command(const struct address *address, char *to)
{
	/* Not every shell becomes the last command it has, and each session would keep one. */
	size_t n = (size_t)sprintf(to, "exec npumemctl");
	if (address->path[0]) {
		n += (size_t)sprintf(to + n, " --socket '");
		for (const char *p = address->path; *p; p++)
			n += (size_t)sprintf(to + n, *p == '\'' ? "'\\''" : "%c", *p);
		to[n++] = '\'';
	}
	sprintf(to + n, " dial --close");
}

static int add_words(char **argv, int n, const char *const *words)
{
	for (; *words; words++)
		argv[n++] = (char *)(uintptr_t)*words;
	return n;
}

/* $NPUMEM_SSH split in place, and what ssh is to do. -E2BIG: too many words. */
static int arguments(char *words, const struct address *address, bool again, char *command, char **argv)
{
	char *rest;
	int n = 0;
	for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (n == REMOTE_WORDS_MAX)
			return -E2BIG;
		argv[n++] = word;
	}
	if (!n)
		return -EINVAL;
	/* A shared connection that began here would end with this one. */
	static const char *const own[] = {"-T", "-o", "ControlMaster=no", NULL};
	static const char *const unasked[] = {"-o", "BatchMode=yes", "-o", "ConnectTimeout=10", NULL};
	n = add_words(argv, n, own);
	if (again)
		n = add_words(argv, n, unasked);
	argv[n++] = (char *)(uintptr_t) "--";
	argv[n++] = (char *)(uintptr_t)address->host;
	argv[n++] = command;
	argv[n] = NULL;
	return 0;
}

int remote_start(const struct address *address, bool again, struct spawned *spawned, int *fd)
{
	const char *given = secure_getenv("NPUMEM_SSH");
	/* $PATH is set by the caller, which may have fewer rights than this program. */
	const char *own = getauxval(AT_SECURE) ? "/usr/bin/ssh" : "ssh";
	char words[REMOTE_SSH_BYTES], command[REMOTE_COMMAND_BYTES], *argv[REMOTE_WORDS_MAX + 16];
	int ends[2], n = snprintf(words, sizeof(words), "%s", given && *given ? given : own);
	if (n < 0 || (size_t)n >= sizeof(words))
		return -E2BIG;
	remote_command(address, command);
	int err = arguments(words, address, again, command, argv);
	if (!err && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		err = -errno;
	if (err)
		return err;
	err = -spawn_filter(argv, ends[1], spawned);
	if (err)
		close(ends[0]);
	else
		*fd = ends[0];
	return err;
}

/* ---- what comes from there ---- */

/* In the first bytes of a message are a tag below 4, which is no text, or a length that is not; or it is a short
 * Info, whose length is that of its contents, their head and the id of the first request. */
static bool is_info(const uint8_t *bytes)
{
	return bytes[1] == 0x2a && bytes[0] == bytes[2] + 4;
}

static bool is_text(uint8_t byte)
{
	return (byte >= ' ' && byte != 0x7f) || byte == '\n' || byte == '\r' || byte == '\t' || byte == '\033';
}

int remote_greeting(const uint8_t *bytes, size_t n, char *line, size_t line_bytes)
{
	size_t at = 0;
	while (at < n && at < REMOTE_LOOK_BYTES && is_text(bytes[at]))
		at++;
	if (at < REMOTE_LOOK_BYTES)
		return at < n;
	if (is_info(bytes))
		return 1;
	for (at = 0; at < n && at + 1 < line_bytes && bytes[at] != '\n' && bytes[at] != '\r'; at++)
		line[at] = bytes[at] >= ' ' && bytes[at] < 0x7f ? (char)bytes[at] : '?';
	line[at] = 0;
	return -1;
}

/* ---- its end ---- */

/* ssh ends its lines as a terminal wants them. */
void remote_last_words(int log, off_t from, char *line, size_t bytes)
{
	spawn_last_words(log, from, line, bytes);
	line[strcspn(line, "\r")] = 0;
}

void remote_explain(const struct address *address, int log, off_t from, char *why, size_t bytes)
{
	char last[256];
	remote_last_words(log, from, last, sizeof(last));
	if (last[0])
		snprintf(why, bytes, "%s", last);
	else
		snprintf(why, bytes, "the connection to %.80s ended", address->host);
}
