/* Lists of devices. */
#ifndef CTL_CORE_DEVICES_LIST_H
#define CTL_CORE_DEVICES_LIST_H

#include <stdio.h>
#include <sys/types.h>

#include <npumem/types.h>

/* list.c. Many devices by name and address. Whatever knows of devices (a file, a scheduler's node list) adds them
 * here. */

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

/* slurm.c. Devices of the jobs that Slurm runs, where its prolog (systemd/slurm) has put them. */

/* What squeue is to print of each job (-o): its number and its name (12_3 for a task of an array), its uid, its
 * nodes, and what it has of each node. */
#define SLURM_FORMAT "%A %i %U %N %b"

/* Who asks, and where. */
struct slurm_here {
	uid_t uid;	  /* root sees the devices of all, others their own */
	const char *node; /* the name of this host; "": none of the nodes */
};

/* Adds the devices of a job: NODE/NAME, a further one of the same node NODE/NAME.1, …; the address is a path on
 * this node and ssh:NODE:PATH elsewhere. Nothing for a job without npu, or of another uid. 0; INVALID: this is no
 * such line, or as devices_add. */
int slurm_add(struct devices *devices, const char *line, const struct slurm_here *here,
	      struct npumem_error *error);

/* labels.c. Prometheus' text of many devices as one: a metric once, its samples together, each with a label
 * device=NAME. */

struct labelled {
	const char *device;
	const char *text; /* what metrics_prometheus wrote; NULL: it did not answer */
};

/* npumem_up says of each whether it answered. */
void labels_print(FILE *out, const struct labelled *list, unsigned n);

#endif
