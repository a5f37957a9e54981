/* Sums against a count of every byte, for tensors that begin anywhere and go round. */
#include "daemon/device/tensors/totals.h"

#include "tests/unit/daemon/device/rig.h"

enum { N_NPUS = 5, N = 40 };

static void count(const struct npumem_place *place, int64_t *npus)
{
	for (int64_t c = 0; c < place->shape.c; c++)
		npus[(place->start_npu + c) % N_NPUS] +=
			place->words_n * place->shape.h * place->word_bytes *
			(c == place->shape.c - 1 ? place->last_w : place->shape.w);
}

TEST(npus_hold_what_a_count_says)
{
	struct rig rig;
	struct tensor *tensors[N];
	int64_t expected[N_NPUS] = {0}, found[N_NPUS];
	srand(7);
	rig_open(&rig, N_NPUS, 1 << 20);
	for (unsigned i = 0; i < N; i++) {
		struct device_request request = rig_request(NPUMEM_FX16, 1 + rand() % 3, 1 + rand() % 13, 2, 3);
		if (i % 2)
			request = rig_matrix(i % 4 == 1 ? NPUMEM_INT8 : NPUMEM_FP32, 1 + rand() % 3,
					     7 + rand() % 30, 1 + rand() % 7);
		request.spec.start_npu = rand() % N_NPUS;
		tensors[i] = rig_place(&rig, &request);
	}
	for (unsigned gone = 0; gone <= N; gone += N / 4) {
		memset(expected, 0, sizeof(expected));
		for (unsigned i = gone; i < N; i++)
			count(TENSOR_PLACE(tensors[i]), expected);
		device_npus(rig.device, found);
		for (unsigned npu = 0; npu < N_NPUS; npu++)
			ck_assert_int_eq(found[npu], expected[npu]);
		for (unsigned i = gone; i < gone + N / 4 && i < N; i++)
			rig_release(&rig, tensors[i]);
	}
	rig_close(&rig);
}

/* A last channel of one column. */
TEST(a_narrow_last_channel)
{
	struct rig rig;
	int64_t found[2];
	rig_open(&rig, 2, 1024);
	struct device_request request = rig_matrix(NPUMEM_INT8, 1, 5, 4);
	struct tensor *tensor = rig_place(&rig, &request);
	device_npus(rig.device, found);
	ck_assert_int_eq(found[0], 4);
	ck_assert_int_eq(found[1], 1);
	rig_release(&rig, tensor);
	device_npus(rig.device, found);
	ck_assert_int_eq(found[0], 0);
	ck_assert_int_eq(found[1], 0);
	rig_close(&rig);
}
