/* How a network is read; of this room only. */
#ifndef CTL_CORE_NETWORK_READING_LOAD_H
#define CTL_CORE_NETWORK_READING_LOAD_H

#include <jansson.h>
#include <npumem/layout.h>

#include "client/ctl/core/network/network.h"

/* keys.c. The keys of a JSON object, each taken as what it must be; what is wrong is said with the place of the
 * object. */

struct keys {
	const json_t *object;
	const char *where; /* "operation 3, run conv2d" */
	struct npumem_error *error;
	int status; /* INVALID once something was wrong: then the others do nothing, and return it */
};

/* All return the status. Those below leave *value as it is where the object has no such key. */
int keys_string(struct keys *keys, const char *key, const char **value);
int keys_bool(struct keys *keys, const char *key, bool *value);
/* An integer from 0 on. */
int keys_count(struct keys *keys, const char *key, int64_t *value);
/* [N,C,H,W]. */
int keys_dims(struct keys *keys, const char *key, struct npumem_dims *value);
/* A name by `parse`, of those that `name` has for 1, 2, …; `what` is what it is called. */
int keys_name(struct keys *keys, const char *key, const char *what, int (*parse)(const char *),
	      const char *(*name)(int), int *value);

/* A string that is there and not empty. */
int keys_needs(struct keys *keys, const char *key, const char **value);
/* Refuses keys that are in none of the two lists (space separated; marks as in kernels.def). */
int keys_check(struct keys *keys, const char *list, const char *more);
/* Refuses the value of `key`: the message names its type, or that it is missing, and `expected`. */
int keys_expected(struct keys *keys, const char *key, const char *expected);

/* load.c. How a network is read; of this room only. */

struct load {
	struct network *network;
	json_t *scope; /* names of tensors that are there, to their index */
	json_t *gone;  /* names of those that were freed, to the place of the operation that did */
	struct npumem_error *error;
	const struct network_operation *at; /* what is being read */
	/* The operations of the group, or the one, that is being read: they come after the births of what they
	 * use. */
	struct network_operation *pending;
	size_t n_pending;
};

/* Appends to the network's operations. */
void load_emit(struct load *load, const struct network_operation *operation);
/* The tensor of that name; one of "tensors" is born before the operation that is being read. 0 or INVALID. */
int load_find(struct load *load, struct keys *keys, const char *name, int *tensor);

/* tensor.c: a new tensor of the keys, under `name`, not born yet. */
int tensor_new(struct load *load, struct keys *keys, const char *name, int *tensor);
/* Reads what an allocation may say; `own` is what the object has beside it ("alloc"). */
int tensor_parse(struct keys *keys, const char *own, struct network_tensor *tensor);
/* Emits its allocation, and what it is first given. `at` says place and line. */
void tensor_born(struct load *load, int tensor, const struct network_operation *at);
/* A number to fill with. */
int tensor_value(struct keys *keys, const char *key, struct network_operation *operation);
/* "quantize" (or `key`), "rounding" and "perm". */
int tensor_conversion(struct keys *keys, const char *key, struct network_operation *operation);

/* operation.c: one operation into load->pending, whose place is set in `at`. */
int operation_read(struct load *load, const json_t *json, struct network_operation *at);

/* One more into load->pending. */
void operation_append(struct load *load, const struct network_operation *operation);

/* runs.c: the operands and parameters of a run, which it appends. */
int runs_read(struct load *load, struct keys *keys, struct network_operation *operation);

/* lower.c: what the tensors ask for after all is read: to be compared, to go. */
int lower(struct load *load);

#endif
