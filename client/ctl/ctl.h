/* What the commands share: the connection, how failures and results are printed. */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include <signal.h>
#include <stdio.h>

#include <jansson.h>
#include <npumem/client.h>

#include "client/ctl/core/arrays/values.h"
#include "client/ctl/core/kernels/kernels.h"
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

/* users.c. Users of this machine, by name. */

enum { USERS_TEXT_BYTES = 48 };

/* False: no user has this name. */
bool users_find(const char *name, int64_t *uid);

/* "1000 (alice)"; "1000" if no user has this uid, or if the daemon is on another host, whose users are others.
 * Returns `text`, USERS_TEXT_BYTES long. */
const char *users_text(const struct ctl *ctl, uint32_t uid, char *text);

/* selection.c. Tensors by name or by pattern. */

/* Those found, each once, in the daemon's order. */
struct selection {
	const struct npumem_tensor **list;
	unsigned n;
};

/* True of a word with *, ? or [, which is a pattern. */
bool selection_is_pattern(const char *word);
/* The tensors whose names are among the words, or fit a pattern of them (shell patterns; UID:PATTERN for another
 * uid's); no words: all that one may know of. CTL_OK; CTL_FAILED where a word finds none. */
int selection_all(struct ctl *ctl, uint32_t uid, const char *const *words, unsigned n_words,
		  struct selection *selection);

/* call.c. A kernel call from the words KERNEL role=NAME... param=value..., for `run` and what runs kernels as it
 * does. */

struct call {
	const struct npumem_kernel_row *row;
	char roles[NPUMEM_OPERANDS_MAX][NPUMEM_FIELD_KEY_BYTES];
	const struct npumem_tensor *tensors[NPUMEM_OPERANDS_MAX];
	struct npumem_param params[NPUMEM_PARAMS_MAX];
	unsigned n_tensors, n_params;
};

/* Parses all the words, connects and finds the tensors. CTL_OK, CTL_FAILED or CTL_USAGE. */
int call_open(struct ctl *ctl, const struct args *args, struct call *call);
/* CTL_OK or CTL_FAILED. */
int call_run(struct ctl *ctl, const struct call *call, const struct npumem_done **done);

/* measure.c. Numeric questions about actual numbers: files and tensors in place of shapes, judged for each
 * frac_bits that comes into question. */

enum { MEASURE_CANDIDATES_MAX = 12, MEASURE_TEXT_BYTES = 160 };

struct measured {
	char role[NPUMEM_FIELD_KEY_BYTES];
	char source[MEASURE_TEXT_BYTES]; /* a file or a tensor */
	struct values values;		 /* real numbers */
	int dtype;			 /* fx8, fx16 */
	int64_t frac_bits;     /* chosen: the one that is given, the tensor's, else the most without clipping */
	bool is_weights, each; /* each: as formats_weights_sum has it */
	unsigned n;
	struct formats_candidate candidates[MEASURE_CANDIDATES_MAX];
	const char *
		sums[MEASURE_CANDIDATES_MAX]; /* what the kernel's sums do then; NULL: nothing was asked of them */
};

struct measure {
	int rounding;
	unsigned n;
	struct measured list[NPUMEM_OPERANDS_MAX];
	char texts[NPUMEM_OPERANDS_MAX][MEASURE_TEXT_BYTES];
};

/* Replaces each role=FILE or role=TENSOR among the words of `advise` by its shape, format and sum of weights, in
 * `words`, which has args->n_words. Connects where a tensor is named. CTL_OK, CTL_FAILED, CTL_USAGE. */
int measure_words(struct ctl *ctl, const struct args *args, struct measure *measure, const char **words);
/* One file or tensor by itself: list[0]. */
int measure_one(struct ctl *ctl, const struct args *args, struct measure *measure);

/* What the question's sums do with each candidate, the others as they are. */
void measure_ask(struct measure *measure, struct question *question);

json_t *measure_array(const struct measure *measure);
void measure_print(const struct measure *measure);

/* bar.c. A bar on stderr, where that is a terminal, while one request takes long. */

/* From bar_follow to bar_end, ctl->bar is this one. */
struct bar {
	struct ctl *ctl;
	unsigned width;		 /* columns that it takes now; 0: it is not shown */
	struct sigaction before; /* of an interrupt, which meanwhile says what it cancelled */
	bool shown;		 /* where there is a terminal */
	uint64_t session;	 /* its own: events of other sessions arrive, too */
	uint64_t drawn_ns;
	size_t total, done, share; /* of several requests; total 0: it is one */
};

/* Before the request is sent, on an open connection. Does nothing where stderr is no terminal, or the daemon knows
 * no progress. */
void bar_follow(struct ctl *ctl, struct bar *bar);
/* Of several requests with bar->total parts in all: the next has `share` of them, and `done` are over. */
void bar_part(struct bar *bar, size_t done, size_t share);
/* When it is answered, before anything else is printed; on every way out after bar_follow. */
void bar_end(struct bar *bar);

/* Until *before is set again, an interrupt prints `text` before it ends the program; not where another handler is
 * set. */
void bar_interrupt(const char *text, struct sigaction *before);

#endif
