#include "daemon/device/kernel_support/walk.h"

#include <stdatomic.h>

#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/ranges.h"
#include "daemon/device/least.h"

/* An operand whose pack is all that is needed of it has neither. */
static bool is_dense(const struct kernel_call *call)
{
	for (unsigned r = 0; r < call->n_roles; r++)
		if (call->roles[r].n > 0 && !call->roles[r].operands[0].data &&
		    call->roles[r].operands[0].features.base)
			return false;
	return true;
}

/* ---- threads that share one ---- */

/* A part: some rows' elements of a band. */
struct walk_team {
	const struct kernel *kernel;
	const struct kernel_call *call;
	int64_t n_bands, n_chunks;
	_Atomic int64_t saturated, wrapped, divided_by_zero;
	struct ranges ranges;
};

static void run_parts(void *arg, unsigned number)
{
	struct walk_team *team = arg;
	struct kernel_call call = *team->call;
	if (number >= RANGES_MAX)
		return;
	call.team = team;
	call.number = number;
	team->kernel->run(&call);
	atomic_fetch_add(&team->saturated, call.counts.saturated);
	atomic_fetch_add(&team->wrapped, call.counts.wrapped);
	atomic_fetch_add(&team->divided_by_zero, call.counts.divided_by_zero);
}

/* Long rows have a band for each thread; few of them have bands of a piece. */
static void cut(struct walk_team *team, const struct npumem_dims *shape)
{
	enum { BAND = 256, FEW = 16, MOST = 1024 };
	int64_t rows = shape->n * shape->c, length = shape->h * shape->w, piece = kernel_piece(team->call);
	team->n_bands = rows < FEW ? least(length / piece, MOST)
				   : least(length / BAND, least(team->call->crew->n_threads, RANGES_MAX));
	team->n_bands = team->n_bands > 1 ? team->n_bands : 1;
	team->n_chunks = least(rows, least(length * rows / team->n_bands / piece + 1, MOST));
}

void walk_run(const struct kernel *kernel, struct kernel_call *call)
{
	enum { STEPS = 4 }; /* estimates are of what has no vectors */
	struct walk_team team = {.kernel = kernel, .call = call};
	double steps = kernel->walks ? (double)kernel->steps(call) / STEPS : 0;
	if (!kernel->walks || !kernel_is_shared(call, steps)) {
		kernel->run(call);
		return;
	}
	cut(&team, &operands_get(call, call->n_roles - 1)->shape);
	ranges_init(&team.ranges, team.n_bands * team.n_chunks);
	kernel_share(call, steps, run_parts, &team);
	/* Helpers may have left what they had just taken. */
	if (!kernel_cancelled(call->progress))
		run_parts(&team, 0);
	call->counts = (struct kernel_counts){
		.saturated = team.saturated, .wrapped = team.wrapped, .divided_by_zero = team.divided_by_zero};
}

static void take_rows(struct walk *walk, int64_t first_row, int64_t end_row)
{
	walk->row = first_row;
	walk->end_row = end_row;
	walk->batch = first_row / walk->channels;
	walk->channel = first_row % walk->channels;
}

/* Where all is one row, its bands are the parts. */
static bool next_part(struct walk *walk)
{
	struct walk_team *team = walk->call->team;
	int64_t rows = walk->batches * walk->channels, n_chunks = walk->dense ? 1 : team->n_chunks;
	int64_t n_bands = walk->dense ? team->n_bands * team->n_chunks : team->n_bands, part;
	do {
		if ((walk->end && kernel_is_wanted_elsewhere(walk->call)) ||
		    (part = ranges_take(&team->ranges, walk->call->number)) < 0)
			return false;
		take_rows(walk, rows * (part % n_chunks) / n_chunks, rows * (part % n_chunks + 1) / n_chunks);
		walk->first = walk->length * (part / n_chunks) / n_bands;
		walk->end = walk->length * (part / n_chunks + 1) / n_bands;
	} while (walk->row == walk->end_row);
	return true;
}

/* ---- the walk ---- */

static bool begin_rows(struct walk *walk)
{
	if (walk->call->team)
		return next_part(walk);
	if (walk->end)
		return false;
	take_rows(walk, 0, walk->batches * walk->channels);
	walk->end = walk->length;
	return true;
}

void walk_begin_features(struct walk *walk, const struct kernel_call *call, unsigned role)
{
	const struct npumem_dims *shape = &operands_get(call, role)->shape;
	*walk = (struct walk){
		.call = call, .batches = shape->n, .channels = shape->c, .length = shape->h * shape->w};
}

void walk_begin(struct walk *walk, const struct kernel_call *call, unsigned role)
{
	walk_begin_features(walk, call, role);
	if (!is_dense(call))
		return;
	walk->dense = true;
	walk->batches = walk->channels = 1;
	walk->length = operands_elements(operands_get(call, role));
}

static bool next_row(struct walk *walk)
{
	if (++walk->row >= walk->end_row) {
		if (!begin_rows(walk))
			return false;
	} else if (++walk->channel == walk->channels) {
		walk->channel = 0;
		walk->batch++;
	}
	walk->i = walk->first;
	return true;
}

bool walk_next(struct walk *walk)
{
	if (walk->n > 0 && !kernel_step_rarely(walk->call, walk->n, &walk->pending))
		return false;
	walk->i += walk->n;
	if (walk->i == walk->end && !next_row(walk)) {
		kernel_step(walk->call, walk->pending);
		return false;
	}
	walk->n = kernel_stretch(walk->call, walk->end - walk->i);
	return true;
}
