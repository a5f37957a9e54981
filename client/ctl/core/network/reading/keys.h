/* The keys of a JSON object, each taken as what it must be; what is wrong is said with the place of the object. */
#ifndef CTL_CORE_NETWORK_KEYS_H
#define CTL_CORE_NETWORK_KEYS_H

#include <jansson.h>

#include <npumem/layout.h>

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

#endif
