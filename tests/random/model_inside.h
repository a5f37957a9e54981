/* What the files of the model share. */
#ifndef TESTS_RANDOM_MODEL_INSIDE_H
#define TESTS_RANDOM_MODEL_INSIDE_H

#include "tests/random/model.h"

enum {
	MODEL_TENSORS = 64,
	MODEL_ELEMENTS = TRACE_N * TRACE_C * TRACE_W,
	MODEL_UIDS = TRACE_UIDS,
	MODEL_NO_NAME = -1,
	/* Elements that were never written, and those of which only is known whose they can be: no client writes
	 * either. */
	MODEL_UNWRITTEN = 0,
	MODEL_UNKNOWN = 255,
};

enum { MODEL_NONE, MODEL_READ, MODEL_WRITE, MODEL_OWN };

struct model_tensor {
	bool is_there, sealed, dma_only;
	unsigned peer, uid; /* who made it; uids are counted from 0 */
	int slot;	    /* its name, or MODEL_NO_NAME */
	uint64_t handle;    /* 0: nobody was told it yet */
	int base;	    /* of a view; -1: it is a root */
	unsigned from_w, n_w, n_c;
	unsigned rights[MODEL_UIDS]; /* that were granted */
	unsigned origins;	     /* of a root: bits of uids whose values may be in it */
};

struct model_kept {
	unsigned index;
	uint64_t digest;
	struct model_tensor tensor;
	uint8_t *bytes; /* NULL: they did not change */
};

struct model {
	const struct trace *trace;
	struct model_tensor tensors[MODEL_TENSORS];
	uint8_t bytes[MODEL_TENSORS][MODEL_ELEMENTS];
	uint64_t digests[MODEL_TENSORS]; /* 0: to be made anew */
	struct model_kept *kept;
	size_t n_kept, room;
	char why[256];
};

/* What an answer may say: MODEL_OK is bit 0, a refusal the bit of its status. */
enum { MODEL_OK = 1u << NPUMEM__V1__STATUS__OK };

static inline unsigned model_bit(int status)
{
	return 1u << status;
}

/* False, and why an answer is not what it would be. */
bool model_deny(struct model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Before a tensor is changed, and with `bytes` what it holds. */
struct model_tensor *model_keep(struct model *model, unsigned index, bool bytes);

unsigned model_uid(const struct model *model, unsigned peer);
unsigned model_right(const struct model *model, const struct model_tensor *tensor, unsigned peer);
/* Of the peer's uid. A view of its own gives it no more. */
unsigned model_right_to_root(const struct model *model, unsigned index, unsigned peer);
/* An index, or -1. */
int model_find_named(const struct model *model, unsigned uid, unsigned slot);
int model_find(const struct model *model, unsigned peer, unsigned slot, uint64_t handle);
/* The bit of the refusal, or 0 and which tensor it is. */
unsigned model_resolve(const struct model *model, const struct model_request *from, unsigned op, unsigned ref,
		       unsigned need, unsigned *index);

unsigned model_root(const struct model *model, unsigned index);
unsigned model_elements(const struct model_tensor *tensor);
/* Where an element of a tensor is in its root's bytes. */
size_t model_place(const struct model *model, unsigned index, unsigned element);
/* How a look at these elements may end: it is refused where one was never written. */
unsigned model_look(const struct model *model, unsigned index, unsigned first, unsigned count);

/* Of each kind of request; `status`: of the answer, or what it did where none came. */
bool model_do_single(struct model *model, const struct model_request *from, int status);
bool model_do_submit(struct model *model, const struct model_request *from, int status);
bool model_do_alloc(struct model *model, const struct model_request *from, int status);
bool model_do_view(struct model *model, const struct model_request *from, int status);
bool model_do_free(struct model *model, const struct model_request *from, int status);
bool model_do_one(struct model *model, const struct model_request *from, int status);
bool model_do_list(struct model *model, const struct model_request *from, int status);

#endif
