/* In these tests looking at any tensor's marks takes long, counting what lies over another takes several turns,
 * and so does placing over others: what else only large devices make long. The linker puts these in the place of
 * the device's own (--wrap). */
#include "daemon/device/device.h"

enum { LONG = 1 << 20, FEW_STEPS = 2 };

int64_t __real_device_scan_cost(const struct device *device, const struct tensor *tensor);
int64_t __wrap_device_scan_cost(const struct device *device, const struct tensor *tensor);
bool __real_device_stat_count(struct device *device, unsigned most);
bool __wrap_device_stat_count(struct device *device, unsigned most);
int __real_device_alloc_step(struct device_alloc *alloc, int64_t *steps, const struct error_context *context);
int __wrap_device_alloc_step(struct device_alloc *alloc, int64_t *steps, const struct error_context *context);

int64_t __wrap_device_scan_cost(const struct device *device, const struct tensor *tensor)
{
	return __real_device_scan_cost(device, tensor) * LONG;
}

bool __wrap_device_stat_count(struct device *device, unsigned most)
{
	return __real_device_stat_count(device, most ? 1 : 0);
}

int __wrap_device_alloc_step(struct device_alloc *alloc, int64_t *steps, const struct error_context *context)
{
	if (*steps > FEW_STEPS)
		*steps = FEW_STEPS;
	return __real_device_alloc_step(alloc, steps, context);
}
