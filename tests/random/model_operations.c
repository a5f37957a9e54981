/* Operations, one by one and in submits. What one writes is written as it is told, or, where it was stopped, as if
 * by chance. */
#include "tests/random/model_inside.h"

/* One operation with its tensors found. */
struct doing {
	const struct model_request *from;
	const struct trace_op *op;
	unsigned n, of[TRACE_REFS]; /* the one that is written, or read, first */
	unsigned first, count;	    /* elements of a write or a read */
};

static unsigned need_of(const struct trace_op *op, unsigned ref)
{
	return ref || op->verb == TRACE_READ ? MODEL_READ : MODEL_WRITE;
}

/* The bits of all its refusals, or 0. */
static unsigned prepare(const struct model *model, const struct model_request *from, unsigned index,
			struct doing *doing)
{
	const struct trace_op *op = &from->request->ops[index];
	unsigned refused = 0;

	*doing = (struct doing){.from = from, .op = op, .n = op->n_refs};
	for (unsigned i = 0; i < op->n_refs; i++)
		refused |= model_resolve(model, from, index, i, need_of(op, i), &doing->of[i]);
	if (refused)
		return refused;
	doing->first = (unsigned)op->first;
	doing->count =
		op->count ? (unsigned)op->count : model_elements(&model->tensors[doing->of[0]]) - doing->first;
	return 0;
}

static unsigned check_write(const struct model *model, const struct doing *doing)
{
	const struct model_tensor *root = &model->tensors[model_root(model, doing->of[0])];

	return root->sealed ? model_bit(NPUMEM__V1__STATUS__FAILED_PRECONDITION) : 0;
}

static unsigned check_range(const struct model *model, const struct doing *doing)
{
	unsigned n = model_elements(&model->tensors[doing->of[0]]);

	return doing->first >= n || doing->count > n - doing->first ? model_bit(NPUMEM__V1__STATUS__INVALID) : 0;
}

static bool have_one_shape(const struct model_tensor *a, const struct model_tensor *b)
{
	return a->n_c == b->n_c && a->n_w == b->n_w;
}

static bool are_same(const struct model *model, unsigned a, unsigned b)
{
	return model_root(model, a) == model_root(model, b) &&
	       have_one_shape(&model->tensors[a], &model->tensors[b]) &&
	       model->tensors[a].from_w == model->tensors[b].from_w;
}

static bool share_bytes(const struct model *model, unsigned a, unsigned b)
{
	const struct model_tensor *x = &model->tensors[a], *y = &model->tensors[b];

	return model_root(model, a) == model_root(model, b) && x->from_w < y->from_w + y->n_w &&
	       y->from_w < x->from_w + x->n_w;
}

/* Of a copy or a kernel: its inputs against its output, and what is in them. */
static unsigned check_inputs(const struct model *model, const struct doing *doing)
{
	unsigned may = MODEL_OK, refused = 0;

	for (unsigned i = 1; i < doing->n; i++) {
		const struct model_tensor *in = &model->tensors[doing->of[i]];
		unsigned written = model_look(model, doing->of[i], 0, model_elements(in));
		/* Each kernel that is drawn maps element to element, and so may work in place. */
		bool in_place = doing->op->verb == TRACE_RUN && are_same(model, doing->of[0], doing->of[i]);

		if (!have_one_shape(&model->tensors[doing->of[0]], in) ||
		    (!in_place && share_bytes(model, doing->of[0], doing->of[i])))
			refused |= model_bit(NPUMEM__V1__STATUS__INVALID);
		may &= written;
		refused |= written & ~MODEL_OK;
	}
	return may | refused;
}

/* How it may be answered. */
static unsigned check(const struct model *model, const struct doing *doing)
{
	enum trace_verb verb = doing->op->verb;
	unsigned refused = verb == TRACE_READ ? 0 : check_write(model, doing), may = MODEL_OK;

	if (verb == TRACE_WRITE || verb == TRACE_READ)
		refused |= check_range(model, doing);
	if (verb == TRACE_READ && !refused)
		may = model_look(model, doing->of[0], doing->first, doing->count);
	if (verb == TRACE_RUN && model->tensors[model_root(model, doing->of[0])].dma_only)
		refused |= model_bit(NPUMEM__V1__STATUS__FAILED_PRECONDITION);
	if (verb == TRACE_COPY || verb == TRACE_RUN)
		may = check_inputs(model, doing);
	/* Of inputs that do not fit the output nothing else is said. */
	if (may & model_bit(NPUMEM__V1__STATUS__INVALID))
		may &= ~MODEL_OK;
	return refused ? refused | (may & ~MODEL_OK) : may;
}

static unsigned uid_of_value(unsigned value)
{
	return (value - 1) / TRACE_VALUES;
}

static uint8_t result_of(const struct model *model, const struct doing *doing, unsigned i)
{
	uint8_t a, b;

	if (doing->op->verb == TRACE_FILL)
		return (uint8_t)doing->op->value;
	if (doing->op->verb == TRACE_WRITE)
		return message_write_byte(model->trace, doing->from->peer, doing->op, i - doing->first);
	a = model->bytes[model_root(model, doing->of[1])][model_place(model, doing->of[1], i)];
	if (doing->n < 3)
		return a;
	b = model->bytes[model_root(model, doing->of[2])][model_place(model, doing->of[2], i)];
	/* Which is more than all others, so that the larger of the two is not known either. */
	return a > b ? a : b;
}

/* `is_torn`: as far as it came. */
static void write_bytes(struct model *model, const struct doing *doing, bool is_torn)
{
	unsigned root = model_root(model, doing->of[0]), origins = 1u << model_uid(model, doing->from->peer);
	struct model_tensor *tensor = model_keep(model, root, true);
	bool is_part = doing->op->verb == TRACE_WRITE;
	unsigned first = is_part ? doing->first : 0,
		 count = is_part ? doing->count : model_elements(&model->tensors[doing->of[0]]);

	for (unsigned i = 1; i < doing->n; i++)
		origins |= model->tensors[model_root(model, doing->of[i])].origins;
	for (unsigned i = first; i < first + count; i++)
		model->bytes[root][model_place(model, doing->of[0], i)] =
			is_torn ? (uint8_t)MODEL_UNKNOWN : result_of(model, doing, i);
	tensor->origins |= origins;
}

/* What is read is known from then on. */
static bool read_bytes(struct model *model, const struct doing *doing, const Npumem__V1__Done *done)
{
	unsigned root = model_root(model, doing->of[0]), origins = model->tensors[root].origins;
	bool is_kept = false;

	if (done->data.len != doing->count)
		return model_deny(model, "%zu bytes are read, not %u", done->data.len, doing->count);
	for (unsigned i = 0; i < doing->count; i++) {
		uint8_t *is = &model->bytes[root][model_place(model, doing->of[0], doing->first + i)];
		uint8_t was = done->data.data[i];

		if (*is == was)
			continue;
		if (*is != MODEL_UNKNOWN || !was || uid_of_value(was) >= MODEL_UIDS ||
		    !(origins >> uid_of_value(was) & 1))
			return model_deny(model, "element %u is %u, and %u is read", doing->first + i, *is, was);
		if (!is_kept)
			model_keep(model, root, true);
		is_kept = true;
		*is = was;
	}
	return true;
}

/* One that is told to have been done. */
static bool perform(struct model *model, const struct doing *doing, const Npumem__V1__Done *done)
{
	if (!(check(model, doing) & MODEL_OK))
		return model_deny(model, "a %s is done that was to be refused", trace_verb_name(doing->op->verb));
	if (doing->op->verb == TRACE_READ)
		return read_bytes(model, doing, done);
	write_bytes(model, doing, false);
	return true;
}

/* One that was stopped, or that nobody was told of. */
static void tear(struct model *model, const struct doing *doing)
{
	if (doing->op->verb != TRACE_READ && !check_write(model, doing) &&
	    (doing->op->verb != TRACE_WRITE || !check_range(model, doing)))
		write_bytes(model, doing, true);
}

bool model_do_single(struct model *model, const struct model_request *from, int status)
{
	struct doing doing;
	unsigned refused = prepare(model, from, 0, &doing), may = refused ? refused : check(model, &doing);

	if (status == NPUMEM__V1__STATUS__CANCELLED) {
		if (!refused)
			tear(model, &doing);
		return true;
	}
	if (!(may & model_bit(status)))
		return model_deny(model, "may be answered by %x, bits of statuses", may);
	return status || perform(model, &doing, from->response->done);
}

/* ---- submits ---- */

struct submitting {
	struct model *model;
	const struct model_request *from;
	int status;
	const Npumem__V1__Done *told[TRACE_OPS];
	struct doing doing[TRACE_OPS];
	bool is_refused; /* an operation that was not told of was found, and why */
	unsigned refusals;
};

static bool find_told(struct submitting *submitting)
{
	const Npumem__V1__Response *response = submitting->from->response;
	const Npumem__V1__Submitted *submitted =
		response && response->result_case == NPUMEM__V1__RESPONSE__RESULT_SUBMITTED ? response->submitted
											    : NULL;

	for (size_t i = 0; submitted && i < submitted->n_done; i++) {
		uint64_t at = submitted->done[i]->operation;

		if (at >= submitting->from->request->n_ops || submitting->told[at])
			return model_deny(submitting->model, "operation %u is told of twice, or is none",
					  (unsigned)at);
		submitting->told[at] = submitted->done[i];
	}
	return true;
}

static bool is_kernel(const struct trace_op *op)
{
	return op->verb == TRACE_RUN;
}

/* Whether two of different queues may be in each other's way. */
static bool may_conflict(const struct submitting *submitting, unsigned from, unsigned to)
{
	const struct doing *all = submitting->doing;

	for (unsigned i = from; i < to; i++)
		for (unsigned k = from; k < i; k++)
			for (unsigned a = 0; a < all[i].n && is_kernel(all[i].op) != is_kernel(all[k].op); a++)
				for (unsigned b = 0; b < all[k].n; b++)
					if (model_root(submitting->model, all[i].of[a]) ==
					    model_root(submitting->model, all[k].of[b]))
						return true;
	return false;
}

static unsigned end_of_group(const struct trace_request *request, unsigned from)
{
	unsigned to = from + 1;

	while (request->ops[from].group && to < request->n_ops &&
	       request->ops[to].group == request->ops[from].group)
		to++;
	return to;
}

/* Operations of a group in the order of the list: they are in each other's way only within a queue. */
static bool do_group(struct submitting *submitting, unsigned from, unsigned to)
{
	struct model *model = submitting->model;
	bool is_stopped[2] = {submitting->is_refused, submitting->is_refused};

	for (unsigned i = from; i < to; i++) {
		const struct doing *doing = &submitting->doing[i];
		bool *stopped = &is_stopped[to - from > 1 && is_kernel(doing->op)];

		if (submitting->told[i]) {
			if (*stopped)
				return model_deny(model, "operation %u is done behind one that was refused", i);
			if (!perform(model, doing, submitting->told[i]))
				return false;
		} else if (submitting->status == NPUMEM__V1__STATUS__CANCELLED) {
			tear(model, doing);
		} else if (!*stopped) {
			submitting->refusals |= check(model, doing) & ~MODEL_OK;
			if (submitting->status == NPUMEM__V1__STATUS__ABORTED &&
			    may_conflict(submitting, from, to))
				submitting->refusals |= model_bit(NPUMEM__V1__STATUS__ABORTED);
			*stopped = submitting->is_refused = true;
		}
	}
	return true;
}

bool model_do_submit(struct model *model, const struct model_request *from, int status)
{
	struct submitting submitting = {.model = model, .from = from, .status = status};
	unsigned refused = 0, n = from->request->n_ops;

	if (!find_told(&submitting))
		return false;
	for (unsigned i = 0; i < n; i++)
		refused |= prepare(model, from, i, &submitting.doing[i]);
	if (refused) {
		for (unsigned i = 0; i < n; i++)
			if (submitting.told[i])
				return model_deny(model,
						  "an operation is done of a submit that was to be refused");
		return status == NPUMEM__V1__STATUS__CANCELLED || refused & model_bit(status) ||
		       model_deny(model, "may be refused by %x, bits of statuses", refused);
	}
	for (unsigned i = 0, to; i < n; i = to) {
		to = end_of_group(from->request, i);
		if (!do_group(&submitting, i, to))
			return false;
	}
	if (status == NPUMEM__V1__STATUS__CANCELLED)
		return true;
	if (submitting.is_refused != (status != 0))
		return model_deny(model, "some operations were not done, or all of them");
	return !status || submitting.refusals & model_bit(status) ||
	       model_deny(model, "may be refused by %x, bits of statuses", submitting.refusals);
}
