/* A function of bytes as a table of all of them. */
#ifndef DEVICE_LUT_BYTES_H
#define DEVICE_LUT_BYTES_H

#include "daemon/device/fixed/rows/lut.h"

/* Fewer elements are looked up faster one by one. */
enum { LUT_BYTES_WORTH = 8192 };

struct lut_bytes {
	uint8_t results[256];
	uint8_t saturated[256]; /* 0xff where the result was clamped */
};

/* Of lut_result(). */
void lut_bytes_init(struct lut_bytes *bytes, const struct lut_reader *reader);
/* n elements. Adds to *saturated. */
void lut_bytes_row(enum isa isa, const struct lut_bytes *bytes, const uint8_t *in, int64_t n, uint8_t *out,
		   int64_t *saturated);

#endif
