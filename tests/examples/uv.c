/* libnpumem in libuv's loop: a poll handle and a timer around npumem_process. A kernel runs while the loop goes
 * on, and is cancelled by a timer if it takes too long. Usage: example_uv [ADDRESS] */
#include <stdio.h>
#include <uv.h>

#include <npumem/async.h>

enum { KERNEL_MS = 20000 };

struct app {
	struct npumem *npumem;
	uv_loop_t loop;
	uv_poll_t poll;
	uv_timer_t timer;    /* for npumem_timeout */
	uv_timer_t patience; /* the program's own */
	struct npumem_request *run;
	const struct npumem_tensor *in, *out;
	int16_t values[2 * 16 * 8 * 8];
	int failed;
};

/* ---- between the two ---- */

static void on_poll(uv_poll_t *poll, int status, int events);

static void on_timer(uv_timer_t *timer)
{
	on_poll(&((struct app *)timer->data)->poll, 0, 0);
}

/* What the connection wants next, told to the loop; after everything that may have changed it. */
static void watch(struct app *app)
{
	int left = npumem_timeout(app->npumem);
	uv_poll_start(&app->poll, UV_READABLE | (npumem_wants_write(app->npumem) ? UV_WRITABLE : 0), on_poll);
	if (left < 0)
		uv_timer_stop(&app->timer);
	else
		uv_timer_start(&app->timer, on_timer, (uint64_t)left, 0);
}

static void end(struct app *app, int failed)
{
	app->failed |= failed;
	uv_stop(&app->loop);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct app *app = poll->data;
	struct npumem_error error;
	(void)status;
	(void)events;
	if (npumem_process(app->npumem, &error)) {
		fprintf(stderr, "%s\n", error.message);
		uv_poll_stop(poll);
		end(app, 1);
		return;
	}
	watch(app);
}

/* ---- the program ---- */

static int refused(struct app *app, const struct npumem_answer *answer)
{
	if (!answer->status)
		return 0;
	fprintf(stderr, "%s: %s\n", npumem_status_name(answer->status), answer->error->message);
	end(app, 1);
	return 1;
}

static void on_read(void *context, const struct npumem_answer *answer)
{
	struct app *app = context;
	int wrong = 0;
	if (refused(app, answer))
		return;
	for (size_t i = 0; i < sizeof(app->values) / sizeof(app->values[0]); i++)
		wrong += app->values[i] != ((int)i - 1000 > 0 ? (int)i - 1000 : 0);
	printf("%d values are wrong\n", wrong);
	end(app, wrong != 0);
}

static void on_run(void *context, const struct npumem_answer *answer)
{
	struct app *app = context;
	struct npumem_error error;
	app->run = NULL;
	uv_timer_stop(&app->patience);
	if (refused(app, answer))
		return;
	printf("relu: %lld saturated\n", (long long)answer->done->saturated);
	if (npumem_read_async(app->npumem, app->out, app->values, sizeof(app->values), on_read, app, NULL, &error))
		end(app, 1);
}

static void on_patience(uv_timer_t *timer)
{
	struct app *app = timer->data;
	npumem_cancel(app->run);
	watch(app);
}

static void on_write(void *context, const struct npumem_answer *answer)
{
	struct app *app = context;
	struct npumem_operand operands[] = {{"in", app->in->handle}, {"out", app->out->handle}};
	struct npumem_param relu;
	struct npumem_error error;
	if (refused(app, answer))
		return;
	if (npumem_param_parse("relu", "gen", &relu, &error) ||
	    npumem_run_async(app->npumem, "relu", operands, 2, &relu, 1, on_run, app, &app->run, &error)) {
		fprintf(stderr, "%s\n", error.message);
		end(app, 1);
		return;
	}
	uv_timer_start(&app->patience, on_patience, KERNEL_MS, 0);
}

static void on_alloc(void *context, const struct npumem_answer *answer)
{
	struct app *app = context;
	struct npumem_error error;
	if (refused(app, answer))
		return;
	app->in = answer->tensors->list[0];
	app->out = answer->tensors->list[1];
	npumem_keep(answer->tensors);
	for (size_t i = 0; i < sizeof(app->values) / sizeof(app->values[0]); i++)
		app->values[i] = (int16_t)((int)i - 1000);
	if (npumem_write_async(app->npumem, app->in, app->values, sizeof(app->values), on_write, app, NULL,
			       &error)) {
		fprintf(stderr, "%s\n", error.message);
		end(app, 1);
	}
}

static int start(struct app *app, const char *address)
{
	struct npumem_allocation allocations[] = {NPUMEM_ALLOCATION_INIT, NPUMEM_ALLOCATION_INIT};
	struct npumem_error error;
	for (int i = 0; i < 2; i++) {
		allocations[i].spec.dtype = NPUMEM_FX16;
		allocations[i].spec.frac_bits = 8;
		allocations[i].spec.shape = (struct npumem_dims){2, 16, 8, 8};
	}
	if (npumem_open(address, NULL, &app->npumem, &error) ||
	    npumem_alloc_async(app->npumem, allocations, 2, on_alloc, app, NULL, &error)) {
		fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	uv_loop_init(&app->loop);
	uv_poll_init(&app->loop, &app->poll, npumem_fd(app->npumem));
	uv_timer_init(&app->loop, &app->timer);
	uv_timer_init(&app->loop, &app->patience);
	app->poll.data = app->timer.data = app->patience.data = app;
	watch(app);
	return 0;
}

static void close_handle(uv_handle_t *handle, void *context)
{
	(void)context;
	uv_close(handle, NULL);
}

int main(int argc, char **argv)
{
	static struct app app;
	int failed = start(&app, argc > 1 ? argv[1] : NULL);
	if (!failed) {
		uv_run(&app.loop, UV_RUN_DEFAULT);
		failed = app.failed;
		/* The poll handle goes before the fd that it watches. */
		uv_walk(&app.loop, close_handle, NULL);
		uv_run(&app.loop, UV_RUN_DEFAULT);
		uv_loop_close(&app.loop);
	}
	npumem_close(app.npumem);
	return failed;
}
