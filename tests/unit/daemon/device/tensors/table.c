/* Handles: each finds its tensor while it lives, and nothing ever after. */
#include "daemon/device/tensors/table.h"

#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/rig.h"

FIXTURE_OBJECT(struct rig, rig, rig_open(&rig, 1, 4096), rig_close(&rig))

enum { N_HANDLES = 3000 };

TEST(stale_handles_find_nothing)
{
	static uint64_t handles[N_HANDLES];
	static struct tensor *tensors[N_HANDLES];
	uint64_t random = 9;
	unsigned n = 0;
	while (n < N_HANDLES) {
		if (oracle_random(&random) % 5 < 3) {
			tensors[n] = table_add(rig.device);
			ck_assert_ptr_nonnull(tensors[n]);
			ck_assert_uint_ne(tensors[n]->handle, 0);
			ck_assert_ptr_null(tensors[n]->owner);
			tensors[n]->owner = &rig;
			handles[n] = tensors[n]->handle;
			n++;
		} else if (n) {
			unsigned i = oracle_random(&random) % n;
			if (tensors[i])
				table_remove(rig.device, tensors[i]);
			tensors[i] = NULL;
		}
	}
	unsigned n_live = 0;
	for (unsigned i = 0; i < N_HANDLES; i++) {
		if (device_find(rig.device, handles[i]) != tensors[i])
			ck_abort_msg("handle %u finds another tensor", i);
		n_live += tensors[i] != NULL;
		for (unsigned k = i + 1; k < N_HANDLES; k++)
			if (handles[i] == handles[k])
				ck_abort_msg("handle %u was given twice", i);
	}
	for (const struct tensor *t = device_next(rig.device, NULL); t; t = device_next(rig.device, t)) {
		ck_assert_ptr_eq(t->owner, &rig);
		n_live--;
	}
	ck_assert_uint_eq(n_live, 0);
	ck_assert_ptr_null(device_find(rig.device, 0));
	ck_assert_ptr_null(device_find(rig.device, UINT64_MAX));
	ck_assert_ptr_null(device_find(rig.device, UINT64_C(1) << 32));
	for (unsigned i = 0; i < N_HANDLES; i++)
		if (tensors[i])
			table_remove(rig.device, tensors[i]);
}

/* 2^32 tensors later a slot is not used again, rather than give a handle twice. */
TEST(generations_run_out)
{
	rig_reopen(&rig, 1, 1024);
	struct tensor *tensor = table_add(rig.device);
	uint64_t first = tensor->handle;
	table_remove(rig.device, tensor);
	slot_at(rig.device, 0)->handle |= (uint64_t)(UINT32_MAX - 1) << 32;
	tensor = table_add(rig.device);
	uint64_t last = tensor->handle;
	ck_assert_uint_eq((uint32_t)last, (uint32_t)first);
	ck_assert_ptr_eq(device_find(rig.device, last), tensor);
	table_remove(rig.device, tensor);
	ck_assert_ptr_null(device_find(rig.device, last));
	ck_assert_ptr_null(device_find(rig.device, first));
	tensor = table_add(rig.device);
	ck_assert_uint_ne((uint32_t)tensor->handle, (uint32_t)first);
	table_remove(rig.device, tensor);
}

/* Pages of a few looks each, while tensors come and go: whoever lives throughout is found once, in order. */
TEST(pages_while_tensors_come_and_go)
{
	enum { N = 200 };
	static struct tensor *stays[N];
	struct tensor *passing[N / 2] = {NULL};
	uint64_t random = 5, at = 0;
	unsigned n_found[N] = {0}, n_pages = 0;
	for (unsigned i = 0; i < N; i++) {
		stays[i] = table_add(rig.device);
		stays[i]->owner = &n_found[i];
		if (i % 2)
			passing[i / 2] = table_add(rig.device);
	}
	do {
		unsigned looks = 1 + oracle_random(&random) % 7, budget = looks;
		uint64_t from = at;
		struct tensor *tensor;
		while ((tensor = device_after(rig.device, &at, &looks))) {
			ck_assert_uint_eq(at, (uint32_t)tensor->handle);
			if (tensor->owner)
				++*(unsigned *)tensor->owner;
		}
		ck_assert(at ? looks == 0 && at == from + budget : looks < budget || from == rig.device->n_slots);
		/* The slots of those that go are those of the next that come, before and behind the place. */
		for (unsigned k = 0; k < 20; k++) {
			unsigned i = oracle_random(&random) % (N / 2);
			if (passing[i])
				table_remove(rig.device, passing[i]);
			passing[i] = passing[i] ? NULL : table_add(rig.device);
		}
		n_pages++;
	} while (at);
	ck_assert_uint_gt(n_pages, 300 / 7);
	for (unsigned i = 0; i < N; i++)
		if (n_found[i] != 1)
			ck_abort_msg("tensor %u was found %u times", i, n_found[i]);
	for (unsigned i = 0; i < N; i++)
		table_remove(rig.device, stays[i]);
	for (unsigned i = 0; i < N / 2; i++)
		if (passing[i])
			table_remove(rig.device, passing[i]);
}

static struct tensor *after(uint64_t place, unsigned looks, uint64_t *at, unsigned *left)
{
	*at = place;
	*left = looks;
	return device_after(rig.device, at, left);
}

TEST(any_place_will_do)
{
	struct tensor *tensors[5];
	uint64_t at;
	unsigned left;
	ck_assert_ptr_null(after(0, 9, &at, &left));
	ck_assert(at == 0 && left == 9);
	for (unsigned i = 0; i < 5; i++)
		tensors[i] = table_add(rig.device);
	/* A handle is a place, also one whose tensor is gone, or whose slot another has by now. */
	uint64_t gone = tensors[2]->handle;
	ck_assert_ptr_eq(after(gone, 9, &at, &left), tensors[3]);
	ck_assert(at == 4 && left == 8);
	table_remove(rig.device, tensors[2]);
	table_remove(rig.device, tensors[3]);
	ck_assert_ptr_eq(after(gone, 9, &at, &left), tensors[4]);
	ck_assert(at == 5 && left == 7);
	tensors[3] = table_add(rig.device);
	tensors[2] = table_add(rig.device);
	ck_assert_uint_ne(tensors[2]->handle, gone);
	ck_assert_ptr_eq(after(gone, 9, &at, &left), tensors[3]);
	/* Without looks it stays; behind the last slot, and far beyond, it is the end. */
	ck_assert_ptr_null(after(3, 0, &at, &left));
	ck_assert(at == 3 && left == 0);
	for (unsigned i = 0; i < 4; i++) {
		static const uint64_t beyond[] = {5, 6, UINT32_MAX, UINT64_MAX};
		ck_assert_ptr_null(after(beyond[i], 9, &at, &left));
		ck_assert(at == 0 && left == 9);
	}
	ck_assert_ptr_eq(after(UINT64_C(7) << 32, 9, &at, &left), tensors[0]);
	for (unsigned i = 0; i < 5; i++)
		table_remove(rig.device, tensors[i]);
	/* Empty slots are looked at too. */
	ck_assert_ptr_null(after(1, 3, &at, &left));
	ck_assert(at == 4 && left == 0);
	ck_assert_ptr_null(after(4, 3, &at, &left));
	ck_assert(at == 0 && left == 2);
}

TEST(no_memory)
{
	enum { N = 65, ALLOCS_MAX = 3 }; /* chunks are listed at first; each new slot takes a struct */
	struct tensor *tensors[N];
	rig_reopen(&rig, 1, 1024);
	for (unsigned i = 0; i < N; i++) {
		int64_t fail_at = 0;
		do {
			ck_assert_int_le(fail_at, ALLOCS_MAX);
			scarce_arm(&rig.scarce, fail_at++);
			tensors[i] = table_add(rig.device);
			ck_assert(scarce_fired(&rig.scarce) == !tensors[i]);
		} while (!tensors[i]);
		for (unsigned k = 0; k <= i; k++)
			ck_assert_ptr_eq(device_find(rig.device, tensors[k]->handle), tensors[k]);
	}
	for (unsigned i = 0; i < N; i++)
		table_remove(rig.device, tensors[i]);
	/* Structs stay for the next ones. */
	scarce_arm(&rig.scarce, 0);
	for (unsigned i = 0; i < 65; i++)
		tensors[i] = table_add(rig.device);
	ck_assert(!scarce_fired(&rig.scarce));
	for (unsigned i = 0; i < 65; i++)
		table_remove(rig.device, tensors[i]);
}

/* A table that is moved when it is full takes as much again for one tensor as for all before it. */
TEST(no_tensor_pays_for_all)
{
	enum { N = 20000, LIST_BYTES = 8192 };
	rig_reopen(&rig, 1, 1024);
	uint64_t tensors_bytes = TENSORS_PER_CHUNK * sizeof(struct tensor);
	for (unsigned i = 0; i < N; i++) {
		uint64_t before = scarce_measure(&rig.scarce);
		ck_assert_ptr_nonnull(table_add(rig.device));
		ck_assert_uint_le(rig.scarce.most_bytes - before, tensors_bytes + LIST_BYTES);
	}
	for (unsigned i = 0; i < N; i++)
		table_remove(rig.device, device_find(rig.device, i + 1));
}
