/* Allocation in pieces: the same answers as in one, and what others may do meanwhile. */
#include <errno.h>

#include "daemon/device/internal.h"
#include "daemon/device/reuse/overlap.h"
#include "daemon/device/tensors/meetings.h"
#include "tests/unit/daemon/device/places.h"

/* Steps of `each` until it is done; between them nobody sees what is being placed. */
static int alloc_in_pieces(struct rig *rig, const struct device_request *requests, unsigned n,
			   struct tensor **tensors, int64_t each, unsigned *n_pieces)
{
	struct device_alloc alloc;
	int status;
	npumem_error_clear(&rig->error);
	device_alloc_begin(&alloc, rig->device, requests, n, tensors);
	for (;;) {
		int64_t steps = each;
		status = device_alloc_step(&alloc, &steps, &rig->context);
		if (status > 0)
			while (!device_alloc_cancel(&alloc, &steps))
				steps = each;
		if (status != -EAGAIN)
			return status;
		++*n_pieces;
		rig_sound(rig);
		for (struct tensor *t = device_next(rig->device, NULL); t; t = device_next(rig->device, t))
			ck_assert(!t->placing);
	}
}

/* Two devices get the same requests, one of them in pieces: places and refusals are the same. */
TEST(as_in_one)
{
	unsigned n_pieces = 0, n_placed = 0;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct rig one, two;
		uint64_t random = seed;
		rig_open(&one, 4, 2048);
		rig_open(&two, 4, 2048);
		for (int i = 0; i < 30; i++) {
			struct device_request requests[3];
			struct tensor *first[3], *second[3];
			unsigned n = (unsigned)oracle_between(&random, 1, 3);
			for (unsigned k = 0; k < n; k++) {
				requests[k] = places_request(&random, 4);
				requests[k].reuse = (int)oracle_between(&random, 1, 3);
				requests[k].dma_only = oracle_random(&random) % 4 != 0;
			}
			npumem_error_clear(&one.error);
			int status = device_alloc(one.device, requests, n, first, &one.context);
			ck_assert_int_eq(alloc_in_pieces(&two, requests, n, second, oracle_between(&random, 1, 20),
							 &n_pieces),
					 status);
			ck_assert_str_eq(one.error.message, two.error.message);
			for (unsigned k = 0; k < n && !status; k++, n_placed++) {
				ck_assert_int_eq(tensor_place(first[k]).address, tensor_place(second[k]).address);
				ck_assert(!second[k]->placing);
			}
			rig_sound(&two);
		}
		rig_close(&one);
		rig_close(&two);
	}
	ck_assert_uint_ge(n_pieces, 100);
	ck_assert_uint_ge(n_placed, 100);
}

/* A device of 4 NPUs that is full, but for the empty blocks of 3 hosts on NPU 3. */
static struct {
	struct tensor *hosts[3];
	struct device_request request; /* of a tensor that a search is made for */
} stage;
static struct device_alloc alloc;

static void stage_open(struct rig *to)
{
	rig_open(to, 4, 3 << 12);
	struct device_request host = rig_request(NPUMEM_INT8, 1, 3, 1, 1 << 12);
	host.dma_only = true;
	for (unsigned i = 0; i < 3; i++)
		stage.hosts[i] = rig_place(to, &host);
	stage.request = rig_request(NPUMEM_INT8, 1, 1, 1, 1 << 12);
	stage.request.spec.start_npu = 3;
	stage.request.reuse = NPUMEM_IF_SAFE;
	stage.request.dma_only = true;
}

FIXTURE_OBJECT(struct rig, rig, stage_open(&rig), rig_close(&rig))

static void stage_again(void)
{
	rig_close(&rig);
	stage_open(&rig);
}

/* One piece after the other, until the first tensor has entered a place and waits to be checked. */
static void step_until_entered(void)
{
	for (;;) {
		int64_t steps = 1;
		ck_assert_int_eq(device_alloc_step(&alloc, &steps, &rig.context), -EAGAIN);
		if (alloc.tensor && alloc.tensor->n_meetings)
			return;
	}
}

static int finish(void)
{
	int64_t steps = INT64_MAX;
	npumem_error_clear(&rig.error);
	int status = device_alloc_step(&alloc, &steps, &rig.context);
	if (status)
		ck_assert(device_alloc_cancel(&alloc, &steps));
	return status;
}

/* Whatever goes meanwhile, or comes. */
TEST(others_come_and_go)
{
	for (int what = 0; what < 4; what++) {
		struct tensor *tensor, *other;
		stage_again();
		device_alloc_begin(&alloc, rig.device, &stage.request, 1, &tensor);
		step_until_entered();
		ck_assert_int_eq(tensor_place(alloc.tensor).offset, 0);
		if (what == 0) {
			/* The host that it is being checked against, whose slot and place another one takes. */
			rig_release(&rig, stage.hosts[0]);
			ck_assert_uint_eq(alloc.tensor->n_meetings, 0);
		} else if (what == 1) {
			/* Another one that wants the same bytes is refused: they are held. */
			struct device_request same = stage.request;
			same.spec.address = 3 * (3 << 12);
			same.reuse = NPUMEM_UNCHECKED;
			rig_refuses(&rig, &same, NPUMEM_FAILED_PRECONDITION, "on data of");
		} else if (what == 2) {
			/* One that is searched for finds the next place. */
			other = rig_place(&rig, &stage.request);
			ck_assert_int_eq(tensor_place(other).offset, 1 << 12);
		} else {
			device_compact(rig.device, false, NULL, NULL);
		}
		rig_sound(&rig);
		ck_assert_int_eq(finish(), 0);
		ck_assert_int_eq(tensor_place(tensor).offset, 0);
		struct device_state state;
		device_state_lending(tensor, &state);
		ck_assert_int_eq(state.borrows, what != 0);
	}
}

/* What a search would find is taken while it goes on, whenever that is: it finds another. */
TEST(a_place_that_is_taken_meanwhile)
{
	bool entered = false;
	for (unsigned n = 1; !entered; n++) {
		struct tensor *tensor;
		stage_again();
		struct device_request taking = stage.request;
		taking.spec.address = 3 * (3 << 12);
		device_alloc_begin(&alloc, rig.device, &stage.request, 1, &tensor);
		for (unsigned i = 0; i < n; i++) {
			int64_t steps = 1;
			ck_assert_int_eq(device_alloc_step(&alloc, &steps, &rig.context), -EAGAIN);
		}
		entered = alloc.tensor->n_meetings > 0;
		if (!entered)
			rig_place(&rig, &taking);
		ck_assert_int_eq(finish(), 0);
		ck_assert_int_eq(tensor_place(tensor).offset, entered ? 0 : 1 << 12);
		ck_assert(!entered || n > 10);
	}
}

/* One that is being checked against a host which goes is checked against the next from the beginning. */
TEST(the_next_one_is_checked_anew)
{
	for (unsigned n = 1; n < 6; n++) {
		struct tensor *tensor;
		stage_again();
		/* Its data lies in the second host's empty block. */
		struct device_request wanted = stage.request, other = stage.request;
		wanted.spec.shape.w = 2 << 12;
		wanted.spec.address = 3 * (3 << 12);
		other.spec.address = 3 * (3 << 12) + (1 << 12);
		rig_place(&rig, &other)->owner = (char *)"other";
		device_alloc_begin(&alloc, rig.device, &wanted, 1, &tensor);
		for (unsigned i = 0; i < n; i++) {
			int64_t steps = 1;
			ck_assert_int_eq(device_alloc_step(&alloc, &steps, &rig.context), -EAGAIN);
		}
		rig_release(&rig, stage.hosts[0]);
		rig_release(&rig, stage.hosts[1]);
		rig_fails(&rig, finish(), NPUMEM_FAILED_PRECONDITION, "on data of other");
	}
}

/* A tensor of the request that has found free room stays there, as nobody could be told that it has moved. */
TEST(compaction_lets_them_lie)
{
	struct tensor *tensors[2];
	struct device_request requests[2] = {rig_request(NPUMEM_INT8, 1, 1, 1, 128), stage.request};
	rig_release(&rig, stage.hosts[2]);
	struct tensor *low = rig_place(&rig, &requests[0]);
	requests[1].spec.shape.w = 4096;
	struct device_request rest = rig_request(NPUMEM_INT8, 1, 4, 1, 4096 - 256);
	device_alloc_begin(&alloc, rig.device, requests, 2, tensors);
	rest.spec.address = 2 * 4096 + 256;
	rest.dma_only = true;
	rig_place(&rig, &rest);
	step_until_entered();
	ck_assert_uint_eq(alloc.i, 1);
	rig_release(&rig, low);
	device_compact(rig.device, false, NULL, NULL);
	ck_assert_int_eq(finish(), 0);
	ck_assert_int_eq(tensor_place(tensors[0]).offset, 2 * 4096 + 128);
	device_compact(rig.device, false, NULL, NULL);
	ck_assert_int_eq(tensor_place(tensors[0]).offset, 2 * 4096);
}

TEST(cancelled_at_any_step)
{
	bool done = false;
	for (int n = 1; !done; n++) {
		struct device_request requests[3];
		struct tensor *tensors[3];
		struct device_counts before, after;
		stage_again();
		for (unsigned i = 0; i < 3; i++)
			requests[i] = stage.request;
		device_stat(rig.device, &before);
		device_alloc_begin(&alloc, rig.device, requests, 3, tensors);
		for (int i = 0; i < n && !done; i++) {
			int64_t steps = 1;
			done = device_alloc_step(&alloc, &steps, &rig.context) == 0;
		}
		if (!done) {
			int64_t steps = INT64_MAX;
			ck_assert(device_alloc_cancel(&alloc, &steps));
			device_stat(rig.device, &after);
			ck_assert_int_eq(memcmp(&before, &after, sizeof(before)), 0);
			for (unsigned i = 0; i < 3; i++)
				ck_assert_uint_eq(stage.hosts[i]->n_meetings, 0);
		}
	}
}

/* A kernel that writes an output beside what is still being placed does not see it. */
TEST(no_data_yet)
{
	struct tensor *tensor;
	rig_reopen(&rig, 4, 1024);
	struct device_request request = rig_request(NPUMEM_FX8, 1, 3, 1, 64);
	struct tensor *out = rig_place(&rig, &request), *in = rig_place(&rig, &request);
	ck_assert_int_eq(rig_fill(&rig, in, 1), 0);
	request = rig_request(NPUMEM_FX8, 1, 1, 1, 64);
	request.spec.address = 3 * 1024;
	request.reuse = NPUMEM_IF_SAFE;
	request.dma_only = true;
	int64_t steps = 1;
	device_alloc_begin(&alloc, rig.device, &request, 1, &tensor);
	ck_assert_int_eq(device_alloc_step(&alloc, &steps, &rig.context), -EAGAIN);
	ck_assert_int_eq(rig_relu(&rig, in, out), 0);
	ck_assert_int_eq(finish(), NPUMEM_FAILED_PRECONDITION);
}

/* n tensors over one another meet in n * (n - 1) / 2 pairs. They are released in steps, and meanwhile no request
 * finds the rest. */
TEST(what_is_refused_goes_in_steps)
{
	enum { MANY = 64 };
	struct device_request requests[MANY + 1];
	struct tensor *tensors[MANY + 1];
	struct device_counts before, after;
	int64_t steps = INT64_MAX;
	unsigned n_calls = 1;
	rig_reopen(&rig, MANY + 1, 4096);
	struct device_request host = rig_request(NPUMEM_INT8, 1, 1, 1, 4096);
	host.dma_only = true;
	rig_place(&rig, &host);
	device_stat(rig.device, &before);
	for (unsigned i = 0; i < MANY; i++) {
		requests[i] = host;
		requests[i].spec.start_npu = 1 + (int)i;
		requests[i].reuse = NPUMEM_IF_SAFE;
	}
	requests[MANY] = host;
	device_alloc_begin(&alloc, rig.device, requests, MANY + 1, tensors);
	ck_assert_int_eq(device_alloc_step(&alloc, &steps, &rig.context), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_uint_eq(tensors[0]->n_meetings, MANY);
	for (steps = 100; !device_alloc_cancel(&alloc, &steps); steps = 100, n_calls++) {
		uint64_t at = 0;
		ck_assert_uint_le(alloc.i, MANY - 3 * n_calls);
		for (unsigned looks = 2 * MANY, n = 0; device_after(rig.device, &at, &looks); n++)
			ck_assert_uint_eq(n, 0);
	}
	ck_assert_uint_ge(n_calls, MANY * MANY / 4 / 140);
	device_stat(rig.device, &after);
	ck_assert_int_eq(memcmp(&before, &after, sizeof(before)), 0);
}
