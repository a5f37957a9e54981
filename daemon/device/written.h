/* Whether a tensor's data was ever written, and whether it is damaged. */
#ifndef DEVICE_WRITTEN_H
#define DEVICE_WRITTEN_H

#include "daemon/device/internal.h"

/* True where every data byte was written. */
bool written_all(struct device *device, const struct tensor *tensor);

/* 0, or FAILED_PRECONDITION saying where the first byte never written is, whatever the policy. */
int written_check(struct device *device, struct tensor *tensor, const struct asker *asker);
/* The same for elements [first, first + count). */
int written_check_of(struct device *device, struct tensor *tensor, int64_t first, int64_t count,
		     const struct asker *asker);

/* Bytes of a tensor's data that were never written, or that are damaged. */
int64_t written_missing(const struct device *device, const struct tensor *tensor);
int64_t written_damaged(const struct device *device, const struct tensor *tensor);

#endif
