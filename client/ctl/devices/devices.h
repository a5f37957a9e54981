/* Commands with --all-devices: what they say of each, as one picture. */
#ifndef CTL_DEVICES_DEVICES_H
#define CTL_DEVICES_DEVICES_H

#include "client/ctl/devices/ask.h"

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

#endif
