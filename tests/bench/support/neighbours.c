/* They end with the bench. */
#include "tests/bench/support/neighbours.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/support/peer.h"

static _Noreturn void burn(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (volatile unsigned i = 0;; i++)
		;
}

void neighbours_start(struct neighbours *neighbours)
{
	neighbours->n = 0;
	for (int cpu = 1; cpu < sysconf(_SC_NPROCESSORS_ONLN) && neighbours->n < NEIGHBOURS_MAX; cpu++) {
		pid_t pid = fork();
		if (pid < 0)
			peer_die("no neighbour");
		if (!pid)
			burn(cpu);
		neighbours->pids[neighbours->n++] = pid;
	}
}

void neighbours_end(struct neighbours *neighbours)
{
	for (unsigned i = 0; i < neighbours->n; i++) {
		kill(neighbours->pids[i], SIGKILL);
		waitpid(neighbours->pids[i], NULL, 0);
	}
	neighbours->n = 0;
}
