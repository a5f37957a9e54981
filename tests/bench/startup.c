/* From the start of a daemon to its first reply, and what an idle one has resident, beside a daemon that is
 * nothing but libuv and protobuf-c: bench_startup [options]. The device has 32 MiB, 64 NPUs of 512 KiB. */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/support/bench.h"
#include "tests/bench/support/peer.h"
#include "tests/bench/support/remote.h"
#include "tests/bench/support/scratch.h"

extern char **environ;

struct daemon {
	char path[SCRATCH_PATH_BYTES];
	const char *arguments[6];
	uint8_t request[8]; /* a frame: its length, then an id, and what is asked */
	double resident_kb; /* of the last one that was started */
};

static int connect_to(const char path[SCRATCH_PATH_BYTES])
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	uint64_t end = peer_now_ns() + 20 * UINT64_C(1000000000);
	memcpy(address.sun_path, path, sizeof(address.sun_path));
	while (peer_now_ns() < end) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof(address)))
			return fd;
		close(fd);
		usleep(20);
	}
	peer_die(path);
}

static double resident_kb(pid_t pid)
{
	char path[64], line[256];
	double kb = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "VmRSS:", 6))
			kb = atof(line + 6);
	if (file)
		fclose(file);
	return kb;
}

/* One life: started, asked once, looked at, killed. The clock stops at the reply; what follows is not measured. */
static double start_once(struct daemon *daemon)
{
	uint8_t reply[4096];
	pid_t pid;
	uint64_t from = peer_now_ns();
	errno = posix_spawn(&pid, daemon->arguments[0], NULL, NULL, (char *const *)(uintptr_t)daemon->arguments,
			    environ);
	if (errno)
		peer_die(daemon->arguments[0]);
	int fd = connect_to(daemon->path);
	ssize_t n = daemon->request[0] + 1;
	if (write(fd, daemon->request, (size_t)n) != n || read(fd, reply, sizeof(reply)) < 3)
		peer_die("no reply");
	double seconds = (double)(peer_now_ns() - from) / 1e9;
	daemon->resident_kb = resident_kb(pid);
	close(fd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(daemon->path);
	return seconds;
}

static void measure(const struct bench *bench, struct daemon *daemons, const struct bench_contender *contenders,
		    struct bench_measured *measured)
{
	*measured = (struct bench_measured){.contenders = contenders, .n = 2, .rounds = bench->rounds};
	for (unsigned r = 0; r < bench->rounds; r++)
		for (unsigned i = 0; i < 2; i++)
			measured->seconds[i][r] = start_once(&daemons[i]);
}

static void tell(const struct bench *bench, const struct daemon *daemons, const struct bench_measured *m)
{
	const char *peer = m->contenders[1].name;
	const struct bench_row rows[] = {
		{"start to first reply", bench_seconds(m, 0) * 1e3, "ms", peer, bench_seconds(m, 1) * 1e3,
		 1 / bench_ratio(m, 0, 1), BENCH_RATIO_AT_MOST, 1.3},
		{"resident idle, a device of 32 MiB", daemons[0].resident_kb / 1e3 * 1.024, "MB", peer,
		 daemons[1].resident_kb / 1e3 * 1.024, daemons[0].resident_kb / daemons[1].resident_kb,
		 BENCH_VALUE_AT_MOST, 3},
	};
	for (unsigned i = 0; i < 2; i++)
		if (bench_wanted(bench, rows[i].name))
			bench_tell(bench, &rows[i]);
}

int main(int argc, char **argv)
{
	struct bench bench = {.name = "startup", .rounds = 41};
	struct daemon daemons[2];
	struct bench_measured measured;
	const struct bench_contender contenders[] = {{"npumemd", NULL, NULL, 1, BENCH_TYPICAL},
						     {"libuv and protobuf-c", NULL, NULL, 1, BENCH_TYPICAL}};
	bench_options(&bench, argc, argv);
	daemons[0] = (struct daemon){
		.arguments = {remote_program(), "--socket", daemons[0].path, "--log", "warning", NULL},
		.request = {4, 0x08, 1, 0x12, 0} /* info */};
	daemons[1] = (struct daemon){.arguments = {MINIMAL, daemons[1].path, NULL}, .request = {2, 0x08, 1}};
	scratch_path("daemon", daemons[0].path);
	scratch_path("minimal", daemons[1].path);
	measure(&bench, daemons, contenders, &measured);
	tell(&bench, daemons, &measured);
	bench_end(&bench);
	return 0;
}
