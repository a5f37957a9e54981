/* The simplest thing that answers like the daemon: tensors with an owner, grants and a byte for each element, one
 * request after the other. It is told what was answered, and says whether that is so in this order; of what the
 * daemon may answer in several ways (whether there is room, what a request that was stopped had done by then) it
 * takes the answer for it. Knows nothing of the daemon's code. */
#ifndef TESTS_RANDOM_MODEL_H
#define TESTS_RANDOM_MODEL_H

#include "tests/random/message.h"

struct model;

/* A request as it was sent, and what came of it. */
struct model_request {
	unsigned peer;
	const struct trace_request *request;
	uint64_t handles[TRACE_OPS][TRACE_REFS];
	const Npumem__V1__Response *response; /* NULL: none came, and what it did by then nobody knows */
	bool is_alone;			      /* nothing else was under way: a list is complete */
	bool has_crashed; /* the daemon was killed meanwhile: it may not be known whether it was done */
};

/* Aborts without memory. */
struct model *model_new(const struct trace *trace);
void model_free(struct model *model);

/* Whether the answer is what it would be, after what was done so far; then it is done. Else nothing is, and
 * model_why says what it would have been. */
bool model_do(struct model *model, const struct model_request *request);
/* The client is gone, and all that had no name with it. */
void model_close(struct model *model, unsigned peer);
const char *model_why(const struct model *model);

/* Of what there is: two orders that end in the same have the same. */
uint64_t model_digest(struct model *model);

/* What was done since the mark was taken is undone. */
size_t model_mark(const struct model *model);
void model_undo(struct model *model, size_t mark);

#endif
