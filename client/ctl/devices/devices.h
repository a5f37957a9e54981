/* Commands with --all-devices: what they say of each, as one picture. */
#ifndef CTL_DEVICES_DEVICES_H
#define CTL_DEVICES_DEVICES_H

#include <stdio.h>

#include "client/ctl/command.h"
#include "client/ctl/core/devices/list.h"

/* As struct command's all. */
int devices_ls(struct ctl *ctl, const struct args *args);
int devices_stat(struct ctl *ctl, const struct args *args);

/* Looks at all devices, again and again. */
struct devices_look {
	struct devices devices;
	struct answer *before; /* of the last look, and of those devices; NULL: none */
};

/* CTL_OK, CTL_FAILED, CTL_USAGE. */
int devices_look_init(struct ctl *ctl, struct devices_look *look);
/* One more, of the devices that there are by now: prints a line a device to `out`, with rates since the last look;
 * with --json an object on a line. */
int devices_look(struct ctl *ctl, struct devices_look *look, FILE *out);

/* ask.c. One command asked of many devices at once. */

enum { ASK_MS = 2000, ASK_REMOTE_MS = 10000 }; /* for an answer, of all at once */

struct answer {
	char *text;	 /* what the command printed; NULL: it failed */
	json_t *json;	 /* the same, where that was asked for */
	char error[512]; /* why not */
	double at;	 /* when it was there, by a clock that only goes on */
};

/* The devices of --devices or $NPUMEM_DEVICES: of a file, or, by "slurm:", of the jobs that run now. CTL_OK,
 * CTL_FAILED, CTL_USAGE; devices_deinit in any case. */
int ask_devices(struct ctl *ctl, struct devices *devices);

/* Runs a command for each device in a process of its own, so that none waits for another, and takes what it prints
 * (with --json, where `json`). A device that has not answered in time has failed. A new array of devices->n
 * answers. */
struct answer *ask_all(const struct devices *devices, const struct command *command, const struct args *args,
		       bool json);
/* Gives them back before their time. */
void ask_free(struct answer *answers, unsigned n);

/* Lines about those that failed, for people. */
void ask_complain(const struct devices *devices, const struct answer *answers, FILE *out);
/* CTL_FAILED where none has answered. */
int ask_outcome(struct ctl *ctl, const struct devices *devices, const struct answer *answers);
/* A new object {"devices": [{"name", "address", KEY or "error"}]}, where KEY is the answer, or its member of that
 * name where `member`. */
json_t *ask_json(const struct devices *devices, const struct answer *answers, const char *key, bool member);

#endif
