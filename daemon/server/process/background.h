/* npumemd --background: the process that was started ends when the daemon listens. */
#ifndef SERVER_BACKGROUND_H
#define SERVER_BACKGROUND_H

/* Goes on in a child with a session of its own; before there are threads. The process that was started waits for
 * background_ready, prints how to end the daemon, and exits with 0; or with 1 if the child ends before. 0 in the
 * child; -errno. */
int background_begin(void);

/* The daemon listens at `path`, as `what` says. Input and output are let go, so that nobody waits for their end;
 * stderr, too, unless it is a file: that is the log. Nothing where background_begin was not called. */
void background_ready(const char *what, const char *path);

#endif
