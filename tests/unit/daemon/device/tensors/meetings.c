/* Who meets whom, against the ranges of offsets and a byte map of footprints and data; and that nobody meets more
 * than he may. */
#include "daemon/device/tensors/meetings.h"

#include "tests/unit/daemon/device/places.h"

FIXTURE_OBJECT(struct rig, rig, rig_open(&rig, 4, 1024), rig_close(&rig))

static bool ranges_meet(const struct tensor *a, const struct tensor *b)
{
	const struct npumem_place *x = TENSOR_PLACE(a), *y = TENSOR_PLACE(b);
	return x->offset < y->offset + y->bytes_per_npu && y->offset < x->offset + x->bytes_per_npu;
}

/* Whether a kernel that writes `out` may write data of `other`. */
static bool destroys(const struct npumem_geometry *geometry, const struct tensor *out, const struct tensor *other)
{
	static uint8_t kinds[4096];
	const struct npumem_place *place = TENSOR_PLACE(other);
	for (int64_t npu = 0; npu < geometry->n_npus; npu++) {
		memset(kinds, 0, (size_t)place->bytes_per_npu);
		npumem_place_paint(geometry, place, npu, 0, place->bytes_per_npu, kinds);
		for (int64_t i = 0; i < place->bytes_per_npu; i++)
			if (kinds[i] & (NPUMEM_BYTE_DATA | NPUMEM_BYTE_DUMMY) &&
			    place->offset + i >= tensor_place(out).offset &&
			    place->offset + i < tensor_place(out).offset + tensor_place(out).bytes_per_npu)
				return true;
	}
	return false;
}

static bool have(const struct tensor *a, const struct tensor *b)
{
	const struct meeting *meeting = meetings_first(a);
	while (meeting && meeting->other != tensor_root(b))
		meeting = meeting->next;
	return meeting;
}

static void check_all(struct tensor *const *tensors, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned n_meetings = 0, n_links = 0;
		for (unsigned k = 0; k < n; k++) {
			bool meet = i != k && ranges_meet(tensors[i], tensors[k]);
			n_meetings += meet;
			ck_assert_int_eq(have(tensors[i], tensors[k]), meet);
			if (i != k)
				ck_assert_int_eq(destroys(&rig.options.geometry, tensors[i], tensors[k]) ||
							 destroys(&rig.options.geometry, tensors[k], tensors[i]),
						 meet);
		}
		for (const struct meeting *meeting = meetings_first(tensors[i]); meeting; meeting = meeting->next)
			n_links++;
		ck_assert_uint_eq(n_links, n_meetings);
		ck_assert_uint_eq(tensors[i]->n_meetings, n_meetings);
	}
}

TEST(as_the_bytes_say)
{
	uint64_t random = 5;
	for (int round = 0; round < 12; round++) {
		struct tensor *tensors[12], *tensor;
		unsigned n = 0;
		rig_reopen(&rig, 4, 4096);
		for (int i = 0; i < 60; i++) {
			struct device_request request = places_request(&random, 4);
			request.reuse = NPUMEM_UNCHECKED;
			request.spec.address = request.spec.start_npu * 4096 + oracle_between(&random, 0, 60) * 64;
			if (n < 12 && oracle_random(&random) % 4 && !rig_try(&rig, &request, &tensor)) {
				tensors[n++] = tensor;
			} else if (n) {
				unsigned k = oracle_random(&random) % n;
				rig_release(&rig, tensors[k]);
				tensors[k] = tensors[--n];
			}
			check_all(tensors, n);
		}
	}
}

TEST(of_views)
{
	struct device_request request = rig_request(NPUMEM_INT8, 1, 1, 1, 16);
	request.reuse = NPUMEM_UNCHECKED;
	request.spec.address = 0;
	struct tensor *host = rig_place(&rig, &request), *view;
	request.spec.address = 1024;
	struct tensor *guest = rig_place(&rig, &request);
	struct device_slice slice = {{0, 0, 0, 8}, {1, 1, 1, 16}};
	ck_assert_int_eq(device_view_slice(rig.device, host, &slice, &view, &rig.context), 0);
	ck_assert(have(view, guest));
	ck_assert(have(guest, view));
	ck_assert(!have(view, host));
	ck_assert_ptr_eq(meetings_first(view)->other, guest);
	rig_release(&rig, host);
	ck_assert_ptr_null(meetings_first(guest));
}

/* Four bytes in empty blocks of the host. */
static struct device_request crowd_request(int64_t npu, int64_t offset)
{
	struct device_request request = rig_request(NPUMEM_INT8, 1, 1, 1, 4);
	request.spec.layout = NPUMEM_COMPACT;
	request.spec.address = npu * 4096 + offset;
	request.reuse = NPUMEM_IF_SAFE;
	request.dma_only = true;
	return request;
}

TEST(no_more_than_so_many)
{
	struct tensor *tensor;
	rig_reopen(&rig, 512, 4096);
	struct device_request request = rig_request(NPUMEM_INT8, 1, 1, 1, 1024);
	request.dma_only = true;
	request.spec.address = 0;
	struct tensor *host = rig_place(&rig, &request);
	host->owner = (char *)"host";
	struct device_request other = rig_request(NPUMEM_INT8, 1, 512, 1, 3072);
	struct tensor *rest = rig_place(&rig, &other);
	for (int i = 0; i < MEETINGS_MAX; i++) {
		request = crowd_request(1 + i, i % 8 * 4);
		tensor = rig_place(&rig, &request);
	}
	ck_assert_uint_eq(host->n_meetings, MEETINGS_MAX);
	request = crowd_request(300, 512);
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "host shares its footprint with 256 tensors");
	ck_assert_str_eq(rig_text(&rig, "tensor"), "host");
	request.spec.start_npu = 300;
	request.spec.address = NPUMEM_ANY;
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "no room");
	/* Room for one more, and so for the search too. */
	rig_release(&rig, tensor);
	tensor = rig_place(&rig, &request);
	ck_assert_int_eq(tensor_place(tensor).offset, 0);
	/* Over the guests alone, and then over one more. */
	rig_release(&rig, host);
	request = rig_request(NPUMEM_INT8, 1, 1, 1, 512);
	request.spec.layout = NPUMEM_COMPACT;
	request.spec.address = 400 * 4096;
	request.reuse = NPUMEM_UNCHECKED;
	host = rig_place(&rig, &request);
	ck_assert_uint_eq(host->n_meetings, MEETINGS_MAX);
	rig_release(&rig, host);
	struct device_request one = crowd_request(301, 300);
	one.reuse = NPUMEM_UNCHECKED;
	rig_place(&rig, &one);
	rig_refuses(&rig, &request, NPUMEM_RESOURCE_EXHAUSTED, "over more than 256 others");
	rig_release(&rig, rest);
}
