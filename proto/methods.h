/* What both ends know of each kind of request: the columns of methods.def. */
#ifndef PROTO_METHODS_H
#define PROTO_METHODS_H

#include "proto/npumem.pb-c.h"

/* What a request waits for of what its own session sent before it. */
enum methods_kind {
	METHODS_KIND_STATELESS,	    /* nothing, and its answer tells of nothing that a crash could undo */
	METHODS_KIND_FREE_STANDING, /* nothing, and nothing waits for it: it depends on no tensor */
	METHODS_KIND_BYTES,	    /* table requests and barriers */
	METHODS_KIND_OPERATION,	    /* the same; it is one operation */
	METHODS_KIND_TABLE,	    /* the same, and everything behind it waits: places must not depend on which
				     * kernel ends first */
	METHODS_KIND_BARRIER,	    /* everything, and everything behind it waits */
};

/* What a session with a token keeps of the answer, until the client has it. */
enum methods_keeps {
	METHODS_KEEPS_NOTHING, /* the request may be done again */
	METHODS_KEEPS_TENSORS, /* the new tensors */
	METHODS_KEEPS_VIEW,    /* the new view */
	METHODS_KEEPS_CHANGE,  /* the tensor that was changed */
	METHODS_KEEPS_COUNT,   /* how many tensors were freed */
	METHODS_KEEPS_DONE,    /* the counters of its operations */
};

/* How a recording has the request. */
enum methods_record {
	METHODS_RECORD_NEVER,
	METHODS_RECORD_RETURN,	 /* where a session came back, without its token; a replay skips it */
	METHODS_RECORD_SHOWN,	 /* as it came; a replay skips it */
	METHODS_RECORD_REPLAYED, /* as it came */
	METHODS_RECORD_OUTLINED, /* with an outline of its answer */
	METHODS_RECORD_TENSORS,	 /* with an outline, and handles and digest of the tensors in its answer */
};

struct methods_row {
	const char *name;
	enum methods_kind kind;
	enum methods_keeps keeps;
	enum methods_record record;
};

/* The rows by number, and the row of a request that is none of them. */
enum {
#define METHOD(name, CALL, ...) METHODS_##CALL,
#include "proto/methods.def"
#undef METHOD
	METHODS_NONE,
	METHODS_N
};
extern const struct methods_row methods_rows[METHODS_N];

/* The number of a request's row. */
unsigned methods_number(Npumem__V1__Request__CallCase call);

#endif
