/* One line per event on stderr, with a priority in front where the journal reads it. No call here waits for the
 * reader of stderr: see log_close. */
#ifndef SERVER_LOG_H
#define SERVER_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct session;

/* Syslog's priorities, those that are used. */
enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARNING = 4, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG = 7 };

/* Begins, once in a process; lines below `level` in importance are not written. 0, or -errno: nothing can be
 * said. */
int log_open(enum log_level level);
/* Waits for what was said to be written, at most a second. */
void log_close(void);

/* 0 for a name that is none of error, warning, info, debug. */
int log_level_parse(const char *name);
/* Whether lines of this importance are written. */
bool log_is_on(enum log_level level);

/* Says "npumemd: ..."; printf style, at most 1,000 characters. What is not printable ASCII is told as \xNN, so
 * that nothing that a client has made up ends a line or reaches a terminal. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Says "npumemd: session 5 (uid 1000, pid 4711): ..."; above debug, at most 25 lines a second about one uid.
 * One with id 0 is none: "npumemd: no session (uid 1000, pid 4711): ...". From the loop's thread only. */
void log_session(enum log_level level, const struct session *session, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
