/* The threads of a run take parts from a counter. A part that was begun is finished, but where nobody wants the
 * rest; who helps may leave after any, and the others go on. */
#include "daemon/device/engine/conv_plan.h"

enum {
	/* Fewer products are done before a helper has woken up. */
	SHARED_PRODUCTS = 1 << 25,
};

struct team {
	const struct conv_plan *plan;
	conv_part *part;
	int64_t n_parts;
	_Atomic int64_t next, n_workers, saturated, wrapped;
	_Atomic bool stopped;
};

bool conv_team_look(struct conv_worker *worker, int64_t elements)
{
	return kernel_look(worker->plan->convolution->call, elements, &worker->pending);
}

/* The sums in it are left as they are. */
static void worker_init(struct conv_worker *worker, const struct conv_plan *plan, int64_t number)
{
	worker->plan = plan;
	worker->lines =
		plan->lines + number * plan->n_lines * plan->flat.length * plan->convolution->weighted.data_bytes;
	worker->has_lines = false;
	worker->pending = 0;
	worker->counts = (struct kernel_counts){.saturated = 0};
}

static void work(void *arg)
{
	struct team *team = arg;
	const struct conv_plan *plan = team->plan;
	struct conv_worker worker;
	int64_t number = atomic_fetch_add(&team->n_workers, 1), i;
	if (number >= plan->n_workers)
		return;
	worker_init(&worker, plan, number);
	while (!team->stopped && (i = atomic_fetch_add(&team->next, 1)) < team->n_parts) {
		int64_t elements = team->part(&worker, i);
		if (elements < 0) {
			team->stopped = true;
		} else if (!kernel_part_done(plan->convolution->call, elements)) {
			if (kernel_cancelled(plan->convolution->call->progress))
				team->stopped = true;
			break;
		}
	}
	atomic_fetch_add(&team->saturated, worker.counts.saturated);
	atomic_fetch_add(&team->wrapped, worker.counts.wrapped);
}

/* As `work` of a team of one, whose counter nobody else looks at: of a small convolution atomic operations would
 * be a tenth of the time. */
static bool work_alone(const struct conv_plan *plan, conv_part *part, int64_t n_parts)
{
	struct kernel_call *call = plan->convolution->call;
	struct conv_worker worker;
	bool wanted = true;
	worker_init(&worker, plan, 0);
	for (int64_t i = 0; i < n_parts && wanted; i++) {
		int64_t elements = part(&worker, i);
		wanted = elements >= 0 && (kernel_part_done(call, elements) || !kernel_cancelled(call->progress));
	}
	call->counts.saturated += worker.counts.saturated;
	call->counts.wrapped += worker.counts.wrapped;
	return wanted;
}

bool conv_team_run(const struct conv_plan *plan, conv_part *part, int64_t n_parts, int64_t products)
{
	struct kernel_counts *counts = &plan->convolution->call->counts;
	struct team team = {.plan = plan, .part = part, .n_parts = n_parts};
	if (products < SHARED_PRODUCTS || n_parts == 1)
		return work_alone(plan, part, n_parts);
	kernel_share(plan->convolution->call, work, &team);
	/* Helpers may have left what this thread found nothing to do of, as they were too many. */
	team.n_workers = 0;
	work(&team);
	counts->saturated += team.saturated;
	counts->wrapped += team.wrapped;
	return !team.stopped;
}
