/* Handles: each finds its tensor while it lives, and nothing ever after. */
#include "daemon/device/table.h"

#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/rig.h"

enum { N_HANDLES = 3000 };

START_TEST(stale_handles_find_nothing)
{
	static uint64_t handles[N_HANDLES];
	static struct tensor *tensors[N_HANDLES];
	struct rig rig;
	uint64_t random = 9;
	unsigned n = 0;
	rig_open(&rig, 1, 4096);
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
	rig_close(&rig);
}
END_TEST

/* 2^32 tensors later a slot is not used again, rather than give a handle twice. */
START_TEST(generations_run_out)
{
	struct rig rig;
	rig_open(&rig, 1, 1024);
	struct tensor *tensor = table_add(rig.device);
	uint64_t first = tensor->handle;
	table_remove(rig.device, tensor);
	rig.device->slots[0].generation = UINT32_MAX;
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
	rig_close(&rig);
}
END_TEST

START_TEST(no_memory)
{
	struct rig rig;
	struct tensor *tensors[65];
	rig_open(&rig, 1, 1024);
	/* The slots grow at 0, 32 and 64; every new one takes a struct. */
	for (unsigned i = 0; i < 65; i++) {
		for (int64_t fail_at = 0; fail_at < (i % 32 ? 1 : 2); fail_at++) {
			scarce_arm(&rig.scarce, fail_at);
			ck_assert_ptr_null(table_add(rig.device));
		}
		scarce_arm(&rig.scarce, -1);
		tensors[i] = table_add(rig.device);
		ck_assert_ptr_nonnull(tensors[i]);
		for (unsigned k = 0; k <= i; k++)
			ck_assert_ptr_eq(device_find(rig.device, tensors[k]->handle), tensors[k]);
	}
	for (unsigned i = 0; i < 65; i++)
		table_remove(rig.device, tensors[i]);
	/* Structs stay for the next ones. */
	scarce_arm(&rig.scarce, 0);
	for (unsigned i = 0; i < 65; i++)
		tensors[i] = table_add(rig.device);
	ck_assert(!scarce_fired(&rig.scarce));
	for (unsigned i = 0; i < 65; i++)
		table_remove(rig.device, tensors[i]);
	rig_close(&rig);
}
END_TEST

Suite *suite_table(void)
{
	Suite *suite = suite_create("device/table");
	TCase *tcase = tcase_create("table");
	tcase_add_test(tcase, stale_handles_find_nothing);
	tcase_add_test(tcase, generations_run_out);
	tcase_add_test(tcase, no_memory);
	suite_add_tcase(suite, tcase);
	return suite;
}
