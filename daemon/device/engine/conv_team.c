/* A part that was begun is finished, unless the run is cancelled. A helper may leave after any part; the others go
 * on. */
#include "daemon/device/engine/conv_plan.h"

enum {
	TOLD_PARTS = 8, /* at once where threads share, as progress is one line for all */
};

struct team {
	const struct conv_plan *plan;
	conv_part *part;
	int64_t first; /* part, of which the ranges count */
	_Atomic int64_t saturated, wrapped;
	_Atomic bool stopped;
	struct ranges ranges;
};

bool conv_team_look(struct conv_worker *worker, int64_t elements)
{
	return kernel_look(worker->plan->convolution->call, elements, &worker->pending);
}

/* The sums in it are left as they are. */
static void worker_init(struct conv_worker *worker, const struct conv_plan *plan, unsigned number)
{
	worker->plan = plan;
	worker->lines =
		plan->lines + number * plan->n_lines * plan->flat.length * plan->convolution->weighted.data_bytes;
	worker->has_lines = false;
	worker->pending = 0;
	worker->counts = (struct kernel_counts){.saturated = 0};
}

static void work(void *arg, unsigned number)
{
	struct team *team = arg;
	const struct conv_plan *plan = team->plan;
	const struct kernel_call *call = plan->convolution->call;
	struct conv_worker worker;
	int64_t untold = 0, part;
	if (number >= CONV_WORKERS_MAX)
		return;
	worker_init(&worker, plan, number);
	for (unsigned n = 1; !team->stopped && (part = ranges_take(&team->ranges, number)) >= 0; n++) {
		int64_t elements = team->part(&worker, team->first + part);
		if (elements < 0) {
			team->stopped = true;
			break;
		}
		untold += elements;
		bool goes_on = kernel_part_done(call, n % TOLD_PARTS ? 0 : untold);
		untold = n % TOLD_PARTS ? untold : 0;
		if (!goes_on) {
			if (kernel_cancelled(call->progress))
				team->stopped = true;
			break;
		}
	}
	if (untold)
		kernel_part_done(call, untold);
	atomic_fetch_add(&team->saturated, worker.counts.saturated);
	atomic_fetch_add(&team->wrapped, worker.counts.wrapped);
}

/* As `work` of a team of one, whose ranges nobody else looks at: of a small convolution atomic operations would be
 * a tenth of the time. */
static bool work_alone(const struct conv_plan *plan, conv_part *part, int64_t n_parts)
{
	const struct kernel_call *call = plan->convolution->call;
	struct kernel_counts *counts = plan->convolution->counts;
	struct conv_worker worker;
	bool wanted = true;
	worker_init(&worker, plan, 0);
	for (int64_t i = 0; i < n_parts && wanted; i++) {
		int64_t elements = part(&worker, i);
		wanted = elements >= 0 && (kernel_part_done(call, elements) || !kernel_cancelled(call->progress));
	}
	counts->saturated += worker.counts.saturated;
	counts->wrapped += worker.counts.wrapped;
	return wanted;
}

static void run_some(struct team *team, int64_t first, int64_t n, double steps)
{
	team->first = first;
	ranges_init(&team->ranges, n);
	kernel_share(team->plan->convolution->call, steps, work, team);
	/* Helpers may have left what they had just taken. */
	work(team, 0);
}

bool conv_team_run(const struct conv_plan *plan, conv_part *part, int64_t n_parts, double steps)
{
	struct kernel_counts *counts = plan->convolution->counts;
	struct team team = {.plan = plan, .part = part};
	if (n_parts == 1 || !kernel_is_shared(plan->convolution->call, steps))
		return work_alone(plan, part, n_parts);
	for (int64_t first = 0, n; first < n_parts && !team.stopped; first += n) {
		n = n_parts - first < RANGES_PARTS_MAX ? n_parts - first : RANGES_PARTS_MAX;
		run_some(&team, first, n, steps);
	}
	counts->saturated += team.saturated;
	counts->wrapped += team.wrapped;
	return !team.stopped;
}
