/* Footprints over footprints, as the arena sees them: freeing cuts blocks, and must never need host memory for it.
 * What is lent, counted and kept is the model's and the other files'. */
#include "daemon/device/reuse/overlap.h"

#include "daemon/device/arena/free_blocks.h"
#include "daemon/device/reuse/overlap_walk.h"
#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/rig.h"

FIXTURE_OBJECT(struct rig, rig, rig_open(&rig, 4, 512), rig_close(&rig))

/* Frees a tensor of an arena that has no entry but those set aside; returns with the others back. */
static void release_with_what_was_set_aside(struct tensor *tensor)
{
	struct arena *arena = rig.device->arena;
	uint32_t n_hidden = arena->n_unused > arena->spare ? arena->n_unused - arena->spare : 0;
	struct block *hidden = arena->unused, *last = NULL;
	for (uint32_t i = 0; i < n_hidden; i++)
		last = last ? last->next : hidden;
	if (n_hidden) {
		arena->unused = last->next;
		arena->n_unused -= n_hidden;
	}
	scarce_arm(&rig.scarce, 0);
	rig_release(&rig, tensor);
	ck_assert(!scarce_fired(&rig.scarce));
	scarce_arm(&rig.scarce, -1);
	if (n_hidden) {
		last->next = arena->unused;
		arena->unused = hidden;
		arena->n_unused += n_hidden;
	}
}

/* However guests lie over each other, what each of them set aside is enough for every cut that freeing will make.
 */
TEST(freeing_takes_none)
{
	uint64_t random = 21;
	for (int round = 0; round < 30; round++) {
		struct tensor *tensors[40], *tensor;
		unsigned n = 0;
		rig_reopen(&rig, 4, 512);
		for (int i = 0; i < 200; i++) {
			struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, 1);
			request.spec.layout = NPUMEM_COMPACT;
			request.spec.start_npu = oracle_between(&random, 0, 3);
			request.spec.shape.w = oracle_between(&random, 1, 120);
			request.spec.address = request.spec.start_npu * 512 + oracle_between(&random, 0, 98) * 4;
			request.reuse = NPUMEM_UNCHECKED;
			if (n < 40 && oracle_random(&random) % 5 < 3 && !rig_try(&rig, &request, &tensor)) {
				tensors[n++] = tensor;
			} else if (n) {
				unsigned k = oracle_random(&random) % n;
				release_with_what_was_set_aside(tensors[k]);
				tensors[k] = tensors[--n];
			}
			rig_sound(&rig);
		}
	}
}

static struct tensor *guest_at(int64_t npu, int64_t offset, int64_t w)
{
	struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, w);
	request.spec.layout = NPUMEM_COMPACT;
	request.spec.start_npu = npu;
	request.spec.address = npu * 512 + offset;
	request.reuse = NPUMEM_UNCHECKED;
	return rig_place(&rig, &request);
}

/* No later walk has to find it: what takes long for many guests is done for each when its last host goes. */
TEST(a_guest_without_hosts_is_none)
{
	struct arena_extent extent;
	struct tensor *alone = guest_at(0, 256, 64);
	ck_assert(!tensor_is_guest(alone));
	struct tensor *host = guest_at(0, 0, 128);
	struct tensor *one = guest_at(1, 32, 32), *other = guest_at(2, 48, 32), *third = guest_at(3, 96, 32);
	ck_assert(tensor_is_guest(one) && tensor_is_guest(other) && tensor_is_guest(third));
	release_with_what_was_set_aside(host);
	ck_assert(tensor_is_guest(one) && tensor_is_guest(other));
	ck_assert(!tensor_is_guest(third));
	ck_assert(arena_at(rig.device->arena, 100, &extent));
	ck_assert(extent.tag == third && extent.offset == 96 && extent.bytes == 32);
	rig_sound(&rig);
	release_with_what_was_set_aside(one);
	ck_assert(!tensor_is_guest(other));
	ck_assert_ptr_null(rig.device->guests.root);
	ck_assert_uint_eq(rig.device->arena->spare, 0);
	rig_sound(&rig);
}

/* Of several that a range meets, the one that starts first, guests included; sharing a quantum is not meeting. */
TEST(the_first_one)
{
	rig_reopen(&rig, 2, 512);
	struct tensor *host = rig_block(&rig, 128, 128);
	struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, 4);
	request.spec.layout = NPUMEM_STRIDED;
	request.spec.stride = (struct npumem_dims){1, 1, 1, 1};
	request.spec.address = 101;
	struct tensor *odd = rig_place(&rig, &request);
	struct npumem_place place = tensor_place(odd);
	ck_assert_ptr_eq(overlap_first(rig.device, &place), odd);
	place.offset = 105;
	ck_assert_ptr_null(overlap_first(rig.device, &place));
	place.offset = 97;
	ck_assert_ptr_null(overlap_first(rig.device, &place));
	place.bytes_per_npu = 5;
	ck_assert_ptr_eq(overlap_first(rig.device, &place), odd);
	place.bytes_per_npu = 200;
	ck_assert_ptr_eq(overlap_first(rig.device, &place), odd);
	place.offset = 110;
	ck_assert_ptr_eq(overlap_first(rig.device, &place), host);
	ck_assert(!overlap_any(rig.device, host));
}
