/* A network as a list of operations on named tensors: what submit runs, check compares and plan counts. */
#ifndef CTL_CORE_NETWORK_NETWORK_H
#define CTL_CORE_NETWORK_NETWORK_H

#include <stdio.h>

#include <npumem/kernels.h>
#include <npumem/layout.h>

#include "client/ctl/core/arrays/stream.h"
#include "client/ctl/core/network/reading/document.h"

enum network_kind {
	NETWORK_ALLOC = 1,
	NETWORK_OPEN,
	NETWORK_VIEW,
	NETWORK_FREE,
	NETWORK_SEAL,
	NETWORK_WRITE,
	NETWORK_FILL,
	NETWORK_COPY,
	NETWORK_RUN,
	NETWORK_READ,
	NETWORK_EXPECT,
};

enum { NETWORK_NONE = -1, NETWORK_TEXT_BYTES = 224 };

/* Strings are the document's. */
struct network_tensor {
	const char *name;
	const json_t *json;	 /* what it was made of */
	struct npumem_spec spec; /* of an allocation */
	int reuse;
	bool dma_only, pinned;
	bool keep;		 /* stays on the device under its name */
	bool is_declared;	 /* of "tensors": it comes before its first use and goes after its last */
	bool is_opened;		 /* the device's: nothing is known of it here */
	const char *daemon_name; /* of one that is opened */
	int base;		 /* of a view, else NETWORK_NONE */
	bool is_slice, has_views, is_format;
	int64_t frac_bits;		    /* of a view with is_format */
	struct npumem_dims shape, from, to; /* of a view: a reshape's shape, or a slice */
	int born;			    /* index of its operation; NETWORK_NONE before */
	const char *expect;		    /* file of what it is to hold after the last that writes it */
};

struct network_operand {
	char role[NPUMEM_FIELD_KEY_BYTES];
	int tensor;
};

struct network_operation {
	enum network_kind kind;
	unsigned place, part; /* in the file, from 1 on; in a parallel group, from 1 on; 0: in none */
	int line;	      /* 0: unknown */
	bool is_implied;      /* made for what a tensor asks for */
	const char *name;     /* its own; NULL: none */
	int tensor;	      /* that it is about; of a run NETWORK_NONE */
	int source;	      /* of a copy */
	const char *file;
	bool converts; /* between real numbers and fixed point */
	int rounding;  /* of that; 0: the network's */
	struct stream_perm perm;
	const json_t *shape; /* that the file of a read is to have; NULL: the tensor's */
	bool is_real;
	int64_t integer; /* fill */
	double real;
	const struct npumem_kernel_row *kernel;
	size_t operand, param; /* the first, in network.operands and .params */
	unsigned n_operands, n_params;
};

struct network {
	struct document document;
	const char *name; /* its own; NULL: none */
	char *file;	  /* that it was read from; "-": stdin */
	char *folder;	  /* of its file, with a final '/'; "": the current one */
	struct network_tensor *tensors;
	struct network_operation *operations;
	struct network_operand *operands;
	struct npumem_param *params;
	size_t n_tensors, n_operations, n_operands, n_params;
	struct npumem_param rounding; /* of operations that say none; number 0: the device's */
};

/* load.c: reads a network from `path`, from network.json in it where it is a folder, or from stdin: "-". 0;
 * INVALID, naming file, operation and key; RESOURCE_EXHAUSTED: the file is too large. Looks at no .npy file. */
int network_load(const char *path, struct network *network, struct npumem_error *error);

/* "operation 3 conv1, run conv2d" and the like. Returns `text`, NETWORK_TEXT_BYTES long. */
const char *network_where(const struct network *network, const struct network_operation *operation, char *text);
/* "run conv2d", "alloc x". */
const char *network_what(const struct network *network, const struct network_operation *operation, char *text);
/* "3", or "3.2" in a group. */
const char *network_number(const struct network_operation *operation, char text[24]);
const char *network_kind_name(enum network_kind kind);
/* Of an operation that converts. */
int network_rounding(const struct network *network, const struct network_operation *operation, int of_device);
/* Puts where before the message of `why`, with its fields. Returns its status. */
int network_about(const struct network *network, const struct network_operation *operation,
		  const struct npumem_error *why, struct npumem_error *error);

/* True where the operation writes the tensor that operand i (of a run), or `tensor` (i 0 of others), is. */
bool network_writes(const struct network_operation *operation, const struct network_operand *operand);
/* The tensor whose storage a view shows; any other is its own. */
int network_root(const struct network *network, int tensor);
/* The path of a file that the network names. */
char *network_path(const struct network *network, const char *file);
/* Type, frac_bits and shape (of a matrix rows, cols: *n_dims 2). False where only the device knows. */
bool network_array(const struct network *network, int tensor, struct npumem_place *place);

/* The .npy files that a network names. */

/* Opens the file that an operation writes or expects, for an array at `place`; `rounding` is the device's. 0 or
 * INVALID, naming the file. */
int files_open(const struct network *network, const struct network_operation *operation,
	       const struct npumem_place *place, int rounding, struct stream *stream, struct npumem_error *error);
/* Opens what an operation expects; of a file of real numbers with several samples one of them. *n: how many it
 * has. As files_open. */
int files_open_expected(const struct network *network, const struct network_operation *operation,
			const struct npumem_place *place, int rounding, size_t sample, size_t *n,
			struct stream *stream, struct npumem_error *error);
/* Opens every file that is written or expected, and looks at type and shape. 0 or INVALID, naming the operation.
 */
int files_check(const struct network *network, struct npumem_error *error);

/* outputs.c. The files that a network's reads write: below one folder, whatever the network says. Another user may
 * have written the network, so its paths must not reach files elsewhere. */

struct outputs {
	const char *path; /* of the folder, for messages; the caller's */
	int folder;	  /* -1: it is not there, and was not to be made */
	bool made;	  /* it was not there before */
};

/* Whether a path leads out of the folder that it is relative to: it is absolute, or has "..". */
bool outputs_leaves(const char *file);

/* Checks the path of each file that `network` writes: its folders are folders and no symbolic links, and where it
 * exists it is a regular file. With `make`, folders that are missing are made, `path` itself included. 0; INVALID,
 * naming the operation: then nothing is to be closed. */
int outputs_open(struct outputs *outputs, const char *path, const struct network *network, bool make,
		 struct npumem_error *error);
/* A new or emptied file, or with `append` one to be gone on with, for the caller to close. Follows no link, also
 * one that came after outputs_open. 0 or INVALID. */
int outputs_create(const struct outputs *outputs, const char *file, bool append, FILE **created,
		   struct npumem_error *error);
/* Removes the folder again where it was made and nothing was written to it. */
void outputs_close(struct outputs *outputs);

#endif
