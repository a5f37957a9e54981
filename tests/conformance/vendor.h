/* A device of the vendor's geometry whose every byte is poisoned, and the image that it should end up with. A case
 * places tensors where the vendor had them, moves data, tells what bytes the vendor's model wrote, and compares
 * all 32 MiB. */
#ifndef CONFORMANCE_VENDOR_H
#define CONFORMANCE_VENDOR_H

#include <check.h>
#include <jansson.h>

#include "daemon/device/operations/op.h"

enum { VENDOR_TENSORS_MAX = 4 };

struct vendor {
	struct npumem_geometry geometry;
	struct device *device;
	void *memory;
	uint8_t poison;
	uint8_t *expected; /* X * S bytes, by address */
	struct tensor *tensors[VENDOR_TENSORS_MAX];
	unsigned n_tensors;
};

void vendor_open(struct vendor *vendor, uint8_t poison);
void vendor_close(struct vendor *vendor);

/* Allocates at spec's address, or says why not: 0 or a status, and the error. */
int vendor_try(struct vendor *vendor, const struct npumem_spec *spec, struct tensor **tensor,
	       struct npumem_error *error);
/* The same, where a refusal fails the test. */
struct tensor *vendor_place(struct vendor *vendor, const struct npumem_spec *spec);
/* Lets go of a tensor whose bytes are not to be compared: they are poison again. */
void vendor_drop(struct vendor *vendor, struct tensor *tensor);
/* Lets go of all tensors; device and expected image are poison again. */
void vendor_reset(struct vendor *vendor);

/* DMA of the whole tensor; `stride` of system memory in elements, NULL for continuous. */
void vendor_write(struct vendor *vendor, struct tensor *tensor, const void *from, size_t bytes,
		  const struct npumem_dims *stride);
void vendor_read(struct vendor *vendor, struct tensor *tensor, void *to, size_t bytes,
		 const struct npumem_dims *stride);
void vendor_copy(struct vendor *vendor, struct tensor *to, struct tensor *from);
/* Runs a kernel that has roles in1, in2 and out. */
void vendor_run(struct vendor *vendor, const struct npumem_kernel_row *kernel, struct tensor *in1,
		struct tensor *in2, struct tensor *out, struct npumem_param *param);

/* The bytes at `offset` of `npu` were written, and are these; or have this CRC-32. */
void vendor_expect(struct vendor *vendor, int64_t npu, int64_t offset, const void *bytes, int64_t n);
void vendor_expect_crc(struct vendor *vendor, int64_t npu, int64_t offset, int64_t n, uint32_t crc);
/* "npus": [{npu, runs: [[offset, length, crc32]...]}...] */
void vendor_expect_runs(struct vendor *vendor, const json_t *npus);
/* Image: [{npu, bytes: [[offset, hex]...]}...]; returns how many bytes it has. */
int64_t vendor_expect_image(struct vendor *vendor, const json_t *image);
/* Every byte of the device is as expected. */
void vendor_compare(struct vendor *vendor, const char *what, int64_t id);
/* The first address at which device and expected image differ, or -1. */
int64_t vendor_difference(struct vendor *vendor);

/* ---- the files ---- */

json_t *vendor_load(const char *name);
int64_t vendor_int(const json_t *object, const char *key);
const char *vendor_text(const json_t *object, const char *key);
bool vendor_bool(const json_t *object, const char *key);
struct npumem_dims vendor_dims(const json_t *object, const char *key);
/* Unsigned elements of 8, 16 or 32 bits. */
int vendor_dtype(int64_t bits);

/* A spec at `address`. `layout` "aligned" and "compact" are asked for by name where the manual's alignment allows
 * the address, which the vendor's model does not check; otherwise, and for "free", the strides are given. */
struct npumem_spec vendor_spec(int dtype, int mode, const char *layout, int64_t address,
			       const struct npumem_dims *shape, const struct npumem_dims *stride);
void vendor_stride_eq(const struct npumem_dims *stride, const struct npumem_dims *expected, int64_t id);

Suite *vendor_suite_layout(void);
Suite *vendor_suite_placement(void);
Suite *vendor_suite_modes(void);

#endif
