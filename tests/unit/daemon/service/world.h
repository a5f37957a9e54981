/* A small device with a service over it, for the tests of service and rpc: 8 NPUs of 8192 bytes, a daemon of uid
 * 500, and a heap that can fail its i-th allocation. */
#ifndef TESTS_WORLD_H
#define TESTS_WORLD_H

#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "daemon/service/service.h"
#include "daemon/service/session.h"
#include "daemon/service/tensors/tensors.h"
#include "tests/support/test.h"

struct world {
	struct heap heap;
	size_t n_alive, n_bytes, n_allocs, fail_at; /* fail_at: 0 never; else the one allocation that fails */
	void *memory;
	size_t memory_bytes;
	struct device *device;
	struct service service;
	struct npumem_error error;
};

static inline void *world_alloc(void *ctx, size_t bytes)
{
	struct world *world = ctx;
	void *memory = ++world->n_allocs == world->fail_at ? NULL : malloc(bytes);
	world->n_alive += memory != NULL;
	world->n_bytes += malloc_usable_size(memory);
	return memory;
}

static inline void world_release(void *ctx, void *memory)
{
	struct world *world = ctx;
	world->n_alive -= memory != NULL;
	world->n_bytes -= malloc_usable_size(memory);
	free(memory);
}

static inline void world_init_as(struct world *world, const struct device_options *options)
{
	*world = (struct world){.heap = {world_alloc, world_release, world}};
	world->memory_bytes = device_memory_bytes(&options->geometry);
	/* Zeroed by the kernel, and only the pages that a test touches: a page fault is most of some tests' time. */
	world->memory = mmap(NULL, world->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(world->memory, MAP_FAILED);
	ck_assert_int_eq(device_new(options, &world->heap, world->memory, &world->device), 0);
	ck_assert_int_eq(service_init(&world->service, world->device, &world->heap, 500, 4711), 0);
	/* Most tests put tensors where they want. */
	world->service.limits.any_pins = true;
	npumem_error_clear(&world->error);
}

static inline void world_init(struct world *world)
{
	struct device_options options = {
		.geometry = {.n_npus = 8, .npu_bytes = 8192, .n_banks = 8, .eu_bytes = 128},
		.allow_unchecked = true,
	};
	world_init_as(world, &options);
}

static inline void world_check(struct world *world)
{
	const char *wrong = device_check(world->device);
	ck_assert_msg(!wrong, "%s", wrong);
}

/* All sessions are over. */
static inline void world_deinit(struct world *world)
{
	world_check(world);
	service_deinit(&world->service);
	device_free(world->device);
	munmap(world->memory, world->memory_bytes);
	ck_assert_uint_eq(world->n_alive, 0);
}

/* An int8 tensor [1, c, 1, w], anonymous where `name` is empty. */
static inline struct device_request world_request(int64_t c, int64_t w)
{
	struct device_request request = {.reuse = NPUMEM_NEVER};
	npumem_spec_init(&request.spec);
	request.spec.dtype = NPUMEM_INT8;
	request.spec.shape = (struct npumem_dims){1, c, 1, w};
	return request;
}

/* All steps of an allocation, and of a free. */
static inline int tensors_alloc(struct session *session, const struct device_request *requests,
				const char *const *names, unsigned n, struct tensor **tensors,
				struct npumem_error *error)
{
	const char *labels[TENSORS_ALLOC_MAX];
	struct tensors_alloc alloc = {.session = session,
				      .requests = requests,
				      .names = names,
				      .labels = labels,
				      .n = n,
				      .tensors = tensors,
				      .turn = TENSORS_AT_ONCE};
	int64_t steps = INT64_MAX;
	int status;
	for (unsigned i = 0; i < TENSORS_ALLOC_MAX; i++)
		labels[i] = "";
	status = tensors_alloc_begin(&alloc, error);
	return status ? status : tensors_alloc_step(&alloc, &steps, error);
}

static inline uint64_t tensors_free(struct session *session, struct tensor *const *tensors, size_t n)
{
	struct tensors_free free;
	tensors_free_begin(&free, tensors, n);
	while (!tensors_free_step(session, &free))
		;
	return free.n_freed;
}

static inline struct tensor *world_tensor(struct world *world, struct session *session, const char *name)
{
	struct device_request request = world_request(8, 100);
	struct tensor *tensor = NULL;
	npumem_error_clear(&world->error);
	ck_assert_int_eq(tensors_alloc(session, &request, &name, 1, &tensor, &world->error), 0);
	ck_assert_ptr_nonnull(tensor);
	return tensor;
}

static inline int64_t world_n_tensors(struct world *world)
{
	struct device_counts counts;
	device_stat(world->device, &counts);
	return counts.tensors + counts.views;
}

#endif
