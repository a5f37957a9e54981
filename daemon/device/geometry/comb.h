/* Combs: teeth of equal length at regular distances, in up to four dimensions. What a place takes of one NPU is
 * one comb or two (meet.c). Whether two combs share a byte is arithmetic, without a look at the teeth. */
#ifndef DEVICE_COMB_H
#define DEVICE_COMB_H

#include <stdbool.h>
#include <stdint.h>

enum { COMB_DIMS = 4 };

struct comb_dim {
	int64_t stride, count; /* in bytes, > 0; count > 1 */
};

/* Bytes [low + sum of i[k] * stride[k], + bytes), for 0 <= i[k] < count[k]. Largest strides first. No two teeth
 * share a byte. All offsets are below 2^31. */
struct comb {
	int64_t low, bytes;
	unsigned n;
	struct comb_dim dims[COMB_DIMS];
};

/* Repeats all that is there `count` > 0 times; in any order of strides. Teeth that touch become one. */
void comb_repeat(struct comb *comb, int64_t stride, int64_t count);

enum comb_answer { COMB_APART, COMB_MEET, COMB_UNKNOWN };

/* Whether two combs share a byte. Takes from *steps one for at most 0.4 us, and gives up with UNKNOWN when
 * there are none left: the same for the same combs and steps. */
enum comb_answer comb_meet(const struct comb *a, const struct comb *b, int64_t *steps);

/* Two combs that share a byte: the first tooth of `comb` that meets `other`, in the order of indices, the largest
 * stride first. Where strides nest that is the one with the lowest offset. False without steps left. */
bool comb_first(const struct comb *comb, const struct comb *other, int64_t *steps, int64_t *low);

#endif
