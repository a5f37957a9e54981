/* libnpumem in a loop of one's own around poll: two connections at once, to the same or to two daemons. On each,
 * an allocation; when that is answered a fill, then a read; when that is answered the connection is closed, from
 * within the callback. Usage: example_poll [ADDRESS [ADDRESS]] */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include <npumem/async.h>

enum { CLIENTS = 2, BYTES = 1 * 8 * 16 * 16 };

struct client {
	struct npumem *npumem; /* NULL: is done, or over */
	const struct npumem_tensor *tensor;
	int8_t data[BYTES];
	int value, failed;
};

static void over(struct client *client, int failed)
{
	client->failed = failed;
	npumem_close(client->npumem);
	client->npumem = NULL;
}

static int refused(struct client *client, const struct npumem_answer *answer)
{
	if (!answer->status)
		return 0;
	fprintf(stderr, "%s: %s\n", npumem_status_name(answer->status), answer->error->message);
	if (client->npumem)
		over(client, 1);
	return 1;
}

static void on_read(void *context, const struct npumem_answer *answer)
{
	struct client *client = context;
	int wrong = 0;
	if (refused(client, answer))
		return;
	for (int i = 0; i < BYTES; i++)
		wrong += client->data[i] != client->value;
	printf("%d elements read, %d of them wrong\n", BYTES, wrong);
	over(client, wrong != 0);
}

static void on_fill(void *context, const struct npumem_answer *answer)
{
	refused(context, answer);
}

/* The two are sent one after the other without waiting: they take effect in that order. */
static void on_alloc(void *context, const struct npumem_answer *answer)
{
	struct client *client = context;
	struct npumem_error error;
	if (refused(client, answer))
		return;
	client->tensor = answer->tensors->list[0];
	npumem_keep(client->tensor); /* or it would be gone when this returns */
	if (npumem_fill_async(client->npumem, client->tensor->handle, client->value, on_fill, client, NULL,
			      &error) ||
	    npumem_read_async(client->npumem, client->tensor, client->data, BYTES, on_read, client, NULL,
			      &error)) {
		fprintf(stderr, "%s\n", error.message);
		over(client, 1);
	}
}

static int start(struct client *client, const char *address)
{
	struct npumem_allocation allocation = NPUMEM_ALLOCATION_INIT;
	struct npumem_options options = NPUMEM_OPTIONS_INIT;
	struct npumem_error error;
	allocation.spec.dtype = NPUMEM_INT8;
	allocation.spec.shape = (struct npumem_dims){1, 8, 16, 16};
	options.call_ms = 20000; /* and no call takes longer than that */
	if (!npumem_open(address, &options, &client->npumem, &error) &&
	    !npumem_alloc_async(client->npumem, &allocation, 1, on_alloc, client, NULL, &error))
		return 0;
	fprintf(stderr, "%s\n", error.message);
	return 1;
}

/* One turn: waits until one of them has something to do, and lets it. */
static int turn(struct client *clients)
{
	struct pollfd pollfds[CLIENTS];
	int timeout = -1, n_open = 0;
	for (int i = 0; i < CLIENTS; i++) {
		const struct npumem *npumem = clients[i].npumem;
		int left = npumem ? npumem_timeout(npumem) : -1;
		pollfds[i] = (struct pollfd){.fd = npumem ? npumem_fd(npumem) : -1, .events = POLLIN};
		if (npumem && npumem_wants_write(npumem))
			pollfds[i].events |= POLLOUT;
		if (left >= 0 && (timeout < 0 || left < timeout))
			timeout = left;
		n_open += npumem != NULL;
	}
	if (!n_open || (poll(pollfds, CLIENTS, timeout) < 0 && errno != EINTR))
		return 0;
	/* A connection that breaks tells all its callbacks, which close it here. */
	for (int i = 0; i < CLIENTS; i++)
		if (clients[i].npumem && (pollfds[i].revents || timeout >= 0))
			npumem_process(clients[i].npumem, NULL);
	return 1;
}

int main(int argc, char **argv)
{
	static struct client clients[CLIENTS];
	int failed = 0;
	for (int i = 0; i < CLIENTS; i++) {
		clients[i].value = 11 + i;
		failed |= start(&clients[i], argc > i + 1 ? argv[i + 1] : argc > 1 ? argv[1] : NULL);
	}
	while (!failed && turn(clients))
		;
	for (int i = 0; i < CLIENTS; i++) {
		failed |= clients[i].failed;
		npumem_close(clients[i].npumem);
	}
	return failed;
}
