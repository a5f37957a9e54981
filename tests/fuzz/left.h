/* The files of a state, as processes leave them: kept, put back, opened by the next one. Of one process at a time.
 */
#ifndef TESTS_FUZZ_LEFT_H
#define TESTS_FUZZ_LEFT_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/store/store.h"

struct device;
struct scene;
struct tensor;

enum { LEFT_FILES = 5, LEFT_TENSORS_MAX = 64 };

/* Files, and the tensors that the process had. */
struct left {
	uint8_t *bytes[LEFT_FILES];
	size_t n[LEFT_FILES];
	struct left_tensor {
		uint64_t handle, digest;
	} tensors[LEFT_TENSORS_MAX];
	unsigned n_tensors;
};

/* Empty files. */
void left_begin_empty(void);
/* A scene with a session that has a token: of a process that was killed while a write was under way, and of one
 * that has closed its state. */
void left_begin(struct left *killed, struct left *closed);
void left_put_back(const struct left *left);
int left_fd(unsigned file);

/* As store_open; `heap` NULL: libc's. */
int left_open(const struct heap *heap, const struct store_hooks *hooks, struct store **store,
	      struct store_report *report, char *error);

/* Recoveries are for a replay (daemon/service/kept/recover.h). */
extern bool left_is_replay;

/* A scene in a store that was opened so. NULL: it cannot be gone on with. `heap` NULL: libc's. */
struct scene *left_scene(struct store *store, const struct store_report *found, const struct heap *heap);

/* What a tensor is, without its data. */
uint64_t left_digest(const struct tensor *tensor);
/* Every tensor is one of those. */
void left_check(const struct left *left, const struct device *device);

#endif
