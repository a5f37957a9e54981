/* Sums against a count of every byte, for tensors that begin anywhere and go round. */
#include "daemon/device/tensors/totals.h"

#include "tests/unit/daemon/device/rig.h"

enum { N_NPUS = 5, N = 40 };

START_TEST(npus_hold_what_a_count_says)
{
	struct rig rig;
	struct tensor *tensors[N];
	int64_t expected[N_NPUS] = {0}, found[N_NPUS];
	srand(7);
	rig_open(&rig, N_NPUS, 1 << 20);
	for (unsigned i = 0; i < N; i++) {
		struct device_request request = rig_request(NPUMEM_FX16, 1 + rand() % 3, 1 + rand() % 13, 2, 3);
		request.spec.start_npu = rand() % N_NPUS;
		tensors[i] = rig_place(&rig, &request);
	}
	for (unsigned gone = 0; gone <= N; gone += N / 4) {
		memset(expected, 0, sizeof(expected));
		for (unsigned i = gone; i < N; i++)
			for (int64_t c = 0; c < tensors[i]->place.shape.c; c++)
				expected[(tensors[i]->place.start_npu + c) % N_NPUS] +=
					tensors[i]->place.shape.n * 2 * 3 * 2;
		device_npus(rig.device, found);
		for (unsigned npu = 0; npu < N_NPUS; npu++)
			ck_assert_int_eq(found[npu], expected[npu]);
		for (unsigned i = gone; i < gone + N / 4 && i < N; i++)
			rig_release(&rig, tensors[i]);
	}
	rig_close(&rig);
}
END_TEST

Suite *suite_totals(void)
{
	Suite *suite = suite_create("totals");
	TCase *tests = tcase_create("totals");
	tcase_add_test(tests, npus_hold_what_a_count_says);
	suite_add_tcase(suite, tests);
	return suite;
}
