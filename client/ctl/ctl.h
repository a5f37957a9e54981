/* What the commands share: the connection, how failures and results are printed. */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include <jansson.h>
#include <stdio.h>

#include <npumem/client.h>

#include "client/ctl/core/words/words.h"

/* Exit codes. CTL_LOST: of what a sweep was to find out nothing is known, as it had no daemon. */
enum { CTL_OK = 0, CTL_FAILED = 1, CTL_USAGE = 2, CTL_LOST = 3 };

struct bar;

struct ctl {
	bool json;
	bool quiet;	     /* the exit code is a command's that it ran, which has said all */
	bool hushed;	     /* --quiet: no warnings, no bar */
	bool printed;	     /* an object is on stdout */
	const char *address; /* NULL: the library's default */
	bool batch;	     /* commands come as lines */
	bool all_devices;    /* commands are asked of many */
	const char *devices; /* the file that lists them; NULL: $NPUMEM_DEVICES */
	char *spawned;	     /* the address of --spawn; owned */
	double reconnect;    /* seconds to try for */
	struct npumem *npumem;
	struct bar *bar;	   /* of the request under way; NULL: none */
	struct npumem_error error; /* why a command failed */
};

/* Connects once: ctl->npumem. CTL_OK or CTL_FAILED. */
int ctl_connect(struct ctl *ctl);
/* The same, and what the daemon and its device are. */
int ctl_info(struct ctl *ctl, const struct npumem_info **info);

/* The daemon is on another host. */
bool ctl_is_remote(const struct ctl *ctl);

/* Each sets the message of ctl->error, where it has none yet, and returns its exit code. ctl_fail: something went
 * wrong (INTERNAL); ctl_invalid: what was asked for is (INVALID), ctl_usage: and on every device. */
int ctl_fail(struct ctl *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));
int ctl_invalid(struct ctl *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));
int ctl_usage(struct ctl *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same of a refusal that the library explained, whose status and fields stay, in other words. `why` may be
 * ctl->error. */
int ctl_refuse(struct ctl *ctl, const struct npumem_error *why, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Connects and finds a tensor by name; it is there until the connection closes. */
int ctl_open(struct ctl *ctl, const char *name, const struct npumem_tensor **tensor);

/* Refuses an output that is, through any link, another file that the command line names (or the network.json of a
 * folder that it names): it would be gone. `path` is a word or an option's value of `args`; NULL: there is none.
 * CTL_OK or CTL_USAGE. */
int ctl_check_output(struct ctl *ctl, const struct args *args, const char *path);

/* A file to be written, and its end. NULL and CTL_FAILED: it cannot be written. */
FILE *ctl_create(struct ctl *ctl, const char *path);
int ctl_close(struct ctl *ctl, const char *path, FILE *file);

/* Prints an object as the command's whole output, and gives it up. NULL: a text in it is no UTF-8. */
int ctl_print(struct ctl *ctl, json_t *object);
/* The same as one line of many, which is out when this returns. */
int ctl_print_line(struct ctl *ctl, json_t *object, FILE *out);

/* Says why a command failed: for people on stderr, and with --json for programs on stdout, where no result is
 * there. `usage`: how to get help; empty: nothing. */
void ctl_complain(const struct ctl *ctl, const char *usage);

/* The monotonic clock: nanoseconds, seconds. */
uint64_t ctl_now_ns(void);
double ctl_now(void);

enum { CTL_DIRECTORY_BYTES = 32 };

/* Makes a directory in /tmp that only this user and root can enter or rename. False: errno has the reason.
 * $XDG_RUNTIME_DIR and $TMPDIR are not used: after su(1) they may name a directory of another user, who could
 * replace its files. */
bool ctl_make_directory(char path[CTL_DIRECTORY_BYTES]);

/* A warning of the daemon, on stderr. Empty: nothing. */
void ctl_warn(const struct ctl *ctl, const char *warning);

#endif
