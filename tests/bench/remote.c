/* Over ssh beside over a path, in one run: bench_remote_client PATH SSH-ADDRESS HOST. Interleaved rounds, the best
 * of each. $NPUMEM_SSH as the library has it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <npumem/async.h>

enum { ROUNDS = 7, REQUESTS = 1000, BULK_BYTES = 16 << 20, BULK_SIDE = 512 };

static struct npumem_error error;

static void must(int status)
{
	if (!status)
		return;
	fprintf(stderr, "%s\n", error.message);
	exit(1);
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double ask_many(struct npumem *npumem, uint64_t handle)
{
	double begin = now();
	for (unsigned i = 0; i < REQUESTS; i++)
		must(npumem_show_async(npumem, handle, NULL, NULL, NULL, &error));
	must(npumem_flush(npumem, &error));
	return now() - begin;
}

static double write_bulk(struct npumem *npumem, const struct npumem_tensor *tensor, const void *data)
{
	double begin = now();
	must(npumem_write(npumem, tensor, data, BULK_BYTES, &error));
	return now() - begin;
}

/* `cat > /dev/null` there, from when it stands ready until it has it all. */
static double cat_bulk(const char *host, const char *data)
{
	const char *ssh = getenv("NPUMEM_SSH");
	char command[2048], byte;
	int ends[2];
	snprintf(command, sizeof(command), "exec %s -T %s 'echo; cat > /dev/null; echo'", ssh ? ssh : "ssh", host);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		exit(1);
	pid_t pid = fork();
	if (!pid) {
		dup2(ends[1], 0);
		dup2(ends[1], 1);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 1)
		exit(1);
	double begin = now();
	for (size_t at = 0; at < BULK_BYTES;) {
		ssize_t n = write(ends[0], data + at, BULK_BYTES - at);
		if (n <= 0)
			exit(1);
		at += (size_t)n;
	}
	shutdown(ends[0], SHUT_WR);
	if (read(ends[0], &byte, 1) != 1)
		exit(1);
	double took = now() - begin;
	close(ends[0]);
	waitpid(pid, NULL, 0);
	return took;
}

int main(int argc, char **argv)
{
	struct npumem_allocation allocation = NPUMEM_ALLOCATION_INIT;
	const struct npumem_tensor *tensor, *far_tensor;
	struct npumem *npumem, *far;
	double small = 1e9, far_small = 1e9, bulk = 1e9, far_bulk = 1e9, cat = 1e9, took;
	if (argc != 4)
		return 2;
	must(npumem_open(argv[1], NULL, &npumem, &error));
	must(npumem_open(argv[2], NULL, &far, &error));
	allocation.spec.dtype = NPUMEM_INT8;
	allocation.spec.shape = (struct npumem_dims){1, 64, BULK_SIDE, BULK_SIDE};
	allocation.name = "bulk";
	must(npumem_alloc(npumem, &allocation, 1, &tensor, &error));
	must(npumem_open_tensor(far, "bulk", &far_tensor, &error));
	/* What ssh would compress is not what there is to send. */
	char *data = malloc(BULK_BYTES);
	for (size_t i = 0; i < BULK_BYTES; i++)
		data[i] = (char)(i * 2654435761u >> 13);
	for (unsigned i = 0; i < ROUNDS; i++) {
#define BEST(to, call) to = (took = (call)) < to ? took : to
		BEST(small, ask_many(npumem, tensor->handle));
		BEST(far_small, ask_many(far, far_tensor->handle));
		BEST(bulk, write_bulk(npumem, tensor, data));
		BEST(far_bulk, write_bulk(far, far_tensor, data));
		BEST(cat, cat_bulk(argv[3], data));
	}
	printf("1,000 small requests  path %7.2f ms  ssh %7.2f ms                  ratio %.2f\n", small * 1e3,
	       far_small * 1e3, small / far_small);
	printf("16 MiB written        path %7.2f ms  ssh %7.2f ms  cat %7.2f ms  ratio to cat %.2f\n", bulk * 1e3,
	       far_bulk * 1e3, cat * 1e3, cat / far_bulk);
	free(data);
	npumem_close(far);
	npumem_close(npumem);
	return 0;
}
