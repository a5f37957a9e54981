/* Devices of the jobs that Slurm runs, where its prolog (systemd/slurm) has put them. */
#ifndef CTL_CORE_DEVICES_SLURM_H
#define CTL_CORE_DEVICES_SLURM_H

#include <sys/types.h>

#include "client/ctl/core/devices/list.h"

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

#endif
