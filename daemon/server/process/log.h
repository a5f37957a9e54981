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
 * logged. */
int log_open(enum log_level level);
/* Waits until all lines are written, at most a second. */
void log_close(void);

/* 0 for a name that is none of error, warning, info, debug. */
int log_level_parse(const char *name);
/* Whether lines of this importance are written. */
bool log_is_on(enum log_level level);

/* Logs "npumemd: ..."; printf style, at most 1,000 characters. Other bytes than printable ASCII are written as
 * \xNN, so that no text of a client ends a line or controls a terminal. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Logs "npumemd: session 5 (uid 1000, pid 4711): ..."; above debug, at most 25 lines a second about one uid. With
 * session id 0: "npumemd: no session (uid 1000, pid 4711): ...". From the loop's thread only. */
void log_session(enum log_level level, const struct session *session, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
