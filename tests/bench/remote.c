/* Over ssh beside over a path, in one run: bench_remote_client PATH SSH-ADDRESS HOST. Interleaved rounds; of each
 * ratio within a round the median, and the quartiles. $NPUMEM_SSH as the library has it.
 *
 * A write is held against ssh's own way to bring as many bytes to nobody, both over a connection that stands (what
 * ssh has learned of the way by then, it knows in both), and both over one that is made for it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <npumem/async.h>

enum { ROUNDS_MOST = 1000, REQUESTS = 1000, TRIES = 7, BULK_BYTES = 16 << 20, BULK_SIDE = 512 };

enum figure { SMALL, FAR_SMALL, BULK, FAR_BULK, CAT, FRESH_BULK, FRESH_CAT, FIGURES };

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

/* ---- npumem ---- */

/* Of one small tensor: what the daemon has to do is little beside the way there and back. */
static double ask_once(struct npumem *npumem, uint64_t handle)
{
	double begin = now();
	for (unsigned i = 0; i < REQUESTS; i++)
		must(npumem_fill_async(npumem, handle, 1, NULL, NULL, NULL, &error));
	must(npumem_flush(npumem, &error));
	return now() - begin;
}

/* The best of some: one that another process's turn falls into takes as long as that. */
static double ask_many(struct npumem *npumem, uint64_t handle)
{
	double best = 1e9;
	for (unsigned i = 0; i < TRIES; i++) {
		double one = ask_once(npumem, handle);
		best = one < best ? one : best;
	}
	return best;
}

static double write_bulk(struct npumem *npumem, const struct npumem_tensor *tensor, const void *data)
{
	double begin = now();
	must(npumem_write(npumem, tensor, data, BULK_BYTES, &error));
	return now() - begin;
}

static double write_fresh(const char *address, const void *data)
{
	const struct npumem_tensor *tensor;
	struct npumem *npumem;
	double begin = now();
	must(npumem_open(address, NULL, &npumem, &error));
	must(npumem_open_tensor(npumem, "bulk", &tensor, &error));
	write_bulk(npumem, tensor, data);
	npumem_close(npumem);
	return now() - begin;
}

/* ---- ssh alone ---- */

struct cat {
	pid_t pid;
	int fd;
};

static struct cat cat_start(const char *host, const char *there)
{
	const char *ssh = getenv("NPUMEM_SSH");
	char command[2048];
	int ends[2];
	snprintf(command, sizeof(command), "exec %s -T %s '%s'", ssh ? ssh : "ssh", host, there);
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
	return (struct cat){pid, ends[0]};
}

static void cat_end(struct cat *cat)
{
	close(cat->fd);
	waitpid(cat->pid, NULL, 0);
}

static void cat_send(const struct cat *cat, const char *data)
{
	for (size_t at = 0; at < BULK_BYTES;) {
		ssize_t n = write(cat->fd, data + at, BULK_BYTES - at);
		if (n <= 0)
			exit(1);
		at += (size_t)n;
	}
}

static void cat_answered(const struct cat *cat)
{
	char byte;
	if (read(cat->fd, &byte, 1) != 1)
		exit(1);
}

static double cat_bulk(const struct cat *cat, const char *data)
{
	double begin = now();
	cat_send(cat, data);
	cat_answered(cat);
	return now() - begin;
}

static double cat_fresh(const char *host, const char *data)
{
	double begin = now();
	struct cat cat = cat_start(host, "cat > /dev/null; echo");
	cat_send(&cat, data);
	shutdown(cat.fd, SHUT_WR);
	cat_answered(&cat);
	cat_end(&cat);
	return now() - begin;
}

/* ---- figures ---- */

static double took[FIGURES][ROUNDS_MOST];
static unsigned n_rounds = 25;

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double at(double *sorted, unsigned percent)
{
	return sorted[(n_rounds - 1) * percent / 100];
}

static double median(enum figure figure)
{
	double sorted[ROUNDS_MOST];
	memcpy(sorted, took[figure], sizeof(sorted));
	qsort(sorted, n_rounds, sizeof(*sorted), compare);
	return at(sorted, 50) * 1e3;
}

static void row(const char *what, const char *of, enum figure base, enum figure figure)
{
	double ratios[ROUNDS_MOST];
	for (unsigned i = 0; i < n_rounds; i++)
		ratios[i] = took[base][i] / took[figure][i];
	qsort(ratios, n_rounds, sizeof(*ratios), compare);
	printf("%-38s %s %8.2f ms  ssh: %8.2f ms  ratio %.2f (%.2f to %.2f)\n", what, of, median(base),
	       median(figure), at(ratios, 50), at(ratios, 25), at(ratios, 75));
}

int main(int argc, char **argv)
{
	struct npumem_allocation allocation = NPUMEM_ALLOCATION_INIT;
	const struct npumem_tensor *tensor, *far_tensor, *small;
	struct npumem *npumem, *far;
	char there[80];
	if (argc < 4)
		return 2;
	if (argc > 4)
		n_rounds = (unsigned)atoi(argv[4]);
	if (!n_rounds || n_rounds > ROUNDS_MOST)
		return 2;
	must(npumem_open(argv[1], NULL, &npumem, &error));
	must(npumem_open(argv[2], NULL, &far, &error));
	allocation.spec.dtype = NPUMEM_INT8;
	allocation.spec.shape = (struct npumem_dims){1, 64, BULK_SIDE, BULK_SIDE};
	allocation.name = "bulk";
	must(npumem_alloc(npumem, &allocation, 1, &tensor, &error));
	must(npumem_open_tensor(far, "bulk", &far_tensor, &error));
	allocation.spec.shape = (struct npumem_dims){1, 8, 1, 16};
	allocation.name = "small";
	must(npumem_alloc(npumem, &allocation, 1, &small, &error));
	snprintf(there, sizeof(there), "while head -c %d > /dev/null; do echo; done", BULK_BYTES);
	struct cat cat = cat_start(argv[3], there);
	/* What ssh would compress is not what there is to send. */
	char *data = malloc(BULK_BYTES);
	for (size_t i = 0; i < BULK_BYTES; i++)
		data[i] = (char)(i * 2654435761u >> 13);
	cat_bulk(&cat, data);
	write_bulk(far, far_tensor, data);
	for (unsigned i = 0; i < n_rounds; i++) {
		took[SMALL][i] = ask_many(npumem, small->handle);
		took[FAR_SMALL][i] = ask_many(far, small->handle);
		took[BULK][i] = write_bulk(npumem, tensor, data);
		took[FAR_BULK][i] = write_bulk(far, far_tensor, data);
		took[CAT][i] = cat_bulk(&cat, data);
		took[FRESH_BULK][i] = write_fresh(argv[2], data);
		took[FRESH_CAT][i] = cat_fresh(argv[3], data);
	}
	row("1,000 small requests, pipelined", "path:", SMALL, FAR_SMALL);
	row("16 MiB written", "path:", BULK, FAR_BULK);
	row("16 MiB written, both stand", "cat: ", CAT, FAR_BULK);
	row("16 MiB written, both made for it", "cat: ", FRESH_CAT, FRESH_BULK);
	free(data);
	kill(cat.pid, SIGTERM);
	cat_end(&cat);
	npumem_close(far);
	npumem_close(npumem);
	return 0;
}
