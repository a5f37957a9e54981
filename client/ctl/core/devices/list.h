/* Many devices by name and address. Whatever knows of devices (a file, a scheduler's node list) adds them here. */
#ifndef CTL_CORE_DEVICES_LIST_H
#define CTL_CORE_DEVICES_LIST_H

#include <npumem/types.h>

enum { DEVICES_NAME_BYTES = 64, DEVICES_ADDRESS_BYTES = 512, DEVICES_MAX = 4096 };

struct device {
	char name[DEVICES_NAME_BYTES], address[DEVICES_ADDRESS_BYTES];
};

struct devices {
	struct device *list;
	unsigned n;
};

/* Adds one; the texts are copied. 0; INVALID: a name that is taken, empty, too long or has what is not printed, an
 * address that is empty or too long, or a private daemon's (spawn:), or more than DEVICES_MAX. */
int devices_add(struct devices *devices, const char *name, const char *address, struct npumem_error *error);
/* Adds those of a file: a line each, name and address; what follows a # at its begin is a comment. 0, or as
 * devices_add with file and line; INVALID: it cannot be read, or names none. */
int devices_read(struct devices *devices, const char *path, struct npumem_error *error);
void devices_deinit(struct devices *devices);

#endif
