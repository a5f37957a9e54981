/* Strided boxes: equal runs of bytes at regular distances in up to four dimensions, as bits of a window of
 * offsets. What a place takes of one NPU is a box or two (kind_mask.c). */
#ifndef FORMULAS_STRIDED_BOX_H
#define FORMULAS_STRIDED_BOX_H

#include <stdbool.h>
#include <stdint.h>

enum { STRIDED_BOX_DIMS = 4, STRIDED_BOX_STAMP_BITS = 64 };

/* `count` steps of `stride` bytes; `reach`: bytes from the first to behind the last byte of one step. */
struct strided_box_axis {
	int64_t stride, count, reach;
};

/* Made by strided_box_init only. */
struct strided_box {
	int64_t low, end;      /* its first byte, and behind its last */
	int64_t run;	       /* bytes of what the axes repeat */
	uint64_t stamp;	       /* which of these are in the box; 0: all of them */
	uint64_t pattern;      /* the stamp as the last axis repeats it, in 64 bits; 0: its steps are wider */
	unsigned n, n_tangled; /* axes, widest stride first; those before n_tangled have steps that overlap */
	struct strided_box_axis axes[STRIDED_BOX_DIMS];
};

struct strided_box_dim {
	int64_t stride, count; /* in bytes, > 0 where count > 1 */
};

/* Bytes [low + sum of i[k] * stride[k], + bytes), 0 <= i[k] < count[k], for up to four dims in any order. False
 * where a count is below 1, as there is no such byte. All offsets are below 2^31. */
bool strided_box_init(struct strided_box *box, int64_t low, int64_t bytes, const struct strided_box_dim *dims,
		      unsigned n);

/* Ors the box into `bits`: bit i is byte from + i, for i < 64 * n_words. Costs about as much as there are steps
 * that touch the window, and words. */
void strided_box_fill(const struct strided_box *box, int64_t from, unsigned n_words, uint64_t *bits);

/* Whether byte `at` is in the box, and behind the byte that it returns is the next one where that may differ;
 * INT64_MAX: there is none. */
int64_t strided_box_until(const struct strided_box *box, int64_t at, bool *in);

/* Up to where the box repeats itself from `at` on, of all periods up to `most` by its largest one, which joins
 * *period (their least common multiple; 2^31 where that is more). Without such a period as strided_box_until. */
int64_t strided_box_period(const struct strided_box *box, int64_t at, int64_t most, int64_t *period);

#endif
