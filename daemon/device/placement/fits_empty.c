/* Placed by the same code as ever, on a device of its own that is given up again; so alignment, fixed addresses
 * that meet, and the order in which several are placed say here what they would say there. Touches no local
 * memory: the empty device stands over this one's, and nothing is written through it. */
#include "daemon/device/placement/fits_empty.h"

#include "daemon/device/internal.h"

/* INT64_MAX is far from 256 times the most that a resolved place can have. */
static bool sum_fits(const struct device *device, const struct device_request *requests, unsigned n)
{
	int64_t bytes = 0, most = device->options.geometry.npu_bytes;

	for (unsigned i = 0; i < n; i++) {
		struct npumem_place place;

		if (npumem_place_resolve(&device->options.geometry, &requests[i].spec, &place, NULL) ||
		    place.bytes_per_npu > most)
			return false;
		/* What may lie in others' empty blocks needs no bytes of its own. */
		if (requests[i].reuse <= NPUMEM_NEVER)
			bytes += place.bytes_per_npu;
		if (bytes > most)
			return false;
	}
	return true;
}

static bool place_all(struct device *empty, const struct device_request *requests, unsigned n)
{
	struct npumem_error error;
	struct error_context context = {.error = &error};
	struct tensor *tensor;

	for (unsigned i = 0; i < n; i++) {
		npumem_error_clear(&error);
		/* What may lie over others would be compared with each of them, in this turn of the loop. A lack
		 * of the daemon's own memory says nothing about the device, and has none of its numbers. */
		if (requests[i].reuse <= NPUMEM_NEVER && device_alloc(empty, &requests[i], 1, &tensor, &context))
			return error.status == NPUMEM_RESOURCE_EXHAUSTED &&
			       npumem_error_find(&error, "asked_bytes_per_npu", -1) < 0;
	}
	return true;
}

bool fits_empty_fits(const struct device *device, const struct device_request *requests, unsigned n)
{
	struct device *empty;
	bool fits;

	if (!sum_fits(device, requests, n))
		return false;
	if (device->options.geometry.npu_bytes > FITS_EMPTY_NPU_BYTES_MAX ||
	    device_new(&device->options, device->heap, device->local.lanes, &empty))
		return true;
	fits = place_all(empty, requests, n);
	device_free(empty);
	return fits;
}
