/* Asks squeue what runs now. */
#define _GNU_SOURCE /* gethostname */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/ctl/core/devices/slurm.h"
#include "client/ctl/devices/ask.h"

/* Field by field, so that nothing that a user has named can pass for something else. */
static const char squeue[] = "exec timeout 30 squeue -h -a -r -t R -o '" SLURM_FORMAT "' 2>&1 </dev/null";

/* As Slurm calls this host: $SLURMD_NODENAME within a job, else its name without a domain. */
static void find_node(char *node, size_t bytes)
{
	const char *told = getenv("SLURMD_NODENAME");
	if (told && strlen(told) < bytes)
		strcpy(node, told);
	else if (gethostname(node, bytes))
		node[0] = 0;
	node[bytes - 1] = 0;
	node[strcspn(node, ".")] = 0;
}

int ask_slurm(struct ctl *ctl, struct devices *devices)
{
	char node[256], *line = NULL, last[256] = "it is not there";
	struct slurm_here here = {.uid = geteuid(), .node = node};
	size_t room = 0;
	int status = 0;
	find_node(node, sizeof(node));
	FILE *out = popen(squeue, "re");
	if (!out)
		return ctl_fail(ctl, "cannot run squeue");
	while (getline(&line, &room, out) >= 0) {
		line[strcspn(line, "\n")] = 0;
		snprintf(last, sizeof(last), "%s", line);
		if (!status)
			status = slurm_add(devices, line, &here, &ctl->error);
	}
	free(line);
	int ended = pclose(out);
	if (!ended)
		return status ? CTL_FAILED : CTL_OK;
	npumem_error_clear(&ctl->error);
	return ctl_fail(ctl, "squeue, which knows the devices of slurm:, failed: %.200s", last);
}
